//! FTP session between two hosts on a radio channel, with the times of its milestones.

use super::{
    CONTROL, CONTROL_PORT, DATA, DATA_PORT, DataConnectionMode, Files, FilesIndication, FilesRequest,
    FtpClient, FtpServer, Milestone,
};
use crate::internet::{Internet, address};
use crate::world::{self, SimulationWithUser, User};
use bytes::Bytes;
use longwire_proto::joint::Stack;
use longwire_proto::rng::Rng;
use longwire_proto::time::Instant;
use longwire_sim::{NodeId, NodeIndication, OnRadio, Simulation};

/// File that host 0 stores at host 1.
#[derive(Clone, Debug)]
pub struct FtpSession {
    /// Hosts and channel.
    pub internet: Internet,
    /// Side that opens the data connection.
    pub opening: DataConnectionMode,
    /// File contents.
    pub file: Bytes,
}

/// Times of the milestones, in seconds since the connection request.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SessionTimes {
    /// The control connection is established.
    pub connected_s: f64,
    /// Log-in and type are complete.
    pub logged_in_s: f64,
    /// The server waits for the data (150).
    pub opened_s: f64,
    /// The client has received the confirmation that the server has the file (226).
    pub stored_s: f64,
    /// The control connection is closed.
    pub left_s: f64,
}

impl SessionTimes {
    fn set(&mut self, point: Milestone, now: Instant) {
        let place = match point {
            Milestone::Connected => &mut self.connected_s,
            Milestone::LoggedIn => &mut self.logged_in_s,
            Milestone::Opened => &mut self.opened_s,
            Milestone::Stored => &mut self.stored_s,
            Milestone::Left => &mut self.left_s,
        };
        *place = now.as_secs_f64();
    }
}

/// Indications of a session so far.
#[derive(Default)]
struct Observer {
    times: SessionTimes,
    stored: Option<Bytes>,
    is_over: bool,
    failed: bool,
}

impl User<Files> for Observer {
    fn hear(&mut self, _: &mut Simulation<Files>, (now, _, said): NodeIndication<Files>) {
        match said {
            // The session is over: later indications change nothing.
            _ if self.is_over || self.failed => {}
            FilesIndication::Reached(point) => {
                self.times.set(point, now);
                self.is_over = point == Milestone::Left;
            }
            FilesIndication::Stored(file) => self.stored = Some(file),
            FilesIndication::Failed(_) => self.failed = true,
        }
    }

    fn has_failed(&self) -> bool {
        self.failed
    }
}

impl FtpSession {
    /// Simulates the session; `None` if it fails or the file does not arrive unchanged.
    pub fn play(&self, seed: u64) -> Option<SessionTimes> {
        let mut simulation = world::simulation(seed);
        let ends = [0, 1].map(|at| (self.add_node(&mut simulation, at, seed), OnRadio::INTERFACE));
        simulation.add_radio(self.internet.radio.clone(), &ends);
        simulation.request(ends[0].0, FilesRequest::Store(self.file.clone()));
        let mut world = SimulationWithUser { simulation, user: Observer::default() };
        world.run_while(|observer| !observer.is_over).then_some(())?;
        (world.user.stored.as_ref() == Some(&self.file)).then_some(world.user.times)
    }

    fn add_node(&self, simulation: &mut Simulation<Files>, at: usize, seed: u64) -> NodeId {
        let (session, name) = (self.clone(), ["client", "server"][at]);
        let rng = Rng::new(seed).fork("internet").fork(name);
        simulation.add_node(name, move |_| session.node(at, &rng))
    }

    fn node(&self, at: usize, rng: &Rng) -> longwire_sim::NodeEngine<Files> {
        let data = [(DATA, DATA_PORT)];
        let (listen, calls) = match (at, self.opening) {
            (0, DataConnectionMode::Active) => (vec![DATA_PORT], vec![(CONTROL, CONTROL_PORT)]),
            (0, DataConnectionMode::Passive) => (vec![], vec![(CONTROL, CONTROL_PORT), data[0]]),
            (_, DataConnectionMode::Active) => (vec![CONTROL_PORT], data.to_vec()),
            (_, DataConnectionMode::Passive) => (vec![CONTROL_PORT, DATA_PORT], vec![]),
        };
        let host = self.internet.host(at, listen, &calls, rng);
        match at {
            0 => Box::new(OnRadio(Stack::new(FtpClient::new(address(0), self.opening), host))),
            _ => Box::new(OnRadio(Stack::new(FtpServer::new(address(1), address(0)), host))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_proto::ax25::IpMode;
    use longwire_proto::tcp::config::Profile;
    use longwire_sim::{Errors, RadioConfig};

    fn session(opening: DataConnectionMode, carriage: IpMode, errors: Errors) -> FtpSession {
        let internet = Internet {
            radio: RadioConfig { rate_bps: 9600, errors, ..RadioConfig::default() },
            tnc: None,
            loss: 0.0,
            carriage,
            mtu_bytes: 552,
            window_frames: 4,
            profile: Profile::linux_2_4(),
        };
        let file: Vec<u8> = (0..7182).map(|at| (at * at / 7) as u8).collect();
        FtpSession { internet, opening, file: file.into() }
    }

    #[test]
    fn a_file_is_stored_whichever_side_opens_and_whatever_carries() {
        for opening in [DataConnectionMode::Active, DataConnectionMode::Passive] {
            for carriage in [IpMode::Unconnected, IpMode::Connected] {
                let moments = session(opening, carriage, Errors::None).play(1);
                let at = moments.unwrap_or_else(|| panic!("{opening:?} {carriage:?} fails"));
                let points = [at.connected_s, at.logged_in_s, at.opened_s, at.stored_s, at.left_s];
                assert!(points[0] > 0.0 && points.is_sorted(), "{opening:?} {carriage:?}: {at:?}");
                // The bits of the file alone need six seconds.
                assert!(at.stored_s - at.opened_s > 8.0 * 7182.0 / 9600.0, "{at:?}");
            }
        }
    }

    /// A quarter of the frames is lost, so that some sessions fail and some data connections break after the last byte.
    /// Every session must end.
    #[test]
    fn whatever_is_lost_a_session_ends() {
        let mut stored = 0;
        for seed in 0..300 {
            let mut session = session(DataConnectionMode::Active, IpMode::Unconnected, Errors::None);
            session.internet.loss = 0.25;
            let moments = session.play(seed);
            stored += u32::from(moments.is_some_and(|at| at.left_s >= at.stored_s));
        }
        assert!(stored > 100, "{stored} of 300 end with the file stored");
    }

    #[test]
    fn bit_errors_are_mended() {
        for carriage in [IpMode::Unconnected, IpMode::Connected] {
            for seed in 0..4 {
                let session = session(DataConnectionMode::Active, carriage, Errors::Ber(3e-5));
                assert!(session.play(seed).is_some(), "{carriage:?}, seed {seed}");
            }
        }
    }
}
