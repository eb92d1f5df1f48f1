//! `compare`: which protocol and which settings move these files over that link best.

mod advice;

use crate::batch::{self, Batch};
use crate::error::Error;
use crate::finding::{self, Finding};
use crate::link::LinkProfile;
use crate::parallel::Shard;
use crate::progress::Progress;
use crate::record::{Experiment, Params};
use crate::report::{Assumption, Cell, Column, LedgerChart, PageBlock, RankChart, RankRow, Report};
use crate::report::{Section, Table, Tone, figure, with_error};
use crate::run::{Outcome, Setup};
use crate::scenario::Scenario;
use crate::stack;
use crate::stats::{Summary, mean};
use crate::sweep;
use advice::Advice;
use bytes::Bytes;
use std::cmp::Ordering;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use toml::Value;

/// Runs of each stack, if the files are not too long for that.
const RUNS: u32 = 16;
/// The fewest that still give an interval worth the name.
const RUNS_MIN: u32 = 4;
/// Bytes that all runs of a stack may transfer together, so that the whole ends within about a minute.
const BYTES_MAX: u64 = 160_000_000;

/// What is compared.
#[derive(Clone, Debug)]
pub struct Options {
    /// The files, all transferred in every run.
    pub files: Vec<PathBuf>,
    /// A shipped link, or the path of a link profile.
    pub link: String,
    /// Runs of each stack; none: as many as fit.
    pub runs: Option<u32>,
    /// The seed.
    pub seed: u64,
    /// Threads.
    pub threads: usize,
    /// Keep the frames of each stack's first run.
    pub traces: bool,
}

/// One stack and its runs.
struct Contender {
    name: String,
    about: String,
    /// Everything that has to be said for its settings.
    advice: Advice,
    /// A node can be configured so.
    in_nodes: bool,
    acknowledges: bool,
    resumes: bool,
    cautions: Vec<String>,
    outcomes: Vec<Outcome>,
}

impl Contender {
    fn of((batch, outcomes): (&Batch, Vec<Outcome>)) -> Contender {
        let (stack, variant) = stack::find(&batch.series).expect("a name of the table");
        Contender {
            name: batch.series.clone(),
            about: format!("{}; {}", stack.about, variant.about),
            advice: Advice::of(batch.setup.settings(), &stack.defaults(), stack.node_kind.is_some()),
            in_nodes: stack.node_kind.is_some(),
            acknowledges: stack.acknowledges,
            resumes: stack.resumes,
            cautions: batch.setup.cautions().to_vec(),
            outcomes,
        }
    }

    fn arrived(&self) -> Vec<&Outcome> {
        self.outcomes.iter().filter(|outcome| outcome.delivered).collect()
    }

    /// Transfer times of the runs that arrived.
    fn times(&self) -> Vec<f64> {
        finding::samples(&self.arrived(), "transfer_s")
    }

    fn why_missed(&self) -> String {
        finding::why_missed(&self.outcomes.iter().collect::<Vec<_>>())
    }

    /// Nodes have such links, and what one has accepted outlives a break.
    fn keeps(&self) -> bool {
        self.in_nodes && self.acknowledges
    }

    /// Mean transfer time of the runs that arrived; infinite where none did.
    fn mean_s(&self) -> f64 {
        match &self.times()[..] {
            [] => f64::INFINITY,
            times => mean(times),
        }
    }

    /// The limit that its times are held against: that of the runs that arrived, of which there is one at least.
    fn limit_s(&self) -> f64 {
        finding::limit_s(&self.arrived())
    }

    /// That limit in words: a single run is held against its time without errors.
    fn limit_in_words(&self) -> &'static str {
        match self.arrived().len() {
            1 => "what the channel itself needs without an error",
            _ => "what the channel itself needs",
        }
    }

    /// One that always arrives comes first, then the faster one.
    fn order(&self, other: &Contender) -> Ordering {
        let missing = |contender: &Contender| contender.outcomes.len() - contender.times().len();
        missing(self).cmp(&missing(other)).then(self.mean_s().total_cmp(&other.mean_s()))
    }

    /// Between contenders that take equally long: who keeps what was accepted comes first, then who needs no
    /// configuration, then who is faster by its mean.
    fn order_in_tie(&self, other: &Contender) -> Ordering {
        let needs = |contender: &Contender| (!contender.keeps(), !contender.advice.is_empty());
        needs(self).cmp(&needs(other)).then(self.order(other))
    }

    /// True if the runs do not tell which of the two is faster.
    fn ties_with(&self, other: &Contender) -> bool {
        let (ours, theirs) = finding::pairs(&self.arrived(), &other.arrived(), "transfer_s");
        if self.times().len() != other.times().len() || ours.is_empty() {
            return false;
        }
        let paired = Summary::of_differences(&theirs, &ours);
        ours == theirs || (paired.ci95.is_some() && !paired.is_significant())
    }
}

/// The contenders with a guarantee of delivery by rank, those that tie with the fastest in the order in which they are to be
/// preferred, and how many these are; then those without a guarantee.
fn ranked(contenders: Vec<Contender>) -> (Vec<Contender>, usize, Vec<Contender>) {
    let (mut ranked, mut unsure): (Vec<Contender>, Vec<Contender>) =
        contenders.into_iter().partition(|contender| contender.acknowledges);
    ranked.sort_by(Contender::order);
    unsure.sort_by(Contender::order);
    if ranked.is_empty() {
        return (ranked, 0, unsure);
    }
    let rest = ranked.split_off(1);
    // One with a wide interval may tie behind another that does not.
    let (tied, behind): (Vec<Contender>, Vec<Contender>) =
        rest.into_iter().partition(|other| ranked[0].ties_with(other));
    ranked.extend(tied);
    ranked.sort_by(Contender::order_in_tie);
    let leading = ranked.len();
    ranked.extend(behind);
    (ranked, leading, unsure)
}

/// Compares every stack that fits.
///
/// # Errors
/// A file that is missing or empty, an unknown link.
pub fn compare(options: &Options, progress: &Progress) -> Result<Finding, Error> {
    let files = read_files(&options.files)?;
    let link = LinkProfile::load(&options.link, Path::new("."))?;
    let bytes: u64 = files.iter().map(|file| file.len() as u64).sum();
    let fitting = (BYTES_MAX / bytes.max(1)).clamp(RUNS_MIN.into(), RUNS.into()) as u32;
    let runs = options.runs.unwrap_or(fitting).max(1);
    let setups = setups(options, &files, &link)?;
    let batch = |(name, setup)| Batch::new(name, Params::new(), setup, runs);
    let batches: Vec<Batch> = setups.into_iter().map(batch).collect();
    let outcomes = batch::play(&batches, options.threads, Shard::WHOLE, progress);
    // Stopped early, there are fewer.
    let (planned, runs) = (runs, outcomes.first().map_or(runs, |outcomes| outcomes.len() as u32));
    let (contenders, leading, unsure) = ranked(batches.iter().zip(outcomes).map(Contender::of).collect());
    let traces = if options.traces { sweep::traces(&batches) } else { Vec::new() };
    let comparison = Comparison { options, link: &link, bytes, planned, runs, contenders, leading, unsure };
    Ok(Finding { traces, ..comparison.finding() })
}

/// The text on a stack of the table (`tcpcl4/tuned`), should it be the best over this link.
///
/// # Errors
/// An unknown stack or link.
pub fn use_of(name: &str, link: &str) -> Result<Vec<PageBlock>, Error> {
    let profile = LinkProfile::load(link, Path::new("."))?;
    let (stack, variant) = stack::find(name)?;
    let settings = (variant.settings)(std::slice::from_ref(&profile));
    let advice = Advice::of(&settings, &stack.defaults(), stack.node_kind.is_some());
    Ok(advice::blocks(name, &advice, name.to_owned(), link, &profile))
}

fn read_files(paths: &[PathBuf]) -> Result<Vec<Bytes>, Error> {
    if paths.is_empty() {
        return Err(Error::new("there is no file to compare with").hint("name one or more files"));
    }
    let read = |path: &PathBuf| {
        let content = longwire_settings::file::read(path).map_err(|error| {
            let hint = match error.kind() {
                std::io::ErrorKind::NotFound => {
                    "check the path; any file will do, its bytes are what is sent"
                }
                std::io::ErrorKind::FileTooLarge => "name a shorter one: the whole of it is sent, many times",
                std::io::ErrorKind::IsADirectory => "name the files in it; a folder is not sent",
                _ => "a file that you may read is needed",
            };
            Error::new(format!("cannot read {}: {error}", path.display())).hint(hint)
        })?;
        if content.is_empty() {
            return Err(Error::new(format!("{} is empty", path.display()))
                .hint("there is nothing to transfer: name a file with at least one byte"));
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

/// What came out, on its way to paper.
struct Comparison<'a> {
    options: &'a Options,
    link: &'a LinkProfile,
    bytes: u64,
    /// How many runs of each there were to be.
    planned: u32,
    /// How many there were.
    runs: u32,
    /// Those with a guarantee of delivery, by rank.
    contenders: Vec<Contender>,
    /// How many of them tie as the best.
    leading: usize,
    /// Those without one.
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

    /// The same for all: the link has no outages, and one hop.
    fn limit_s(&self) -> f64 {
        finding::limit_s(&self.contenders[0].outcomes.iter().collect::<Vec<_>>())
    }

    fn params(&self) -> Params {
        Params::new().with("link", self.options.link.as_str()).with("bytes", self.bytes)
    }

    fn experiment(&self) -> Experiment {
        let params = self.params();
        let mut experiment =
            Experiment { experiment: "compare".into(), seed: self.options.seed, ..Default::default() };
        for contender in self.all() {
            let all: Vec<&Outcome> = contender.outcomes.iter().collect();
            experiment.records.extend(finding::records_of(&contender.name, &params, &all));
            let rows = all.iter().map(|outcome| finding::run_row(&contender.name, &params, outcome));
            experiment.runs.extend(rows);
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
            return format!("No stack that is sure to deliver gets {what} over `{link}` at all.");
        }
        let time = Summary::of(&best.times());
        let limit_s = best.limit_s();
        let (took, limit) = (with_error(&time), figure(limit_s));
        let times = figure(time.mean / limit_s);
        let count = self.contenders.len();
        let tied = &self.contenders[..self.leading];
        if tied.len() == 1 {
            return format!(
                "`{}` is the best of {count} for {what} over `{link}`: {took} s on average, {times} times {} ({limit} s).",
                best.name,
                best.limit_in_words()
            );
        }
        let least = tied.iter().map(Contender::mean_s).fold(f64::INFINITY, f64::min);
        let most = tied.iter().map(Contender::mean_s).fold(0.0, f64::max);
        let span =
            if least == most { figure(least) } else { format!("{} to {}", figure(least), figure(most)) };
        let apart = match tied.iter().all(|other| other.times() == best.times()) {
            true => "and exactly as long in every run".to_owned(),
            false => format!("and {} runs do not tell them apart", time.n),
        };
        format!(
            "{} tie as the best of {count} for {what} over `{link}`: {span} s on average, {apart}. {} `{}` takes {took} s, {times} \
             times {} ({limit} s).",
            named(tied),
            self.what_decides(),
            best.name,
            best.limit_in_words()
        )
    }

    /// Why the first of those that tie stands first.
    fn what_decides(&self) -> String {
        let (best, others) = (&self.contenders[0], &self.contenders[1..self.leading]);
        let keeps = best.keeps() && others.iter().any(|other| !other.keeps());
        let rivals = || others.iter().filter(|other| other.keeps() == best.keeps());
        let plain = best.advice.is_empty() && rivals().any(|other| !other.advice.is_empty());
        let why = match (keeps, plain) {
            (true, true) => "keeps what it accepted when a link or a node breaks, and needs no configuration",
            (true, false) => "keeps what it accepted when a link or a node breaks",
            (false, true) => "needs no configuration",
            (false, false) => "has the shortest mean, and nothing else divides them",
        };
        let mut said = format!("`{}` stands first: it {why}.", best.name);
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
            said.push("One run of each: how much chance there is in these times is not known.".to_owned());
        }
        for contender in self.all() {
            let named = |caution: &String| format!("`{}`: {caution}.", contender.name);
            // Of those without a guarantee it is said above their table.
            if self.unsure.iter().all(|unsure| unsure.name != contender.name) {
                said.extend(contender.cautions.iter().map(named));
            }
            let all: Vec<&Outcome> = contender.outcomes.iter().collect();
            said.extend(finding::beyond_limit(&all).iter().map(named));
        }
        said.extend(self.left_out());
        if self.runs < self.planned {
            let (runs, planned) = (figure(self.runs.into()), figure(self.planned.into()));
            said.push(format!("Stopped early: {runs} runs of each instead of {planned}."));
        }
        if self.planned < RUNS && self.options.runs.is_none() {
            said.push(format!(
                "{} runs of each instead of {RUNS}, because the files are long; `--runs` sets another number.",
                self.planned
            ));
        }
        said
    }

    /// Who cannot run here.
    fn left_out(&self) -> Option<String> {
        let (_, others) = stack::fitting(self.link);
        let names: Vec<String> = others.iter().map(|stack| format!("`{}`", stack.name)).collect();
        self.link.radio.is_some().then(|| {
            format!(
                "Not run: {} need a link that carries IP packets. On this one IP itself runs over AX.25: `tcp-ax25`.",
                names.join(", ")
            )
        })
    }

    /// Those that nobody can rely on, with what they did.
    fn without_guarantee(&self) -> Vec<PageBlock> {
        if self.unsure.is_empty() {
            return Vec::new();
        }
        let whole = |contender: &&Contender| contender.times().len() == contender.outcomes.len();
        // The first by rank is not the fastest where several tie.
        let best_s = self.contenders.iter().map(Contender::mean_s).fold(f64::INFINITY, f64::min);
        let faster: Vec<&Contender> =
            self.unsure.iter().filter(whole).filter(|contender| contender.mean_s() < best_s).collect();
        let mut words =
            "Without a guarantee of delivery, and so without a rank: nothing is acknowledged, and what the \
                         channel loses is lost."
                .to_owned();
        if !faster.is_empty() {
            let was = if faster.len() == 1 { "was" } else { "were" };
            let _ = write!(
                words,
                " {} {was} the fastest, and complete in every run: here the channel lost nothing.",
                named(faster)
            );
        }
        vec![
            PageBlock::Text(words),
            PageBlock::Table(self.table(&self.unsure, "without a guarantee of delivery", false)),
        ]
    }

    fn ranking(&self) -> Table {
        self.table(&self.contenders, "by rank", true)
    }

    fn table(&self, contenders: &[Contender], which: &str, by_rank: bool) -> Table {
        let mut columns = vec![Column::text("protocol/settings"), Column::number("time", "s")];
        columns.extend([
            Column::number("goodput", "byte/s").left_out(4),
            Column::number("x limit", "").left_out(5),
        ]);
        columns.push(Column::number("sent again", "s").left_out(1));
        columns.extend(self.link.radio.is_some().then(|| Column::number("turns", "s").left_out(3)));
        columns.push(Column::number("silent", "s").left_out(2));
        columns.push(Column::text("arrived"));
        if by_rank {
            columns.insert(0, Column::number("rank", ""));
        }
        let missed = contenders.iter().any(|contender| !contender.why_missed().is_empty());
        columns.extend(missed.then(|| Column::text("why not")));
        let caption = format!(
            "{} over {}, {which}: {} runs each, 95 % intervals; the limit is {} s",
            bytes_in_words(self.bytes),
            self.options.link,
            self.runs,
            figure(self.limit_s())
        );
        let mut table = Table::new(caption, columns);
        for (at, contender) in contenders.iter().enumerate() {
            // Those that tie share their rank.
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
        let share = format!("{} of {}", arrived.len(), contender.outcomes.len());
        let complete = arrived.len() == contender.outcomes.len();
        let last = Cell::text(share).toned(if complete { Tone::default() } else { Tone::Bad });
        let mut cells = vec![Cell::text(&contender.name).toned(tone)];
        if arrived.is_empty() {
            cells.extend((0..5 + usize::from(self.link.radio.is_some())).map(|_| Cell::empty()));
        } else {
            let time = Summary::of(&contender.times());
            let ledger = finding::mean_ledger(&arrived, 0, 0);
            let entry = |name: &str| {
                let index = crate::ledger::ENTRIES.iter().position(|(known, ..)| *known == name);
                ledger[index.expect("an entry of the ledger")]
            };
            cells.extend([
                Cell::summary(&time).toned(tone),
                Cell::summary(&Summary::of(&finding::samples(&arrived, "goodput_byte_per_s"))),
                Cell::precise(time.mean / contender.limit_s(), 2),
                Cell::precise(entry("repeated"), 1),
            ]);
            // Keying and waiting for the channel are all there is to turns.
            let turns = Cell::precise(entry("keying") + entry("access"), 1);
            cells.extend(self.link.radio.is_some().then_some(turns));
            cells.push(Cell::precise(entry("idle") + entry("outage"), 1));
        }
        cells.push(last);
        cells
    }

    /// The winner's settings; where it carries no bundles, a node's with the best that does, too.
    fn configuration(&self) -> Vec<PageBlock> {
        let best = &self.contenders[0];
        let blocks = |contender: &Contender, caption: String| {
            advice::blocks(&contender.name, &contender.advice, caption, &self.options.link, self.link)
        };
        let node = self.contenders.iter().find(|other| other.keeps() && !other.times().is_empty());
        let mut all = Vec::new();
        if !best.keeps() && !best.times().is_empty() {
            let caption = format!("settings: {} (a plain stream: nothing is kept when it breaks)", best.name);
            all.extend(blocks(best, caption));
        }
        if let Some(node) = node {
            let kept = match node.resumes {
                true => "keeps what it accepted, and goes on where it stopped",
                false => "keeps what it accepted, and begins a bundle anew where it stopped",
            };
            all.extend(blocks(node, format!("node configuration: {} ({kept})", node.name)));
        }
        all
    }

    fn report(&self, configuration: Vec<PageBlock>) -> Report {
        let answer = Section::new("Which is best").with(self.ranking()).with(self.chart());
        let answer = self.without_guarantee().into_iter().fold(answer, Section::with);
        let answer = self.caveats().into_iter().fold(answer, Section::with);
        let words = match self.link.radio {
            None => {
                "Where the time went, on average, on the line towards the destination. Every run's entries sum to its elapsed \
                 time. Time in which nothing is sent is time spent waiting: for acknowledgements, for timers, or for the last \
                 bits to arrive."
            }
            Some(_) => {
                "Where the time of the channel went, on average, both stations together. Every run's entries sum to its elapsed \
                 time. Whoever turns the channel round waits for its slot (access) and keys up (keying); idle is time in which \
                 nobody wanted it: both waited for timers."
            }
        };
        let stacks = self.all().fold(Section::new("What was compared"), |section, contender| {
            section.with(format!("`{}`: {}.", contender.name, contender.about))
        });
        Report {
            title: format!("{} over {}", file_names(&self.options.files), self.link.title),
            lead: self.lead(),
            command: self.command(),
            facts: self.facts(),
            sections: vec![
                answer,
                Section::new("Where the time went").with(words).with(self.ledger()),
                configuration.into_iter().fold(Section::new("Use it"), Section::with),
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
            fact("runs of each", self.runs.to_string()),
            fact("line rate", format!("{} bit/s", figure(link.rate_bps as f64))),
            match &link.radio {
                None => fact("one-way delay", format!("{} ms", link.delay_ms)),
                Some(radio) => fact("TXDELAY, TXTAIL, slot time, persistence", radio.in_words()),
            },
            fact("bit-error rate", crate::record::number(link.mean_ber())),
            fact("limit", format!("{} s", figure(self.limit_s()))),
            fact(
                "best packet",
                format!("{} bytes of payload", self.contenders[0].outcomes[0].limit.payload_bytes),
            ),
        ]
    }

    fn chart(&self) -> RankChart {
        let arrived = self.contenders.iter().filter(|contender| !contender.times().is_empty());
        // Those without a guarantee are in a table of their own.
        let row = |contender: &Contender| RankRow {
            name: contender.name.clone(),
            summary: Summary::of(&contender.times()),
        };
        RankChart {
            title: "Transfer time".into(),
            caption: "Mean of the runs that arrived, with 95 % intervals. All stacks met the same noise in the same \
                      runs. The upright line is what the channel itself needs."
                .into(),
            quantity: "time".into(),
            unit: "s".into(),
            rows: arrived.map(row).collect(),
            limit: Some(self.limit_s()),
        }
    }

    fn whose_ledger(&self) -> &'static str {
        match self.link.radio {
            None => "The line towards the destination.",
            Some(_) => "The channel, whoever sent.",
        }
    }

    fn ledger(&self) -> LedgerChart {
        let mut chart = finding::ledger_chart("Where the time went", self.whose_ledger());
        for contender in self.all() {
            let arrived = contender.arrived();
            if !arrived.is_empty() {
                let limit = Some(contender.limit_s());
                chart.bars.push(finding::ledger_bar(&contender.name, &arrived, 0, 0, limit));
            }
        }
        chart
    }
}

fn bytes_in_words(bytes: u64) -> String {
    if bytes == 1 { "1 byte".into() } else { format!("{} bytes", figure(bytes as f64)) }
}

/// A word as a shell takes it.
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

/// Their names in a row.
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
            "Nothing else uses the link.",
            "a dedicated channel, as space links are; on a shared one everything is slower",
        ),
        assume("Hosts and disks take no time.", "their time is small beside that of the link"),
        assume(
            "A file has arrived when its last byte is with the receiving application.",
            "what a user waits for; the sender hears of it a round trip later at best",
        ),
        assume(
            "The limit has packets of the best size with the fewest header bytes that any protocol here could do with (28 on a \
             line, 19 on a radio channel), and a sender that knows at once what was lost.",
            "a bound below every protocol: no mean can stay below it",
        ),
    ];
    if radio {
        all.push(assume(
            "The limit has no stuffed bits, no acknowledgements and no more waiting for a slot than the average.",
            "what stuffing costs depends on the bytes, 1.6 % for random ones; a file that acknowledges nothing turns the \
             channel round only where a key-up may be no longer",
        ));
    }
    all
}

#[cfg(test)]
mod tests;
