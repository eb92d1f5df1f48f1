//! Events of the lines of TNCs, and what the node reports about them.

use super::event::PumpKey;
use super::{EngineParts as _, Task};
use crate::pumps::table::PumpReport;
use crate::tower::radio::{LineId, TncId};
use crate::view::Event;
use longwire_proto::engine::Engine;
use longwire_proto::service::{Port, StreamIndication, StreamRequest};
use longwire_proto::time::Instant;

impl Task {
    /// Carries out a request of a TNC to its line.
    pub(super) fn line_request(&mut self, line: LineId, request: StreamRequest) {
        let address = self.engines.neighbours().radios.line(line);
        self.connections.pumps.request_line(PumpKey::Line(line), address, request);
    }

    pub(super) fn hear_line(&mut self, now: Instant, line: LineId, said: PumpReport<PumpKey>) {
        for indication in self.connections.pumps.hear_line(said) {
            let is_over = matches!(indication, StreamIndication::Closed(_));
            self.engines.handle_indication(now, Port::Second(Port::Second((line, indication))));
            let tncs = self.engines.neighbours().radios.tncs_of(line).to_vec();
            tncs.into_iter().for_each(|tnc| self.look_at_tnc(now, tnc, is_over));
        }
    }

    /// Reports a change of a TNC after an event of its line; `is_over` when the line ended. Further failed attempts are
    /// counted, not reported.
    fn look_at_tnc(&mut self, now: Instant, tnc: TncId, is_over: bool) {
        let radios = &mut self.engines.neighbours_mut().radios;
        let (is_open, why) = (radios.controller(tnc).line().is_open(), radios.controller(tnc).why_down());
        if (is_open || is_over) && radios.is_news(tnc, is_open) {
            self.record_line(now, tnc, why.filter(|_| !is_open));
        }
    }

    /// Reports to event readers and the log what happened, what was kept, and what to do.
    fn record_line(&mut self, now: Instant, tnc: TncId, down: Option<&str>) {
        let Some(configured) = self.configuration.config.tnc.get(tnc.0) else { return };
        let (name, callsign) = (configured.name.clone(), configured.callsign.to_ascii_uppercase());
        let place = self.engines.neighbours().radios.place(tnc);
        let Some(why) = down else {
            tracing::info!(target: "tnc", "TNC `{name}` at {place} is up, callsign {callsign}");
            return self.note(now, Event::TncUp { tnc: name, callsign });
        };
        let kept = "bundles stay in the store, and links resume when the TNC is back".to_owned();
        let hint = place.hint().to_owned();
        tracing::warn!(target: "tnc", hint, "TNC `{name}` at {place} is down: {why}; {kept}");
        self.note(now, Event::TncDown { tnc: name, why: why.to_owned(), kept, hint });
    }
}
