//! The real server, as `bench/peers` builds and starts it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::process::{OpenFiles, Process};
use crate::{Error, Result};

/// Where the scripts are in the tree that this was built from.
const SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../peers");

/// The programs of the peer, built and found.
#[derive(Clone, Debug)]
pub struct Peer {
    scripts: PathBuf,
    programs: PathBuf,
    /// More flags for etcd.
    etcd: &'static str,
    /// Controllers of kube-controller-manager that run too.
    controllers: &'static str,
}

impl Peer {
    /// What it is called in reports.
    pub const NAME: &'static str = "kube-apiserver + etcd";

    /// Those that `make peers` built.
    ///
    /// # Errors
    ///
    /// If it was not called.
    pub fn find() -> Result<Self> {
        let scripts = fs::canonicalize(SCRIPTS)?;
        let output = Command::new(scripts.join("build")).arg("--where").stdin(Stdio::null()).output()?;
        let programs = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()).join("bin");
        if !["kube-apiserver", "etcd", "kubectl"].iter().all(|name| programs.join(name).is_file()) {
            return Err("the peer is not built: make peers".into());
        }
        Ok(Self { scripts, programs, etcd: "", controllers: "" })
    }

    /// Has etcd not wait for its disk. For those who fill it with much and measure something else.
    #[must_use]
    pub fn relaxed(self) -> Self {
        Self { etcd: "--unsafe-no-fsync", ..self }
    }

    /// Starts kube-controller-manager as well, with these controllers.
    #[must_use]
    pub fn controllers(self, controllers: &'static str) -> Self {
        Self { controllers, ..self }
    }

    /// The folder with the programs.
    pub fn programs(&self) -> &Path {
        &self.programs
    }

    /// Starts it in a folder, with the data that is there already, and waits until it is ready.
    pub(crate) fn start(
        &self,
        kubeconfig: &Path,
        directory: &Path,
        files: OpenFiles,
    ) -> Result<Vec<Process>> {
        let mut command = files.command(&self.scripts.join("start"));
        command.arg(kubeconfig).arg(directory);
        command.env("PEERS_ETCD_FLAGS", self.etcd).env("PEERS_CONTROLLERS", self.controllers);
        started(command)
    }
}

/// Starts three API servers over three members of etcd in a folder, of this program of ours or of the peer, and waits until they are ready.
pub(crate) fn start_three(
    ours: Option<&Path>,
    kubeconfig: &Path,
    directory: &Path,
    files: OpenFiles,
) -> Result<Vec<Process>> {
    let mut command = files.command(&fs::canonicalize(SCRIPTS)?.join("start-three"));
    command.arg(kubeconfig).arg(directory);
    if let Some(program) = ours {
        command.env("OURS", fs::canonicalize(program)?);
    }
    started(command)
}

/// Runs a script that starts processes and tells which.
fn started(mut command: Command) -> Result<Vec<Process>> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output()?;
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let processes = processes(&told);
    let failure = if !output.status.success() {
        "did not start"
    } else if processes.is_empty() {
        "told no process ids"
    } else {
        return Ok(processes);
    };
    processes.into_iter().for_each(Process::end);
    Err(Error::from(format!("the peer {failure}: {told}")))
}

/// The words `NAME=PID`.
fn processes(told: &str) -> Vec<Process> {
    let ids = told.split_whitespace().filter_map(|word| word.split_once('=')?.1.parse().ok());
    ids.map(Process::of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processes_of_a_peer_are_the_words_with_numbers() {
        let told = "url=https://127.0.0.1:1 etcd=12 apiserver=345 state=/tmp/x\n";
        assert_eq!(processes(told), [12, 345].map(Process::of));
    }
}
