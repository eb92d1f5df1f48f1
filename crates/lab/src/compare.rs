//! `compare`: which protocol and which settings move these files over that link best.

use crate::batch::{self, Batch};
use crate::error::Error;
use crate::finding::{self, Finding};
use crate::link::LinkProfile;
use crate::progress::Progress;
use crate::record::{Experiment, Params};
use crate::report::{Assumption, Block, Cell, Column, LedgerChart, RankChart, RankRow, Report};
use crate::report::{Section, Table, Tone, figure, with_error};
use crate::run::{Outcome, Setup};
use crate::scenario::Scenario;
use crate::spread::Shard;
use crate::stack;
use crate::stats::{Summary, mean};
use crate::sweep;
use crate::toml_text;
use bytes::Bytes;
use std::cmp::Ordering;
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
    settings: toml::Table,
    carries_bundles: bool,
    /// A node can be configured so.
    in_nodes: bool,
    acknowledges: bool,
    cautions: Vec<String>,
    outcomes: Vec<Outcome>,
}

impl Contender {
    fn of((batch, outcomes): (&Batch, Vec<Outcome>)) -> Contender {
        let (stack, variant) = stack::find(&batch.series).expect("a name of the table");
        Contender {
            name: batch.series.clone(),
            about: format!("{}; {}", stack.about, variant.about),
            settings: batch.setup.settings().clone(),
            carries_bundles: batch.setup.carries_bundles(),
            in_nodes: stack.node_kind.is_some(),
            acknowledges: stack.acknowledges,
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

    /// Who always arrives comes first, then who knows that it has arrived, then who is faster.
    fn order(&self, other: &Contender) -> Ordering {
        let missing = |contender: &Contender| contender.outcomes.len() - contender.times().len();
        let time = |contender: &Contender| match &contender.times()[..] {
            [] => f64::INFINITY,
            times => mean(times),
        };
        let known = other.acknowledges.cmp(&self.acknowledges);
        missing(self).cmp(&missing(other)).then(known).then(time(self).total_cmp(&time(other)))
    }
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
    let mut contenders: Vec<Contender> = batches.iter().zip(outcomes).map(Contender::of).collect();
    contenders.sort_by(Contender::order);
    let traces = if options.traces { sweep::traces(&batches) } else { Vec::new() };
    let comparison = Comparison { options, link: &link, bytes, runs, fewer: runs < RUNS, contenders };
    Ok(Finding { traces, ..comparison.finding() })
}

fn read_files(paths: &[PathBuf]) -> Result<Vec<Bytes>, Error> {
    if paths.is_empty() {
        return Err(Error::new("there is no file to compare with").hint("name one or more files"));
    }
    let read = |path: &PathBuf| {
        let content = std::fs::read(path).map_err(|error| {
            let hint = match error.kind() {
                std::io::ErrorKind::NotFound => {
                    "check the path; any file will do, its bytes are what is sent"
                }
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
    runs: u32,
    fewer: bool,
    contenders: Vec<Contender>,
}

impl Comparison<'_> {
    fn finding(&self) -> Finding {
        let configuration = self.configuration();
        let ranking = self.ranking();
        let mut summary = vec![Block::Text(self.lead()), Block::Table(ranking.clone())];
        summary.extend(self.caveats().into_iter().map(Block::Text));
        summary.extend(configuration.clone());
        let (experiment, report) = (self.experiment(), self.report(ranking, configuration));
        Finding { experiment, report, summary, traces: Vec::new() }
    }

    /// The same for all: the link has no outages, and one hop.
    fn limit_s(&self) -> f64 {
        finding::limit_s(&self.contenders[0].outcomes.iter().collect::<Vec<_>>())
    }

    /// What the limit leaves out.
    fn limit_in_words(&self) -> &'static str {
        if self.runs == 1 {
            "what the channel itself needs without an error"
        } else {
            "what the channel itself needs"
        }
    }

    fn params(&self) -> Params {
        Params::new().with("link", self.options.link.as_str()).with("bytes", self.bytes)
    }

    fn experiment(&self) -> Experiment {
        let params = self.params();
        let mut experiment =
            Experiment { experiment: "compare".into(), seed: self.options.seed, ..Default::default() };
        for contender in &self.contenders {
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
        let best = &self.contenders[0];
        if best.times().is_empty() {
            return format!("No stack gets {what} over `{}` at all.", self.options.link);
        }
        let time = Summary::of(&best.times());
        format!(
            "`{}` is the best of {} for {what} over `{}`: {} s on average, {} times {} ({} s).",
            best.name,
            self.contenders.len(),
            self.options.link,
            with_error(&time),
            figure(time.mean / self.limit_s()),
            self.limit_in_words(),
            figure(self.limit_s()),
        )
    }

    fn caveats(&self) -> Vec<String> {
        let mut said = Vec::new();
        if let Some(second) = self.contenders.get(1) {
            let first = &self.contenders[0];
            let (best, times) = finding::pairs(&first.arrived(), &second.arrived(), "transfer_s");
            if first.times().len() == second.times().len() && !best.is_empty() {
                let paired = Summary::of_differences(&times, &best);
                if best == times {
                    said.push(self.tie());
                } else if !paired.is_significant() && paired.ci95.is_some() {
                    said.push(format!(
                        "The lead over `{}` is {} s: not significant with {} runs.",
                        second.name,
                        with_error(&paired),
                        paired.n
                    ));
                }
            }
        }
        for contender in &self.contenders {
            let named = |caution: &String| format!("`{}`: {caution}.", contender.name);
            said.extend(contender.cautions.iter().map(named));
            let all: Vec<&Outcome> = contender.outcomes.iter().collect();
            said.extend(finding::beyond_limit(&all).iter().map(named));
        }
        said.extend(self.left_out());
        if self.fewer && self.options.runs.is_none() {
            said.push(format!(
                "{} runs of each instead of {RUNS}, because the files are long; `--runs` sets another number.",
                self.runs
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

    /// Who takes exactly as long as the best, in every run.
    fn tie(&self) -> String {
        let times = self.contenders[0].times();
        let equals = self.contenders[1..].iter().take_while(|contender| contender.times() == times);
        let names: Vec<String> = equals.map(|contender| format!("`{}`", contender.name)).collect();
        match &names[..] {
            [one] => format!("It is a tie: {one} takes exactly as long."),
            [rest @ .., last] => {
                format!("It is a tie: {} and {last} take exactly as long.", rest.join(", "))
            }
            [] => String::new(),
        }
    }

    fn ranking(&self) -> Table {
        let columns = [
            Column::number("rank", ""),
            Column::text("protocol/settings"),
            Column::number("time", "s"),
            Column::number("goodput", "byte/s"),
            Column::number("x limit", ""),
            Column::number("sent again", "s"),
            Column::number("silent", "s"),
            Column::text("arrived"),
        ];
        let mut columns = columns.to_vec();
        if self.link.radio.is_some() {
            columns.insert(6, Column::number("turns", "s"));
        }
        let missed = self.contenders.iter().any(|contender| !contender.why_missed().is_empty());
        let columns = columns.into_iter().chain(missed.then(|| Column::text("why not")));
        let caption = format!(
            "{} over {}, {} runs each, 95 % intervals; the limit is {} s",
            bytes_in_words(self.bytes),
            self.options.link,
            self.runs,
            figure(self.limit_s())
        );
        let mut table = Table::new(caption, columns);
        for (rank, contender) in self.contenders.iter().enumerate() {
            let mut cells = self.row(rank, contender);
            cells.extend(missed.then(|| Cell::text(contender.why_missed())));
            table.row(cells);
        }
        table
    }

    fn row(&self, rank: usize, contender: &Contender) -> Vec<Cell> {
        let arrived = contender.arrived();
        let tone = if rank == 0 && !arrived.is_empty() { Tone::Strong } else { Tone::default() };
        let share = format!("{} of {}", arrived.len(), contender.outcomes.len());
        let complete = arrived.len() == contender.outcomes.len();
        let last = Cell::text(share).toned(if complete { Tone::default() } else { Tone::Bad });
        let mut cells = vec![Cell::number(rank as f64 + 1.0), Cell::text(&contender.name).toned(tone)];
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
                Cell::precise(time.mean / self.limit_s(), 2),
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
    fn configuration(&self) -> Vec<Block> {
        let best = &self.contenders[0];
        let text = |contender: &Contender| configuration_text(contender, &self.options.link, self.link);
        let node = self
            .contenders
            .iter()
            .find(|other| other.in_nodes && other.acknowledges && !other.times().is_empty());
        let keeps = best.in_nodes && best.acknowledges;
        let why = match (best.carries_bundles, best.acknowledges) {
            (_, false) => "nobody knows what has arrived",
            (false, true) => "a plain stream: nothing is kept when it breaks",
            (true, true) => "nodes have no such links",
        };
        let winner = (!keeps && !best.times().is_empty())
            .then(|| Block::Code { caption: format!("settings: {} ({why})", best.name), text: text(best) });
        let node = node.map(|node| Block::Code {
            caption: format!(
                "node configuration: {} (keeps what it accepted, and goes on where it stopped)",
                node.name
            ),
            text: text(node),
        });
        winner.into_iter().chain(node).collect()
    }

    fn report(&self, ranking: Table, configuration: Vec<Block>) -> Report {
        let answer = Section::new("Which is best").with(ranking).with(self.chart());
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
        let stacks = self.contenders.iter().fold(Section::new("What was compared"), |section, contender| {
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
        let runs = self.options.runs.map_or(String::new(), |runs| format!(" --runs {runs}"));
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
        for contender in &self.contenders {
            let arrived = contender.arrived();
            if !arrived.is_empty() {
                let limit = Some(self.limit_s());
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

/// The settings of the winner where they differ from what is set without being said, as a node's configuration has them.
fn configuration_text(best: &Contender, link: &str, profile: &LinkProfile) -> String {
    let (stack, variant) = stack::find(&best.name).expect("a name of the table");
    let defaults = stack.defaults();
    let mut said = toml_text::durations_written(&toml_text::difference(&best.settings, &defaults));
    // In a node the links of AX.25 are configured with their TNC.
    let of_tnc = said.remove("ax25").filter(|_| best.in_nodes);
    let written = |table: &toml::Table| toml::to_string(table).expect("settings are TOML");
    let mut text =
        format!("# {}/{}: {}.\n# For the link \"{link}\".\n", stack.name, variant.name, variant.about);
    if let (Some(kind), Some(radio)) = (stack.node_kind, &profile.radio) {
        text +=
            &format!("# Its [[link]] has kind = \"{kind}\".\n[[tnc]]\n\n{}\n", radio.as_configured(profile));
    }
    if let Some(toml::Value::Table(keys)) = &of_tnc {
        text += &format!("[tnc.ax25]\n{}\n", written(keys));
    }
    text += &written(&said);
    if said.is_empty() && of_tnc.is_none() {
        text += "# Everything else is as it comes.\n";
    }
    text
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
mod tests {
    use super::*;
    use crate::run::{Missed, Wanted};

    #[test]
    fn words_are_quoted_where_a_shell_would_part_them() {
        for (word, expected) in
            [("a/b-1.bin", "a/b-1.bin"), ("a b", "'a b'"), ("it's", r"'it'\''s'"), ("", "''"), ("$x", "'$x'")]
        {
            assert_eq!(quoted(word), expected);
        }
    }

    #[test]
    fn a_link_that_lets_nothing_through_says_why() {
        let missed = |stack: &str| {
            let text = format!(
                "stack = '{stack}'\nduration-limit-s = 3000\n[workload]\nbytes = 10\n[[link]]\nber = 0.5"
            );
            let scenario = Scenario::parse(&text, "test").expect("a scenario");
            let setup = Setup::with_files(scenario, Path::new("."), vec![Bytes::from_static(b"0123456789")]);
            setup.expect("a setup").run(0, Wanted::default()).missed
        };
        assert_eq!(missed("tcpcl4"), Some(Missed::Time(3000.0)));
        let text = missed("tcp/tuned").expect("nothing arrives").to_string();
        assert!(text.starts_with("given up after 10 tries") || text == "not done after 3,000 s", "{text}");
    }
}
