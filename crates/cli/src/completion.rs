use std::io::{self, Write};

use clap::{Args, Command};
use clap_complete::{Shell, generate};

use crate::failure::Failure;

/// Print what a shell needs to complete this command
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Completion {
    /// Which shell
    #[arg(value_enum)]
    shell: Shell,
}

const EXAMPLES: &str = "\
Examples:
  source <(watchkeeper completion bash)
  watchkeeper completion zsh > \"${fpath[1]}/_watchkeeper\"
  watchkeeper completion fish > ~/.config/fish/completions/watchkeeper.fish
  watchkeeper completion powershell | Out-String | Invoke-Expression

Exit codes:
  0  printed
  2  not a shell that is known";

impl Completion {
    pub(crate) fn run(self, command: &mut Command) -> Result<(), Failure> {
        let mut script = Vec::new();
        generate(self.shell, command, "watchkeeper", &mut script);
        // If nobody listens, nobody misses it.
        let _ = io::stdout().write_all(&script);
        Ok(())
    }
}
