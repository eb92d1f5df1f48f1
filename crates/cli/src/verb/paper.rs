//! `longwire paper`.

use crate::failure::CommandResult;
use crate::output::Measure;
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};
use longwire_lab::bench::Bench;
use longwire_lab::papers::{self, PAPERS};
use longwire_lab::progress::Progress;

const ALL: &str = "all";

/// Reproduce a published evaluation and compare its figures with ours
#[derive(Debug, Args)]
pub(crate) struct Paper {
    /// Paper to reproduce
    #[arg(value_name = "NAME", value_parser = names())]
    name: String,
    #[command(flatten)]
    measure: Measure,
}

fn names() -> PossibleValuesParser {
    let papers = PAPERS.iter().map(|paper| PossibleValue::new(paper.name).help(paper.about));
    let all = PossibleValue::new(ALL).help("All of them, each with a directory of its own");
    PossibleValuesParser::new(papers.chain([all]))
}

impl Paper {
    pub(crate) fn run(&self) -> CommandResult {
        let play = |name: &str, progress: &Progress| {
            let paper = papers::find(name).expect("the parser knows the names");
            Ok(papers::reproduce(paper, &self.bench(progress)))
        };
        if self.name != ALL {
            return self.measure.carry_out(|progress| play(&self.name, progress));
        }
        let names: Vec<&str> = PAPERS.iter().map(|paper| paper.name).collect();
        self.measure.carry_out_all(&names, play)
    }

    fn bench<'a>(&self, progress: &'a Progress) -> Bench<'a> {
        let bench = Bench::new(progress);
        Bench {
            threads: self.measure.threads(),
            runs: self.measure.runs(),
            seed: self.measure.seed.unwrap_or(bench.seed),
            traces: self.measure.trace.is_some(),
            ..bench
        }
    }
}
