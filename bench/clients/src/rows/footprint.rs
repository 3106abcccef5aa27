//! What an informer costs that lists and then holds everything.

use std::path::Path;
use std::time::Instant;

use watchkeeper_bench_report::Samples;
use watchkeeper_bench_target::{Memory, Result};

use crate::child::{Child, Programs, Side};
use crate::server::Population;

/// An informer to be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mode {
    pub(crate) side: Side,
    pub(crate) name: &'static str,
}

impl Mode {
    pub(crate) fn ours(name: &'static str) -> Self {
        Self { side: Side::Ours, name }
    }

    pub(crate) fn peer(name: &'static str) -> Self {
        Self { side: Side::Peer, name }
    }

    /// What it is called in rows.
    pub(crate) fn title(self) -> &'static str {
        match (self.side, self.name) {
            (Side::Ours, name) => name,
            (_, "typed") => "client-go typed",
            (_, "dynamic") => "client-go dynamic",
            (_, "metadata") => "client-go metadata",
            (_, "typed-whole") => "client-go typed, as is its default: with managedFields",
            (_, "dynamic-whole") => "client-go dynamic, as is its default: with managedFields",
            (_, "cache-typed") => "controller-runtime cache, typed",
            (_, "cache-unstructured") => "controller-runtime cache, unstructured",
            (_, name) => name,
        }
    }
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Metric {
    /// CPU time per object.
    Cpu,
    /// Time of the clock for all of them.
    Wall,
    /// Live bytes per object.
    Heap,
    /// Resident bytes per object.
    Rss,
}

/// All rounds of one mode.
#[derive(Clone, Debug, Default)]
pub(crate) struct Footprints {
    cpu: Samples,
    wall: Samples,
    heap: Samples,
    rss: Samples,
}

impl Footprints {
    pub(crate) fn of(&self, metric: Metric) -> &Samples {
        match metric {
            Metric::Cpu => &self.cpu,
            Metric::Wall => &self.wall,
            Metric::Heap => &self.heap,
            Metric::Rss => &self.rss,
        }
    }

    /// One more round: starts the informer, has it sync, and gives it with what that cost noted.
    pub(crate) async fn round(
        &mut self,
        programs: &Programs,
        kubeconfig: &Path,
        mode: Mode,
        all: &Population,
    ) -> Result<Child> {
        let mut child = informer(programs, kubeconfig, mode, all, 1, false).await?;
        let before = child.memory(Memory::Now)?;
        let begin = Instant::now();
        let synced = child.ask("start").await?;
        self.wall.push(begin.elapsed().as_secs_f64());
        let count = all.count as f64;
        self.cpu.push((synced.cpu - child.ready.cpu) / 1e9 / count);
        let held = child.ask("heap").await?;
        self.heap.push((held.heap - child.ready.heap).max(0.0) / count);
        self.rss.push((child.memory(Memory::Now)? - before).max(0.0) / count);
        Ok(child)
    }
}

/// Starts the program with an informer that has not begun.
pub(crate) async fn informer(
    programs: &Programs,
    kubeconfig: &Path,
    mode: Mode,
    all: &Population,
    handlers: usize,
    spec: bool,
) -> Result<Child> {
    let mut flags = all.flags(kubeconfig);
    flags.extend([("mode", mode.name.to_owned()), ("handlers", handlers.to_string())]);
    if spec {
        flags.push(("spec", "true".into()));
    }
    programs.start(mode.side, "informers", &flags).await
}
