//! Two nodes, each with its own Dire Wolf: a file compared with the same file over bare stations on the same rig, and the effects
//! of a restart in the middle.

use crate::channel::{Said, TICK};
use crate::common::segments::Segments;
use crate::common::{App, Place, config, payload, start};
use crate::direwolf::{Air, Failure, OURS, Rig, THEIRS, is_installed};
use crate::ours::Ours;
use crate::table::{AGAIN, LATE, Pulse, is_meant, mean, name, rounds_or, story, trace};
use bytes::Bytes;
use longwire_node::Node;
use longwire_node::message::{MessageOptions, Request};
use longwire_proto::ax25::{ChannelMonitor, Control, Modulo, Unnumbered};
use longwire_proto::kiss::Acknowledgement;
use std::cell::RefCell;
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// Length of the file, bytes.
const FILE_BYTES: usize = 20_000;
/// Maximum duration of a transfer.
const BOUND: Duration = Duration::from_secs(600);
/// Maximum ratio of the nodes' time to that of the bare stations.
const AIM: f64 = 1.05;
/// Maximum concurrent rigs.
const RIGS: usize = 24;
/// Time for which nodes have run before they connect: in the first two minutes after a start the first link to a peer asks one
/// question more, whether the answer to the request belongs to this run.
const RUN: Duration = Duration::from_secs(121);
/// A Dire Wolf looks for new programs once a second, and does not report that it has found one.
const FOUND: Duration = Duration::from_millis(1500);

/// Two nodes over the two stations of a rig, with the callsigns of our stations. They store bundles on disk.
struct Pair {
    rig: Rig,
    texts: [String; 2],
    nodes: [Option<Node>; 2],
    heard: Segments,
    _place: Place,
}

impl Pair {
    /// `plain`: version 2.0 only. The first node connects on request.
    fn start(name: &str, rig: Rig, plain: bool) -> Pair {
        let place = Place::new(name);
        let air = rig.air;
        let version = if plain { "plain" } else { "best" };
        let text = |at: usize, own: &str, callsign: &str| {
            format!(
                "node = 'dtn://{own}/'\n[storage]\npath = '{}'\n[ax25cl]\nretry-min = '1 s'\nretry-max = '2 s'\n\
                 [[tnc]]\nname = 'vhf'\naddress = '{}'\ncallsign = '{callsign}'\n[tnc.channel]\nrate-bps = {}\n\
                 tx-delay = '150 ms'\nslot-time = '20 ms'\n[tnc.ax25]\nversion = '{version}'\n\
                 window-frames = {}\nextended-window-frames = {}\n",
                place.0.join(own).display(),
                rig.kiss(at),
                air.rate_bps,
                air.window.min(7),
                air.window,
            )
        };
        let link = format!(
            "[[link]]\nname = 'bob'\nkind = 'ax25cl'\ntnc = 'vhf'\ncallsign = '{THEIRS}'\npeer = 'dtn://bob/'\nopen = false\n"
        );
        let texts = [format!("{}{link}", text(0, "alice", OURS)), text(1, "bob", THEIRS)];
        let mut pair = Pair { rig, texts, nodes: [None, None], heard: Segments::default(), _place: place };
        [0, 1].into_iter().for_each(|at| pair.start_node(at));
        pair
    }

    fn start_node(&mut self, at: usize) {
        let node = start(config(&self.texts[at]));
        let mut app = App::new(&node);
        until(&self.rig, &mut app, BOUND, |status| status["tncs"][0]["up"] == true)
            .expect("the TNC is there");
        self.rig.channel.record().carries(FOUND);
        self.nodes[at] = Some(node);
    }

    /// Ends a node as a crash would, and starts it again.
    fn restart(&mut self, at: usize) {
        self.nodes[at] = None;
        self.start_node(at);
    }

    fn app(&self, at: usize) -> App {
        App::new(self.nodes[at].as_ref().expect("it runs"))
    }

    /// Applications of the first and the second node; the first node has accepted this file for the second.
    fn given(&self, file: &Bytes) -> (App, App) {
        let (mut here, mut there) = (self.app(0), self.app(1));
        there.register("inbox", 1 << 20);
        let send = here.send("dtn://bob/inbox", file, MessageOptions::default());
        here.wait_accepted(send);
        (here, there)
    }

    /// The first node opens its link to the second.
    fn call(&mut self) {
        self.app(0).ask(Request::OpenLink { name: "bob".into() });
    }

    /// Records the frames since the last call.
    fn listen(&mut self) {
        let noted = self.rig.channel.noted();
        self.rig.channel.begin(0.0, 0);
        for said in noted.said.iter().filter(|said| !said.destroyed) {
            self.heard.hear(said.station, &said.frame);
        }
    }
}

/// Requests a node's status until it is as wished, at most as often as something can be heard on the channel: not all of it has
/// events.
fn until(
    rig: &Rig,
    app: &mut App,
    bound: Duration,
    wished: impl Fn(&serde_json::Value) -> bool,
) -> Result<serde_json::Value, Failure> {
    let began = Instant::now();
    loop {
        let status = app.status();
        if wished(&status) {
            return Ok(status);
        }
        if began.elapsed() > bound {
            return Err(format!("not over after {bound:?}: {status:#}"));
        }
        rig.channel.record().carries(TICK);
    }
}

/// Time at which the first connection request was transmitted.
fn called_at(said: &[Said]) -> Option<Instant> {
    let mut watcher = ChannelMonitor::new();
    said.iter().find_map(|said| {
        let heard = watcher.hear(said.frame.clone()).ok()?;
        let opens = matches!(
            heard.frame.control,
            Control::Unnumbered { function: Unnumbered::SetMode | Unnumbered::SetModeExtended, .. }
        );
        opens.then_some(said.at)
    })
}

/// Time since the connection request.
fn taken(rig: &Rig) -> Result<Duration, Failure> {
    called_at(&rig.channel.noted().said).map(|at| at.elapsed()).ok_or_else(|| "nobody called".into())
}

fn begin(rig: &Rig, seed: u64) {
    rig.channel.begin(f64::from(rig.air.destroyed_percent) / 100.0, seed);
}

/// Transfers a file from node to node, until its sender knows that it has arrived.
fn over_nodes(rig: Rig, name: &str, file: &Bytes, seed: u64) -> (Rig, Result<Duration, Failure>) {
    let plain = !rig.air.is_extended();
    let mut pair = Pair::start(name, rig, plain);
    let (mut here, mut there) = pair.given(file);
    pair.rig.channel.record().carries(RUN);
    begin(&pair.rig, seed);
    pair.call();
    let done = until(&pair.rig, &mut here, BOUND, |status| status["bundles"] == 0);
    let result = done.and_then(|_| taken(&pair.rig));
    if result.is_ok() {
        assert!(there.receive().1 == file, "every byte is as it was sent");
    }
    drop((here, there));
    let Pair { rig, nodes, .. } = pair;
    for node in nodes.into_iter().flatten() {
        node.stop();
    }
    (rig, result)
}

/// Transfers the same bytes over the bare link, until all of them are acknowledged.
async fn over_stations(rig: &Rig, file: &Bytes, seed: u64) -> Result<Duration, Failure> {
    let mut here = Ours::at(rig, 0, Acknowledgement::Never);
    let mut there = Ours::at(rig, 1, Acknowledgement::Never);
    here.is_heard(rig).await;
    there.is_heard(rig).await;
    begin(rig, seed);
    let sends = async {
        here.call().await?;
        here.send(file).await?;
        let taken = taken(rig)?;
        let _ = tokio::time::timeout(Duration::from_secs(60), here.close()).await;
        Ok::<_, Failure>(taken)
    };
    let hears = async {
        there.called().await?;
        let heard = there.receive(file.len()).await?;
        there.closed().await;
        Ok::<_, Failure>(heard)
    };
    let (taken, heard) = tokio::try_join!(sends, hears)?;
    assert!(heard == *file, "every byte is as it was sent");
    Ok(taken)
}

fn air(window: u8, destroyed_percent: u32) -> Air {
    Air { rate_bps: 9600, window, destroyed_percent, digipeater: false }
}

/// Times of the nodes and of the stations by round, where both finished and sound was in time.
#[derive(Default)]
struct Row {
    times: Vec<(f64, f64)>,
    rounds: usize,
    misses: Vec<String>,
}

/// Measures the rows of two nodes and those of two bare stations, and marks rows that miss the aim.
pub(crate) async fn measure() {
    let filter = std::env::var("LONGWIRE_RADIO").unwrap_or_default();
    let words: Vec<&str> = filter.split_whitespace().collect();
    let rows = [(air(7, 0), 3), (air(32, 0), 3), (air(7, 10), 20), (air(32, 10), 20)];
    let meant = |air: &Air| words.iter().all(|word| is_meant(&format!("{} nodes", name(air)), word));
    let rows: Vec<(Air, usize)> = rows
        .into_iter()
        .filter(|(air, _)| meant(air))
        .map(|(air, rounds)| (air, rounds_or(rounds)))
        .collect();
    if rows.is_empty() {
        return;
    }
    println!(
        "\n{FILE_BYTES} bytes between two nodes that have run for two minutes, and two bare stations on the same rig:"
    );
    println!("seconds from the call to the word that all is safe, means of the rounds; aim {AIM}");
    println!("| | rounds | nodes | stations | ratio | |");
    println!("|---|---|---|---|---|---|");
    let (places, pulse, file) = (Semaphore::new(RIGS), Pulse::default(), payload(FILE_BYTES, 3));
    let table: Vec<_> = rows.iter().map(|_| RefCell::new(Row::default())).collect();
    let jobs = rows
        .iter()
        .zip(&table)
        .flat_map(|((air, rounds), row)| (0..*rounds).map(move |round| (*air, *rounds, round, row)));
    let all = futures_util::future::join_all(jobs.map(|(air, rounds, round, row)| {
        let (places, pulse, file) = (&places, &pulse, &file);
        async move {
            let _place = places.acquire().await;
            let result = one_round(air, round, file, pulse).await;
            let mut row = row.borrow_mut();
            match result {
                Ok(times) => row.times.push(times),
                Err(failure) => row.misses.push(failure),
            }
            row.rounds += 1;
            if row.rounds == rounds {
                println!("{}", line(&air, &row));
            }
        }
    }));
    tokio::select! {
        _ = all => {}
        () = pulse.beat() => {}
    }
    assert!(
        table.iter().all(|row| !row.borrow().times.is_empty()),
        "a row has no round that came to its end"
    );
}

fn ratio(row: &Row) -> f64 {
    let (nodes, stations): (Vec<f64>, Vec<f64>) = row.times.iter().copied().unzip();
    mean(&nodes) / mean(&stations)
}

fn line(air: &Air, row: &Row) -> String {
    let (nodes, stations): (Vec<f64>, Vec<f64>) = row.times.iter().copied().unzip();
    let mut notes = row.misses.clone();
    if ratio(row) > AIM {
        notes.push("misses the aim".into());
    }
    format!(
        "| {} | {} | {:.2} | {:.2} | {:.3} | {} |",
        name(air),
        row.times.len(),
        mean(&nodes),
        mean(&stations),
        ratio(row),
        notes.join("; ")
    )
}

/// Both on one rig, each first in every other round; a disturbed measurement is repeated.
async fn one_round(air: Air, round: usize, file: &Bytes, pulse: &Pulse) -> Result<(f64, f64), Failure> {
    let named = format!("{} nodes round {round}", name(&air));
    let plain = named.replace([' ', '/', '%', '='], "-");
    let mut times = [0.0; 2];
    for turn in 0..2 {
        let of_nodes = (turn + round).is_multiple_of(2);
        for again in 0.. {
            let (here, began) = (plain.clone(), Instant::now());
            let rig = tokio::task::spawn_blocking(move || Rig::start(&here, air)).await.unwrap();
            let (rig, result) = if of_nodes {
                let (name, file, seed) = (plain.clone(), file.clone(), round as u64);
                tokio::task::spawn_blocking(move || over_nodes(rig, &name, &file, seed)).await.unwrap()
            } else {
                let result = tokio::time::timeout(BOUND, over_stations(&rig, file, round as u64)).await;
                (rig, result.unwrap_or_else(|_| Err(format!("not over after {BOUND:?}"))))
            };
            let noted = rig.channel.noted();
            let (late, ours) = (noted.late.max(noted.unheard), pulse.latest_since(began));
            let disturbed = late.max(ours) > LATE;
            let who = if of_nodes { "nodes" } else { "stations" };
            eprintln!("{named} {who}: {}", story(&result, &noted, ours, disturbed));
            if let Ok(folder) = std::env::var("LONGWIRE_RADIO_TRACE") {
                let file = format!("{named} {who} {again}.txt").replace([' ', '/', '%'], "-");
                trace(&Path::new(&folder).join(file), began, noted);
            }
            let _ = tokio::task::spawn_blocking(|| drop(rig)).await;
            if !disturbed {
                times[usize::from(!of_nodes)] = result.map_err(|why| format!("{who}: {why}"))?.as_secs_f64();
                break;
            }
            if again == AGAIN {
                return Err(format!("{who}: disturbed every time, {late:?} late"));
            }
        }
    }
    Ok((times[0], times[1]))
}

/// A fault of a pair in the middle of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    /// The node that accepts the connection restarts.
    Called,
    /// The node that connects restarts.
    Calling,
    /// The program that is the connecting node's TNC restarts.
    Program,
}

/// Transfers a file of this length, with a fault when half of its frames have been sent: it arrives once and complete. Returns
/// the time that it took.
fn story_of(name: &str, window: u8, length: usize, trouble: Option<Trouble>) -> Duration {
    let mut pair = Pair::start(name, Rig::start(name, air(window, 0)), window <= 7);
    let file = payload(length, 9);
    let (mut here, mut there) = pair.given(&file);
    begin(&pair.rig, 0);
    pair.call();
    let began = Instant::now();
    if let Some(trouble) = trouble {
        let half = length as u64 / 2;
        until(&pair.rig, &mut there, BOUND, |status| {
            status["links"][0]["counters"]["payload_received"].as_u64() > Some(half)
        })
        .unwrap();
        match trouble {
            Trouble::Called => {
                drop(there);
                pair.restart(1);
                there = pair.app(1);
                there.register("inbox", 1 << 20);
            }
            Trouble::Calling => {
                drop(here);
                pair.restart(0);
                here = pair.app(0);
                pair.call();
            }
            Trouble::Program => pair.rig.restart(0),
        }
    }
    until(&pair.rig, &mut here, BOUND, |status| status["bundles"] == 0).unwrap();
    let taken = began.elapsed();
    let (delivery, got) = there.receive();
    assert!(got == file, "every byte is as it was sent");
    there.take(delivery);
    until(&pair.rig, &mut there, BOUND, |status| status["bundles"] == 0).unwrap();
    pair.listen();
    println!("{name}: {:.1} s, links {}", taken.as_secs_f64(), pair.heard.calls());
    if trouble.is_none() {
        assert_eq!(pair.heard.calls(), 1, "a clean link does not fall");
    }
    taken
}

#[test]
#[ignore = "minutes of real time: ./test radio"]
fn a_hundred_kilobytes_each_way_between_two_nodes() {
    if !is_installed() {
        return;
    }
    let mut pair = Pair::start("both-ways", Rig::start("both-ways", air(32, 0)), false);
    let files = [payload(100_000, 1), payload(100_000, 2)];
    let mut apps = [pair.app(0), pair.app(1)];
    apps.iter_mut().for_each(|app| app.register("inbox", 1 << 20));
    for (app, (file, to)) in apps.iter_mut().zip(files.iter().zip(["bob", "alice"])) {
        let send = app.send(&format!("dtn://{to}/inbox"), file, MessageOptions::default());
        app.wait_accepted(send);
    }
    begin(&pair.rig, 0);
    pair.call();
    for app in &mut apps {
        until(&pair.rig, app, BOUND, |status| status["counters"]["forwarded"] == 1).unwrap();
    }
    for (app, file) in apps.iter_mut().zip(files.iter().rev()) {
        let (delivery, got) = app.receive();
        assert!(got == *file, "every byte is as it was sent");
        app.take(delivery);
        until(&pair.rig, app, BOUND, |status| status["bundles"] == 0).unwrap();
    }
    pair.listen();
    assert_eq!((pair.heard.calls(), pair.heard.again()), (1, [0, 0]), "a clean link does not fall");
}

#[test]
#[ignore = "minutes of real time: ./test radio"]
fn a_called_node_that_is_started_again_costs_little() {
    /// Maximum cost of a node's restart, if sound was in time.
    const COST: Duration = Duration::from_secs(30);
    if is_installed() {
        let plain = story_of("called-plain", 32, 50_000, None);
        let taken = story_of("called", 32, 50_000, Some(Trouble::Called));
        assert!(taken <= plain + COST, "{taken:?} beside {plain:?}");
    }
}

#[test]
#[ignore = "minutes of real time: ./test radio"]
fn a_calling_node_that_is_started_again_goes_on() {
    if is_installed() {
        story_of("calling", 32, 50_000, Some(Trouble::Calling));
    }
}

#[test]
#[ignore = "minutes of real time: ./test radio"]
fn a_dire_wolf_that_is_started_again_loses_nothing() {
    if is_installed() {
        story_of("program", 32, 50_000, Some(Trouble::Program));
    }
}

#[test]
#[ignore = "minutes of real time: ./test radio"]
fn nodes_of_version_2_0_carry_a_file_over_one_link() {
    if is_installed() {
        story_of("plain", 7, 20_000, None);
    }
}

/// A file over the first link, whatever the TNC supports: no segment is sent twice, and the link does not fail.
#[test]
fn finding_out_what_the_tnc_knows_breaks_no_link() {
    if !is_installed() {
        return;
    }
    let mut pair = Pair::start("probe", Rig::start("probe", air(7, 0)), true);
    let file = payload(6_000, 5);
    let (mut here, mut there) = pair.given(&file);
    begin(&pair.rig, 0);
    pair.call();
    until(&pair.rig, &mut here, Duration::from_secs(90), |status| status["bundles"] == 0).unwrap();
    assert!(there.receive().1 == file, "every byte is as it was sent");
    let said = pair.rig.channel.noted().said;
    let control = |said: &Said| {
        let frame = longwire_proto::ax25::Frame::decode(&mut said.frame.clone(), Modulo::Eight);
        frame.expect("nodes send frames of modulo 8").control
    };
    let gone = said.iter().filter(|said| {
        matches!(
            control(said),
            Control::Unnumbered { function: Unnumbered::DisconnectedMode | Unnumbered::Information, .. }
        )
    });
    assert_eq!(gone.count(), 0, "the link falls, or what asks the TNC was on the air");
    pair.listen();
    assert_eq!((pair.heard.calls(), pair.heard.again()), (1, [0, 0]));
}
