//! Stories of the agent.
