//! A server that is measured: a process of its own, ended when it is dropped.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::Result;
use crate::access::Access;
use crate::client::{Ask, Connection};
use crate::size::Size;
use crate::table::Samples;

/// How long a peer may take to end before it is killed.
const GRACE: Duration = Duration::from_secs(5);

/// Clock ticks a second, as Linux tells times of processes.
const TICKS: f64 = 100.0;

/// A running server, and one connection to it.
pub(crate) struct Target {
    pub(crate) access: Arc<Access>,
    pub(crate) connection: Connection,
    pub(crate) size: Size,
    /// From the start of the process to the first answer of `/readyz`.
    pub(crate) ready: Duration,
    /// CPU time per unit of work, as the rounds of a row note it.
    pub(crate) costs: Samples,
    /// Numbers that were given to objects, so that none is given twice.
    pub(crate) used: usize,
    processes: Processes,
    /// Its data; removed after the processes ended, for fields are dropped in their order.
    _directory: TempDir,
}

enum Processes {
    /// A child of ours.
    Ours(Child),
    /// Started by the command of the peer, known by their ids.
    Peer(Vec<u32>),
}

impl Target {
    /// Starts our binary on an empty data directory.
    pub(crate) async fn ours(binary: &Path, size: Size) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let kubeconfig = directory.path().join("kubeconfig");
        let begin = Instant::now();
        let mut child = Command::new(binary)
            .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(directory.path().join("data"))
            .arg("--kubeconfig")
            .arg(&kubeconfig)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot start {}: {error}", binary.display()))?;
        let stdout = child.stdout.take();
        let processes = Processes::Ours(child);
        // It says so in one line once it serves, or ends.
        BufReader::new(stdout.ok_or("no stdout")?).read_line(&mut String::new())?;
        let (access, connection) = reach(&kubeconfig).await?;
        let ready = begin.elapsed();
        Ok(Self {
            access,
            connection,
            size,
            ready,
            costs: Samples::default(),
            used: 0,
            processes,
            _directory: directory,
        })
    }

    /// Starts the peer: `command KUBECONFIG DIRECTORY` has to start it, write the kubeconfig, return once it is ready, and
    /// print a word `NAME=PID` for each process that it leaves running.
    pub(crate) async fn peer(command: &str, size: Size) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let kubeconfig = directory.path().join("kubeconfig");
        let mut words = command.split_whitespace();
        let output = Command::new(words.next().ok_or("the command of the peer is empty")?)
            .args(words)
            .arg(&kubeconfig)
            .arg(directory.path())
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()?;
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        let ids = ids(&told);
        let oldest = ids.iter().filter_map(|id| age(*id)).max();
        let processes = Processes::Peer(ids);
        if !output.status.success() {
            return Err(format!("the peer did not start: {told}").into());
        }
        let ready = oldest.ok_or_else(|| format!("the peer told no process ids: {told}"))?;
        let (access, connection) = reach(&kubeconfig).await?;
        Ok(Self {
            access,
            connection,
            size,
            ready,
            costs: Samples::default(),
            used: 0,
            processes,
            _directory: directory,
        })
    }

    /// Bytes of memory that its processes hold now (`VmRSS`) or held at the most (`VmHWM`).
    pub(crate) fn memory(&self, field: &str) -> Result<f64> {
        let ids = self.processes.ids();
        let of = |id: u32| -> Result<f64> {
            let status = fs::read_to_string(format!("/proc/{id}/status"))?;
            Ok(kilobytes(&status, field).ok_or("no such field in the status of a process")? * 1024.0)
        };
        ids.into_iter().map(of).sum()
    }

    /// Connects again if the server closed the connection, as servers do when nothing is asked for a minute.
    pub(crate) async fn renew(&mut self) -> Result<()> {
        if self.connection.is_closed() {
            self.connection = Connection::http2(&self.access).await?;
        }
        Ok(())
    }

    /// Seconds of CPU time that its processes have used, to a hundredth of a second.
    pub(crate) fn cpu(&self) -> Result<f64> {
        let of = |id: u32| -> Result<f64> {
            let stat = fs::read_to_string(format!("/proc/{id}/stat"))?;
            Ok(busy(&stat).ok_or("the status of a process cannot be read")?)
        };
        self.processes.ids().into_iter().map(of).sum()
    }
}

/// Connects, and waits until the server says that it is ready.
async fn reach(kubeconfig: &Path) -> Result<(Arc<Access>, Connection)> {
    let kubeconfig = fs::read(kubeconfig).map_err(|error| format!("the server did not start: {error}"))?;
    let access = Arc::new(Access::of(&kubeconfig)?);
    let mut connection = Connection::http2(&access).await?;
    connection.call(Ask::get("/readyz")).await?;
    Ok((access, connection))
}

impl Processes {
    fn ids(&self) -> Vec<u32> {
        match self {
            Self::Ours(child) => vec![child.id()],
            Self::Peer(ids) => ids.clone(),
        }
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        match self {
            // Nothing of it is needed any more.
            Self::Ours(child) => {
                let _ = child.kill();
                let _ = child.wait();
            }
            Self::Peer(ids) => ids.iter().for_each(|id| end(*id)),
        }
    }
}

/// Asks a process to end, and kills it if it does not.
fn end(id: u32) {
    let Some(pid) = i32::try_from(id).ok().and_then(Pid::from_raw) else { return };
    let begin = Instant::now();
    let _ = kill_process(pid, Signal::TERM);
    while age(id).is_some() {
        if begin.elapsed() > GRACE {
            let _ = kill_process(pid, Signal::KILL);
            return;
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// How long a process has been running, to a hundredth of a second; nothing if it is not.
fn age(id: u32) -> Option<Duration> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let uptime = fs::read_to_string("/proc/uptime").ok()?;
    let uptime: f64 = uptime.split_whitespace().next()?.parse().ok()?;
    Some(Duration::from_secs_f64((uptime - started(&stat)?).max(0.0)))
}

/// When a process started, in seconds since the machine did; nothing if it has ended.
fn started(stat: &str) -> Option<f64> {
    let running = !matches!(fields(stat)?.next()?, "Z" | "X");
    let ticks: f64 = fields(stat)?.nth(19)?.parse().ok()?;
    running.then_some(ticks / TICKS)
}

/// Seconds that a process computed, in user and in system mode.
fn busy(stat: &str) -> Option<f64> {
    let mut fields = fields(stat)?.skip(11).map(|field| field.parse::<f64>().ok());
    Some((fields.next()?? + fields.next()??) / TICKS)
}

/// What follows the name: that may hold anything, but what follows its last bracket does not.
fn fields(stat: &str) -> Option<impl Iterator<Item = &str>> {
    Some(stat.rsplit_once(')')?.1.split_whitespace())
}

fn kilobytes(status: &str, field: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

fn ids(told: &str) -> Vec<u32> {
    told.split_whitespace().filter_map(|word| word.split_once('=')?.1.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ids_of_a_peer_are_the_words_with_numbers() {
        let told = "url=https://127.0.0.1:1 etcd=12 apiserver=345 state=/tmp/x\n";
        assert_eq!(ids(told), [12, 345]);
    }

    #[test]
    fn memory_is_read_by_the_name_of_its_field() {
        let status = "Name:\tx\nVmHWM:\t  20 kB\nVmRSS:\t    12 kB\n";
        assert_eq!(kilobytes(status, "VmRSS"), Some(12.0));
        assert_eq!(kilobytes(status, "Vm"), None);
    }

    #[test]
    fn the_start_of_a_process_is_found_whatever_its_name_and_not_if_it_has_ended() {
        let stat = |state| format!("7 (a) b) {state} 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4200 0");
        assert_eq!(started(&stat("S")), Some(42.0));
        assert_eq!(started(&stat("Z")), None);
    }

    #[test]
    fn the_cpu_time_of_a_process_is_that_of_user_and_system_mode() {
        assert_eq!(busy("7 (a) S 1 2 3 4 5 6 7 8 9 10 250 150 13"), Some(4.0));
        assert_eq!(busy("7 (a) S 1 2 3 4 5 6 7 8 9 10 250"), None);
    }
}
