pub(crate) mod checkpoint;
mod checkpointer;
mod counters;
mod create;
mod disk;
mod encoding;
mod frame;
mod group_commit;
mod header;
mod lock;
mod log;
mod recover;
mod segment;
#[cfg(test)]
mod simulated;
#[cfg(test)]
mod tests;
mod writer;

use std::path::Path;
use std::sync::Arc;

pub(crate) use self::create::create;
pub(crate) use self::disk::{Directory, is_full};
pub(crate) use self::recover::look;

use self::counters::Counters;
use self::disk::Disk;
use self::group_commit::GroupCommit;
use self::lock::Lock;
use self::writer::Writer;
use crate::engine::Engine;
use crate::{Answer, Commit, Committed, Error, Found, Options, Page, Range, Revision, Stats, Storage, Watch};

/// A storage in a directory of this machine: all of it in memory, every commit in a log, a checkpoint now and then.
///
/// # Durability
///
/// One thread writes at a time. It takes all commits that wait, writes them to the log as one frame, syncs once, and only then
/// shows and acknowledges them. Usually that is a thread of the storage's own; a commit that comes alone is written by
/// whoever brings it, if that is a task of a runtime with several threads and the disk is quick. With [`Durability::Sync`](crate::Durability) a commit is on the disk before anybody sees
/// it. Killing the process loses nothing with either durability.
///
/// What failures do:
///
/// - **No space**: the commits of the group fail with [`Error::Full`], what was written of them is cut off, and the
///   storage goes on: the next commit that finds space succeeds. Checkpoints that find no space are tried again later.
/// - **A sync fails**: the group fails with [`Error::Unknown`]. The operating system may have dropped what it could not
///   write and report success next time, so nothing is tried again: all further commits fail with
///   [`Error::Halted`], reads go on. Opening anew finds the group as a whole or not at all, and writes what it found
///   once more before anybody sees it.
/// - **Any other failed write**: the group fails with [`Error::Halted`], as do all further commits.
/// - **A panic of the writer** is treated like a sync that failed. One while a checkpoint is made is a checkpoint that failed.
/// - **A crash** may leave a frame half-written at the end of the log: it was never acknowledged and is cut off.
/// - **Damage** to anything that was durable fails the opening with [`Error::Corrupt`], which says where; no file is
///   touched. Frames vouch for those before them, so what can pass for a crash is damage that takes in the last frame
///   (relaxed: the frames since the last sync); after a clean close, one damaged byte never does. If the last file of
///   the log is missing altogether, that goes unnoticed.
///
/// Dropping it waits for the commits under way, blocking for a sync or two, and gives the directory back. Values may
/// be secrets: the files, and a directory that it had to create, are for their owner only.
///
/// # Files
///
/// - `LOCK`: locked while the storage is open; says by whom.
/// - `log-N`: frames of commits, beginning with revision N. A file is closed at
///   [`segment_bytes`](crate::Limits::segment_bytes), or when a checkpoint begins.
/// - `checkpoint-N`: all entries at revision N, in blocks. Made from a snapshot while commits go on, once the log outgrows
///   [`log_bytes`](crate::Limits::log_bytes) and the last checkpoint; then the log up to N is removed. So the
///   directory holds at most about three times the entries plus `log_bytes`, and opening reads no more than twice the
///   entries plus `log_bytes`. After a restart, the past begins at the last checkpoint.
///
/// All files begin with their format's version. Everything in them has a checksum, salted for each file.
///
/// # Why a log of our own
///
/// The state has to be in memory as a persistent tree, for snapshots and lists that do not block. What the disk has to
/// do is to remember commits, in order, in groups. `examples/compare.rs` measures just that: one small object per
/// commit, all engines with the same group commit, in turns, medians of five runs. Commits per second on two shared
/// virtual processors with ext4, at a load average of 2, and in brackets at one of 7 to 8:
///
/// | writers | this log | fjall 3.1 | redb 4.4 | our syncs per commit |
/// |---|---|---|---|---|
/// | 1 | 4,700 (1,900) | 6,500 (3,100) | 2,800 (1,100) | 1.00 |
/// | 16 | 28,100 (7,100) | 30,000 (16,200) | 12,900 (4,700) | 0.08 |
/// | 64 | 49,200 (47,300) | 52,700 (27,600) | 23,000 (14,800) | 0.02 |
///
/// For scale: a whole kube-apiserver with etcd, over HTTPS, makes 174 and 483 creates per second on this machine with
/// 1 and 16 clients. A B-tree transaction (redb) is slowest everywhere. fjall writes a journal as we do and was ahead with
/// a lone writer: it sets the size of its file in advance, as this log does too since these figures were taken. With more
/// writers, who is ahead changes with the load. Speed does not decide between these two. But our figures include preconditions, revisions, the tree and its
/// events, and on top of fjall all of that would come in addition: it would hold everything a second time, bring 29 more
/// crates, and with some kinds of damage cut off the journal where we want to refuse. A log that is nothing but a log
/// is less code than the layer between.
pub struct Embedded {
    engine: Arc<Engine>,
    counters: Arc<Counters>,
    group_commit: GroupCommit,
    /// Given back after the last commit was written.
    _lock: Option<Lock>,
}

impl Embedded {
    /// Opens the storage in a directory, which is created if it is not there. Blocks while it reads.
    pub fn open(directory: impl AsRef<Path>, options: Options) -> Result<Self, Error> {
        let directory = directory.as_ref();
        create::directory(directory)?;
        let lock = Lock::acquire(directory)?;
        Self::on_disk(Arc::new(Directory::new(directory)), Some(lock), options)
    }

    fn on_disk(disk: Arc<dyn Disk>, lock: Option<Lock>, options: Options) -> Result<Self, Error> {
        let writer = Writer::open(disk, options)?;
        let engine = Arc::clone(&writer.engine);
        let counters = Arc::clone(&writer.counters);
        Ok(Self { engine, counters, group_commit: GroupCommit::open(writer)?, _lock: lock })
    }
}

impl Storage for Embedded {
    fn get<'a>(&'a self, key: &'a str, at: Option<Revision>) -> Answer<'a, Found> {
        Box::pin(async move { self.engine.get(key, at) })
    }

    fn range(&self, range: Range) -> Answer<'_, Page> {
        Box::pin(async move { self.engine.range(&range) })
    }

    fn commit(&self, commit: Commit) -> Answer<'_, Committed> {
        Box::pin(async move {
            commit.validate()?;
            self.group_commit.commit(commit).await
        })
    }

    fn watch<'a>(&'a self, prefix: &'a str, after: Revision) -> Answer<'a, Watch> {
        Box::pin(async move { self.engine.watch(prefix, after) })
    }

    fn compact(&self, to: Revision) -> Answer<'_, ()> {
        Box::pin(async move { self.engine.compact(to) })
    }

    fn pack(&self) -> bool {
        self.engine.pack()
    }

    fn stats(&self) -> Stats {
        self.counters.fill(self.engine.stats())
    }
}

/// Waits until the commits that were let in are durable, then gives the directory back.
impl Drop for Embedded {
    fn drop(&mut self) {
        self.group_commit.close();
        self.engine.close();
    }
}
