//! `longwire doctor`.

mod machine;
mod running;

use crate::failure::{CommandFailure, CommandResult};
use crate::flag;
use crate::node_connection::{NodeConversation, failure_at, print};
use clap::Args;
use longwire_node::{Config, ControlConnection};
use longwire_settings::error::Error;
use serde::Serialize;
use std::fmt::Write;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Duration;

/// Find out what is wrong with a node and what to do about it
///
/// Checks the configuration, the machine and, if the node is running, its state. If it is not running, its store is read
/// as by `longwire store check`, its ports are opened for a moment, and its TNCs are called. Run it as the user of the
/// node, who has access to all of this. Nothing is changed.
///
/// The exit status is 1 if there are errors or warnings.
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Configuration of the node
    #[arg(long, value_name = "FILE", default_value = "node.toml")]
    config: PathBuf,
    /// Report links that have been down for at least this time
    #[arg(long, value_name = "TIME", default_value = "5min", value_parser = flag::time)]
    down_for: Duration,
    /// Report certificates that expire within this time
    #[arg(long, value_name = "TIME", default_value = "30d", value_parser = flag::time)]
    expires_within: Duration,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Result of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Finding {
    severity: Severity,
    /// State that was found.
    what: String,
    /// Consequence; `None` if nothing is wrong.
    why: Option<String>,
    /// Action that mends it; `None` if nothing is wrong.
    hint: Option<String>,
}

/// Severities, in the order in which findings are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
enum Severity {
    /// The node, or a part of it, does not work.
    Error,
    /// The node works, but not as well or as safely as it should, or not for long.
    Warning,
    /// Nothing is wrong.
    Ok,
}

/// Findings so far.
#[derive(Debug, Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn error(&mut self, what: impl Into<String>, why: &str, hint: impl Into<String>) {
        self.add(Severity::Error, what.into(), why, hint.into());
    }

    fn warning(&mut self, what: impl Into<String>, why: &str, hint: impl Into<String>) {
        self.add(Severity::Warning, what.into(), why, hint.into());
    }

    fn ok(&mut self, what: impl Into<String>) {
        self.0.push(Finding { severity: Severity::Ok, what: what.into(), why: None, hint: None });
    }

    /// Adds an error of the program, which has a hint of its own.
    fn failure(&mut self, error: Error, why: &str) {
        let hint = error.hint.unwrap_or_else(|| "see the message".to_owned());
        self.error(error.what, why, hint);
    }

    fn add(&mut self, severity: Severity, what: String, why: &str, hint: String) {
        self.0.push(Finding { severity, what, why: Some(why.to_owned()), hint: Some(hint) });
    }

    /// Number of errors and warnings.
    fn faults(&self) -> usize {
        self.0.iter().filter(|finding| finding.severity != Severity::Ok).count()
    }

    fn count(&self, severity: Severity) -> usize {
        self.0.iter().filter(|finding| finding.severity == severity).count()
    }
}

/// Relation between this command and the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// The node is running as this user, or this is the superuser.
    Running,
    /// The node is or may be running as another user, whose files this one may not be able to access.
    RunningAsOther,
    /// No node is running.
    Stopped,
}

impl Doctor {
    pub(crate) fn run(&self) -> CommandResult {
        let mut findings = self.examine();
        findings.0.sort_by_key(|finding| finding.severity);
        if self.json {
            print(&serde_json::to_string_pretty(&findings.0).expect("it is a document"))?;
        } else {
            print(&words(&findings))?;
        }
        match (findings.count(Severity::Error), findings.count(Severity::Warning)) {
            (0, 0) => Ok(()),
            (errors, warnings) => Err(CommandFailure::failed(
                format!("found {} and {}", counted(errors, "error"), counted(warnings, "warning")),
                "follow the hint of each, then run `longwire doctor` again",
            )),
        }
    }

    fn examine(&self) -> Findings {
        let mut findings = Findings::default();
        let config = match Config::load(&self.config) {
            Ok(config) => config,
            Err(error) => {
                findings.failure(
                    error,
                    "the node cannot start, or refuses to reload, and nothing else can be checked",
                );
                return findings;
            }
        };
        findings.ok(format!("configuration {}", self.config.display()));
        let reach = self.node(&config, &mut findings);
        machine::look(self, &config, reach, &mut findings);
        findings
    }

    /// Examines the node if it is running.
    fn node(&self, config: &Config, findings: &mut Findings) -> Reach {
        let path = config.control();
        let connection = match ControlConnection::open(&path) {
            Ok(connection) => connection,
            Err(error) => {
                let is_missing = matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory);
                if is_missing {
                    findings.error(
                        format!("the node is not running: there is no control socket {}", path.display()),
                        "no bundles are received, forwarded or delivered",
                        format!("start it with `longwire node --config {}`", self.config.display()),
                    );
                } else {
                    findings.failure(failure_at(&path, &error), "the state of the node cannot be examined");
                }
                return match error.kind() {
                    ErrorKind::ConnectionRefused | ErrorKind::InvalidInput => Reach::Stopped,
                    _ if is_missing => Reach::Stopped,
                    _ => Reach::RunningAsOther,
                };
            }
        };
        if let Err(failure) = running::look(self, config, &mut NodeConversation::over(connection), findings) {
            let (CommandFailure::Usage(error) | CommandFailure::Failed(error)) = failure else {
                unreachable!("requests to a node are neither interrupted nor printed")
            };
            findings.failure(error, "the node cannot be controlled, and may not forward bundles either");
        }
        let owner = path.metadata().map(|file| file.uid());
        let user = rustix::process::geteuid();
        match owner {
            Ok(owner) if owner != user.as_raw() && !user.is_root() => Reach::RunningAsOther,
            _ => Reach::Running,
        }
    }
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn words(findings: &Findings) -> String {
    let mut out = String::new();
    for finding in &findings.0 {
        let severity = match finding.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Ok => "ok",
        };
        let _ = writeln!(out, "{severity}: {}", finding.what);
        for (name, text) in [("consequence", &finding.why), ("hint", &finding.hint)] {
            if let Some(text) = text {
                let _ = writeln!(out, "  {name}: {text}");
            }
        }
    }
    out
}
