//! The contract of a [`Storage`] as a suite that any backend can be put through.
//!
//! Implement [`World`] for a backend and await [`check`] in a test, under a time limit: a backend that never says what it
//! should keeps the suite waiting. The suite needs no particular runtime.

mod commits;
mod reads;
mod watches;

use std::fmt::Debug;
use std::future::Future;
use std::sync::Arc;

use futures_util::StreamExt;

use crate::{Commit, Error, Event, Range, Revision, Storage, Update, Watch};

/// A backend, in the hands of the suite.
pub trait World {
    /// An empty storage whose keys nobody else writes, and that forgets nothing of its own accord while the suite runs. Of one that
    /// is [shared](Storage::is_shared), others may use up revisions meanwhile.
    fn open(&self) -> impl Future<Output = Arc<dyn Storage>>;
}

/// A promise that was not kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{promise}: {detail}")]
pub struct Violation {
    /// The promise.
    pub promise: &'static str,
    /// The violation that was observed.
    pub detail: String,
}

/// Puts a storage through the contract; gives the names of the promises that were checked.
pub async fn check<W: World>(world: &W) -> Result<Vec<&'static str>, Violation> {
    let mut kept = Vec::new();
    macro_rules! check {
        ($($promise:expr),* $(,)?) => {$({
            let storage = world.open().await;
            kept.push($promise(&*storage).await?);
        })*};
    }
    check!(
        commits::every_change_takes_a_revision,
        commits::a_commit_is_a_whole,
        commits::preconditions_show_what_is_in_the_way,
        commits::senseless_commits_are_refused,
        commits::concurrent_commits_do_not_overwrite_each_other,
        commits::a_dropped_commit_happens_as_a_whole_or_not_at_all,
        reads::a_read_at_a_revision_is_that_snapshot,
        reads::pages_of_a_list_fit_together,
        reads::a_range_is_what_lies_between_its_ends,
        reads::forgotten_and_future_revisions_are_refused,
        watches::a_watch_tells_everything_once_in_order,
        watches::a_watch_follows_what_happens,
        watches::an_event_has_both_sides_and_is_shared,
        watches::compaction_does_not_disturb_who_keeps_up,
        watches::a_slow_watcher_is_told_so,
        watches::progress_comes_after_everything_before_it,
    );
    Ok(kept)
}

type Kept = Result<&'static str, Violation>;

/// A promise under examination.
#[derive(Clone, Copy)]
struct Promise(&'static str);

impl Promise {
    fn violated<T>(self, detail: impl Into<String>) -> Result<T, Violation> {
        Err(Violation { promise: self.0, detail: detail.into() })
    }

    fn equal<T: PartialEq + Debug>(self, what: &str, seen: T, expected: T) -> Result<(), Violation> {
        match seen == expected {
            true => Ok(()),
            false => self.violated(format!("{what}: expected {expected:?}, saw {seen:?}")),
        }
    }

    fn works<T>(self, result: Result<T, Error>) -> Result<T, Violation> {
        result.or_else(|error| self.violated(format!("unexpected: {error}")))
    }

    /// Checks the revision of a commit that comes after another: the next one, or a later one if others share the storage.
    fn follows(
        self,
        storage: &dyn Storage,
        what: &str,
        seen: Revision,
        last: Revision,
    ) -> Result<(), Violation> {
        match storage.is_shared() {
            true if seen > last => Ok(()),
            true => self.violated(format!("{what}: {seen} is not later than {last}")),
            false => self.equal(what, seen, last + 1),
        }
    }

    /// Checks the revision of what was seen after a commit: that of the commit, or a later one if others share the storage.
    fn reaches(
        self,
        storage: &dyn Storage,
        what: &str,
        seen: Revision,
        last: Revision,
    ) -> Result<(), Violation> {
        match storage.is_shared() {
            true if seen >= last => Ok(()),
            true => self.violated(format!("{what}: {seen} is before {last}")),
            false => self.equal(what, seen, last),
        }
    }

    /// A revision that is still to come, also if others go on writing.
    fn future(storage: &dyn Storage, last: Revision) -> Revision {
        last + if storage.is_shared() { 1_000_000 } else { 1 }
    }

    /// Where a new storage is.
    async fn base(self, storage: &dyn Storage) -> Result<Revision, Violation> {
        Ok(self.works(storage.get("/", None).await)?.revision)
    }

    async fn commit(self, storage: &dyn Storage, commit: Commit) -> Result<Revision, Violation> {
        Ok(self.works(storage.commit(commit).await)?.revision)
    }

    /// All keys that begin with `prefix`, with their values, now or at a revision.
    async fn list(
        self,
        storage: &dyn Storage,
        prefix: &str,
        at: Option<Revision>,
    ) -> Result<Vec<(String, Vec<u8>)>, Violation> {
        let mut range = Range::prefix(prefix);
        if let Some(at) = at {
            range = range.at(at);
        }
        let page = self.works(storage.range(range).await)?;
        let pairs = page.entries.iter().map(|entry| (entry.key.to_string(), entry.value.to_vec()));
        Ok(pairs.collect())
    }

    /// What a watch says up to its progress, which is asked for now.
    async fn told(self, watch: &mut Watch) -> Result<(Vec<Arc<Event>>, Revision), Violation> {
        watch.request_progress();
        let mut events = Vec::new();
        loop {
            match watch.next().await {
                Some(Ok(Update::Event(event))) => events.push(event),
                Some(Ok(Update::Progress(revision))) => return Ok((events, revision)),
                other => return self.violated(format!("the watch ended with {other:?}")),
            }
        }
    }
}
