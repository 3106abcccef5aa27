//! A program that is measured: a process that is told lines and answers each with one.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde::Deserialize;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{ChildStdin, ChildStdout, Command};
use tokio::time::timeout;
use watchkeeper_bench_target::{Memory, Process, Result};

/// Whoever has not answered after this time will not.
const TIMEOUT: Duration = Duration::from_secs(240);

/// What a program answers. What does not apply is 0.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Answer {
    /// Events that were delivered, or reconciles that were begun.
    pub(crate) events: u64,
    /// Bytes in use.
    pub(crate) heap: f64,
    /// The most of them since they were told last; only ours knows.
    pub(crate) peak: f64,
    /// Nanoseconds of CPU time.
    pub(crate) cpu: f64,
    /// Nanoseconds of the clock.
    pub(crate) wall: f64,
    /// Version and nanoseconds since 1970 of each reconcile that was recorded.
    pub(crate) starts: Vec<(u64, u64)>,
    /// Nanoseconds from each change to its reconcile.
    pub(crate) delays: Vec<u64>,
}

/// Which program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Ours,
    Peer,
}

/// Where the programs are.
pub(crate) struct Programs {
    pub(crate) ours: PathBuf,
    /// Or why it is not there.
    pub(crate) peer: std::result::Result<PathBuf, String>,
}

impl Programs {
    /// Starts one, and waits until it is ready.
    pub(crate) async fn start(&self, side: Side, program: &str, flags: &[(&str, String)]) -> Result<Child> {
        let file = match side {
            Side::Ours => &self.ours,
            Side::Peer => self.peer.as_ref().map_err(Clone::clone)?,
        };
        Child::start(file, program, flags).await
    }
}

/// A program that runs, ended when it is dropped.
pub(crate) struct Child {
    _process: tokio::process::Child,
    id: Process,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    /// What it said when it was ready.
    pub(crate) ready: Answer,
}

impl Child {
    async fn start(file: &Path, program: &str, flags: &[(&str, String)]) -> Result<Self> {
        let flags = flags.iter().flat_map(|(name, value)| [format!("--{name}"), value.clone()]);
        let mut process = Command::new(file)
            .arg(program)
            .args(flags)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("cannot start {}: {error}", file.display()))?;
        let (input, output) = (process.stdin.take(), process.stdout.take());
        let (Some(input), Some(output), Some(id)) = (input, output, process.id()) else {
            return Err(format!("{} ended at once", file.display()).into());
        };
        let output = BufReader::new(output).lines();
        let ready = Answer::default();
        let mut child = Self { _process: process, id: Process::of(id), input, output, ready };
        child.ready = child.answer(program).await?;
        Ok(child)
    }

    /// Tells it a line and waits for the answer.
    pub(crate) async fn ask(&mut self, line: &str) -> Result<Answer> {
        self.input.write_all(format!("{line}\n").as_bytes()).await?;
        self.answer(line).await
    }

    async fn answer(&mut self, to: &str) -> Result<Answer> {
        let line = timeout(TIMEOUT, self.output.next_line()).await;
        let line = line.map_err(|_| format!("a program did not answer to {to:?} within {TIMEOUT:?}"))??;
        let line = line.ok_or_else(|| format!("a program ended instead of answering to {to:?}"))?;
        Ok(serde_json::from_str(&line)?)
    }

    /// Bytes that are resident.
    pub(crate) fn memory(&self, which: Memory) -> Result<f64> {
        self.id.memory(which)
    }

    /// Forgets what was resident at the most.
    pub(crate) fn forget_peak(&self) -> Result<()> {
        self.id.forget_peak()
    }

    /// Waits until it computes no more: not a hundredth of a second in half of one.
    pub(crate) async fn idle(&self) -> Result<()> {
        let mut before = self.id.cpu()?;
        loop {
            tokio::time::sleep(Duration::from_millis(500)).await;
            let now = self.id.cpu()?;
            if now - before < 0.015 {
                return Ok(());
            }
            before = now;
        }
    }
}
