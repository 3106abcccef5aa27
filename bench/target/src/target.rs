//! A server that is measured: processes of its own with data of their own, ended when it is dropped.

use std::fs;
use std::io::{BufRead, BufReader};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::access::Access;
use crate::client::{Ask, Connection};
use crate::peer::start_three;
use crate::process::{Memory, OpenFiles, Process};
use crate::{Peer, Result};

/// A running server, and one connection to it.
pub struct Target {
    /// How to reach it.
    pub access: Arc<Access>,
    /// A connection for whatever is not measured, or one after the other.
    pub connection: Connection,
    /// From the start of the first process, the last time that it was started, to the first answer of `/readyz`.
    pub ready: Duration,
    /// The last number that was given to an object; see [`Target::take`].
    used: usize,
    program: Program,
    files: OpenFiles,
    processes: Processes,
    /// Its data; removed after the processes ended, for fields are dropped in their order.
    directory: TempDir,
    kubeconfig: PathBuf,
}

/// How a server is ended before it is started again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It is asked to (SIGTERM).
    Asked,
    /// It is killed (SIGKILL).
    Killed,
}

/// What is started.
#[derive(Clone, Debug)]
pub enum Program {
    /// Our binary.
    Ours(PathBuf),
    /// kube-apiserver with etcd.
    Peer(Peer),
    /// Three of our servers over three members of etcd.
    ThreeOurs(PathBuf),
    /// Three kube-apiservers over three members of etcd.
    ThreePeers(Peer),
}

enum Processes {
    /// A child of ours.
    Ours(Child),
    /// Started by a script, known by their ids.
    Peer(Vec<Process>),
}

impl Target {
    /// Starts our binary on an empty data directory.
    ///
    /// # Errors
    ///
    /// If it does not start, or does not serve.
    pub async fn ours(binary: &Path) -> Result<Self> {
        Self::start(Program::Ours(binary.into()), OpenFiles::AsHere).await
    }

    /// Starts the peer on an empty data directory.
    ///
    /// # Errors
    ///
    /// If it does not start, or does not serve.
    pub async fn peer(peer: &Peer) -> Result<Self> {
        Self::start(Program::Peer(peer.clone()), OpenFiles::AsHere).await
    }

    /// Starts three of our servers over three members of etcd, all of them empty.
    ///
    /// # Errors
    ///
    /// If one does not start, or does not serve.
    pub async fn three_ours(binary: &Path) -> Result<Self> {
        Self::start(Program::ThreeOurs(binary.into()), OpenFiles::AsHere).await
    }

    /// Starts three kube-apiservers over three members of etcd, all of them empty.
    ///
    /// # Errors
    ///
    /// If one does not start, or does not serve.
    pub async fn three_peers(peer: &Peer) -> Result<Self> {
        Self::start(Program::ThreePeers(peer.clone()), OpenFiles::AsHere).await
    }

    /// Starts one more of ours over the same members, waits until it serves, and ends it. Gives the time from its start until then.
    ///
    /// # Errors
    ///
    /// If these are not several of ours, or it does not start.
    pub async fn add_server(&self) -> Result<Duration> {
        let Program::ThreeOurs(binary) = &self.program else { return Err("only ours are added to".into()) };
        let urls = self.etcd()?.join(",");
        let begin = Instant::now();
        let mut command = Command::new(binary);
        command.args(["serve", "--listen", "127.0.0.1:0", "--storage", "etcd", "--etcd-endpoints"]);
        command.arg(urls).arg("--data-dir").arg(self.directory.path().join("data"));
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let stdout = child.stdout.take();
        let mut processes = Processes::Ours(child);
        let mut told = String::new();
        BufReader::new(stdout.ok_or("no stdout")?).read_line(&mut told)?;
        let time = begin.elapsed();
        processes.end(End::Asked);
        if told.starts_with("ready") { Ok(time) } else { Err("it did not start".into()) }
    }

    /// Starts our binary or the peer on an empty data directory, with a limit of open files.
    ///
    /// # Errors
    ///
    /// If it does not start, or does not serve.
    pub async fn start(program: Program, files: OpenFiles) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let kubeconfig = directory.path().join("kubeconfig");
        let (processes, access, connection, ready) =
            program.run(directory.path(), &kubeconfig, files).await?;
        Ok(Self { access, connection, ready, used: 0, program, files, processes, directory, kubeconfig })
    }

    /// Ends it, starts it again with the same data, and connects again. [`Target::ready`] tells how long the start took. What was
    /// known of its address is no longer so: ours listens at another port.
    ///
    /// # Errors
    ///
    /// If it does not start, or does not serve.
    pub async fn restart(&mut self, end: End) -> Result<()> {
        self.processes.end(end);
        let run = self.program.run(self.directory.path(), &self.kubeconfig, self.files).await?;
        (self.processes, self.access, self.connection, self.ready) = run;
        Ok(())
    }

    /// Where the members of etcd are, if there are several servers over them.
    ///
    /// # Errors
    ///
    /// If there is one server.
    pub fn etcd(&self) -> Result<Vec<String>> {
        let urls = fs::read_to_string(self.directory.path().join("etcd.urls"))
            .map_err(|error| format!("it is not known where etcd is: {error}"))?;
        Ok(urls.trim().split(',').map(str::to_owned).collect())
    }

    /// Where other programs find how to reach it.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Its processes.
    pub fn processes(&self) -> Vec<Process> {
        match &self.processes {
            Processes::Ours(child) => vec![Process::of(child.id())],
            Processes::Peer(processes) => processes.clone(),
        }
    }

    /// Bytes of memory that its processes hold together.
    ///
    /// # Errors
    ///
    /// If one of them is gone.
    pub fn memory(&self, which: Memory) -> Result<f64> {
        self.processes().into_iter().map(|process| process.memory(which)).sum()
    }

    /// Seconds of CPU time that its processes have used, to a hundredth of a second.
    ///
    /// # Errors
    ///
    /// If one of them is gone.
    pub fn cpu(&self) -> Result<f64> {
        self.processes().into_iter().map(Process::cpu).sum()
    }

    /// Connects again if the server closed the connection, as servers do when nothing is asked for a minute.
    ///
    /// # Errors
    ///
    /// If the server is not there.
    pub async fn renew(&mut self) -> Result<()> {
        if self.connection.is_closed() {
            self.connection = Connection::http2(&self.access).await?;
        }
        Ok(())
    }

    /// So many numbers for objects, none of which was given before.
    pub fn take(&mut self, count: usize) -> Range<usize> {
        let first = self.used + 1;
        self.used += count;
        first..first + count
    }

    /// The number that was given last.
    pub fn last(&self) -> usize {
        self.used
    }
}

impl Program {
    /// Starts it, and waits until it serves.
    async fn run(
        &self,
        directory: &Path,
        kubeconfig: &Path,
        files: OpenFiles,
    ) -> Result<(Processes, Arc<Access>, Connection, Duration)> {
        let begin = Instant::now();
        let processes = match self {
            Self::Ours(binary) => ours(files.command(binary), directory, kubeconfig)?,
            Self::Peer(peer) => Processes::Peer(peer.start(kubeconfig, directory, files)?),
            Self::ThreePeers(_) => Processes::Peer(start_three(None, kubeconfig, directory, files)?),
            Self::ThreeOurs(binary) => {
                Processes::Peer(start_three(Some(binary), kubeconfig, directory, files)?)
            }
        };
        let told = fs::read(kubeconfig).map_err(|error| format!("the server did not start: {error}"))?;
        let mut access = Access::of(&told)?;
        if let Ok(servers) = fs::read_to_string(directory.join("servers")) {
            access = access.in_turn(servers.lines().map(str::parse).collect::<Result<_, _>>()?);
        }
        let access = Arc::new(access);
        let mut connection = Connection::http2(&access).await?;
        connection.call(Ask::get("/readyz")).await?;
        let ready = match &processes {
            Processes::Ours(_) => begin.elapsed(),
            // The script makes keys before it starts anything.
            Processes::Peer(all) => {
                all.iter().filter_map(|process| process.age()).max().ok_or("the peer is gone")?
            }
        };
        Ok((processes, access, connection, ready))
    }
}

fn ours(mut command: Command, directory: &Path, kubeconfig: &Path) -> Result<Processes> {
    let mut child = command
        .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(directory.join("data"))
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot start {command:?}: {error}"))?;
    let stdout = child.stdout.take();
    let processes = Processes::Ours(child);
    // It says so in one line once it serves, or ends.
    BufReader::new(stdout.ok_or("no stdout")?).read_line(&mut String::new())?;
    Ok(processes)
}

impl Processes {
    fn end(&mut self, end: End) {
        match self {
            Self::Ours(child) => {
                match end {
                    End::Asked => Process::of(child.id()).end(),
                    // It knows whether there is anything to kill.
                    End::Killed => drop(child.kill()),
                }
                let _ = child.wait();
            }
            Self::Peer(processes) => {
                // kube-apiserver first, for without etcd it waits for it.
                for process in processes.drain(..).rev() {
                    if end == End::Killed {
                        process.kill();
                    }
                    process.end();
                }
            }
        }
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        match self {
            // Nothing of it is needed any more.
            Self::Ours(_) => self.end(End::Killed),
            Self::Peer(_) => self.end(End::Asked),
        }
    }
}
