//! What the task hears of the lines of TNCs, and what it says of them.

use super::{TncId, line_hint, line_words};
use crate::stream::Said;
use crate::task::Task;
use crate::view::{self, Event};
use longwire_proto::engine::Engine;
use longwire_proto::service::{Port, StreamIndication};
use longwire_proto::time::Instant;

impl Task {
    pub(crate) fn hear_line(&mut self, now: Instant, tnc: TncId, number: u64, said: Said) {
        for indication in self.lines.hear(tnc, number, said) {
            let was_up = self.engines.lower.second.radios.is_open(tnc);
            let first = self.lines.is_first(tnc);
            match &indication {
                StreamIndication::Connected => self.note_line(now, tnc, None),
                // Further attempts that fail are counted, and not told.
                StreamIndication::Closed(reason) if was_up || first => {
                    self.note_line(now, tnc, Some(line_words(*reason)));
                }
                _ => {}
            }
            self.engines.handle_indication(now, Port::Second(Port::Second((tnc, indication))));
        }
    }

    /// Tells those who watch, and the log: what happened, what was kept, and what may help.
    fn note_line(&mut self, now: Instant, tnc: TncId, down: Option<&str>) {
        let Some(configured) = self.setup.config.tnc.get(tnc.0) else { return };
        let (name, callsign) = (configured.name.clone(), configured.callsign.to_ascii_uppercase());
        let line = self.lines.line(tnc);
        let Some(why) = down else {
            eprintln!("longwire: TNC `{name}` at {line} is up: this is {callsign}");
            return self.note(now, Event::TncUp { tnc: name, callsign });
        };
        let kept = "bundles stay in the store, and links go on when it is back".to_owned();
        let hint = line_hint(line).to_owned();
        eprintln!("longwire: TNC `{name}` at {line} is down: {why}; {kept}\nhint: {hint}");
        self.note(now, Event::TncDown { tnc: name, why: why.to_owned(), kept, hint });
    }

    pub(crate) fn tnc_views(&self) -> Vec<view::Tnc> {
        let radios = &self.engines.lower.second.radios;
        radios.tnc_views(&self.setup.config.tnc, |tnc| self.lines.line(tnc).to_string())
    }
}
