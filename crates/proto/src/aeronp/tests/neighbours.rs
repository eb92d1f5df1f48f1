//! Neighbours on several interfaces.

use crate::aeronp::neighbours::{Acquaintance, HeardFrame, Neighbours};
use crate::packet_router::NodeAddress;
use crate::service::InterfaceId;
use crate::time::{Duration, Instant};

#[test]
fn a_neighbour_on_two_interfaces_keeps_the_quality_of_each_and_the_first_one_until_it_is_silent_there() {
    let node = NodeAddress(5);
    let [first, second] = [0, 1].map(InterfaceId);
    let mut all = Neighbours::new(8, Duration::from_millis(3500), 4);
    let frame =
        |interface, sequence, damaged| HeardFrame { interface, sender: node, sequence, bytes: 1000, damaged };
    let mut met = Vec::new();
    for second_of_run in 0..20_u16 {
        let now = Instant::from_secs(u64::from(second_of_run));
        met.push(all.hear(now, frame(first, second_of_run, true)));
        met.push(all.hear(now, frame(second, 7000 + second_of_run, false)));
    }
    assert_eq!(met.iter().filter(|met| **met == Acquaintance::New).count(), 1);
    let share = |all: &Neighbours, interface| all.links_on(interface).map(|(_, share)| share).sum::<f64>();
    assert!(share(&all, first) > 0.4 && share(&all, second) == 0.0);
    all.told(node, first, 0.5, Some(0.25));
    all.told(node, second, 0.5, Some(0.0));
    let damaged = |all: &Neighbours| all.states(true, true)[0].damaged;
    assert_eq!((all.get(node).map(|node| node.interface), damaged(&all)), (Some(first), 0.25));
    // Only the second interface remains.
    let heard =
        |all: &mut Neighbours, at, sequence| all.hear(Instant::from_secs(at), frame(second, sequence, false));
    assert_eq!(heard(&mut all, 22, 7020), Acquaintance::Known);
    assert_eq!(heard(&mut all, 23, 7021), Acquaintance::New, "silent for 3.5 s");
    assert_eq!((all.get(node).map(|node| node.interface), damaged(&all)), (Some(second), 0.0));
}
