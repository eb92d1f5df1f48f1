//! Bundles over LTP (RFC 5326) over erasure-coded datagrams, over UDP.

use super::ltp::{self, Ltp, millis};
use crate::carrier::{About, Carrier, Family, LinkFacts, Medium, Preset, sections};
use crate::media::{Admission, Session, session_over};
use crate::path::{Hop, round_trip};
use longwire_proto::fec::loss::symbol_loss;
use longwire_proto::fecframe::wire::{KINDS, SOURCE_BYTES, user_bytes_max};
use longwire_proto::fecframe::{self, FecDatagrams};
use longwire_proto::joint::{Origin, Stack};
use longwire_proto::ltp::{Config, Link};
use longwire_proto::rng::Rng;
use longwire_proto::setting::{Fault, Settings, rule};
use longwire_proto::time::Duration;
use longwire_settings::duration::short;
use longwire_settings::error::Error;
use longwire_settings::figure::figure;
use longwire_settings::toml_text::{from_table, to_table};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use toml::Table;

/// Bundles over LTP over erasure-coded datagrams.
#[derive(Debug)]
pub struct LtpFec;

/// Settings of LTP, and in the table `fec` those of the code.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LtpFecSettings {
    /// LTP. Its rate, burst and overhead are those of the datagrams with their repair symbols.
    #[serde(flatten)]
    pub ltp: Config,
    /// Erasure code.
    pub fec: fecframe::Config,
}

/// Limits of the number of datagrams of a block.
const BLOCK_SYMBOLS: (f64, f64) = (64.0, 2048.0);
/// Maximum time in which the datagrams of a block are sent, unless it has the least number of them.
const BLOCK_TIME_S: f64 = 120.0;
/// The same with several hops: relays forward what was restored only after the end of the block.
const BLOCK_TIME_BEFORE_RELAYS_S: f64 = 30.0;
/// Limits of the probability that a block cannot be restored.
const FAILURE_MAX: (f64, f64) = (1e-6, 0.1);
/// The probability where repair is deferred: two blocks are restored at the end of a transfer over each hop.
const DEFERRED_FAILURE_MAX: f64 = 0.001;
/// Data for which deferred repair packets are made, in round trips: the last one, and the time in which its reports and
/// retransmissions wait. Longer blocks take time at the end, shorter ones leave losses open: least time over two hops at 1e-5.
const ROUND_TRIPS_COVERED: f64 = 1.2;
/// Pause after which deferred repair packets leave, as a number of datagrams.
const PAUSE_FRAMES: f64 = 4.0;
/// Time without data of a block after which its gaps are reported, as a number of datagrams: retransmissions leave in between.
const SILENCE_FRAMES: f64 = 8.0;

impl<'de> Deserialize<'de> for LtpFecSettings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        /// A flattened field cannot refuse unknown keys: it is a table, of which LTP is read.
        #[derive(Deserialize)]
        struct Sections {
            #[serde(default)]
            fec: fecframe::Config,
            #[serde(flatten)]
            ltp: Table,
        }
        let Sections { fec, ltp } = Sections::deserialize(deserializer)?;
        let (of_code, of_ltp) = (to_table(&fecframe::Config::default()), to_table(&Config::default()));
        if let Some(key) = ltp.keys().find(|key| of_code.contains_key(*key) && !of_ltp.contains_key(*key)) {
            return Err(D::Error::custom(format!("`{key}` belongs to the table `fec`: write `fec.{key}`")));
        }
        let plain = |error: Error| D::Error::custom(error.what.trim_start_matches(": "));
        Ok(LtpFecSettings { ltp: from_table(ltp, "").map_err(plain)?, fec })
    }
}

impl Settings for LtpFecSettings {
    fn check(&self) -> Result<(), Fault> {
        self.ltp.check()?;
        self.fec.check().map_err(|fault| fault.within("fec"))?;
        let plain = fecframe::Config::default();
        let is_plain = (self.fec.rate_bps, self.fec.burst, self.fec.overhead_bytes)
            == (plain.rate_bps, plain.burst, plain.overhead_bytes);
        let wrong = "has a rate, a burst or an overhead of its own";
        rule(is_plain, "fec", wrong, "set `rate-bps`, `burst` and `overhead-bytes` beside the table `fec`")
    }
}

impl Carrier for LtpFec {
    type Settings = LtpFecSettings;
    const ABOUT: About = About {
        name: "ltp-fec",
        section: "ltp-fec",
        random_label: "ltp-fec",
        families: &[Family {
            name: "ltp-fec",
            about: "bundles over LTP over an erasure code, whose repair packets restore lost segments before they are \
                    missed, stored at each node",
            presets: &[Preset::new(
                "tuned",
                "as LTP, with repair packets for the bit-error rate, in a number that weighs their air time against that \
                 of a retransmission",
                tuned,
            )],
        }],
        port: None,
        media: &[Medium::Udp],
        ..Ltp::ABOUT
    };
    #[cfg(feature = "testing")]
    const FUZZ: longwire_proto::fuzz::Material = longwire_proto::fuzz::Material {
        codecs: longwire_proto::fecframe::fuzz::FUZZ.codecs,
        speech: |state, script| {
            let segment = (longwire_proto::ltp::fuzz::FUZZ.speech)(state, script);
            longwire_proto::fecframe::fuzz::around(segment, script)
        },
    };

    /// At the default rate, a block and its repair packets take three seconds: reports of missing data wait for them.
    fn defaults() -> LtpFecSettings {
        let plain = LtpFecSettings::default();
        let [report_delay, margin] = [3500, 2500].map(Duration::from_millis);
        LtpFecSettings {
            ltp: Config { report_delay, margin, ..plain.ltp },
            fec: fecframe::Config { block_symbols: 256, ..plain.fec },
        }
    }

    fn adapt(settings: LtpFecSettings, link: &LinkFacts<'_>) -> LtpFecSettings {
        LtpFecSettings { ltp: Ltp::adapt(settings.ltp, link), ..settings }
    }

    fn finish(settings: LtpFecSettings, link: &LinkFacts<'_>) -> Result<LtpFecSettings, Error> {
        Ok(LtpFecSettings { ltp: Ltp::finish(settings.ltp, link)?, ..settings })
    }

    fn session(settings: &LtpFecSettings, origin: Origin, rng: Rng) -> Session {
        let LtpFecSettings { ltp, fec } = settings.clone();
        let Config { rate_bps, burst, overhead_bytes, .. } = ltp;
        // The layer below waits for its turn, and LTP for the room that it then has.
        let ltp = Config { rate_bps: 0, ..ltp };
        let fec = fecframe::Config { rate_bps, burst, overhead_bytes, ..fec };
        let below = FecDatagrams::new(fec, rng.fork("fec"));
        let link = match origin {
            Origin::Above => Link::new(ltp, rng),
            Origin::Below => Link::listening(ltp, rng),
        };
        session_over(Stack::new(link, below))
    }

    /// By the kind of a packet.
    fn recognises(first: &[u8]) -> bool {
        first.first().is_none_or(|kind| KINDS.contains(kind))
    }

    fn cautions(settings: &LtpFecSettings, path: &[Hop]) -> Vec<String> {
        Ltp::cautions(&settings.ltp, path)
    }

    fn explain(settings: &LtpFecSettings, link: &LinkFacts<'_>) -> Vec<String> {
        let fec = &settings.fec;
        let symbols = fec.block_symbols;
        let mut lines = Ltp::explain(&settings.ltp, link);
        let has = format!(
            "{} repair packets while {} of all datagrams are lost, and cannot be restored with a probability of at most {}",
            fec.repair_symbols(symbols, fec.loss),
            figure(fec.loss),
            figure(fec.failure_max)
        );
        lines.push(match fec.deferred {
            false => format!("Erasure code below LTP: a block of {symbols} datagrams has {has}."),
            true => format!(
                "Erasure code below LTP: repair packets leave only in pauses of {} (`fec.deferred`), for the block that is \
                 not full and the one before it. A block of {symbols} datagrams then has {has}.",
                short(fec.idle)
            ),
        });
        lines
    }
}

impl Admission for Stack<Link, FecDatagrams> {}

/// Settings that follow from a path: those of LTP alone, and:
///
/// - The loss is that of a datagram of full length at the bit-error rate.
/// - A block has as many datagrams as are sent in two minutes, because long blocks need less repair in proportion; over
///   several hops, half a minute.
/// - A receiver reports missing data only when the rest of the block, and its repair packets, would have come. No
///   checkpoint asks for a report earlier, and nothing is sent twice.
/// - One more repair packet is worth its air time as long as it prevents a retransmission, which takes that delay and a
///   round trip, with a probability of at least the ratio of both times.
/// - Over several hops whose round trip is not longer than a block, see [`deferred`].
fn tuned(path: &[Hop]) -> Table {
    let ltp: Config = match from_table(ltp::settings(path), "a preset") {
        Ok(ltp) => ltp,
        Err(error) => unreachable!("settings that were just written: {error}"),
    };
    let plain = fecframe::Config::default();
    let Some(mtu_bytes) = path.iter().map(|hop| hop.mtu_bytes).min() else {
        return sections([("ltp-fec", to_table(&LtpFecSettings { ltp, fec: plain }))]);
    };
    let datagram_bytes = user_bytes_max(u64::from(mtu_bytes).saturating_sub(ltp::HEADERS_BYTES));
    let segment_bytes = ltp.segment_bytes.min(datagram_bytes);
    let ltp = Config { segment_bytes, ..ltp };
    let frame_bytes = segment_bytes + SOURCE_BYTES as u64 + ltp.overhead_bytes;
    let ber = path.iter().map(|hop| hop.mean_ber).fold(0.0, f64::max);
    let loss = symbol_loss(ber.clamp(0.0, 1.0), frame_bytes).min(0.5);
    let frame_s = frame_bytes as f64 * 8.0 / ltp.rate_bps.max(1) as f64;
    let in_flight = (round_trip(path).as_secs_f64() / frame_s).ceil();
    let plain = fecframe::Config { loss, repair_min: if ber > 0.0 { 1 } else { 0 }, ..plain };
    let is_deferred = path.len() > 1 && ber > 0.0 && in_flight <= BLOCK_SYMBOLS.1;
    let settings = if is_deferred {
        deferred(ltp, plain, datagram_bytes, in_flight, frame_s)
    } else {
        let block_time_s = if path.len() > 1 { BLOCK_TIME_BEFORE_RELAYS_S } else { BLOCK_TIME_S };
        let symbols = (block_time_s / frame_s).clamp(BLOCK_SYMBOLS.0, BLOCK_SYMBOLS.1) as u32;
        // With a first guess at the repair packets, which are few beside the block.
        let repairs = plain.repair_symbols(symbols, loss);
        let block_s = (f64::from(symbols) + f64::from(repairs)) * frame_s + plain.idle.as_secs_f64();
        let failure_s = block_s + round_trip(path).as_secs_f64();
        let failure_max = (frame_s / failure_s).clamp(FAILURE_MAX.0, FAILURE_MAX.1);
        let fec = fecframe::Config { failure_max, block_symbols: symbols, ..plain };
        let report_delay = if ber > 0.0 { millis(block_s) } else { ltp.report_delay };
        let margin = ltp.margin + report_delay / 2 + Duration::from_millis(20);
        LtpFecSettings { ltp: Config { report_delay, margin, checkpoint_every: 0, copies: 1, ..ltp }, fec }
    };
    let mut tables = sections([("ltp-fec", to_table(&settings))]);
    if is_deferred {
        let losses = (in_flight * loss) as i64;
        tables.extend(sections([("agent", Table::from_iter([("relay-losses".to_owned(), losses.into())]))]));
    }
    tables
}

/// Settings over several hops, of which each repeats what is missing while the next one already has data to send: only after
/// the last data does a repetition cost time.
///
/// - Repair packets leave in pauses, for the last data: what left a round trip and its reports ago is being repeated.
/// - Bundles, which are fragments where relays forward them at once, have blocks of their own: one that is incomplete does
///   not hold up others. Acknowledgements of their reports cost no headers.
fn deferred(
    ltp: Config,
    fec: fecframe::Config,
    datagram_bytes: u64,
    in_flight: f64,
    frame_s: f64,
) -> LtpFecSettings {
    let sessions_max = ltp.sessions_max.max((2.0 * in_flight) as usize);
    LtpFecSettings {
        ltp: Config {
            block_bytes: ltp.segment_bytes,
            shared_datagram_bytes: Some(datagram_bytes),
            asynchronous_after: Some(millis(SILENCE_FRAMES * frame_s)),
            sessions_max,
            incoming_sessions_max: ltp.incoming_sessions_max.max(4 * sessions_max),
            copies: 1,
            ..ltp
        },
        fec: fecframe::Config {
            block_symbols: (ROUND_TRIPS_COVERED * in_flight).clamp(BLOCK_SYMBOLS.0, BLOCK_SYMBOLS.1) as u32,
            deferred: true,
            failure_max: DEFERRED_FAILURE_MAX,
            idle: fec.idle.max(millis(PAUSE_FRAMES * frame_s)),
            ..fec
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hop(delays_s: f64, mean_ber: f64) -> Hop {
        Hop {
            rate_bps: 115_200,
            back_rate_bps: None,
            delays_s,
            mtu_bytes: 1500,
            queue_bytes: 20_000,
            drops: false,
            mean_ber,
            radio: None,
            ui_frames: false,
        }
    }

    fn tuned_for(delays_s: f64, mean_ber: f64) -> LtpFecSettings {
        let table = tuned(&[hop(delays_s, mean_ber)]).remove("ltp-fec").expect("its section");
        let settings: LtpFecSettings =
            from_table(table.try_into().expect("a table"), "a preset").expect("settings");
        assert_eq!(settings.check(), Ok(()));
        settings
    }

    #[test]
    fn before_relays_repair_waits_for_pauses_unless_the_round_trip_is_too_long() {
        let over = |hops: usize, delays_s: f64, ber: f64| tuned(&vec![hop(delays_s, ber); hops]);
        let settings = |table: &Table| -> LtpFecSettings {
            from_table(table["ltp-fec"].clone().try_into().expect("a table"), "a preset").expect("settings")
        };
        let agent = |table: &Table| Some(table.get("agent")?["relay-losses"].as_integer().expect("a number"));
        let lunar = over(2, 5.12, 1e-5);
        let LtpFecSettings { ltp, fec } = settings(&lunar);
        assert!(fec.deferred && fec.idle > Duration::from_millis(100), "four packets");
        let flight = 5.12 * 115_200.0 / 8.0;
        let covered = f64::from(fec.block_symbols) * ltp.segment_bytes as f64;
        let trips = covered / flight;
        assert!((1.1..1.25).contains(&trips), "a round trip and its reports: {covered} of {flight} bytes");
        assert_eq!((ltp.block_bytes, ltp.copies), (ltp.segment_bytes, 1), "blocks of their own");
        assert_eq!(ltp.shared_datagram_bytes, Some(user_bytes_max(1472)), "with the headers within the MTU");
        assert_eq!(settings(&over(1, 5.12, 1e-5)).ltp.shared_datagram_bytes, None);
        let silence = ltp.asynchronous_after.expect("reports without checkpoints");
        assert!(silence > 2 * ltp.report_delay);
        assert!(
            (silence.as_secs_f64() / fec.idle.as_secs_f64() - 2.0).abs() < 0.01,
            "eight packets and four"
        );
        let sessions_bytes = ltp.sessions_max as f64 * ltp.segment_bytes as f64;
        assert!(sessions_bytes > 1.9 * flight, "two round trips: {sessions_bytes} of {flight} bytes");
        assert!(
            ltp.report_delay < Duration::from_millis(100) && ltp.checkpoint_every > 0,
            "repeated at once"
        );
        assert!((4..8).contains(&agent(&lunar).expect("losses")), "of about 95 packets every sixteenth");
        assert_eq!(settings(&over(3, 5.12, 1e-5)), settings(&lunar));
        for other in [over(1, 2.56, 1e-5), over(2, 2.56, 0.0), over(2, 1_000.0, 1e-6)] {
            assert_eq!((settings(&other).fec.deferred, agent(&other)), (false, None));
        }
        // Relays forward what was restored only after the end of the block.
        let symbols = |hops| f64::from(settings(&over(hops, 1_000.0, 1e-6)).fec.block_symbols);
        assert!((3.9..4.1).contains(&(symbols(1) / symbols(2))));
        assert_eq!(symbols(2), symbols(3));
    }

    #[test]
    fn a_clean_path_has_no_repair_packets() {
        let LtpFecSettings { ltp, fec } = tuned_for(2.56, 0.0);
        assert_eq!((fec.repair_symbols(1, 0.0), fec.repair_symbols(2_048, 0.0)), (0, 0));
        assert_eq!(ltp.report_delay, Config::default().report_delay);
    }

    #[test]
    fn reports_wait_for_a_block_with_its_repair_packets_and_checkpoints_for_reports() {
        let LtpFecSettings { ltp, fec } = tuned_for(2.56, 1e-5);
        assert!((0.05..0.12).contains(&fec.loss), "{}", fec.loss);
        let repairs = fec.repair_symbols(fec.block_symbols, fec.loss);
        let packet_s = (ltp.segment_bytes + 7 + ltp.overhead_bytes) as f64 * 8.0 / 115_200.0;
        let wait = ltp.report_delay.as_secs_f64();
        let block_s = f64::from(fec.block_symbols + repairs) * packet_s;
        assert!((0.95..1.05).contains(&(wait / block_s)), "{wait} s for a block of {block_s} s");
        assert!(ltp.retransmission_timeout().as_secs_f64() > wait + 2.56);
    }

    #[test]
    fn deferred_repair_packets_are_explained() {
        let words = |deferred| {
            let plain = LtpFec::defaults();
            let fec = fecframe::Config { deferred, block_symbols: 64, ..plain.fec };
            LtpFec::explain(&LtpFecSettings { fec, ..plain }, &LinkFacts::default())
                .pop()
                .expect("a sentence")
        };
        assert!(words(false).contains(": a block of 64 datagrams has 4 repair packets"), "{}", words(false));
        let deferred = words(true);
        assert!(deferred.contains("leave only in pauses of 20 ms (`fec.deferred`)"), "{deferred}");
        assert!(deferred.contains("A block of 64 datagrams then has 4 repair packets"), "{deferred}");
    }

    #[test]
    fn what_is_wrong_in_the_table_of_the_code_is_named() {
        let read = |text: &str| from_table::<LtpFecSettings>(text.parse().expect("TOML"), "here");
        let settings = read("margin = '2 s'\nfec.block-symbols = 100\nfec.idle = '5 ms'").expect("settings");
        assert_eq!((settings.ltp.margin.as_secs(), settings.fec.block_symbols), (2, 100));
        assert_eq!(settings.fec.idle, Duration::from_millis(5));
        let error = read("fec.block-symbol = 100").unwrap_err();
        assert!(error.what.contains("unknown field `block-symbol`") && error.hint.is_some(), "{error}");
        assert!(error.what.ends_with("\nin `fec`"), "{error}");
        let wrong = |value: &str| read(&format!("fec.block-symbols = {value}")).unwrap_err().what;
        assert_eq!(
            wrong("-1"),
            "here: expected a non-negative whole number, found -1\nin `fec.block-symbols`"
        );
        assert!(wrong("'many'").ends_with("\nin `fec.block-symbols`"), "{}", wrong("'many'"));
        let error = read("block-symbols = 100").unwrap_err();
        assert_eq!(error.what, "here: `block-symbols` belongs to the table `fec`: write `fec.block-symbols`");
        let fault = |value: u32| {
            let settings = read(&format!("fec.block-symbols = {value}")).expect("numbers");
            settings.check().unwrap_err().to_string()
        };
        assert_eq!(fault(0), "`fec.block-symbols` is 0; it must be at least 1");
        assert_eq!(fault(70_000), "`fec.block-symbols` is 70000; it must be at most 32000");
        assert_eq!(read("fec.rate-bps = 5").expect("numbers").check().unwrap_err().key, "fec");
    }
}
