//! Lines in, lines out.

use std::io::BufRead;
use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

use crate::{MEMORY, Result};

/// What a line is answered with. What does not apply is left out.
#[derive(Default, Serialize)]
pub(crate) struct Answer {
    /// Objects in the cache.
    pub(crate) objects: usize,
    /// Events that were delivered to all handlers together, or reconciles that were begun.
    pub(crate) events: u64,
    /// Bytes that are asked of the allocator and not given back.
    pub(crate) heap: usize,
    /// The most of them since the last line that told `heap`.
    pub(crate) peak: usize,
    /// Nanoseconds of CPU time: of the process so far, or, where a line asks for a piece of work, of that.
    pub(crate) cpu: u64,
    /// Nanoseconds that a piece of work took.
    pub(crate) wall: u64,
    /// Reconciles that were recorded: version of the object, and when it began, in nanoseconds since 1970.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) starts: Vec<(u64, u64)>,
    /// Nanoseconds from a change to its reconcile, where one program knows both.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) delays: Vec<u64>,
}

impl Answer {
    /// Prints it, with the CPU time so far unless it tells another.
    pub(crate) fn print(mut self) -> Result<()> {
        if self.cpu == 0 {
            self.cpu = cpu();
        }
        println!("{}", serde_json::to_string(&self)?);
        Ok(())
    }

    /// With what is asked of the allocator now and was at the most.
    pub(crate) fn heap(mut self) -> Self {
        (self.heap, self.peak) = (MEMORY.in_use(), MEMORY.peak());
        MEMORY.reset_peak();
        self
    }
}

/// User and system time of the process in nanoseconds, as the kernel counts it.
pub(crate) fn cpu() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// A piece of work that is measured.
pub(crate) struct Stopwatch {
    cpu: u64,
    begin: Instant,
}

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self { cpu: cpu(), begin: Instant::now() }
    }

    /// What it took, and how many pieces it was.
    pub(crate) fn stop(self, events: u64) -> Answer {
        let wall = self.begin.elapsed().as_nanos() as u64;
        Answer { cpu: cpu() - self.cpu, wall, events, ..Answer::default() }
    }
}

/// Reads lines until there are no more: a word each, and its number if it has one.
pub(crate) fn each(mut answer: impl FnMut(&str, u64) -> Result<()>) -> Result<()> {
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let (word, number) = line.trim().split_once(' ').unwrap_or((line.trim(), "0"));
        answer(word, number.parse()?)?;
    }
    Ok(())
}

/// What a line is answered with that nobody knows.
pub(crate) fn unknown(word: &str) -> Result<()> {
    Err(format!("what is {word:?}?").into())
}
