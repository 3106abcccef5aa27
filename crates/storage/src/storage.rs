use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::{Commit, Committed, Entry, Error, Leadership, Page, Range, Revision, Stats, Watch};

/// An ordered, versioned map from keys to opaque values, with a past that can be read and a future that can be watched.
///
/// Keys are paths (`/registry/example.com/widgets/default/a`) ordered by their bytes. Values are bytes that the
/// storage never looks into. The whole storage has one [`Revision`], and every commit that changes something makes it greater. A storage
/// of this process alone begins at 0 and counts by one; one that is shared may leave numbers out.
///
/// # What a storage promises
///
/// - **Commits are atomic and in one order.** All operations of a [`Commit`] share one revision and appear together, in
///   reads, in watches and after a crash. Revisions are strictly increasing. Preconditions are judged on the state right before
///   the commit; if one does not hold, nothing happens and the answer holds the entry that was in the way.
/// - **An acknowledged commit is durable**, as far as the backend and its [`Durability`](crate::Durability) go. Nobody
///   sees a commit before it is.
/// - **Reads are linearizable.** A read without a revision sees every commit that was acknowledged before the read
///   began, and says which revision it stands for.
/// - **A read at a revision is exactly that snapshot**, whatever has been committed since: pages of one list fit together.
///   Revisions that have been forgotten give [`Error::Compacted`], those to come [`Error::Future`]; nothing gives a
///   guess.
/// - **A watch is complete.** It tells of every change to its keys after the given revision, each exactly once, in
///   the order of revisions, and within one revision in the order of the commit's operations. An event has the
///   entry before and after. All watchers of the present share it.
/// - **A slow watcher harms nobody.** It holds a bounded number of events in memory and reads what it missed from the
///   window of the past; when that has moved on, the watch ends with [`Error::Lagged`]. Commits never wait for
///   watchers, and what they cost depends on the watchers interested in their keys, not on how many there are.
///
/// # What it does not promise
///
/// - How far back the past goes: the [`Window`](crate::Window) limits it, and a restart may shorten it. The current
///   revision can always be read and watched from.
/// - How much fits into one commit: [`MAX_COMMIT_BYTES`](crate::MAX_COMMIT_BYTES), or what a shared storage allows, which may be 128 operations and
///   1.5 MiB. More is [`Error::Invalid`] or [`Error::TooLarge`].
/// - That the outcome of a commit is known: after [`Error::Unknown`], it may have happened.
/// - That compacted revisions stay unreadable: compaction is a permission to forget.
/// - Fairness between concurrent commits, or that a commit without preconditions is ordered by when it was called
///   unless one was acknowledged before the other was begun.
///
/// # Cancellation
///
/// All futures are lazy: nothing happens before they are polled. Dropping a read does nothing. Dropping a commit that
/// has been polled leaves it to happen as a whole or not at all; the caller finds out by reading. Dropping a [`Watch`]
/// ends it and frees what it held.
///
/// The suite in `contract` (feature `contract`) checks these promises for any backend.
pub trait Storage: Send + Sync + 'static {
    /// Reads one key, now or at a revision.
    fn get<'a>(&'a self, key: &'a str, at: Option<Revision>) -> Answer<'a, Found>;

    /// Reads one key as far as this process has been told, without asking those that share the storage: what others have committed may be missing.
    /// For what a commit depends on: a precondition tells whether it was so.
    fn known<'a>(&'a self, key: &'a str) -> Answer<'a, Found> {
        self.get(key, None)
    }

    /// Reads a stretch of keys in order.
    fn range(&self, range: Range) -> Answer<'_, Page>;

    /// Makes a change if its preconditions hold.
    fn commit(&self, commit: Commit) -> Answer<'_, Committed>;

    /// Watches all keys that begin with `prefix`, for changes after the revision `after`.
    fn watch<'a>(&'a self, prefix: &'a str, after: Revision) -> Answer<'a, Watch>;

    /// Allows to forget what was before the revision `to`; `to` itself can still be read and watched from. If that much
    /// is forgotten already, nothing happens.
    fn compact(&self, to: Revision) -> Answer<'_, ()>;

    /// What the storage has done so far.
    fn stats(&self) -> Stats;

    /// Packs some of the past that is kept, so that it takes less memory, and says whether there may be more to do. Computes for some milliseconds,
    /// and so belongs where nobody waits. Events that are told to watchers after that are made anew: they are equal to what was told before, not the same.
    fn pack(&self) -> bool {
        false
    }

    /// Whether other processes write to it, too: what is only known in this one is not enough to decide on.
    fn is_shared(&self) -> bool {
        false
    }

    /// Whether what was written [for some time](Commit::put_for) is deleted when that has passed.
    fn expires(&self) -> bool {
        false
    }

    /// How often the whole history was replaced by another one since the storage was opened, as when a backup was restored under it. Revisions
    /// of one epoch say nothing about another: the same number may stand for another state.
    fn epoch(&self) -> u64 {
        0
    }

    /// Whether this process does what only one of those that share the storage should do.
    fn leadership(&self) -> Leadership {
        Leadership::always()
    }

    /// Gives up what only this process does, if something: those that share the storage need not wait until it is taken for lost. To be called
    /// when what it did has ended. Everything else goes on.
    fn retire(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// The future that a [`Storage`] returns.
pub type Answer<'a, T> = BoxFuture<'a, Result<T, Error>>;

/// The entry under a key, if there is one.
#[derive(Clone, Debug)]
pub struct Found {
    /// The entry, if the key exists.
    pub entry: Option<Arc<Entry>>,
    /// The revision that this answer stands for.
    pub revision: Revision,
}

/// A shared storage is a storage.
impl<S: Storage + ?Sized> Storage for Arc<S> {
    fn get<'a>(&'a self, key: &'a str, at: Option<Revision>) -> Answer<'a, Found> {
        (**self).get(key, at)
    }

    fn known<'a>(&'a self, key: &'a str) -> Answer<'a, Found> {
        (**self).known(key)
    }

    fn range(&self, range: Range) -> Answer<'_, Page> {
        (**self).range(range)
    }

    fn commit(&self, commit: Commit) -> Answer<'_, Committed> {
        (**self).commit(commit)
    }

    fn watch<'a>(&'a self, prefix: &'a str, after: Revision) -> Answer<'a, Watch> {
        (**self).watch(prefix, after)
    }

    fn compact(&self, to: Revision) -> Answer<'_, ()> {
        (**self).compact(to)
    }

    fn stats(&self) -> Stats {
        (**self).stats()
    }

    fn pack(&self) -> bool {
        (**self).pack()
    }

    fn is_shared(&self) -> bool {
        (**self).is_shared()
    }

    fn expires(&self) -> bool {
        (**self).expires()
    }

    fn epoch(&self) -> u64 {
        (**self).epoch()
    }

    fn leadership(&self) -> Leadership {
        (**self).leadership()
    }

    fn retire(&self) -> BoxFuture<'_, ()> {
        (**self).retire()
    }
}
