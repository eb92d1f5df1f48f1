//! Messages to a higher room: the sender knows the type of its own messages, and not the one that the receiver handles.

use std::fmt;
use std::sync::Arc;
use tokio::sync::mpsc::UnboundedSender;

pub(crate) struct Tell<T>(Arc<dyn Fn(T) -> bool + Send + Sync>);

impl<T: 'static> Tell<T> {
    /// Creates a sender to the receiver of these events; `event` makes an event of a message.
    pub(crate) fn to<E: Send + 'static>(
        events: &UnboundedSender<E>,
        event: impl Fn(T) -> E + Send + Sync + 'static,
    ) -> Self {
        let events = events.clone();
        Tell(Arc::new(move |said| events.send(event(said)).is_ok()))
    }
}

impl<T> Tell<T> {
    /// Sends a message; returns false if the receiver is gone.
    pub(crate) fn tell(&self, said: T) -> bool {
        (self.0)(said)
    }
}

impl<T> Clone for Tell<T> {
    fn clone(&self) -> Self {
        Tell(self.0.clone())
    }
}

impl<T> fmt::Debug for Tell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tell")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_become_events_until_the_receiver_is_gone() {
        let (events, mut heard) = tokio::sync::mpsc::unbounded_channel::<u64>();
        let tell: Tell<u32> = Tell::to(&events, u64::from);
        assert!(tell.tell(7) && tell.clone().tell(8));
        assert_eq!([heard.try_recv(), heard.try_recv()], [Ok(7_u64), Ok(8)]);
        drop(heard);
        assert!(!tell.tell(9));
    }
}
