use std::io::{self, Write};

use clap::{Args, ValueEnum};

use crate::failure::Failure;

/// Print the version
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Version {
    /// Nothing but the number
    #[arg(long, conflicts_with = "output")]
    short: bool,
    /// A line for people, or JSON
    #[arg(short, long, value_enum, default_value = "text", value_name = "FORMAT")]
    output: Format,
}

const EXAMPLES: &str = "\
Examples:
  watchkeeper version
  watchkeeper version --short
  watchkeeper version -o json

Exit codes:
  0  always, unless the arguments cannot be (2)";

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    Text,
    Json,
}

/// The commit that this was built from, as far as whoever built it said so in `WATCHKEEPER_COMMIT`.
pub(crate) const COMMIT: Option<&str> = option_env!("WATCHKEEPER_COMMIT");

impl Version {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let version = env!("CARGO_PKG_VERSION");
        let text = match (self.output, self.short) {
            (_, true) => version.to_owned(),
            (Format::Text, _) => {
                let commit = COMMIT.map(|commit| format!(" ({commit})")).unwrap_or_default();
                format!("watchkeeper {version}{commit}")
            }
            (Format::Json, _) => {
                let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
                serde_json::json!({"version": version, "commit": COMMIT, "os": os, "arch": arch}).to_string()
            }
        };
        // If nobody listens, nobody misses it.
        let _ = writeln!(io::stdout(), "{text}");
        Ok(())
    }
}
