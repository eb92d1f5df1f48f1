//! What the task hears of the lines of TNCs, and what it says of them.

use super::TncId;
use crate::stream::Said;
use crate::task::Task;
use crate::view::{self, Event};
use longwire_proto::engine::Engine;
use longwire_proto::service::{Port, StreamIndication};
use longwire_proto::time::Instant;

impl Task {
    pub(crate) fn hear_line(&mut self, now: Instant, tnc: TncId, number: u64, said: Said) {
        for indication in self.lines.hear(tnc, number, said) {
            let is_over = matches!(indication, StreamIndication::Closed(_));
            self.engines.handle_indication(now, Port::Second(Port::Second((tnc, indication))));
            let controller = self.engines.lower.second.radios.controller(tnc);
            let (is_open, why) = (controller.line().is_open(), controller.why_down());
            // Further attempts that fail are counted, and not told.
            if is_open && self.lines.is_news(tnc, true) {
                self.note_line(now, tnc, None);
            } else if is_over && self.lines.is_news(tnc, false) {
                self.note_line(now, tnc, why);
            }
        }
    }

    /// Tells those who watch, and the log: what happened, what was kept, and what may help.
    fn note_line(&mut self, now: Instant, tnc: TncId, down: Option<&str>) {
        let Some(configured) = self.setup.config.tnc.get(tnc.0) else { return };
        let (name, callsign) = (configured.name.clone(), configured.callsign.to_ascii_uppercase());
        let place = self.lines.place(tnc);
        let Some(why) = down else {
            eprintln!("longwire: TNC `{name}` at {place} is up: this is {callsign}");
            return self.note(now, Event::TncUp { tnc: name, callsign });
        };
        let kept = "bundles stay in the store, and links go on when it is back".to_owned();
        let hint = place.hint().to_owned();
        eprintln!("longwire: TNC `{name}` at {place} is down: {why}; {kept}\nhint: {hint}");
        self.note(now, Event::TncDown { tnc: name, why: why.to_owned(), kept, hint });
    }

    pub(crate) fn tnc_views(&self) -> Vec<view::Tnc> {
        let radios = &self.engines.lower.second.radios;
        radios.tnc_views(&self.setup.config.tnc, |tnc| self.lines.place(tnc).to_string())
    }
}
