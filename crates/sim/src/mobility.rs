//! Nodes that move: random way points, and the contacts that follow from radio range.
//!
//! A node flies straight to a point of its area, uniformly distributed, with a speed that is drawn for each leg, and from
//! there to the next one (random way points, without pauses). The legs are a
//! [`Trajectory`], which an engine can use as its navigation. Two nodes are in contact
//! while the straight distance between them is at most the radio range; the times are exact, because both fly straight
//! between the ends of their legs. As is known of this model, nodes are nearer to the centre of the area than uniformly
//! distributed ones after a while.

use crate::channel::Window;
use longwire_proto::motion::{Fix, Motion, Trajectory};
use longwire_proto::rng::Rng;
use longwire_proto::settings;
use longwire_proto::time::{Duration, Instant};

settings! {
    /// Random way points.
    #[derive(Clone, Debug, PartialEq)]
    pub struct WayPoints {
        /// Two opposite corners of the area, metres. Default: a square of 100 km, from 1 to 10 km high.
        pub corners_m: [[f64; 3]; 2] = [[0.0, 0.0, 1000.0], [100_000.0, 100_000.0, 10_000.0]],
        /// Least and largest speed of a leg, metres per second. Default: 100 to 300.
        pub speed_mps: [f64; 2] = [100.0, 300.0],
    }
}

impl WayPoints {
    /// Draws a trajectory until a time.
    ///
    /// # Panics
    /// Panics if the least speed is not above zero.
    pub fn trajectory(&self, rng: &mut Rng, until: Instant) -> Trajectory {
        let [slow, fast] = self.speed_mps;
        assert!(slow > 0.0, "a node that does not move never arrives");
        let mut place = self.point(rng);
        let (mut at, mut legs) = (Instant::ZERO, Vec::new());
        loop {
            let (to, speed) = (self.point(rng), slow + (fast - slow) * rng.unit());
            let distance = Motion::at_rest(place).distance_m(&Motion::at_rest(to));
            let seconds = distance / speed;
            // A leg of less than a millisecond leads nowhere.
            if seconds > 1e-3 {
                let velocity = |axis: usize| (to[axis] - place[axis]) / seconds;
                let motion =
                    Motion { position_m: place, velocity_mps: [velocity(0), velocity(1), velocity(2)] };
                legs.push(Fix { at, motion });
                (at, place) = (at + Duration::from_secs_f64(seconds), to);
            }
            if at >= until {
                return Trajectory::new(legs);
            }
        }
    }

    fn point(&self, rng: &mut Rng) -> [f64; 3] {
        let [from, to] = self.corners_m;
        let mut draw = |axis: usize| from[axis] + (to[axis] - from[axis]) * rng.unit();
        [draw(0), draw(1), draw(2)]
    }
}

/// Returns the times before `until` at which two nodes are within range, in order, apart from each other.
pub fn contacts(a: &Trajectory, b: &Trajectory, range_m: f64, until: Instant) -> Vec<Window> {
    let mut turns: Vec<Instant> = a.legs().iter().chain(b.legs()).map(|leg| leg.at).collect();
    turns.extend([Instant::ZERO, until]);
    turns.retain(|at| *at <= until);
    turns.sort_unstable();
    turns.dedup();
    let mut windows: Vec<Window> = Vec::new();
    for ends in turns.windows(2) {
        let (begin, end) = (ends[0], ends[1]);
        let motions = a.motion(begin).zip(b.motion(begin));
        let Some((from_s, to_s)) = motions.and_then(|(a, b)| a.within_range(&b, range_m)) else { continue };
        let length_s = (end - begin).as_secs_f64();
        if to_s <= 0.0 || from_s >= length_s {
            continue;
        }
        let from = if from_s <= 0.0 { begin } else { begin + Duration::from_secs_f64(from_s) };
        let to = if to_s >= length_s { end } else { begin + Duration::from_secs_f64(to_s) };
        match windows.last_mut() {
            Some(last) if last.to >= from => last.to = to,
            _ if from < to => windows.push(Window { from, to }),
            _ => {}
        }
    }
    windows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leg(seconds: u64, position_m: [f64; 3], velocity_mps: [f64; 3]) -> Fix {
        Fix { at: Instant::from_secs(seconds), motion: Motion { position_m, velocity_mps } }
    }

    #[test]
    fn a_node_that_passes_is_in_contact_while_it_is_within_range() {
        let ground = Trajectory::at_rest([0.0; 3]);
        // It comes from 1,000 m, turns back at -100 m after 110 s, and leaves again.
        let passes = Trajectory::new(vec![
            leg(0, [1000.0, 0.0, 0.0], [-10.0, 0.0, 0.0]),
            leg(110, [-100.0, 0.0, 0.0], [20.0, 0.0, 0.0]),
        ]);
        let seconds = |until: u64| {
            let windows = contacts(&ground, &passes, 300.0, Instant::from_secs(until));
            windows
                .iter()
                .map(|window| [window.from, window.to].map(Instant::as_secs_f64))
                .collect::<Vec<_>>()
        };
        assert_eq!(seconds(1000), [[70.0, 130.0]], "one contact over both legs");
        assert_eq!(seconds(100), [[70.0, 100.0]]);
        assert_eq!(seconds(60), [[0.0; 2]; 0]);
        let beside = Trajectory::new(vec![leg(0, [10.0, 0.0, 0.0], [5.0, 0.0, 0.0])]);
        let together = Trajectory::new(vec![leg(0, [0.0; 3], [5.0, 0.0, 0.0])]);
        let all = contacts(&beside, &together, 10.0, Instant::from_secs(9));
        assert_eq!(all, [Window { from: Instant::ZERO, to: Instant::from_secs(9) }]);
    }

    #[test]
    fn contacts_are_those_of_the_positions() {
        let until = Instant::from_secs(3000);
        let model = WayPoints::default();
        for seed in 0..20 {
            let mut rng = Rng::new(seed);
            let [a, b] = [(); 2].map(|()| model.trajectory(&mut rng, until));
            let windows = contacts(&a, &b, 40_000.0, until);
            assert!(windows.windows(2).all(|pair| pair[0].to < pair[1].from), "{windows:?}");
            for second in 0..3000 {
                let at = Instant::from_secs(second) + Duration::from_millis(500);
                let distance = a.motion(at).expect("a leg").distance_m(&b.motion(at).expect("a leg"));
                let within = windows.iter().any(|window| (window.from..window.to).contains(&at));
                // Not at the very edge, where a nanosecond decides.
                if (distance - 40_000.0).abs() > 1.0 {
                    assert_eq!(within, distance < 40_000.0, "seed {seed} at {at}: {distance} m");
                }
            }
        }
    }

    #[test]
    fn nodes_stay_in_their_area_and_keep_their_speed() {
        let model = WayPoints::default();
        let [from, to] = model.corners_m;
        let trajectory = model.trajectory(&mut Rng::new(7), Instant::from_secs(20_000));
        assert!(trajectory.legs().len() > 20);
        for second in 0..20_000 {
            let motion = trajectory.motion(Instant::from_secs(second)).expect("a leg");
            let inside =
                (0..3).all(|axis| (from[axis] - 1e-3..=to[axis] + 1e-3).contains(&motion.position_m[axis]));
            assert!(inside && (99.9..300.1).contains(&motion.speed_mps()), "{motion:?}");
        }
    }
}
