//! `longwire completions`.

use crate::failure::CommandResult;
use crate::node_connection::print;
use clap::Args;
use clap_complete::{Shell, generate};

/// Print the completions of a shell
///
/// For example: `longwire completions bash > /usr/share/bash-completion/completions/longwire`,
/// `longwire completions zsh > /usr/share/zsh/site-functions/_longwire`,
/// `longwire completions fish > ~/.config/fish/completions/longwire.fish`.
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// Shell
    #[arg(value_enum)]
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(&self) -> CommandResult {
        let mut text = Vec::new();
        generate(self.shell, &mut crate::definition(), "longwire", &mut text);
        print(&String::from_utf8_lossy(&text))
    }
}
