//! Outcomes of a part of the runs of a scenario as bytes, on the way from the process that makes the runs to the one that
//! puts the result together.
//!
//! A file has a line with its kind and the version of the program, the values after it in the format of postcard, in which every
//! number keeps all its bits, and their CRC-32C. Other versions can play other runs for the same seed, so they are refused.

use crate::bench::{Case, Run, Shard, Trial};
use crate::error::Error;
use crate::scenario::Options;
use longwire_proto::codec::crc::crc32c;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;
use toml::{Table, Value};

/// Ending of the files of shares.
pub const ENDING: &str = "share";

/// Maximum number of missing shares that an error names.
const NAMED_MAX: usize = 20;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Runs to be made: a scenario with the options of `run`, and the share of its runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assignment {
    /// Scenario file, which is not read: its folder and its name count.
    pub scenario: PathBuf,
    /// Text of the scenario.
    pub text: String,
    /// Sweeps, as a TOML document, since a value of TOML has no type of its own.
    sweeps: String,
    runs: Option<u32>,
    seed: Option<u64>,
    /// Share of the runs.
    pub shard: Shard,
}

impl Assignment {
    /// Returns the assignment with these options of a scenario that has this text.
    pub fn new(text: String, options: &Options) -> Assignment {
        let Options { scenario, sweeps, runs, seed, shard, .. } = options;
        let pair = |(key, values): &(String, Vec<Value>)| {
            Value::Array(vec![Value::String(key.clone()), Value::Array(values.clone())])
        };
        let sweeps =
            Table::from_iter([("sweeps".to_owned(), Value::Array(sweeps.iter().map(pair).collect()))]);
        let sweeps = sweeps.to_string();
        Assignment { scenario: scenario.clone(), text, sweeps, runs: *runs, seed: *seed, shard: *shard }
    }

    /// Returns the same with another share of the runs.
    pub fn with(&self, shard: Shard) -> Assignment {
        Assignment { shard, ..self.clone() }
    }

    /// Returns the options of `run`, with one thread and without traces.
    ///
    /// # Errors
    /// Fails if the bytes that it was read from were not those of an assignment.
    pub fn options(&self) -> Result<Options, Error> {
        let sweeps = self.sweeps.parse::<Table>().ok().and_then(|mut table| {
            let pairs: Vec<(String, Vec<Value>)> = table.remove("sweeps")?.try_into().ok()?;
            Some(pairs)
        });
        Ok(Options {
            scenario: self.scenario.clone(),
            sweeps: sweeps.ok_or_else(|| damaged("assignment"))?,
            runs: self.runs,
            seed: self.seed,
            shard: self.shard,
            threads: 1,
            traces: false,
        })
    }

    /// Returns the assignment as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        encoded("assignment", self)
    }

    /// Reads an assignment.
    ///
    /// # Errors
    /// Fails if it is from another version, or damaged.
    pub fn from_bytes(bytes: &[u8]) -> Result<Assignment, Error> {
        decoded("assignment", bytes)
    }

    /// Describes how another assignment differs from this one apart from its share; `None` if it does not.
    fn difference(&self, other: &Assignment) -> Option<&'static str> {
        let differences = [
            (self.text != other.text, "scenario"),
            (self.sweeps != other.sweeps, "sweeps"),
            (self.runs != other.runs, "number of runs"),
            (self.seed != other.seed, "seed"),
            (self.scenario.file_stem() != other.scenario.file_stem(), "name of the scenario"),
            (self.shard.count != other.shard.count, "number of shares"),
        ];
        differences.into_iter().find(|(differs, _)| *differs).map(|(_, what)| what)
    }
}

/// Outcomes of the runs of an assignment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// Runs that were to be made.
    pub assignment: Assignment,
    /// Outcomes, in the order in which the runs are played.
    pub outcomes: Vec<PackedOutcome>,
}

/// Outcome of a run as bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackedOutcome {
    /// Place of the case in the assignment.
    pub case: usize,
    /// Number of the run in its case.
    pub number: u32,
    bytes: Vec<u8>,
}

impl PackedOutcome {
    /// Packs the outcome of a run of the case at this place.
    pub fn new<T: Trial<Outcome: Serialize>>(case: usize, run: Run, outcome: &T::Outcome) -> PackedOutcome {
        let bytes = postcard::to_stdvec(outcome).expect("a Vec takes everything");
        PackedOutcome { case, number: run.number, bytes }
    }

    fn unpacked<T: Trial<Outcome: DeserializeOwned>>(&self) -> Result<T::Outcome, Error> {
        whole(&self.bytes).ok_or_else(|| damaged(ENDING))
    }
}

impl Share {
    /// Returns the share as bytes, the content of a file.
    pub fn to_bytes(&self) -> Vec<u8> {
        encoded(ENDING, self)
    }

    /// Reads a share.
    ///
    /// # Errors
    /// Fails if it is from another version, or damaged.
    pub fn from_bytes(bytes: &[u8]) -> Result<Share, Error> {
        decoded(ENDING, bytes)
    }
}

/// Outcomes by the place of their case and the number of their run.
#[derive(Clone, Debug, Default)]
pub struct Outcomes(BTreeMap<(usize, u32), PackedOutcome>);

impl Outcomes {
    /// Adds the outcomes of a share whose first case has this place.
    pub fn add(&mut self, share: Share, first_case: usize) {
        let placed = share.outcomes.into_iter().map(|outcome| {
            let case = first_case + outcome.case;
            ((case, outcome.number), PackedOutcome { case, ..outcome })
        });
        self.0.extend(placed);
    }

    /// Takes the outcome of a run out; `None` if it is missing.
    ///
    /// # Errors
    /// Fails if its bytes are not those of an outcome.
    pub fn take<T>(
        &mut self,
        at: usize,
        case: &Case<T>,
        round: u32,
    ) -> Option<Result<(Run, T::Outcome), Error>>
    where
        T: Trial<Outcome: DeserializeOwned>,
    {
        let run = case.run(round);
        let packed = self.0.remove(&(at, run.number))?;
        Some(packed.unpacked::<T>().map(|outcome| (run, outcome)))
    }
}

/// Joins all shares of a run, each with the name of its file, in any order: the assignment of the whole, and its outcomes.
///
/// # Errors
/// Fails if the shares are of different runs, or one is missing or there twice; the error names those.
pub fn join(shares: Vec<(String, Share)>) -> Result<(Assignment, Outcomes), Error> {
    let Some((first_name, first)) = shares.first() else {
        return Err(
            Error::new("no shares given").hint("give the directories that `longwire run --shard` wrote")
        );
    };
    let whole = first.assignment.with(Shard::WHOLE);
    let mut names: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
    for (name, share) in &shares {
        if let Some(what) = first.assignment.difference(&share.assignment) {
            return Err(Error::new(format!(
                "{name} and {first_name} are of different runs: the {what} differs"
            ))
            .hint("merge only shares of one command; `--shard` is all in which it may differ"));
        }
        names.entry(share.assignment.shard.index).or_default().push(name);
    }
    let count = first.assignment.shard.count;
    check_complete(&names, count)?;
    let mut outcomes = Outcomes::default();
    shares.into_iter().for_each(|(_, share)| outcomes.add(share, 0));
    Ok((whole, outcomes))
}

fn check_complete(names: &BTreeMap<usize, Vec<&str>>, count: usize) -> Result<(), Error> {
    let absent = (1..=count).filter(|index| !names.contains_key(index));
    let mut missing: Vec<String> =
        absent.map(|index| Shard { index, count }.to_string()).take(NAMED_MAX).collect();
    let mut wrong = String::new();
    let number = count - names.keys().filter(|index| (1..=count).contains(*index)).count();
    if number > 0 {
        let verb = if number == 1 { "is" } else { "are" };
        if number > missing.len() {
            missing.push(format!("and {} more", number - missing.len()));
        }
        let _ = write!(wrong, "{number} of {count} shares {verb} missing: {}", missing.join(", "));
    }
    for (index, names) in names.iter().filter(|(_, names)| names.len() > 1) {
        let separator = if wrong.is_empty() { "" } else { "\n" };
        let share = Shard { index: *index, count };
        let _ =
            write!(wrong, "{separator}share {share} is given {} times: {}", names.len(), names.join(", "));
    }
    let hint = match missing.first() {
        Some(share) => format!("compute it with `longwire run .. --shard {share} --out DIR`"),
        None => "give each share once".to_owned(),
    };
    if wrong.is_empty() { Ok(()) } else { Err(Error::new(wrong).hint(hint)) }
}

fn heading(kind: &str) -> String {
    format!("longwire {kind} ")
}

fn encoded(kind: &str, value: &impl Serialize) -> Vec<u8> {
    let head = format!("{}{VERSION}\n", heading(kind)).into_bytes();
    let body_at = head.len();
    let mut bytes = postcard::to_extend(value, head).expect("a Vec takes everything");
    let check = crc32c(&bytes[body_at..]);
    bytes.extend_from_slice(&check.to_be_bytes());
    bytes
}

/// Reads a value that takes all of the bytes.
fn whole<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    postcard::take_from_bytes(bytes).ok().filter(|(_, rest)| rest.is_empty()).map(|(value, _)| value)
}

fn decoded<T: DeserializeOwned>(kind: &str, bytes: &[u8]) -> Result<T, Error> {
    let end = bytes.iter().position(|byte| *byte == b'\n').ok_or_else(|| damaged(kind))?;
    let (head, body) = bytes.split_at(end);
    let head = std::str::from_utf8(head).map_err(|_| damaged(kind))?;
    let version = head.strip_prefix(&heading(kind)).ok_or_else(|| damaged(kind))?;
    if version != VERSION {
        return Err(Error::new(format!("the {kind} is from longwire {version}, and this is {VERSION}"))
            .hint("use the same version everywhere; others can play other runs for the same seed"));
    }
    let (body, check) = body[1..].split_last_chunk().ok_or_else(|| damaged(kind))?;
    let is_good = crc32c(body).to_be_bytes() == *check;
    is_good.then(|| whole(body)).flatten().ok_or_else(|| damaged(kind))
}

fn damaged(kind: &str) -> Error {
    Error::new(format!("not a complete {kind} of longwire")).hint("compute it again, and copy it as it is")
}
