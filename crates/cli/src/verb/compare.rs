//! `longwire compare`.

mod live_runs;

use crate::failure::{CommandFailure, CommandResult};
use crate::flag;
use crate::node_connection;
use crate::node_file::NodeFile;
use crate::output::Measure;
use clap::Args;
use longwire_lab::compare::{self, Options};
use longwire_lab::error::Error;
use longwire_lab::finding::Finding;
use longwire_lab::link::{self, LinkPath};
use longwire_lab::record::Ranked;
use longwire_lab::run;
use std::path::{Path, PathBuf};

/// Compare protocols and settings for transferring files over a link
///
/// Runs every suitable protocol over the link in virtual time, with exactly these files and the same channel noise for
/// each. Ranks the results, shows how close each comes to the limit of the channel and where the time goes, and prints
/// the configuration of the winner.
#[derive(Debug, Args)]
#[command(after_help = format!("Built-in links: {}.", link::shipped_names()))]
pub(crate) struct Compare {
    /// Files to transfer
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Link: a built-in profile, or the path of a profile (.toml)
    #[arg(long, value_name = "NAME")]
    link: String,
    /// Number of receivers on the channel of the link, each of which gets all files
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=i64::from(run::RECEIVERS_MAX)))]
    receivers: u32,
    /// Print this node configuration, merged with the settings of the best protocol for nodes, instead of tables
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    config: Option<PathBuf>,
    /// With --config: name of the link that gets the settings [default: the only one]
    #[arg(long = "for", value_name = "LINK", requires = "config")]
    for_link: Option<String>,
    /// Also run the best settings of each protocol N times in real time, over an emulated link: live nodes of this program, and
    /// the TCP of the kernel; needs root, except on radio channels
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "1", value_parser = flag::whole::<u32>(1, 100), conflicts_with_all = ["config", "receivers", "trace"])]
    live: Option<u32>,
    #[command(flatten)]
    measure: Measure,
}

impl Compare {
    pub(crate) fn run(&self) -> CommandResult {
        let path = LinkPath::load(&self.link, Path::new(".")).map_err(CommandFailure::Usage)?;
        let node_file = self.node_file(&path).map_err(CommandFailure::Usage)?;
        let options = Options {
            files: self.files.clone(),
            link: self.link.clone(),
            runs: self.measure.runs(),
            seed: self.measure.seed.unwrap_or(1),
            threads: self.measure.threads(),
            traces: self.measure.trace.is_some(),
            receivers: self.receivers,
        };
        match &node_file {
            None => self.measure.carry_out(|progress| {
                let finding = compare::compare(&options, progress)?;
                match self.live {
                    Some(runs) => {
                        live_runs::beside(finding, &path, &self.files, runs, options.seed, progress)
                    }
                    None => Ok(finding),
                }
            }),
            Some(file) => self.measure.carry_out_and(
                |progress| compare::compare(&options, progress),
                |finding| self.print_merged(file, finding),
            ),
        }
    }

    /// Reads the configuration of `--config`. A link that cannot be configured is reported before a long computation, not
    /// after it.
    fn node_file(&self, path: &LinkPath) -> Result<Option<NodeFile>, Error> {
        let Some(config) = &self.config else { return Ok(None) };
        let file = NodeFile::read(config, self.for_link.as_deref())?;
        file.check(&compare::node_kinds(path), &self.link, path.last())?;
        Ok(Some(file))
    }

    /// Prints the configuration on stdout, and on stderr the answer, where the settings are, and the commands of the
    /// operating system that go with them.
    fn print_merged(&self, file: &NodeFile, finding: &Finding) -> CommandResult {
        let experiment = &finding.experiment;
        let obstacle = |place: &Ranked| file.obstacle(&place.name(), place.configuration.kind?);
        let for_nodes = || experiment.ranking.iter().filter(|place| place.is_for_nodes());
        let fitting = for_nodes().find(|place| obstacle(place).is_none());
        let best = fitting.or(for_nodes().next()).ok_or_else(|| {
            Error::new(format!("no protocol for nodes delivered over `{}`", self.link))
                .hint("the report shows the problem of each; more time or another link profile may help")
        })?;
        let merged = file.with(&best.name(), &best.configuration)?;
        node_connection::print(&merged.text)?;
        for line in experiment.answer.iter().chain(&merged.remarks) {
            self.measure.say(format_args!("{line}"));
        }
        let better = for_nodes().next().and_then(obstacle).filter(|_| fitting.is_some());
        if let Some(error) = better {
            self.measure.say(format_args!("not the fastest: {error}"));
        }
        let configuration = &best.configuration;
        if !configuration.system.is_empty() {
            self.measure.say(format_args!(
                "run on both computers as root; `ip route get PEER` shows GATEWAY and DEVICE:"
            ));
        }
        for command in &configuration.system {
            self.measure.say(format_args!("    {command}"));
        }
        if !configuration.fixed_by_kernel.is_empty() {
            let fixed = configuration.fixed_by_kernel.join(", ");
            self.measure.say(format_args!("the kernel uses its own values instead of these: {fixed}"));
        }
        Ok(())
    }
}
