//! Tests of the compositions with minimal engines.

use super::*;
use crate::engine::{Service, drain};
use std::cell::RefCell;
use std::rc::Rc;

/// A service whose messages are words.
#[derive(Debug)]
enum Words {}

impl Service for Words {
    type Request = String;
    type Indication = String;
}

/// Passes words on with its own name added; answers `echo` itself. `wake` sets a timer of one second, at which it emits
/// `woken`; `end` finishes it. It emits `hello` when it is created.
struct Relay {
    name: &'static str,
    up: VecDeque<String>,
    down: VecDeque<String>,
    wake: Option<Instant>,
    ended: bool,
    /// Everything received, in order.
    log: Rc<RefCell<Vec<String>>>,
}

type Log = Rc<RefCell<Vec<String>>>;

impl Relay {
    fn new(name: &'static str, log: &Log) -> Self {
        let log = log.clone();
        Relay { name, up: VecDeque::new(), down: VecDeque::new(), wake: None, ended: false, log }
    }

    fn hears(&mut self, now: Instant, word: &str) {
        self.log.borrow_mut().push(format!("{} {word}", self.name));
        match word {
            "echo" => self.up.push_back(format!("echo of {}", self.name)),
            "wake" => self.wake = Some(now + core::time::Duration::from_secs(1)),
            "end" => self.ended = true,
            _ => {}
        }
    }
}

impl Engine for Relay {
    type Above = Words;
    type Below = Words;
    fn handle_request(&mut self, now: Instant, request: String) {
        self.hears(now, &request);
        if !["echo", "wake", "end"].contains(&request.as_str()) {
            self.down.push_back(format!("{request} {}", self.name));
        }
    }
    fn handle_indication(&mut self, now: Instant, indication: String) {
        self.hears(now, &indication);
        if indication.starts_with("ask") {
            self.down.push_back(format!("answer of {}", self.name));
        }
        self.up.push_back(format!("{indication} {}", self.name));
    }
    fn handle_timeout(&mut self, now: Instant) {
        if self.wake.is_some_and(|at| at <= now) {
            self.wake = None;
            self.up.push_back(format!("woken {}", self.name));
        }
    }
    fn poll_indication(&mut self, _now: Instant) -> Option<String> {
        self.up.pop_front()
    }
    fn poll_request(&mut self, _now: Instant) -> Option<String> {
        self.down.pop_front()
    }
    fn poll_timeout(&self) -> Option<Instant> {
        self.wake
    }
    fn finished(&self) -> bool {
        self.ended
    }
}

/// Drains an engine and returns its messages as text.
fn said<E: Engine>(engine: &mut E, now: Instant) -> Vec<String> {
    let lines = RefCell::new(vec![]);
    drain(
        engine,
        now,
        |indication| lines.borrow_mut().push(format!("up {indication:?}")),
        |request| lines.borrow_mut().push(format!("down {request:?}")),
    );
    lines.into_inner()
}

fn at(seconds: u64) -> Instant {
    Instant::from_secs(seconds)
}

mod stack {
    use super::*;

    fn stack(log: &Log) -> Stack<Relay, Relay> {
        Stack::new(Relay::new("upper", log), Relay::new("lower", log))
    }

    #[test]
    fn requests_go_down_and_indications_rise_through_both() {
        let log = Log::default();
        let mut stack = stack(&log);
        stack.handle_request(at(1), "go".to_owned());
        assert_eq!(said(&mut stack, at(1)), ["down \"go upper lower\""]);
        stack.handle_indication(at(2), "come".to_owned());
        assert_eq!(said(&mut stack, at(2)), ["up \"come lower upper\""]);
        assert!(said(&mut stack, at(3)).is_empty(), "quiet after draining");
    }

    #[test]
    fn an_engine_that_is_polled_first_learns_the_time_of_the_poll() {
        let log = Log::default();
        let mut stack = stack(&log);
        stack.lower.up.push_back("wake".to_owned());
        assert_eq!(said(&mut stack, at(5)), ["up \"wake upper\""]);
        assert_eq!(stack.poll_timeout(), Some(at(6)), "its timer of one second runs from the poll");
    }

    #[test]
    fn what_rises_is_heard_above_before_the_next_request_goes_down() {
        let log = Log::default();
        let mut stack = stack(&log);
        stack.handle_indication(at(1), "ask".to_owned());
        let expected =
            ["up \"ask lower upper\"", "down \"answer of lower\"", "down \"answer of upper lower\""];
        assert_eq!(said(&mut stack, at(1)), expected);
        let heard = ["lower ask", "upper ask lower", "lower answer of upper"];
        assert_eq!(*log.borrow(), heard);
    }

    #[test]
    fn both_are_woken_when_they_asked_for_it() {
        let log = Log::default();
        let mut stack = stack(&log);
        stack.upper.handle_request(at(1), "wake".to_owned());
        stack.lower.handle_request(at(2), "wake".to_owned());
        assert_eq!(stack.poll_timeout(), Some(at(2)));
        stack.handle_timeout(at(2));
        assert_eq!(said(&mut stack, at(2)), ["up \"woken upper\""]);
        assert_eq!(stack.poll_timeout(), Some(at(3)));
        stack.handle_timeout(at(3));
        assert_eq!(said(&mut stack, at(3)), ["up \"woken lower upper\""]);
        assert_eq!(stack.poll_timeout(), None);
    }

    #[test]
    fn it_has_finished_when_both_have() {
        let log = Log::default();
        let mut stack = stack(&log);
        stack.upper.ended = true;
        assert!(!stack.finished());
        stack.lower.ended = true;
        assert!(stack.finished());
    }
}

mod fan {
    use super::*;

    #[test]
    fn engines_are_made_when_they_are_first_heard_of_and_each_has_its_own_way() {
        let log = Log::default();
        let made = RefCell::new(vec![]);
        let mut fan = Fan::new(|id: u8, origin| {
            made.borrow_mut().push((id, origin));
            Some(Relay::new("slot", &log))
        });
        fan.handle_request(at(1), (1, "go".to_owned()));
        fan.handle_indication(at(1), (2, "ask".to_owned()));
        let mut lines = said(&mut fan, at(1));
        lines.sort();
        let expected = ["down (1, \"go slot\")", "down (2, \"answer of slot\")", "up (2, \"ask slot\")"];
        assert_eq!(lines, expected);
        assert_eq!(*made.borrow(), [(1, Origin::Above), (2, Origin::Below)]);
        assert!(said(&mut fan, at(2)).is_empty(), "quiet after draining");
    }

    #[test]
    fn what_the_factory_declines_is_counted() {
        let log = Log::default();
        let mut fan = Fan::new(|id: u8, _| (id != 7).then(|| Relay::new("slot", &log)));
        fan.handle_request(at(1), (7, "go".to_owned()));
        fan.handle_indication(at(1), (7, "come".to_owned()));
        assert!(said(&mut fan, at(1)).is_empty());
        assert_eq!(fan.declined, 2);
        assert_eq!(fan.iter().count(), 0);
    }

    #[test]
    fn the_earliest_deadline_wakes_its_engine_only() {
        let log = Log::default();
        let mut fan = Fan::new(|_: u8, _| Some(Relay::new("slot", &log)));
        for id in [3, 1, 2] {
            fan.handle_request(at(id.into()), (id, "wake".to_owned()));
            assert!(said(&mut fan, at(id.into())).is_empty());
        }
        for id in 1..=3u8 {
            let due = at(u64::from(id) + 1);
            assert_eq!(fan.poll_timeout(), Some(due));
            fan.handle_timeout(due);
            assert_eq!(said(&mut fan, due), [format!("up ({id}, \"woken slot\")")]);
        }
        assert_eq!(fan.poll_timeout(), None);
    }

    #[test]
    fn several_deadlines_may_pass_at_once() {
        let log = Log::default();
        let mut fan = Fan::new(|_: u8, _| Some(Relay::new("slot", &log)));
        for id in 1..=3 {
            fan.handle_request(at(0), (id, "wake".to_owned()));
        }
        said(&mut fan, at(0));
        fan.handle_timeout(at(9));
        assert_eq!(said(&mut fan, at(9)).len(), 3);
        assert_eq!(fan.poll_timeout(), None);
    }

    #[test]
    fn a_finished_engine_is_dropped_with_its_deadline_and_made_anew() {
        let log = Log::default();
        let mut made = 0;
        let mut fan = Fan::new(|_: u8, _| {
            made += 1;
            Some(Relay::new("slot", &log))
        });
        fan.handle_request(at(1), (1, "wake".to_owned()));
        fan.handle_request(at(1), (1, "echo".to_owned()));
        fan.handle_request(at(1), (1, "end".to_owned()));
        assert_eq!(said(&mut fan, at(1)), ["up (1, \"echo of slot\")"], "its last words are heard");
        assert!(fan.get(1).is_none());
        assert_eq!(fan.poll_timeout(), None);
        fan.handle_request(at(2), (1, "go".to_owned()));
        assert_eq!(said(&mut fan, at(2)), ["down (1, \"go slot\")"]);
        drop(fan);
        assert_eq!(made, 2);
    }
}

mod ended {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn an_engine_goes_to_the_hook_when_it_has_finished_or_is_removed_and_not_with_the_fan() {
        let log = Log::default();
        let mut fan = Fan::new(|_: u8, _| Some(Relay::new("slot", &log)));
        let (sender, ended) = mpsc::channel();
        fan.on_end(move |id, engine: Relay| sender.send((id, engine.wake)).expect("the test receives"));
        for (id, word) in [(1, "wake"), (1, "end"), (2, "wake"), (3, "go")] {
            fan.handle_request(at(id.into()), (id, word.to_owned()));
        }
        said(&mut fan, at(3));
        assert_eq!(ended.try_iter().collect::<Vec<_>>(), [(1, Some(at(2)))]);
        fan.remove(2);
        fan.remove(2);
        assert_eq!(ended.try_iter().collect::<Vec<_>>(), [(2, Some(at(3)))]);
        assert_eq!((fan.poll_timeout(), fan.iter().count()), (None, 1));
        drop(fan);
        assert_eq!(ended.try_iter().count(), 0);
    }

    #[test]
    fn an_inserted_engine_is_polled_and_takes_the_place_of_one_with_its_id() {
        let log = Log::default();
        let mut fan = Fan::new(|_: u8, _| None::<Relay>);
        let (sender, ended) = mpsc::channel();
        fan.on_end(move |id, engine: Relay| sender.send((id, engine.name)).expect("the test receives"));
        let with = |name: &'static str| {
            let mut engine = Relay::new(name, &log);
            engine.up.push_back("hello".to_owned());
            engine.wake = Some(at(7));
            engine
        };
        fan.insert(4, with("first"));
        assert_eq!(said(&mut fan, at(1)), ["up (4, \"hello\")"]);
        fan.handle_request(at(1), (4, "go".to_owned()));
        fan.insert(4, with("second"));
        assert_eq!(said(&mut fan, at(2)), ["up (4, \"hello\")"], "requests to the first are lost with it");
        assert_eq!(ended.try_iter().collect::<Vec<_>>(), [(4, "first")]);
        fan.handle_timeout(at(7));
        assert_eq!(said(&mut fan, at(7)), ["up (4, \"woken second\")"]);
        assert_eq!((fan.poll_timeout(), fan.declined), (None, 0));
    }
}

mod port {
    use super::*;

    fn beside(log: &Log) -> Beside<Relay, Relay> {
        Beside { first: Relay::new("left", log), second: Relay::new("right", log) }
    }

    /// Plays an engine with one port above; the other is the one that has an indication first.
    fn play(mut engine: impl Engine<Above = Words, Below = Both<Words, Words>>) -> Vec<String> {
        engine.handle_request(at(1), "go".to_owned());
        engine.handle_indication(at(1), Port::First("ask".to_owned()));
        engine.handle_indication(at(1), Port::Second("come".to_owned()));
        let lines = said(&mut engine, at(1));
        engine.handle_request(at(2), "wake".to_owned());
        assert_eq!(engine.poll_timeout(), Some(at(3)));
        engine.handle_timeout(at(3));
        let woken = said(&mut engine, at(3));
        assert!(!engine.finished());
        lines.into_iter().chain(woken).collect()
    }

    #[test]
    fn one_port_is_used_and_indications_of_the_other_are_dropped() {
        let log = Log::default();
        let first = play(OnFirst(beside(&log)));
        let answer = "down First(\"answer of left\")";
        assert_eq!(first, ["up \"ask left\"", "down First(\"go left\")", answer, "up \"woken left\""]);
        let second = play(OnSecond(beside(&log)));
        assert_eq!(second, ["up \"come right\"", answer, "down Second(\"go right\")", "up \"woken right\""]);
        let mut over = beside(&log);
        (over.first.ended, over.second.ended) = (true, true);
        assert!(OnFirst(over).finished());
    }

    #[test]
    fn an_unused_service_below_is_not_heard() {
        let log = Log::default();
        let mut engine = Beneath::<_, Words>::new(Relay::new("engine", &log));
        engine.handle_indication(at(1), Port::First("ask".to_owned()));
        assert_eq!(said(&mut engine, at(1)), [""; 0]);
        engine.handle_indication(at(1), Port::Second("ask".to_owned()));
        engine.handle_request(at(1), "wake".to_owned());
        assert_eq!(said(&mut engine, at(1)), ["up \"ask engine\"", "down Second(\"answer of engine\")"]);
        assert_eq!((engine.poll_timeout(), engine.finished()), (Some(at(2)), false));
        engine.handle_timeout(at(2));
        assert_eq!(said(&mut engine, at(2)), ["up \"woken engine\""]);
        engine.handle_request(at(2), "end".to_owned());
        assert!(engine.finished());
    }
}

mod beside {
    use super::*;

    #[test]
    fn each_port_leads_to_its_engine() {
        let log = Log::default();
        let mut beside = Beside { first: Relay::new("left", &log), second: Relay::new("right", &log) };
        beside.handle_request(at(1), Port::Second("go".to_owned()));
        beside.handle_indication(at(1), Port::First("ask".to_owned()));
        let expected =
            ["up First(\"ask left\")", "down First(\"answer of left\")", "down Second(\"go right\")"];
        assert_eq!(said(&mut beside, at(1)), expected);
    }

    #[test]
    fn only_the_one_that_is_due_is_woken() {
        let log = Log::default();
        let mut beside = Beside { first: Relay::new("left", &log), second: Relay::new("right", &log) };
        beside.handle_request(at(1), Port::First("wake".to_owned()));
        beside.handle_request(at(5), Port::Second("wake".to_owned()));
        assert_eq!(beside.poll_timeout(), Some(at(2)));
        beside.handle_timeout(at(2));
        assert_eq!(said(&mut beside, at(2)), ["up First(\"woken left\")"]);
        assert_eq!(beside.poll_timeout(), Some(at(6)));
    }
}

#[test]
fn through_changes_nothing() {
    let mut through = PassThrough::<Words>::new();
    through.handle_request(at(1), "down".to_owned());
    through.handle_indication(at(1), "up".to_owned());
    assert!(!through.finished());
    assert_eq!(said(&mut through, at(1)), ["up \"up\"", "down \"down\""]);
    assert!(through.finished());
}

#[test]
fn the_earlier_of_two_deadlines() {
    assert_eq!(earlier(None, None), None);
    assert_eq!(earlier(Some(at(2)), None), Some(at(2)));
    assert_eq!(earlier(None, Some(at(3))), Some(at(3)));
    assert_eq!(earlier(Some(at(4)), Some(at(3))), Some(at(3)));
}
