//! Positions and velocities of nodes, and the straight lines on which they are extrapolated.
//!
//! Coordinates are Cartesian, in metres. All nodes of a network use the same frame: the Earth-centred, Earth-fixed one of
//! WGS 84 in the field, any in a simulation. The distance that counts for radio range is the straight one.

use crate::time::{Duration, Instant};

/// Position and velocity at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Motion {
    /// Position, metres.
    pub position_m: [f64; 3],
    /// Velocity, metres per second.
    pub velocity_mps: [f64; 3],
}

fn length(of: [f64; 3]) -> f64 {
    product(of, of).sqrt()
}

fn product(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

fn difference(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

impl Motion {
    /// Motion of a node that stays where it is.
    pub const fn at_rest(position_m: [f64; 3]) -> Motion {
        Motion { position_m, velocity_mps: [0.0; 3] }
    }

    /// Returns the motion after this time on a straight line.
    #[must_use]
    pub fn after(&self, time: Duration) -> Motion {
        let seconds = time.as_secs_f64();
        let position = |axis: usize| self.position_m[axis] + self.velocity_mps[axis] * seconds;
        Motion { position_m: [position(0), position(1), position(2)], ..*self }
    }

    /// Returns the speed, metres per second.
    pub fn speed_mps(&self) -> f64 {
        length(self.velocity_mps)
    }

    /// Returns the distance to another position, metres.
    pub fn distance_m(&self, other: &Motion) -> f64 {
        length(difference(self.position_m, other.position_m))
    }

    /// Returns the speed at which the distance to another node decreases, metres per second; negative if it increases.
    pub fn closing_mps(&self, other: &Motion) -> f64 {
        let apart = difference(self.position_m, other.position_m);
        let distance = length(apart);
        let relative = difference(self.velocity_mps, other.velocity_mps);
        if distance > 0.0 { -product(apart, relative) / distance } else { 0.0 }
    }

    /// Returns the interval, in seconds from now, in which two nodes on straight lines are no more than `range_m` apart:
    /// its ends are negative for the past, and infinite for nodes that keep their distance. `None` if they never are.
    pub fn within_range(&self, other: &Motion, range_m: f64) -> Option<(f64, f64)> {
        let apart = difference(self.position_m, other.position_m);
        let relative = difference(self.velocity_mps, other.velocity_mps);
        let (a, b) = (product(relative, relative), product(apart, relative));
        let c = product(apart, apart) - range_m * range_m;
        if a == 0.0 {
            return (c <= 0.0).then_some((f64::NEG_INFINITY, f64::INFINITY));
        }
        let root = b * b - a * c;
        if root < 0.0 {
            return None;
        }
        let root = root.sqrt();
        Some(((-b - root) / a, (-b + root) / a))
    }
}

/// Motion with the time to which it belongs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fix {
    /// Time of the position.
    pub at: Instant,
    /// Motion at that time.
    pub motion: Motion,
}

impl Fix {
    /// Returns the motion at another time, on a straight line; before the fix, that of the fix.
    pub fn extrapolated(&self, now: Instant) -> Motion {
        self.motion.after(now.saturating_since(self.at))
    }
}

/// Motion as a function of time: legs of constant velocity, in order of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trajectory(Vec<Fix>);

impl Trajectory {
    /// Trajectory of legs, each of which begins at its time and lasts until the next one.
    ///
    /// # Panics
    /// Panics if the legs are not in order of time.
    pub fn new(legs: Vec<Fix>) -> Trajectory {
        assert!(legs.is_sorted_by_key(|leg| leg.at), "the legs of a trajectory are in order of time");
        Trajectory(legs)
    }

    /// Trajectory of a node that stays where it is.
    pub fn at_rest(position_m: [f64; 3]) -> Trajectory {
        Trajectory(vec![Fix { at: Instant::ZERO, motion: Motion::at_rest(position_m) }])
    }

    /// Returns the legs.
    pub fn legs(&self) -> &[Fix] {
        &self.0
    }

    /// Returns the motion at a time, before the first leg that of its beginning; `None` without a leg: the position is
    /// unknown.
    pub fn motion(&self, now: Instant) -> Option<Motion> {
        let later = self.0.partition_point(|leg| leg.at <= now);
        self.0.get(later.saturating_sub(1)).map(|leg| leg.extrapolated(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moving(x_m: f64, vx_mps: f64) -> Motion {
        Motion { position_m: [x_m, 300.0, 0.0], velocity_mps: [vx_mps, 0.0, 0.0] }
    }

    #[test]
    fn two_nodes_are_within_range_from_when_they_meet_until_they_part() {
        let still = Motion::at_rest([0.0; 3]);
        // Range 500 m at an offset of 300 m: from 400 m before to 400 m after the closest point.
        assert_eq!(moving(-1000.0, 100.0).within_range(&still, 500.0), Some((6.0, 14.0)));
        assert_eq!(moving(0.0, 100.0).within_range(&still, 500.0), Some((-4.0, 4.0)));
        assert_eq!(moving(-1000.0, 100.0).within_range(&still, 299.0), None, "it passes too far away");
        assert_eq!(moving(0.0, 0.0).within_range(&still, 299.0), None);
        let always = Some((f64::NEG_INFINITY, f64::INFINITY));
        assert_eq!(moving(400.0, 7.0).within_range(&moving(0.0, 7.0), 500.0), always, "they fly together");
        assert!((moving(-400.0, 100.0).closing_mps(&still) - 80.0).abs() < 1e-9);
        assert!(moving(400.0, 100.0).closing_mps(&still) < 0.0);
        assert_eq!(still.closing_mps(&still), 0.0);
        assert_eq!((still.distance_m(&moving(400.0, 0.0)), moving(0.0, -9.0).speed_mps()), (500.0, 9.0));
    }

    #[test]
    fn a_trajectory_follows_its_legs() {
        let leg = |seconds, x_m, vx_mps| Fix { at: Instant::from_secs(seconds), motion: moving(x_m, vx_mps) };
        let trajectory = Trajectory::new(vec![leg(1, 0.0, 10.0), leg(5, 40.0, -10.0)]);
        let x = |millis| trajectory.motion(Instant::from_millis(millis)).expect("a leg").position_m[0];
        assert_eq!([0, 1000, 3500, 5000, 7000].map(x), [0.0, 0.0, 25.0, 40.0, 20.0]);
        assert_eq!(Trajectory::default().motion(Instant::ZERO), None);
        let still = Trajectory::at_rest([1.0, 2.0, 3.0]).motion(Instant::from_secs(9));
        assert_eq!(still, Some(Motion::at_rest([1.0, 2.0, 3.0])));
    }
}
