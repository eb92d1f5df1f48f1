//! Room granted to the user of a [`Driver`](super::Driver). Engines trust that their user respects it; these checks return
//! an error to a program that does not, instead of a panic.

use longwire_proto::engine::Service;
use longwire_proto::service::{
    Both, Datagrams, DatagramsIndication, DatagramsRequest, Frames, FramesIndication, FramesRequest, Many,
    Packets, PacketsIndication, PacketsRequest, Port,
};
use std::collections::BTreeMap;
use std::fmt::Debug;

/// Reason why a request is not passed to an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestRefused {
    /// The request needs more room than was granted and is unspent. Nothing was done.
    #[error("no room; nothing was done, wait for `Room`")]
    NoRoom,
}

/// Service whose room can be counted from its requests and indications.
pub trait CreditedService: Service {
    /// Room that was granted and is unspent; zero by default.
    type Room: Default + PartialEq + Debug;

    /// Spends the room that a request needs.
    ///
    /// # Errors
    /// Fails if there is less.
    fn spend(room: &mut Self::Room, request: &Self::Request) -> Result<(), RequestRefused>;

    /// Applies an indication to the room.
    fn hear(room: &mut Self::Room, indication: &Self::Indication);
}

fn spend_one(room: &mut u64) -> Result<(), RequestRefused> {
    *room = room.checked_sub(1).ok_or(RequestRefused::NoRoom)?;
    Ok(())
}

impl CreditedService for Frames {
    type Room = u64;

    fn spend(room: &mut u64, request: &FramesRequest) -> Result<(), RequestRefused> {
        match request {
            FramesRequest::Frame { .. } => spend_one(room),
            FramesRequest::Join | FramesRequest::Seize => Ok(()),
        }
    }

    fn hear(room: &mut u64, indication: &FramesIndication) {
        if let FramesIndication::Room(told) = indication {
            *room = (*told).into();
        }
    }
}

impl CreditedService for Packets {
    type Room = u64;

    fn spend(room: &mut u64, request: &PacketsRequest) -> Result<(), RequestRefused> {
        match request {
            PacketsRequest::Packet { .. } => return spend_one(room),
            // A connection starts without room.
            PacketsRequest::Connect => *room = 0,
            PacketsRequest::Release(_)
            | PacketsRequest::Acknowledge
            | PacketsRequest::Close
            | PacketsRequest::Abort => {}
        }
        Ok(())
    }

    fn hear(room: &mut u64, indication: &PacketsIndication) {
        match indication {
            PacketsIndication::Room(told) => *room = *told,
            PacketsIndication::Connected { .. } | PacketsIndication::Closed(_) => *room = 0,
            PacketsIndication::Sizes { .. }
            | PacketsIndication::Packet(_)
            | PacketsIndication::Acknowledged(_) => {}
        }
    }
}

impl CreditedService for Datagrams {
    type Room = u64;

    fn spend(room: &mut u64, request: &DatagramsRequest) -> Result<(), RequestRefused> {
        match request {
            DatagramsRequest::Datagram { .. } => return spend_one(room),
            DatagramsRequest::Join { .. } | DatagramsRequest::Leave => *room = 0,
            DatagramsRequest::Release(_) => {}
        }
        Ok(())
    }

    fn hear(room: &mut u64, indication: &DatagramsIndication) {
        match indication {
            DatagramsIndication::Room(told) => *room = *told,
            DatagramsIndication::Joined { .. } | DatagramsIndication::Left(_) => *room = 0,
            DatagramsIndication::Carrier(_)
            | DatagramsIndication::Transmitted(_)
            | DatagramsIndication::Datagram { .. } => {}
        }
    }
}

/// Has an entry for each user with room: as many as there are connections and groups.
impl<Id: Copy + Ord + Debug, S: CreditedService> CreditedService for Many<Id, S> {
    type Room = BTreeMap<Id, S::Room>;

    fn spend(room: &mut Self::Room, (id, request): &Self::Request) -> Result<(), RequestRefused> {
        with(room, *id, |room| S::spend(room, request))
    }

    fn hear(room: &mut Self::Room, (id, indication): &Self::Indication) {
        with(room, *id, |room| S::hear(room, indication));
    }
}

fn with<Id: Ord, R: Default + PartialEq, T>(
    rooms: &mut BTreeMap<Id, R>,
    id: Id,
    change: impl FnOnce(&mut R) -> T,
) -> T {
    let mut room = rooms.remove(&id).unwrap_or_default();
    let result = change(&mut room);
    if room != R::default() {
        rooms.insert(id, room);
    }
    result
}

impl<A: CreditedService, B: CreditedService> CreditedService for Both<A, B> {
    type Room = (A::Room, B::Room);

    fn spend(room: &mut Self::Room, request: &Self::Request) -> Result<(), RequestRefused> {
        match request {
            Port::First(request) => A::spend(&mut room.0, request),
            Port::Second(request) => B::spend(&mut room.1, request),
        }
    }

    fn hear(room: &mut Self::Room, indication: &Self::Indication) {
        match indication {
            Port::First(indication) => A::hear(&mut room.0, indication),
            Port::Second(indication) => B::hear(&mut room.1, indication),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use longwire_proto::service::{CloseReason, LinkId};

    type Link = Many<LinkId, Packets>;

    #[test]
    fn a_connection_that_is_over_has_no_room_and_leaves_nothing_behind() {
        let (mut room, id) = (BTreeMap::new(), LinkId(1));
        let packet = (id, PacketsRequest::payload(Bytes::from_static(b"x")));
        let ends = [
            |room: &mut _| Link::hear(room, &(LinkId(1), PacketsIndication::Closed(CloseReason::Reset))),
            |room: &mut _| Link::hear(room, &(LinkId(1), PacketsIndication::Room(0))),
            |room: &mut _| Link::spend(room, &(LinkId(1), PacketsRequest::Connect)).unwrap(),
        ];
        for end in ends {
            Link::hear(&mut room, &(id, PacketsIndication::Room(2)));
            assert_eq!(Link::spend(&mut room, &packet), Ok(()));
            end(&mut room);
            assert_eq!(Link::spend(&mut room, &packet), Err(RequestRefused::NoRoom));
            assert_eq!(room, BTreeMap::new());
        }
        // Each `Room` replaces the value, and each request spends one.
        Link::hear(&mut room, &(id, PacketsIndication::Room(5)));
        Link::hear(&mut room, &(id, PacketsIndication::Room(2)));
        let spent = [0; 3].map(|_| Link::spend(&mut room, &packet).is_ok());
        assert_eq!(spent, [true, true, false]);
    }
}
