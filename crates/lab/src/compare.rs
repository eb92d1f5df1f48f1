//! `compare`: ranks protocols and settings for transferring files over a link.

mod advice;
mod ranking;
mod timeline;

use crate::bench::{Bench, Trial};
use crate::chain::{self, Chain};
use crate::error::Error;
use crate::finding::Finding;
use crate::format::{figure, shell_word, with_error};
use crate::link::{LinkPath, LinkProfile};
use crate::progress::Progress;
use crate::protocols::{self, Protocol, Variant};
use crate::record::{Configuration, Experiment, Params, distinct};
use crate::report::{Assumption, Cell, Column, LedgerChart, PageBlock, RankChart, RankRow, Report};
use crate::report::{Section, Table, Tone};
use crate::run::Setup;
use crate::scenario::Scenario;
use crate::stats::{Summary, mean};
use crate::toml_text;
use advice::Advice;
use bytes::Bytes;
use ranking::{Candidate, Place, Ranking};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use toml::{Table as TomlTable, Value};

/// Runs of each protocol, unless the files are too large.
const RUNS: u32 = 16;
/// Smallest number of runs that gives a useful interval.
const RUNS_MIN: u32 = 4;
/// Explanation if no run could have ended.
const HOPELESS: &str = " Nothing could: even without errors, the passes and outages of the link leave too little time for \
                        these bytes within the time limit of a run.";
/// Maximum bytes transferred by all runs of a protocol, so that a comparison takes about a minute.
const BYTES_MAX: u64 = 160_000_000;

/// Options of a comparison.
#[derive(Clone, Debug)]
pub struct Options {
    /// Files, all transferred in every run.
    pub files: Vec<PathBuf>,
    /// Built-in link, or path of a link profile.
    pub link: String,
    /// Runs of each protocol; `None` for as many as fit.
    pub runs: Option<u32>,
    /// Seed.
    pub seed: u64,
    /// Number of threads.
    pub threads: usize,
    /// Keeps the frames of the first run of each protocol.
    pub traces: bool,
    /// Number of receivers on the channel of the link, each of which gets all files.
    pub receivers: u32,
}

/// Protocol with one of its settings, from the table.
#[derive(Clone, Copy)]
struct Preset {
    protocol: &'static Protocol,
    variant: &'static Variant,
}

impl Preset {
    /// All that run on a path, in the order of the table.
    fn fitting(path: &LinkPath) -> impl Iterator<Item = Preset> {
        let (protocols, _) = protocols::fitting(&path.hops);
        let of = |protocol: &'static Protocol| {
            protocol.variants.iter().map(move |variant| Preset { protocol, variant })
        };
        protocols.into_iter().flat_map(of)
    }

    /// Settings beyond those for single links: tuned nodes divide files for the relays of the path.
    fn for_relays(self, path: &LinkPath) -> TomlTable {
        let relays = path.hops.len() - 1;
        if relays == 0 || self.protocol.carrier.is_none() || self.variant.name != "tuned" {
            return TomlTable::new();
        }
        let agent = TomlTable::from_iter([("relays".to_owned(), Value::from(relays as i64))]);
        TomlTable::from_iter([("agent".to_owned(), Value::Table(agent))])
    }

    /// Full name, such as `tcpcl3/tuned`.
    fn name(self) -> String {
        format!("{}/{}", self.protocol.name, self.variant.name)
    }
}

/// Compares all protocols that suit the link.
///
/// # Errors
/// Fails if a file is missing or empty, or the link is unknown.
pub fn compare(options: &Options, progress: &Progress) -> Result<Finding, Error> {
    compare_over(options, LinkPath::load(&options.link, Path::new("."))?, progress)
}

/// Compares all protocols that suit this path; `options.link` is its name and is not looked up.
///
/// # Errors
/// Fails if a file is missing or empty.
pub fn compare_over(options: &Options, path: LinkPath, progress: &Progress) -> Result<Finding, Error> {
    let files = read_files(&options.files)?;
    let bytes: u64 = files.iter().map(|file| file.len() as u64).sum();
    let all_bytes = bytes.saturating_mul(options.receivers.into());
    let fitting = (BYTES_MAX / all_bytes.max(1)).clamp(RUNS_MIN.into(), RUNS.into()) as u32;
    let runs = options.runs.unwrap_or(fitting).max(1);
    let params = Params::new().with("link", options.link.as_str()).with("bytes", bytes);
    let params = match options.receivers {
        1 => params,
        several => params.with("receivers", several),
    };
    let presets: Vec<Preset> = Preset::fitting(&path).collect();
    let case = |preset: &Preset| {
        let setup = setup(*preset, options, &files, &path)?;
        Ok(Chain::case(preset.name(), params.clone(), setup, runs))
    };
    let cases = presets.iter().map(case).collect::<Result<Vec<_>, Error>>()?;
    let played = Bench { threads: options.threads, ..Bench::new(progress) }.play(cases);
    // After an early stop there are fewer runs.
    let (planned, runs) = (runs, played.first().map_or(runs, |played| played.runs.len() as u32));
    let traced = played.iter().filter(|_| options.traces);
    let traces = traced.map(|played| played.case.trial.trace(&played.case.name)).collect();
    let candidates = presets.into_iter().zip(played).map(|(preset, played)| Candidate::new(preset, played));
    let ranking = Ranking::of(candidates.collect(), &path);
    let comparison = Comparison { options, path: &path, bytes, planned, runs, ranking };
    Ok(Finding { traces, ..comparison.finding() })
}

/// Returns the configuration for a protocol of the table (`tcpcl4/tuned`) over this link.
///
/// # Errors
/// Fails if the protocol or the link is unknown.
pub fn configuration_of(name: &str, link: &str) -> Result<Configuration, Error> {
    let path = LinkPath::load(link, Path::new("."))?;
    let (protocol, variant) = protocols::find(name)?;
    let mut settings = (variant.settings)(&path.hops);
    toml_text::merge(&mut settings, &Preset { protocol, variant }.for_relays(&path));
    Ok(Advice::of(&settings, protocol).configuration(protocol, &path))
}

/// Kinds of the `[[link]]` of a node whose protocols can win over this link.
pub fn node_kinds(path: &LinkPath) -> Vec<&'static str> {
    let (protocols, _) = protocols::fitting(&path.hops);
    let ranked = protocols.into_iter().filter(|protocol| protocol.acknowledges());
    let mut kinds: Vec<&'static str> = ranked.filter_map(Protocol::link_kind).collect();
    kinds.dedup();
    kinds
}

fn read_files(paths: &[PathBuf]) -> Result<Vec<Bytes>, Error> {
    if paths.is_empty() {
        return Err(Error::new("no files given").hint("give one or more files"));
    }
    let read = |path: &PathBuf| {
        let content = longwire_settings::file::read(path).map_err(|error| {
            let hint = match error.kind() {
                std::io::ErrorKind::NotFound => "check the path; the content of the file is sent",
                std::io::ErrorKind::FileTooLarge => "use a smaller file; it is sent in full in every run",
                std::io::ErrorKind::IsADirectory => "folders cannot be sent; give the files in it",
                _ => "use a file that you can read",
            };
            Error::new(format!("cannot read {}: {error}", path.display())).hint(hint)
        })?;
        if content.is_empty() {
            return Err(
                Error::new(format!("{} is empty", path.display())).hint("use a file with at least one byte")
            );
        }
        Ok(Bytes::from(content))
    };
    paths.iter().map(read).collect()
}

fn setup(preset: Preset, options: &Options, files: &[Bytes], path: &LinkPath) -> Result<Setup, Error> {
    let name = preset.name();
    let scenario = Scenario {
        title: format!("{name} over {}", path.title),
        protocol: name,
        settings: preset.for_relays(path),
        seed: options.seed,
        nodes: path.nodes.clone(),
        ..Scenario::default()
    };
    Setup::over(scenario, path.hops.clone(), files.to_vec())?.to_receivers(options.receivers)
}

/// Result of a comparison, to be reported.
struct Comparison<'a> {
    options: &'a Options,
    path: &'a LinkPath,
    bytes: u64,
    /// Planned number of runs of each protocol.
    planned: u32,
    /// Number of runs of each protocol that were made.
    runs: u32,
    ranking: Ranking,
}

impl Comparison<'_> {
    fn finding(&self) -> Finding {
        let configuration = self.configuration();
        let mut summary = vec![PageBlock::Text(self.lead()), PageBlock::Table(self.ranking_table())];
        summary.extend(self.without_guarantee());
        summary.extend(self.caveats().into_iter().map(PageBlock::Text));
        summary.extend(configuration.clone());
        let (experiment, report) = (self.experiment(), self.report(configuration));
        Finding { experiment, report, summary, ..Finding::default() }
    }

    fn all(&self) -> impl Iterator<Item = &Candidate> {
        self.ranking.all().iter().map(|place| &place.candidate)
    }

    /// Equal for all protocols: with each packet forwarded as it arrives, and the outages of the link.
    fn limit_s(&self) -> f64 {
        chain::streaming_s(&self.ranking.first().candidate.played.all())
    }

    fn experiment(&self) -> Experiment {
        let mut experiment = Experiment {
            experiment: "compare".into(),
            seed: self.options.seed,
            answer: Some(self.lead().replace('`', "")),
            ranking: self.ranking.all().iter().map(|place| place.values.clone()).collect(),
            ..Default::default()
        };
        for candidate in self.all() {
            experiment.records.extend(candidate.played.records());
            experiment.runs.extend(candidate.played.rows());
        }
        experiment
    }

    fn lead(&self) -> String {
        let what = match &self.options.files[..] {
            [one] => format!("`{}` ({})", one.display(), bytes_in_words(self.bytes)),
            many => format!("{} files ({})", many.len(), bytes_in_words(self.bytes)),
        };
        let what = match self.options.receivers {
            1 => what,
            several => format!("{what} to {several} receivers"),
        };
        let link = &self.options.link;
        let best = &self.ranking.first().candidate;
        let Some(time) = best.time() else {
            let why = if best.is_hopeless() { HOPELESS } else { "" };
            return format!("No protocol delivered {what} over `{link}`.{why}");
        };
        let limit_s = best.limit_s();
        let (took, limit) = (with_error(&time), figure(limit_s));
        let times = match figure(time.mean / limit_s) {
            one if one == "1" => "1.00".to_owned(),
            times => times,
        };
        let count = self.ranking.with_rank().len();
        let tied = self.ranking.tied();
        if count == 1 {
            return format!(
                "`{}` takes {took} s on average for {what} over `{link}`, {times} times {} ({limit} s).",
                best.name(),
                best.limit_in_words()
            );
        }
        if tied.len() == 1 {
            return format!(
                "`{}` is the fastest of {count} for {what} over `{link}`: {took} s on average, {times} times {} \
                 ({limit} s).",
                best.name(),
                best.limit_in_words()
            );
        }
        let means = || tied.iter().map(|place| place.candidate.mean_s());
        let (least, most) = (means().fold(f64::INFINITY, f64::min), means().fold(0.0, f64::max));
        let span =
            if least == most { figure(least) } else { format!("{} to {}", figure(least), figure(most)) };
        let (are, apart) = match tied.iter().all(|other| other.candidate.times() == best.times()) {
            true => ("are", "with identical times in every run".to_owned()),
            false if self.planned < RUNS => {
                let few = format!("and {} runs cannot tell them apart: use `--runs {RUNS}` or more", time.n);
                ("may be", few)
            }
            false => ("are", format!("and {} runs show no significant difference", time.n)),
        };
        format!(
            "{} {are} the fastest of {count} for {what} over `{link}`: {span} s on average, {apart}. {} `{}` takes \
             {took} s, {times} times {} ({limit} s).",
            named(tied),
            self.what_decides(),
            best.name(),
            best.limit_in_words()
        )
    }

    /// Explains why the first of those that tie is listed first.
    fn what_decides(&self) -> String {
        let best = &self.ranking.first().candidate;
        let reasons: Vec<&str> = self.ranking.reasons.iter().map(|reason| reason.in_words()).collect();
        let mut said = format!("`{}` is listed first because it {}.", best.name(), reasons.join(", and "));
        if !best.advice.is_empty() {
            let others = self.ranking.tied().iter().skip(1);
            let without: Vec<&Place> = others.filter(|other| other.candidate.advice.is_empty()).collect();
            if !without.is_empty() {
                let need = if without.len() == 1 { "needs" } else { "need" };
                let _ = write!(said, " {} {need} no configuration.", named(without));
            }
        }
        said
    }

    fn caveats(&self) -> Vec<String> {
        let mut said = Vec::new();
        if self.runs == 1 {
            said.push(format!("One run of each, so the variation is unknown: use `--runs {RUNS}` or more."));
        }
        for Place { candidate, values } in self.ranking.all() {
            let named = |caution: &String| format!("`{}`: {caution}.", candidate.name());
            // The text above their table says so for protocols without guaranteed delivery.
            if values.rank.is_some() {
                said.extend(candidate.played.case.trial.setup.cautions().iter().map(named));
            }
            said.extend(chain::beyond_limit(&candidate.played.all()).iter().map(named));
        }
        said.extend(self.in_turn());
        said.extend(self.left_out());
        if self.runs < self.planned {
            let (runs, planned) = (figure(self.runs.into()), figure(self.planned.into()));
            said.push(format!("Stopped early: {runs} of {planned} runs of each completed."));
        }
        if self.planned < RUNS && self.options.runs.is_none() {
            said.push(format!(
                "{} runs of each instead of {RUNS} because the files are large; change this with `--runs`.",
                self.planned
            ));
        }
        said
    }

    /// Explains how protocols serve several receivers.
    fn in_turn(&self) -> Option<String> {
        let serves = |candidate: &&Candidate| candidate.played.case.trial.setup.sends_to_group();
        let names: Vec<String> =
            self.all().filter(serves).map(|candidate| format!("`{}`", candidate.name())).collect();
        let (who, send) = match &names[..] {
            [] => {
                return (self.options.receivers > 1)
                    .then(|| "All send to one receiver after another.".to_owned());
            }
            [one] => (one.clone(), "sends"),
            several => (several.join(", "), "send"),
        };
        Some(format!(
            "{who} {send} once to a group of all receivers, the others send to one receiver after another. Each receiver loses frames of \
             its own. What each receiver costs is the time of all and the bytes of all frames, divided by their number. The ideal time is that of one transmission to one receiver."
        ))
    }

    /// Names the protocols that the link does not support.
    fn left_out(&self) -> Option<String> {
        let (_, others) = protocols::fitting(&self.path.hops);
        let names: Vec<String> = others.iter().map(|protocol| format!("`{}`", protocol.name)).collect();
        self.path.is_radio().then(|| {
            format!(
                "Not applicable: {} need a link for IP packets. For IP on this link see `tcp-ax25`, which runs over \
                 AX.25.",
                names.join(", ")
            )
        })
    }

    /// Results of the protocols without guaranteed delivery.
    fn without_guarantee(&self) -> Vec<PageBlock> {
        let unsure = self.ranking.without_rank();
        if unsure.is_empty() {
            return Vec::new();
        }
        // The first by rank is not the fastest if several tie.
        let ranked = self.ranking.with_rank().iter();
        let best_s = ranked.map(|place| place.candidate.mean_s()).fold(f64::INFINITY, f64::min);
        let is_faster =
            |place: &&Place| place.values.delivered == place.values.runs && place.candidate.mean_s() < best_s;
        let faster: Vec<&Place> = unsure.iter().filter(is_faster).collect();
        let mut words =
            "Not ranked, because delivery is not guaranteed: there are no acknowledgements, and lost data is not \
             resent."
                .to_owned();
        if !faster.is_empty() {
            let was = if faster.len() == 1 { "was" } else { "were" };
            let _ = write!(
                words,
                " {} {was} fastest and complete in every run, because this channel lost nothing.",
                named(faster)
            );
        }
        vec![PageBlock::Text(words), PageBlock::Table(self.table(unsure, "not ranked"))]
    }

    fn ranking_table(&self) -> Table {
        self.table(self.ranking.with_rank(), "by rank")
    }

    fn table(&self, places: &[Place], which: &str) -> Table {
        let mut columns = vec![Column::text("protocol/settings"), Column::number("time", "s")];
        if self.options.receivers > 1 {
            let each = [Column::number("each receiver", "s"), Column::number("each receiver", "byte")];
            columns.extend(each);
        }
        columns.extend([
            Column::number("goodput", "byte/s").left_out(4),
            Column::number("x ideal", "").left_out(5),
        ]);
        columns.push(Column::number("resent", "s").left_out(1));
        columns.extend(self.path.is_radio().then(|| Column::number("turnaround", "s").left_out(3)));
        columns.push(Column::number("idle", "s").left_out(2));
        columns.push(Column::text("arrived"));
        if places.iter().any(|place| place.values.rank.is_some()) {
            columns.insert(0, Column::number("rank", ""));
        }
        let missed = places.iter().any(|place| !place.candidate.why_missed().is_empty());
        columns.extend(missed.then(|| Column::text("problem")));
        let caption = format!(
            "{} over {}, {which}: {} each, 95 % confidence intervals; ideal time {} s",
            bytes_in_words(self.bytes),
            self.options.link,
            if self.runs == 1 { "1 run".to_owned() } else { format!("{} runs", self.runs) },
            figure(self.limit_s())
        );
        let mut table = Table::new(caption, columns);
        for place in places {
            let mut cells = self.row(place);
            if let Some(rank) = place.values.rank {
                cells.insert(0, Cell::number(rank as f64));
            }
            cells.extend(missed.then(|| Cell::text(place.candidate.why_missed())));
            table.row(cells);
        }
        table
    }

    fn row(&self, Place { candidate, values }: &Place) -> Vec<Cell> {
        let arrived = candidate.arrived();
        let tone = if values.winner { Tone::Strong } else { Tone::default() };
        let share = format!("{} of {}", values.delivered, values.runs);
        let last = Cell::text(share).toned(if values.delivered == values.runs {
            Tone::default()
        } else {
            Tone::Bad
        });
        let mut cells = vec![Cell::text(candidate.name()).toned(tone)];
        if arrived.is_empty() {
            let several = if self.options.receivers > 1 { 2 } else { 0 };
            cells.extend((0..5 + several + usize::from(self.path.is_radio())).map(|_| Cell::empty()));
        } else {
            let time = Summary::of(&candidate.times());
            let ledgers: Vec<_> =
                (0..self.path.hops.len()).map(|hop| chain::mean_ledger(&arrived, hop, 0)).collect();
            let index = |name: &str| {
                let index = crate::ledger::ENTRIES.iter().position(|(known, ..)| *known == name);
                index.expect("an entry of the ledger")
            };
            // The work of all hops adds up; of their idle times, that of the last one has all the others in it.
            let entry = |name: &str| -> f64 { ledgers.iter().map(|ledger| ledger[index(name)]).sum() };
            let last = |name: &str| ledgers.last().map_or(0.0, |ledger| ledger[index(name)]);
            cells.push(Cell::summary(&time).toned(tone));
            if self.options.receivers > 1 {
                let receivers = f64::from(self.options.receivers);
                let bytes = mean(Chain::metric("channel_bytes").samples(&arrived));
                cells
                    .extend([Cell::number(time.mean / receivers), Cell::number((bytes / receivers).round())]);
            }
            cells.extend([
                Cell::summary(&Summary::of(&Chain::metric("goodput_byte_per_s").samples(&arrived))),
                Cell::precise(time.mean / candidate.limit_s(), 2),
                Cell::precise(entry("repeated"), 1),
            ]);
            // A turnaround consists of keying and access.
            let turns = Cell::precise(entry("keying") + entry("access"), 1);
            cells.extend(self.path.is_radio().then_some(turns));
            cells.push(Cell::precise(last("idle") + last("outage"), 1));
        }
        cells.push(last);
        cells
    }

    /// Settings of the winner; if it is not a node, also those of the best node.
    fn configuration(&self) -> Vec<PageBlock> {
        let best = self.ranking.first();
        let blocks = |Candidate { preset, advice, .. }: &Candidate, caption: String| {
            advice::blocks(*preset, advice, caption, &self.options.link, self.path)
        };
        let mut all = Vec::new();
        if best.values.winner && !best.values.keeps_accepted {
            let name = best.candidate.name();
            let caption = format!("settings: {name} (without a node, a broken transfer starts over)");
            all.extend(blocks(&best.candidate, caption));
        }
        if let Some(node) = self.ranking.best_for_nodes() {
            let kept = match node.candidate.preset.protocol.resumes() {
                true => "keeps accepted data and resumes after a break",
                false => "keeps accepted bundles and restarts an interrupted one",
            };
            let caption = format!("node configuration: {} ({kept})", node.candidate.name());
            all.extend(blocks(&node.candidate, caption));
        }
        all
    }

    fn report(&self, configuration: Vec<PageBlock>) -> Report {
        let answer = Section::new("Result").with(self.ranking_table()).with(self.chart());
        let answer = self.without_guarantee().into_iter().fold(answer, Section::with);
        let answer = self.caveats().into_iter().fold(answer, Section::with);
        let words = match (self.path.is_radio(), self.path.last().is_shared()) {
            (false, true) => {
                "Mean use of the channel by both stations. The entries of every run add up to its duration. Access is \
                 waiting for a slot; keying is the fixed cost of transmissions; idle is time in which both stations wait \
                 for timers."
            }
            (false, false) => {
                "Mean use of time on the link towards the destination. The entries of every run add up to its \
                 duration. Idle time is spent waiting for acknowledgements, timers or the last bits to arrive."
            }
            (true, _) => {
                "Mean use of the channel by both stations. The entries of every run add up to its duration. Access \
                 is waiting for a slot; keying is TXDELAY and TXTAIL; idle is time in which both stations wait for \
                 timers."
            }
        };
        let protocols = self.all().fold(Section::new("Protocols and settings"), |section, candidate| {
            let Preset { protocol, variant } = candidate.preset;
            section.with(format!("`{}`: {}; {}.", candidate.name(), protocol.about, variant.about))
        });
        let timeline =
            timeline::plot(self.ranking.with_rank(), self.path).filter(|_| self.path.has_outages());
        Report {
            answer: timeline.map(PageBlock::from).into_iter().collect(),
            title: format!("{} over {}", file_names(&self.options.files), self.path.title),
            lead: self.lead(),
            command: self.command(),
            facts: self.facts(),
            sections: vec![
                answer,
                Section::new("Use of time").with(words).with(self.ledger()),
                configuration.into_iter().fold(Section::new("Configuration"), Section::with),
                protocols,
            ],
            assumptions: assumptions(self.path.is_radio()),
        }
    }

    fn command(&self) -> String {
        let files: Vec<String> =
            self.options.files.iter().map(|path| shell_word(&path.display().to_string())).collect();
        let said = self.options.runs.or_else(|| (self.runs < self.planned).then_some(self.runs));
        let runs = said.map_or(String::new(), |_| format!(" --runs {}", self.runs));
        let receivers = match self.options.receivers {
            1 => String::new(),
            several => format!(" --receivers {several}"),
        };
        format!(
            "longwire compare {} --link {} --seed {}{runs}{receivers}",
            files.join(" "),
            shell_word(&self.options.link),
            self.options.seed
        )
    }

    fn facts(&self) -> Vec<(String, String)> {
        let (_, outcome) = &self.ranking.first().candidate.played.runs[0];
        let fact = |name: &str, value: String| (name.to_owned(), value);
        vec![
            fact("seed", self.options.seed.to_string()),
            fact("runs each", self.runs.to_string()),
            fact("line rate", self.of_hops(|link| figure(link.rate_bps as f64)) + " bit/s"),
            match &self.path.last().radio {
                None if self.path.last().ethernet.is_some() => {
                    let words = self
                        .of_hops(|link| link.ethernet.as_ref().map_or(String::new(), |one| one.in_words()));
                    fact("cost of a transmission, slot time, slots, detection", words)
                }
                None => fact("one-way delay", self.of_hops(|link| link.delay_ms.to_string()) + " ms"),
                Some(radio) => fact("TXDELAY, TXTAIL, slot time, persistence", radio.in_words()),
            },
            fact("bit-error rate", self.of_hops(|link| crate::record::number(link.mean_ber()))),
            fact("ideal time", format!("{} s", figure(self.limit_s()))),
            fact("best packet", format!("{} bytes of payload", outcome.limit.payload_bytes)),
        ]
    }

    /// Values of the links, each once if they are equal.
    fn of_hops(&self, value: impl Fn(&LinkProfile) -> String) -> String {
        distinct(self.path.hops.iter().map(value)).join(", ")
    }

    fn chart(&self) -> RankChart {
        // Protocols without guaranteed delivery have their own table.
        let ranked = self.ranking.with_rank().iter().map(|place| &place.candidate);
        let row = |candidate: &Candidate| {
            Some(RankRow { name: candidate.name().to_owned(), summary: candidate.time()? })
        };
        RankChart {
            title: "Transfer time".into(),
            caption:
                "Mean of completed runs with 95 % confidence intervals. All protocols have the same channel \
                      noise in the same runs. The vertical line is the ideal time."
                    .into(),
            quantity: "time".into(),
            unit: "s".into(),
            rows: ranked.filter_map(row).collect(),
            limit: Some(self.limit_s()),
        }
    }

    fn ledger(&self) -> LedgerChart {
        let caption = match (self.path.last().is_shared(), &self.path.nodes[..]) {
            (true, _) => "Channel, both stations.",
            (false, [_, _]) => "Link towards the destination.",
            (false, _) => "Links towards the destination, one after the other.",
        };
        let mut chart = chain::ledger_chart("Use of time", caption);
        for candidate in self.all() {
            let arrived = candidate.arrived();
            if arrived.is_empty() {
                continue;
            }
            let limit = Some(candidate.limit_s());
            for (hop, ends) in self.path.nodes.windows(2).enumerate() {
                let name = match self.path.hops.len() {
                    1 => candidate.name().to_owned(),
                    _ => format!("{}, {} to {}", candidate.name(), ends[0], ends[1]),
                };
                chart.bars.push(chain::ledger_bar(&name, &arrived, hop, 0, limit));
            }
        }
        chart
    }
}

fn bytes_in_words(bytes: u64) -> String {
    if bytes == 1 { "1 byte".into() } else { format!("{} bytes", figure(bytes as f64)) }
}

fn file_names(paths: &[PathBuf]) -> String {
    match paths {
        [one] => {
            one.file_name().map_or_else(|| one.display().to_string(), |name| name.to_string_lossy().into())
        }
        many => format!("{} files", many.len()),
    }
}

/// Joins their names.
fn named<'a>(places: impl IntoIterator<Item = &'a Place>) -> String {
    let mut names: Vec<String> =
        places.into_iter().map(|place| format!("`{}`", place.candidate.name())).collect();
    match names.pop() {
        Some(last) if names.is_empty() => last,
        Some(last) => format!("{} and {last}", names.join(", ")),
        None => String::new(),
    }
}

/// Assumptions of all comparisons; the last one is of those over radio channels alone.
fn assumptions(radio: bool) -> Vec<Assumption> {
    let mut all = Assumption::of_csv(include_str!("compare/assumptions.csv"));
    all.truncate(all.len() - usize::from(!radio));
    all
}

#[cfg(test)]
mod tests;
