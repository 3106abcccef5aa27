use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use super::checkpointer::Checkpointer;
use super::counters::Counters;
use super::disk::{Disk, is_full};
use super::frame::Frame;
use super::log::Log;
use super::recover::recover;
use crate::engine::Engine;
use crate::tree::Tree;
use crate::{Commit, Committed, Durability, Error, Options};

/// A disk has to show that it is quick.
const UNKNOWN_PACE: Duration = Duration::from_millis(1);

/// What writes: judges the commits of a group, each on the state that those before it leave, writes the group as one frame,
/// syncs once, and shows the new state.
pub(crate) struct Writer {
    pub(crate) engine: Arc<Engine>,
    disk: Arc<dyn Disk>,
    /// `None` until the first commit in a new directory: opening one costs no sync.
    log: Option<Log>,
    options: Options,
    pub(crate) counters: Arc<Counters>,
    pub(crate) checkpointer: Checkpointer,
    frame: Frame,
    /// The segment is not closed below this length; raised when closing it fails.
    rotate_at: u64,
    /// How long writing a group takes, lately.
    pub(crate) pace: Duration,
}

impl Writer {
    /// Reads what is there, and is ready to go on.
    pub(crate) fn open(disk: Arc<dyn Disk>, options: Options) -> Result<Self, Error> {
        let recovered = recover(&disk)?;
        let counters = Arc::new(Counters::default());
        counters.log_bytes.store(recovered.log_bytes, Relaxed);
        counters.checkpoint_bytes.store(recovered.checkpoint_bytes, Relaxed);
        let engine = Arc::new(Engine::new(recovered.base, options.clone()));
        engine.publish(recovered.tree, recovered.events);
        Ok(Self {
            engine,
            checkpointer: Checkpointer::new(Arc::clone(&disk), Arc::clone(&counters)),
            disk,
            log: recovered.log,
            rotate_at: options.limits.segment_bytes,
            options,
            counters,
            frame: Frame::default(),
            pace: UNKNOWN_PACE,
        })
    }

    /// Makes the commits of a group, and gives the answer to each.
    pub(crate) fn serve<'a>(
        &mut self,
        group: impl IntoIterator<Item = &'a Commit>,
    ) -> Vec<Result<Committed, Error>> {
        let mut tree = self.engine.now();
        let mut events = Vec::new();
        let mut commits = 0;
        self.frame.clear();
        let mut answers = Vec::new();
        for commit in group {
            answers.push(tree.apply(commit).map(|(committed, caused)| {
                if !caused.is_empty() {
                    self.frame.push(commit);
                    commits += 1;
                    events.extend(caused);
                }
                committed
            }));
        }
        if commits > 0 {
            if let Err(error) = self.persist(&tree) {
                // Answers about the state that did not come to be are void, also those to commits that conflicted.
                answers.iter_mut().for_each(|answer| *answer = Err(error.clone()));
            } else {
                self.counters.commits.fetch_add(commits, Relaxed);
                self.engine.publish(tree, events);
            }
        }
        answers
    }

    fn persist(&mut self, tree: &Tree) -> Result<(), Error> {
        if let Some(reason) = self.counters.halted() {
            return Err(Error::Halted { reason });
        }
        let begin = Instant::now();
        let written = self.append(tree);
        self.pace = (self.pace * 7 + begin.elapsed()) / 8;
        if let Err(Error::Unknown { reason } | Error::Halted { reason }) = &written {
            tracing::error!(%reason, "storage halted: no more commits are accepted");
            self.counters.halt(reason);
        }
        written
    }

    fn append(&mut self, tree: &Tree) -> Result<(), Error> {
        let log = match &mut self.log {
            Some(log) => log,
            none => {
                let log = Log::create(Arc::clone(&self.disk), self.engine.now().revision());
                none.insert(log.map_err(|error| no_log(&error))?)
            }
        };
        let before = log.length;
        log.append(&mut self.frame, tree.revision())?;
        if self.options.durability == Durability::Sync {
            log.reserve(self.options.limits.reserved_bytes);
            log.sync()?;
            self.counters.syncs.fetch_add(1, Relaxed);
        }
        self.counters.log_bytes.fetch_add(log.length - before, Relaxed);
        Ok(())
    }

    /// Closes a segment that has grown large, and has a checkpoint made when the log has.
    pub(crate) fn tidy(&mut self) {
        let Some(log) = &mut self.log else { return };
        let limits = &self.options.limits;
        let checkpoint = self.checkpointer.is_due(limits.log_bytes);
        if self.counters.halted().is_some() || log.length < self.rotate_at && !checkpoint {
            return;
        }
        log.release();
        let rotated = log.sync().and_then(|()| {
            let next = Log::create(Arc::clone(&self.disk), log.written);
            next.map_err(|error| no_log(&error))
        });
        match rotated {
            Ok(next) => {
                self.log = Some(next);
                self.rotate_at = limits.segment_bytes;
                if checkpoint {
                    self.checkpointer.start(self.engine.now());
                }
            }
            Err(Error::Unknown { reason }) => self.counters.halt(&reason),
            Err(error) => {
                tracing::warn!(%error, "log could not be rotated; it continues in the same file");
                self.rotate_at = log.length + limits.segment_bytes / 4;
                self.checkpointer.postpone();
            }
        }
    }

    /// Leaves a frame that vouches for all others, and nothing that is not durable.
    pub(crate) fn finish(mut self) {
        if let Some(log) = &mut self.log
            && self.counters.halted().is_none()
        {
            self.frame.clear();
            let last = log.written;
            log.release();
            let sealed =
                log.sync().and_then(|()| log.append(&mut self.frame, last)).and_then(|()| log.sync());
            if let Err(error) = sealed {
                tracing::warn!(%error, "log could not be closed cleanly");
            }
        }
        self.checkpointer.stop();
    }
}

/// A segment that could not be created leaves the log as it was.
fn no_log(error: &io::Error) -> Error {
    let reason = format!("creating a file of the log: {error}");
    match is_full(error) {
        true => Error::Full { reason },
        false => Error::Halted { reason },
    }
}
