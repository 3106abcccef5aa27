//! The command that runs beside everything else.

use std::ffi::OsString;
use std::io::{self, IsTerminal as _};
use std::path::Path;
use std::process;

use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};
use tokio::signal::unix::SignalKind;

use crate::failure::Failure;
use crate::stopping::Signals;

/// A command with `$KUBECONFIG`, such as an operator that is being written. Killed when it is dropped.
pub(super) struct Companion {
    name: String,
    child: Child,
}

impl Companion {
    /// Starts a command, its arguments behind it.
    pub(super) fn start(command: &[OsString], kubeconfig: &Path) -> Result<Self, Failure> {
        let (program, arguments) =
            command.split_first().ok_or_else(|| Failure::input("there is no command"))?;
        let name = program.display().to_string();
        let kubeconfig = std::path::absolute(kubeconfig).map_err(Failure::running)?;
        let mut process = Command::new(program);
        process.args(arguments).env("KUBECONFIG", kubeconfig).kill_on_drop(true);
        let child = process.spawn().map_err(|error| Failure::input(format!("cannot run {name}: {error}")))?;
        Ok(Self { name, child })
    }

    /// Waits for its end, or has it end after a signal. A second signal ends this process at once.
    ///
    /// # Errors
    ///
    /// If it fails without having been told to end.
    pub(super) async fn run(mut self, signals: &mut Signals) -> Result<(), Failure> {
        let number = tokio::select! {
            status = self.child.wait() => {
                let status = status.map_err(|error| Failure::running(format!("{}: {error}", self.name)))?;
                return match status.success() {
                    true => Ok(()),
                    false => Err(Failure::running(format!("{} ended: {status}", self.name))),
                };
            }
            number = signals.next() => number,
        };
        // Ctrl-C in a terminal is told to both, and whoever is told twice stops at once.
        let is_told = number == SignalKind::interrupt().as_raw_value() && io::stdin().is_terminal();
        if !is_told {
            self.terminate();
        }
        tokio::select! {
            _ = self.child.wait() => Ok(()),
            number = signals.next() => {
                // It may have ended by now.
                let _ = self.child.start_kill();
                process::exit(128 + number)
            }
        }
    }

    fn terminate(&self) {
        let id = self.child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        if let Some(id) = id {
            // It may have ended by now.
            let _ = kill_process(id, Signal::TERM);
        }
    }
}
