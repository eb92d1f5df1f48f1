//! `compare`: ranks protocols and settings for transferring files over a link.

mod advice;

use crate::bench::{Bench, Case, Played, Trial};
use crate::chain::{self, Chain};
use crate::error::Error;
use crate::finding::Finding;
use crate::format::{figure, with_error};
use crate::link::LinkProfile;
use crate::progress::Progress;
use crate::record::{Experiment, Params};
use crate::report::{Assumption, Cell, Column, LedgerChart, PageBlock, RankChart, RankRow, Report};
use crate::report::{Section, Table, Tone};
use crate::run::{Outcome, Setup};
use crate::scenario::Scenario;
use crate::stack;
use crate::stats::{Summary, mean};
use advice::Advice;
use bytes::Bytes;
use std::cmp::Ordering;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use toml::Value;

/// Runs of each protocol, unless the files are too large.
const RUNS: u32 = 16;
/// Smallest number of runs that gives a useful interval.
const RUNS_MIN: u32 = 4;
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
}

/// Protocol with settings, and its runs.
struct Contender {
    name: String,
    about: String,
    /// Configuration that its settings need.
    advice: Advice,
    /// True if a node can be configured so.
    in_nodes: bool,
    acknowledges: bool,
    resumes: bool,
    cautions: Vec<String>,
    played: Played<Chain>,
}

impl Contender {
    fn of(played: Played<Chain>) -> Contender {
        let Case { series, trial: Chain { setup, .. }, .. } = &played.case;
        let (stack, variant) = stack::find(series).expect("a name of the table");
        Contender {
            name: series.clone(),
            about: format!("{}; {}", stack.about, variant.about),
            advice: Advice::of(setup.settings(), stack),
            in_nodes: stack.carrier.is_some(),
            acknowledges: stack.acknowledges(),
            resumes: stack.resumes(),
            cautions: setup.cautions().to_vec(),
            played,
        }
    }

    fn arrived(&self) -> Vec<&Outcome> {
        self.played.outcomes().filter(|outcome| outcome.delivered).collect()
    }

    /// Transfer times of the completed runs.
    fn times(&self) -> Vec<f64> {
        Chain::metric("transfer_s").samples(&self.arrived())
    }

    fn why_missed(&self) -> String {
        chain::why_missed(&self.played.all())
    }

    /// Returns true for a node that keeps accepted data after a break.
    fn keeps(&self) -> bool {
        self.in_nodes && self.acknowledges
    }

    /// Mean transfer time of the completed runs; infinite without any.
    fn mean_s(&self) -> f64 {
        match &self.times()[..] {
            [] => f64::INFINITY,
            times => mean(times),
        }
    }

    /// Ideal time for the completed runs, of which there must be at least one.
    fn limit_s(&self) -> f64 {
        chain::limit_s(&self.arrived())
    }

    /// Describes the ideal time: a single run is compared with the time without errors.
    fn limit_in_words(&self) -> &'static str {
        match self.arrived().len() {
            1 => "the ideal time without errors",
            _ => "the ideal time",
        }
    }

    /// Orders by complete delivery first, then by mean time.
    fn order(&self, other: &Contender) -> Ordering {
        let missing = |contender: &Contender| contender.played.runs.len() - contender.times().len();
        missing(self).cmp(&missing(other)).then(self.mean_s().total_cmp(&other.mean_s()))
    }

    /// Orders protocols that tie: those that keep accepted data first, then those that need no configuration, then by
    /// mean time.
    fn order_in_tie(&self, other: &Contender) -> Ordering {
        let needs = |contender: &Contender| (!contender.keeps(), !contender.advice.is_empty());
        needs(self).cmp(&needs(other)).then(self.order(other))
    }

    /// Returns true if the runs show no significant difference.
    fn ties_with(&self, other: &Contender) -> bool {
        let arrived_s = |outcome: &Outcome| outcome.transfer_s.filter(|_| outcome.delivered);
        let (ours, theirs) = self.played.pairs_of(&other.played, arrived_s);
        if self.times().len() != other.times().len() || ours.is_empty() {
            return false;
        }
        let paired = Summary::of_differences(&theirs, &ours);
        ours == theirs || (paired.ci95.is_some() && !paired.is_significant())
    }
}

/// Returns the protocols with guaranteed delivery by rank, those that tie with the fastest in order of preference, and
/// the number of these; then the protocols without guaranteed delivery.
fn ranked(contenders: Vec<Contender>) -> (Vec<Contender>, usize, Vec<Contender>) {
    let (mut ranked, mut unsure): (Vec<Contender>, Vec<Contender>) =
        contenders.into_iter().partition(|contender| contender.acknowledges);
    ranked.sort_by(Contender::order);
    unsure.sort_by(Contender::order);
    if ranked.is_empty() {
        return (ranked, 0, unsure);
    }
    let rest = ranked.split_off(1);
    // A protocol with a wide interval may tie although it ranks behind one that does not.
    let (tied, behind): (Vec<Contender>, Vec<Contender>) =
        rest.into_iter().partition(|other| ranked[0].ties_with(other));
    ranked.extend(tied);
    ranked.sort_by(Contender::order_in_tie);
    let leading = ranked.len();
    ranked.extend(behind);
    (ranked, leading, unsure)
}

/// Compares all protocols that suit the link.
///
/// # Errors
/// Fails if a file is missing or empty, or the link is unknown.
pub fn compare(options: &Options, progress: &Progress) -> Result<Finding, Error> {
    let files = read_files(&options.files)?;
    let link = LinkProfile::load(&options.link, Path::new("."))?;
    let bytes: u64 = files.iter().map(|file| file.len() as u64).sum();
    let fitting = (BYTES_MAX / bytes.max(1)).clamp(RUNS_MIN.into(), RUNS.into()) as u32;
    let runs = options.runs.unwrap_or(fitting).max(1);
    let setups = setups(options, &files, &link)?;
    let params = Params::new().with("link", options.link.as_str()).with("bytes", bytes);
    let case = |(name, setup)| Chain::case(name, params.clone(), setup, runs);
    let cases = setups.into_iter().map(case).collect();
    let played = Bench { threads: options.threads, ..Bench::new(progress) }.play(cases);
    // After an early stop there are fewer runs.
    let (planned, runs) = (runs, played.first().map_or(runs, |played| played.runs.len() as u32));
    let traced = played.iter().filter(|_| options.traces);
    let traces = traced.map(|played| played.case.trial.trace(&played.case.series)).collect();
    let (contenders, leading, unsure) = ranked(played.into_iter().map(Contender::of).collect());
    let comparison = Comparison { options, link: &link, bytes, planned, runs, contenders, leading, unsure };
    Ok(Finding { traces, ..comparison.finding() })
}

/// Returns the configuration for a protocol of the table (`tcpcl4/tuned`) over this link.
///
/// # Errors
/// Fails if the protocol or the link is unknown.
pub fn use_of(name: &str, link: &str) -> Result<Vec<PageBlock>, Error> {
    let profile = LinkProfile::load(link, Path::new("."))?;
    let (stack, variant) = stack::find(name)?;
    let settings = (variant.settings)(std::slice::from_ref(&profile));
    let advice = Advice::of(&settings, stack);
    Ok(advice::blocks(name, &advice, name.to_owned(), link, &profile))
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

fn setups(options: &Options, files: &[Bytes], link: &LinkProfile) -> Result<Vec<(String, Setup)>, Error> {
    let setup = |name: String| {
        let scenario = Scenario {
            title: format!("{name} over {}", link.title),
            stack: name.clone(),
            seed: options.seed,
            link: vec![[("profile".to_owned(), Value::String(options.link.clone()))].into_iter().collect()],
            ..Scenario::default()
        };
        Ok((name, Setup::with_files(scenario, Path::new("."), files.to_vec())?))
    };
    stack::fitting(link).0.into_iter().flat_map(stack::Stack::names).map(setup).collect()
}

/// Result of a comparison, to be reported.
struct Comparison<'a> {
    options: &'a Options,
    link: &'a LinkProfile,
    bytes: u64,
    /// Planned number of runs of each protocol.
    planned: u32,
    /// Number of runs of each protocol that were made.
    runs: u32,
    /// Protocols with guaranteed delivery, by rank.
    contenders: Vec<Contender>,
    /// Number of protocols that tie as the fastest.
    leading: usize,
    /// Protocols without guaranteed delivery.
    unsure: Vec<Contender>,
}

impl Comparison<'_> {
    fn finding(&self) -> Finding {
        let configuration = self.configuration();
        let mut summary = vec![PageBlock::Text(self.lead()), PageBlock::Table(self.ranking())];
        summary.extend(self.without_guarantee());
        summary.extend(self.caveats().into_iter().map(PageBlock::Text));
        summary.extend(configuration.clone());
        let (experiment, report) = (self.experiment(), self.report(configuration));
        Finding { experiment, report, summary, traces: Vec::new() }
    }

    fn all(&self) -> impl Iterator<Item = &Contender> {
        self.contenders.iter().chain(&self.unsure)
    }

    /// Equal for all protocols: the link has no outages, and there is one hop.
    fn limit_s(&self) -> f64 {
        chain::limit_s(&self.contenders[0].played.all())
    }

    fn experiment(&self) -> Experiment {
        let mut experiment =
            Experiment { experiment: "compare".into(), seed: self.options.seed, ..Default::default() };
        for contender in self.all() {
            experiment.records.extend(contender.played.records());
            experiment.runs.extend(contender.played.rows());
        }
        experiment
    }

    fn lead(&self) -> String {
        let what = match &self.options.files[..] {
            [one] => format!("`{}` ({})", one.display(), bytes_in_words(self.bytes)),
            many => format!("{} files ({})", many.len(), bytes_in_words(self.bytes)),
        };
        let link = &self.options.link;
        let best = &self.contenders[0];
        if best.times().is_empty() {
            return format!("No protocol delivered {what} over `{link}`.");
        }
        let time = Summary::of(&best.times());
        let limit_s = best.limit_s();
        let (took, limit) = (with_error(&time), figure(limit_s));
        let times = figure(time.mean / limit_s);
        let count = self.contenders.len();
        let tied = &self.contenders[..self.leading];
        if tied.len() == 1 {
            return format!(
                "`{}` is the fastest of {count} for {what} over `{link}`: {took} s on average, {times} times {} \
                 ({limit} s).",
                best.name,
                best.limit_in_words()
            );
        }
        let least = tied.iter().map(Contender::mean_s).fold(f64::INFINITY, f64::min);
        let most = tied.iter().map(Contender::mean_s).fold(0.0, f64::max);
        let span =
            if least == most { figure(least) } else { format!("{} to {}", figure(least), figure(most)) };
        let apart = match tied.iter().all(|other| other.times() == best.times()) {
            true => "with identical times in every run".to_owned(),
            false => format!("and {} runs show no significant difference", time.n),
        };
        format!(
            "{} are the fastest of {count} for {what} over `{link}`: {span} s on average, {apart}. {} `{}` takes \
             {took} s, {times} times {} ({limit} s).",
            named(tied),
            self.what_decides(),
            best.name,
            best.limit_in_words()
        )
    }

    /// Explains why the first of those that tie is listed first.
    fn what_decides(&self) -> String {
        let (best, others) = (&self.contenders[0], &self.contenders[1..self.leading]);
        let keeps = best.keeps() && others.iter().any(|other| !other.keeps());
        let rivals = || others.iter().filter(|other| other.keeps() == best.keeps());
        let plain = best.advice.is_empty() && rivals().any(|other| !other.advice.is_empty());
        let why = match (keeps, plain) {
            (true, true) => "keeps accepted data when a link or node fails, and needs no configuration",
            (true, false) => "keeps accepted data when a link or node fails",
            (false, true) => "needs no configuration",
            (false, false) => "has the shortest mean time, and the others offer no other advantage",
        };
        let mut said = format!("`{}` is listed first because it {why}.", best.name);
        if !best.advice.is_empty() {
            let without: Vec<&Contender> = others.iter().filter(|other| other.advice.is_empty()).collect();
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
            said.push("One run of each, so the variation is unknown.".to_owned());
        }
        for contender in self.all() {
            let named = |caution: &String| format!("`{}`: {caution}.", contender.name);
            // The text above their table says so for protocols without guaranteed delivery.
            if self.unsure.iter().all(|unsure| unsure.name != contender.name) {
                said.extend(contender.cautions.iter().map(named));
            }
            said.extend(chain::beyond_limit(&contender.played.all()).iter().map(named));
        }
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

    /// Names the protocols that the link does not support.
    fn left_out(&self) -> Option<String> {
        let (_, others) = stack::fitting(self.link);
        let names: Vec<String> = others.iter().map(|stack| format!("`{}`", stack.name)).collect();
        self.link.radio.is_some().then(|| {
            format!(
                "Not applicable: {} need a link for IP packets. For IP on this link see `tcp-ax25`, which runs over \
                 AX.25.",
                names.join(", ")
            )
        })
    }

    /// Results of the protocols without guaranteed delivery.
    fn without_guarantee(&self) -> Vec<PageBlock> {
        if self.unsure.is_empty() {
            return Vec::new();
        }
        let whole = |contender: &&Contender| contender.times().len() == contender.played.runs.len();
        // The first by rank is not the fastest if several tie.
        let best_s = self.contenders.iter().map(Contender::mean_s).fold(f64::INFINITY, f64::min);
        let faster: Vec<&Contender> =
            self.unsure.iter().filter(whole).filter(|contender| contender.mean_s() < best_s).collect();
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
        vec![PageBlock::Text(words), PageBlock::Table(self.table(&self.unsure, "not ranked", false))]
    }

    fn ranking(&self) -> Table {
        self.table(&self.contenders, "by rank", true)
    }

    fn table(&self, contenders: &[Contender], which: &str, by_rank: bool) -> Table {
        let mut columns = vec![Column::text("protocol/settings"), Column::number("time", "s")];
        columns.extend([
            Column::number("goodput", "byte/s").left_out(4),
            Column::number("x ideal", "").left_out(5),
        ]);
        columns.push(Column::number("resent", "s").left_out(1));
        columns.extend(self.link.radio.is_some().then(|| Column::number("turnaround", "s").left_out(3)));
        columns.push(Column::number("idle", "s").left_out(2));
        columns.push(Column::text("arrived"));
        if by_rank {
            columns.insert(0, Column::number("rank", ""));
        }
        let missed = contenders.iter().any(|contender| !contender.why_missed().is_empty());
        columns.extend(missed.then(|| Column::text("problem")));
        let caption = format!(
            "{} over {}, {which}: {} runs each, 95 % confidence intervals; ideal time {} s",
            bytes_in_words(self.bytes),
            self.options.link,
            self.runs,
            figure(self.limit_s())
        );
        let mut table = Table::new(caption, columns);
        for (at, contender) in contenders.iter().enumerate() {
            // Protocols that tie share a rank.
            let rank = if at < self.leading { 1 } else { at + 1 };
            let mut cells = self.row(by_rank && at == 0, contender);
            if by_rank {
                cells.insert(0, Cell::number(rank as f64));
            }
            cells.extend(missed.then(|| Cell::text(contender.why_missed())));
            table.row(cells);
        }
        table
    }

    fn row(&self, first: bool, contender: &Contender) -> Vec<Cell> {
        let arrived = contender.arrived();
        let tone = if first && !arrived.is_empty() { Tone::Strong } else { Tone::default() };
        let share = format!("{} of {}", arrived.len(), contender.played.runs.len());
        let complete = arrived.len() == contender.played.runs.len();
        let last = Cell::text(share).toned(if complete { Tone::default() } else { Tone::Bad });
        let mut cells = vec![Cell::text(&contender.name).toned(tone)];
        if arrived.is_empty() {
            cells.extend((0..5 + usize::from(self.link.radio.is_some())).map(|_| Cell::empty()));
        } else {
            let time = Summary::of(&contender.times());
            let ledger = chain::mean_ledger(&arrived, 0, 0);
            let entry = |name: &str| {
                let index = crate::ledger::ENTRIES.iter().position(|(known, ..)| *known == name);
                ledger[index.expect("an entry of the ledger")]
            };
            cells.extend([
                Cell::summary(&time).toned(tone),
                Cell::summary(&Summary::of(&Chain::metric("goodput_byte_per_s").samples(&arrived))),
                Cell::precise(time.mean / contender.limit_s(), 2),
                Cell::precise(entry("repeated"), 1),
            ]);
            // A turnaround consists of keying and access.
            let turns = Cell::precise(entry("keying") + entry("access"), 1);
            cells.extend(self.link.radio.is_some().then_some(turns));
            cells.push(Cell::precise(entry("idle") + entry("outage"), 1));
        }
        cells.push(last);
        cells
    }

    /// Settings of the winner; if it is not a node, also those of the best node.
    fn configuration(&self) -> Vec<PageBlock> {
        let best = &self.contenders[0];
        let blocks = |contender: &Contender, caption: String| {
            advice::blocks(&contender.name, &contender.advice, caption, &self.options.link, self.link)
        };
        let node = self.contenders.iter().find(|other| other.keeps() && !other.times().is_empty());
        let mut all = Vec::new();
        if !best.keeps() && !best.times().is_empty() {
            let caption = format!("settings: {} (plain TCP: a broken transfer starts over)", best.name);
            all.extend(blocks(best, caption));
        }
        if let Some(node) = node {
            let kept = match node.resumes {
                true => "keeps accepted data and resumes after a break",
                false => "keeps accepted bundles and restarts an interrupted one",
            };
            all.extend(blocks(node, format!("node configuration: {} ({kept})", node.name)));
        }
        all
    }

    fn report(&self, configuration: Vec<PageBlock>) -> Report {
        let answer = Section::new("Result").with(self.ranking()).with(self.chart());
        let answer = self.without_guarantee().into_iter().fold(answer, Section::with);
        let answer = self.caveats().into_iter().fold(answer, Section::with);
        let words = match self.link.radio {
            None => {
                "Mean use of time on the link towards the destination. The entries of every run add up to its \
                 duration. Idle time is spent waiting for acknowledgements, timers or the last bits to arrive."
            }
            Some(_) => {
                "Mean use of the channel by both stations. The entries of every run add up to its duration. Access \
                 is waiting for a slot; keying is TXDELAY and TXTAIL; idle is time in which both stations wait for \
                 timers."
            }
        };
        let stacks = self.all().fold(Section::new("Protocols and settings"), |section, contender| {
            section.with(format!("`{}`: {}.", contender.name, contender.about))
        });
        Report {
            answer: Vec::new(),
            title: format!("{} over {}", file_names(&self.options.files), self.link.title),
            lead: self.lead(),
            command: self.command(),
            facts: self.facts(),
            sections: vec![
                answer,
                Section::new("Use of time").with(words).with(self.ledger()),
                configuration.into_iter().fold(Section::new("Configuration"), Section::with),
                stacks,
            ],
            assumptions: assumptions(self.link.radio.is_some()),
        }
    }

    fn command(&self) -> String {
        let files: Vec<String> =
            self.options.files.iter().map(|path| quoted(&path.display().to_string())).collect();
        let said = self.options.runs.or_else(|| (self.runs < self.planned).then_some(self.runs));
        let runs = said.map_or(String::new(), |_| format!(" --runs {}", self.runs));
        format!(
            "longwire compare {} --link {} --seed {}{runs}",
            files.join(" "),
            quoted(&self.options.link),
            self.options.seed
        )
    }

    fn facts(&self) -> Vec<(String, String)> {
        let link = self.link;
        let fact = |name: &str, value: String| (name.to_owned(), value);
        vec![
            fact("seed", self.options.seed.to_string()),
            fact("runs each", self.runs.to_string()),
            fact("line rate", format!("{} bit/s", figure(link.rate_bps as f64))),
            match &link.radio {
                None => fact("one-way delay", format!("{} ms", link.delay_ms)),
                Some(radio) => fact("TXDELAY, TXTAIL, slot time, persistence", radio.in_words()),
            },
            fact("bit-error rate", crate::record::number(link.mean_ber())),
            fact("ideal time", format!("{} s", figure(self.limit_s()))),
            fact(
                "best packet",
                format!("{} bytes of payload", self.contenders[0].played.runs[0].1.limit.payload_bytes),
            ),
        ]
    }

    fn chart(&self) -> RankChart {
        let arrived = self.contenders.iter().filter(|contender| !contender.times().is_empty());
        // Protocols without guaranteed delivery have their own table.
        let row = |contender: &Contender| RankRow {
            name: contender.name.clone(),
            summary: Summary::of(&contender.times()),
        };
        RankChart {
            title: "Transfer time".into(),
            caption:
                "Mean of completed runs with 95 % confidence intervals. All protocols have the same channel \
                      noise in the same runs. The vertical line is the ideal time."
                    .into(),
            quantity: "time".into(),
            unit: "s".into(),
            rows: arrived.map(row).collect(),
            limit: Some(self.limit_s()),
        }
    }

    fn whose_ledger(&self) -> &'static str {
        match self.link.radio {
            None => "Link towards the destination.",
            Some(_) => "Channel, both stations.",
        }
    }

    fn ledger(&self) -> LedgerChart {
        let mut chart = chain::ledger_chart("Use of time", self.whose_ledger());
        for contender in self.all() {
            let arrived = contender.arrived();
            if !arrived.is_empty() {
                let limit = Some(contender.limit_s());
                chart.bars.push(chain::ledger_bar(&contender.name, &arrived, 0, 0, limit));
            }
        }
        chart
    }
}

fn bytes_in_words(bytes: u64) -> String {
    if bytes == 1 { "1 byte".into() } else { format!("{} bytes", figure(bytes as f64)) }
}

/// Quotes a word for a shell.
fn quoted(word: &str) -> String {
    let plain = |letter: char| letter.is_alphanumeric() || "-_./+,:@%".contains(letter);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
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
fn named<'a>(contenders: impl IntoIterator<Item = &'a Contender>) -> String {
    let mut names: Vec<String> =
        contenders.into_iter().map(|contender| format!("`{}`", contender.name)).collect();
    match names.pop() {
        Some(last) if names.is_empty() => last,
        Some(last) => format!("{} and {last}", names.join(", ")),
        None => String::new(),
    }
}

fn assumptions(radio: bool) -> Vec<Assumption> {
    let assume = |text: &str, basis: &str| Assumption {
        text: text.into(),
        basis: basis.into(),
        effect: None,
        moves_result: false,
    };
    let mut all = vec![
        assume(
            "No other traffic uses the link.",
            "a dedicated channel, like a space link; shared channels are slower",
        ),
        assume("Hosts and disks add no delay.", "their delay is small compared with the link"),
        assume(
            "A file has arrived when the receiving application has its last byte.",
            "this is what the user waits for; the sender learns of it at least one round trip later",
        ),
        assume(
            "The ideal time assumes packets of the best size with the smallest possible headers (28 bytes on IP \
             links, 19 on radio channels) and a sender that learns of losses at once.",
            "a lower bound for every protocol",
        ),
    ];
    if radio {
        all.push(assume(
            "The ideal time includes no bit stuffing, no acknowledgements and only the mean wait for a slot.",
            "bit stuffing depends on the data, 1.6 % for random bytes; a transfer without acknowledgements turns the \
             channel round only where a key-up reaches its maximum length",
        ));
    }
    all
}

#[cfg(test)]
mod tests;
