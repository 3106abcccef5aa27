use std::io::{self, ErrorKind};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::thread::{self, JoinHandle};

use super::checkpoint;
use super::counters::Counters;
use super::disk::Disk;
use super::header::Kind;
use crate::Revision;
use crate::tree::Tree;

/// Makes checkpoints on a thread of its own, one at a time, while commits go on. Owned by the writer, who stops it.
pub(crate) struct Checkpointer {
    disk: Arc<dyn Disk>,
    counters: Arc<Counters>,
    stopping: Arc<AtomicBool>,
    running: Option<JoinHandle<()>>,
    /// How large the log was when a checkpoint was last attempted; what a checkpoint covers is taken off.
    attempted_at: u64,
}

impl Checkpointer {
    pub(crate) fn new(disk: Arc<dyn Disk>, counters: Arc<Counters>) -> Self {
        Self { disk, counters, stopping: Arc::default(), running: None, attempted_at: 0 }
    }

    /// Whether the log is larger than the limit and the last checkpoint. After an attempt that failed, the log grows by a
    /// quarter of the limit before the next.
    pub(crate) fn is_due(&mut self, limit: u64) -> bool {
        if self.running.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return false;
        }
        let log = self.counters.log_bytes.load(Relaxed);
        if log < self.attempted_at {
            self.attempted_at = 0;
        }
        let enough = limit.max(self.counters.checkpoint_bytes.load(Relaxed));
        log >= enough && (self.attempted_at == 0 || log - self.attempted_at >= limit / 4)
    }

    /// Remembers an attempt that did not even start.
    pub(crate) fn postpone(&mut self) {
        self.attempted_at = self.counters.log_bytes.load(Relaxed);
    }

    /// Begins a checkpoint of a state after which the log has begun a new segment.
    pub(crate) fn start(&mut self, tree: Tree) {
        self.postpone();
        self.wait();
        let job = Job {
            disk: Arc::clone(&self.disk),
            counters: Arc::clone(&self.counters),
            stopping: Arc::clone(&self.stopping),
            covers: self.attempted_at,
        };
        let spawned = thread::Builder::new().name("storage-checkpoint".into()).spawn(move || job.run(&tree));
        match spawned {
            Ok(thread) => self.running = Some(thread),
            Err(error) => self.counters.failed(&error),
        }
    }

    /// Abandons a checkpoint that is being made: the log has everything.
    pub(crate) fn stop(mut self) {
        self.stopping.store(true, Release);
        self.wait();
    }

    /// Waits for a checkpoint that is being made.
    pub(crate) fn wait(&mut self) {
        if let Some(thread) = self.running.take() {
            // Panics are caught inside.
            let _ = thread.join();
        }
    }
}

struct Job {
    disk: Arc<dyn Disk>,
    counters: Arc<Counters>,
    stopping: Arc<AtomicBool>,
    covers: u64,
}

impl Job {
    /// A checkpoint that panics is one that failed.
    fn run(self, tree: &Tree) {
        if catch_unwind(AssertUnwindSafe(|| self.make(tree))).is_err() {
            self.counters.failed(&io::Error::other("making it panicked"));
        }
    }

    fn make(&self, tree: &Tree) {
        let go_on = |_| !self.stopping.load(Acquire);
        let name = Kind::Checkpoint.name(tree.revision());
        match checkpoint::write(&*self.disk, &name, tree, &go_on) {
            Ok(bytes) => {
                self.counters.checkpoint_bytes.store(bytes, Relaxed);
                self.counters.checkpoints.fetch_add(1, Relaxed);
                self.counters.log_bytes.fetch_sub(self.covers, Relaxed);
                self.remove_superfluous(tree.revision());
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => self.counters.failed(&error),
        }
    }

    /// Removes what the checkpoint stands for. What cannot be removed is, at the next opening.
    fn remove_superfluous(&self, revision: Revision) {
        let is_covered = |name: &String| {
            Kind::Log.revision(name).is_some_and(|first| first <= revision)
                || Kind::Checkpoint.revision(name).is_some_and(|older| older < revision)
        };
        let names = self.disk.list().unwrap_or_default();
        for name in names.into_iter().filter(is_covered) {
            if let Err(error) = self.disk.remove(&name) {
                tracing::warn!(file = %self.disk.path(&name).display(), %error, "not removed");
            }
        }
    }
}

impl Counters {
    fn failed(&self, error: &io::Error) {
        self.checkpoint_failures.fetch_add(1, Relaxed);
        tracing::warn!(%error, "a checkpoint failed; the log grows until one succeeds");
    }
}
