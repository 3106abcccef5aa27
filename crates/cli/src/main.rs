//! The `watchkeeper` command.
//!
//! Every subcommand is a module with its arguments and a `run`. What went wrong is one line on stderr; the exit code is
//! 2 if the arguments or files that were given are at fault, 1 if something failed while running.

mod controllers;
mod duration;
mod failure;
mod logging;
mod serve;

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Instant;

use clap::{Parser, Subcommand};

/// Watches custom resources and drives the world to the state they declare.
#[derive(Parser)]
#[command(name = "watchkeeper", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Serve(Box<serve::Serve>),
    /// Print the version
    Version,
}

fn main() -> ExitCode {
    let start = Instant::now();
    let done = match Arguments::parse().command {
        Command::Serve(serve) => serve.run(start),
        Command::Version => {
            // If nobody listens, nobody misses it.
            let _ = writeln!(io::stdout(), "watchkeeper {}", env!("CARGO_PKG_VERSION"));
            Ok(())
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let _ = writeln!(io::stderr(), "watchkeeper: {failure}");
            failure.exit_code()
        }
    }
}
