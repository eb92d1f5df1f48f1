//! Comparison of a new configuration with the one in force.

use super::Config;
use longwire_proto::bp::agent;
use longwire_settings::toml_text;
use std::collections::BTreeSet;

/// Section of the agent, of which only the limits change while it runs.
const AGENT: &str = "agent";

/// Settings that a running node applies on reload, beside those of the convergence layers.
const TAKEN_OVER: [&str; 10] =
    ["amateur-networks", "contact", "drop", "link", "peer", "peers", "receive", "route", "security", "tls"];

/// Differences between the configuration in force and a new one: names of settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Differences {
    /// Settings that apply at once.
    pub(crate) applied: Vec<String>,
    /// Settings that apply after a restart.
    pub(crate) needs_restart: Vec<String>,
}

impl Config {
    /// Compares this configuration, which is in force, with a new one.
    pub(crate) fn differences(&self, new: &Config) -> Differences {
        let mut applied: BTreeSet<&str> = self.carriers.differing(&new.carriers).collect();
        let mut needs_restart = BTreeSet::new();
        let (old_table, new_table) = (toml_text::to_table(self), toml_text::to_table(new));
        let keys: BTreeSet<&str> = old_table.keys().chain(new_table.keys()).map(String::as_str).collect();
        for key in keys.into_iter().filter(|key| old_table.get(*key) != new_table.get(*key)) {
            match key {
                AGENT => {
                    let same_limits =
                        agent::Config { limits: new.agent.limits.clone(), ..self.agent.clone() } == new.agent;
                    if self.agent.limits != new.agent.limits {
                        applied.insert("agent.limits");
                    }
                    if !same_limits {
                        needs_restart.insert(key);
                    }
                }
                _ if TAKEN_OVER.contains(&key) => _ = applied.insert(key),
                _ => _ = needs_restart.insert(key),
            }
        }
        let owned = |keys: BTreeSet<&str>| keys.into_iter().map(str::to_owned).collect();
        Differences { applied: owned(applied), needs_restart: owned(needs_restart) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn settings_that_apply_and_those_that_wait_are_named() {
        let config = |text: &str| Config::parse(text, "test", Path::new("/")).expect("it makes sense");
        let old = config("node = 'dtn://a/'");
        assert_eq!(old.differences(&old), Differences::default());
        let new = config(
            "node = 'dtn://b/'\nlisten = ['127.0.0.1:1']\nstorage.path = 'elsewhere'\npeers = 'any'\n\
             [[link]]\nname = 'b'\naddress = 'b:1'\n[tcpcl]\nkeepalive = '5 s'\n[agent.limits]\nbundles-max = 7\n\
             [[drop]]\nfolder = 'out'\nto = 'dtn://b/x'",
        );
        let differences = old.differences(&new);
        assert_eq!(differences.applied, ["agent.limits", "drop", "link", "peers", "tcpcl"]);
        assert_eq!(differences.needs_restart, ["listen", "node", "storage"]);
        let slower = config("node = 'dtn://a/'\nagent.backoff-min = '3 s'");
        assert_eq!(old.differences(&slower).needs_restart, ["agent"]);
        assert_eq!(old.differences(&slower).applied, [""; 0]);
    }
}
