//! Packets that leave: contents that are read for them, and the order of all packets.

use super::config::PACKET_BYTES_MIN;
use super::endpoint::{Due, Endpoint, Key, Side, Timer};
use super::receiving;
use super::sending::{self, Ready};
use super::waiting::Next;
use super::wire::{Abilities, Ability, Beacon, Packet, Request, RequestKind, Width};
use crate::service::{DatagramsRequest, FilesIndication, PeerId, Shares, Wish};
use crate::time::Instant;
use bytes::Bytes;

/// Limits of the number of packets that were read and have not left.
const AHEAD: (u64, u64) = (2, 32);

impl Endpoint {
    /// Returns the number of packets that may be read before they leave: those of a burst, so that holes do not wait long.
    fn ahead(&self) -> u64 {
        let burst_s = self.config.burst.as_secs_f64();
        let burst = match self.config.rate_bps {
            0 => AHEAD.1,
            rate => (rate as f64 / 8.0 * burst_s) as u64 / self.packet_bytes.max(1),
        };
        self.room.min(burst).clamp(AHEAD.0, AHEAD.1)
    }

    /// Returns the next content to ask the user for.
    pub(super) fn next_read(&mut self, now: Instant) -> Option<FilesIndication> {
        let ahead = self.ahead();
        if self.is_paused() || self.peer.is_none() && !self.listening {
            return None;
        }
        while (self.reads + self.waiting.ready()) < ahead as usize {
            let key = self.waiting.to_read()?;
            let file = self.outgoing.get_mut(&key).expect("only files under way are listed");
            let read = file.next_read(self.packet_bytes);
            let id = file.file;
            self.waiting.was_read(key, file.has_fill(), file.has_new(self.config.packet_bytes));
            if let Some((offset, length)) = read {
                self.reads += 1;
                self.begin_sending(now, key);
                self.reschedule(Side::Sender, key);
                return Some(FilesIndication::Read { file: id, offset, length });
            }
        }
        None
    }

    fn token(&mut self, side: Side, key: Key) -> u64 {
        self.next_token += 1;
        self.tokens.insert(self.next_token, (side, key));
        self.next_token
    }

    pub(super) fn transmitted(&mut self, now: Instant, token: u64) {
        let Some((side, key)) = self.tokens.remove(&token) else { return };
        let late_at = Some(now + self.config.answer_time());
        match side {
            Side::Sender => self.outgoing.get_mut(&key).into_iter().for_each(|file| file.answer_at = late_at),
            Side::Receiver => {
                self.incoming.get_mut(&key).into_iter().for_each(|file| file.answer_at = late_at)
            }
        }
        self.reschedule(side, key);
    }

    /// Makes a packet into a datagram, and computes the time of the next one according to the rate.
    fn depart(
        &mut self,
        now: Instant,
        to: PeerId,
        packet: &Packet,
        shares: fn(usize) -> Shares,
        token: Option<u64>,
    ) -> DatagramsRequest {
        let bytes = packet.to_bytes();
        let shares = match packet {
            Packet::Data(data) if !data.payload.is_empty() && shares(1).payload > 0 => {
                shares(data.payload.len())
            }
            _ => shares(bytes.len()),
        };
        self.spend(now, bytes.len() as u64);
        DatagramsRequest::Datagram { to, bytes, shares, token }
    }

    fn spend(&mut self, now: Instant, bytes: u64) {
        self.room -= 1;
        self.pacer.spend(now, bytes + self.config.overhead_bytes);
        let ready_at = self.pacer.ready_at();
        if ready_at > now {
            self.timers.set(Timer::Pace as usize, ready_at);
        }
    }

    fn spend_status(&mut self, now: Instant, bytes: u64) {
        let whole = bytes + self.config.overhead_bytes;
        self.counters.status_sent += 1;
        self.counters.status_bytes_sent += whole;
        self.status_pacer.spend(now, whole);
        let ready_at = self.status_pacer.ready_at();
        if ready_at > now {
            self.timers.set(Timer::StatusPace as usize, ready_at);
        }
    }

    pub(super) fn next_datagram(&mut self, now: Instant) -> Option<DatagramsRequest> {
        let may_send = self.room > 0 && self.timers.get(Timer::Pace as usize).is_none();
        if self.is_paused() || !may_send || self.packet_bytes < PACKET_BYTES_MIN {
            return None;
        }
        let may_reply = self.timers.get(Timer::StatusPace as usize).is_none();
        while let Some(next) = self.waiting.next(may_reply) {
            match next {
                Next::Answer(to, bytes) => {
                    self.spend_status(now, bytes.len() as u64);
                    self.spend(now, bytes.len() as u64);
                    let shares = Shares::acknowledgement(bytes.len());
                    return Some(DatagramsRequest::Datagram { to, bytes, shares, token: None });
                }
                Next::Status(key) => return Some(self.depart_status(now, key)),
                Next::Due(due) => {
                    if let Some(datagram) = self.depart_due(now, due) {
                        return Some(datagram);
                    }
                }
                Next::Data(key, ready) => return Some(self.depart_data(now, key, ready)),
            }
        }
        let to = self.peer.filter(|_| core::mem::take(&mut self.beacon_due))?;
        if let Some(interval) = self.config.beacon {
            self.timers.set(Timer::Beacon as usize, now + interval);
        }
        self.counters.beacons_sent += 1;
        let eid = self.config.eid.clone().unwrap_or_default();
        let packet = Beacon { abilities: abilities(), free_kib: None, eid }.into();
        Some(self.depart(now, to, &packet, Shares::control, None))
    }

    fn depart_status(&mut self, now: Instant, key: Key) -> DatagramsRequest {
        let incoming = self.incoming.get_mut(&key).expect("only files under way have a STATUS to send");
        incoming.status_is_queued = false;
        let status = incoming.status(now, self.packet_bytes, &self.config);
        // More holes than the packet has room for follow as the rate of the way back permits.
        let has_more = incoming.plan_status(now, self.packet_bytes, &self.config);
        self.counters.holes_sent += status.holes.len() as u64;
        if has_more {
            self.queue_status(key);
        }
        self.reschedule(Side::Receiver, key);
        let packet = Packet::from(status);
        self.spend_status(now, packet.to_bytes().len() as u64);
        self.depart(now, key.0, &packet, Shares::acknowledgement, None)
    }

    fn depart_due(&mut self, now: Instant, due: Due) -> Option<DatagramsRequest> {
        match due {
            Due::Request(side, key) => {
                let packet = self.request(side, key)?;
                self.counters.requests_sent += 1;
                let token = self.token(side, key);
                Some(self.depart(now, key.0, &packet, Shares::control, Some(token)))
            }
            Due::Metadata(key) => {
                let file = self.outgoing.get_mut(&key)?;
                if file.metadata_copies > 0 {
                    file.metadata_copies -= 1;
                    self.waiting.add_due(due);
                }
                let packet = file.metadata(false).into();
                self.counters.metadata_sent += 1;
                Some(self.depart(now, key.0, &packet, Shares::control, None))
            }
            Due::Probe(key) => {
                let file = self.outgoing.get_mut(&key).filter(|file| file.is_sent())?;
                if file.probe_copies > 0 {
                    file.probe_copies -= 1;
                    self.waiting.add_due(due);
                }
                file.request_due = false;
                let packet = file.probe(self.departures).into();
                self.departures += 1;
                self.counters.probes_sent += 1;
                let token = self.token(Side::Sender, key);
                Some(self.depart(now, key.0, &packet, Shares::control, Some(token)))
            }
        }
    }

    fn request(&mut self, side: Side, key: Key) -> Option<Packet> {
        let (kind, path) = match side {
            Side::Sender => {
                let file = self.outgoing.get(&key)?;
                let kind = match file.phase {
                    sending::Phase::Asking => RequestKind::Put,
                    sending::Phase::Deleting => RequestKind::Delete,
                    sending::Phase::Wanted | sending::Phase::Sending => return None,
                };
                (kind, file.properties.path.clone())
            }
            Side::Receiver => {
                let file = self.incoming.get(&key)?;
                let receiving::Phase::Asking { path, wish } = &file.phase else { return None };
                let kind = match wish {
                    Wish::Get => RequestKind::Get,
                    Wish::Take => RequestKind::Take,
                    Wish::List => RequestKind::GetDirectory,
                };
                (kind, path.clone())
            }
        };
        Some(Request { abilities: abilities(), kind, session: key.1, path, auth: Bytes::new() }.into())
    }

    fn depart_data(&mut self, now: Instant, key: Key, ready: Ready) -> DatagramsRequest {
        let (is_fill, length) = (ready.is_fill, ready.data.len() as u64);
        let file = self.outgoing.get_mut(&key).expect("packets of a file end with it");
        let (data, is_last) = file.depart(now, ready, self.departures, self.packet_bytes, &self.config);
        self.departures += 1;
        if data.wants_status {
            file.request_due = false;
            file.request_at = Some(now + self.config.status_interval).filter(|_| !is_last);
        }
        if is_last && self.config.copies > 1 {
            file.probe_copies = self.config.copies - 2;
            self.waiting.add_due(Due::Probe(key));
        }
        self.reschedule(Side::Sender, key);
        let (count, payload) = match is_fill {
            true => (&mut self.counters.packets_repeated, &mut self.counters.payload_repeated),
            false => (&mut self.counters.packets_sent, &mut self.counters.payload_sent),
        };
        *count += 1;
        *payload += length;
        let token = is_last.then(|| self.token(Side::Sender, key));
        let shares = if is_fill { Shares::repeated } else { Shares::payload };
        self.depart(now, key.0, &Packet::from(data), shares, token)
    }
}

/// Abilities in BEACON and REQUEST.
pub(super) fn abilities() -> Abilities {
    let (send, receive) = (Ability::Willing, Ability::Willing);
    Abilities { width_max: Width::Bits64, streams: false, send, receive, udp_lite: false }
}
