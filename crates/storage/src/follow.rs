use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, Stream, StreamExt};
use tokio::time::Sleep;

use crate::{Error, Event, Page, Range, Revision, Storage, Update, Watch};

/// How long to wait before following again what could not be followed.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Follows what is stored below a prefix, for as long as there is a storage: lists it, watches it from there on, and lists it again
/// whenever changes were missed. `what` names it in the log.
///
/// ```
/// use futures_util::StreamExt;
/// use watchkeeper_storage::{Commit, Followed, Memory, Options, Storage, follow};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), watchkeeper_storage::Error> {
/// let storage = Memory::new(Options::default());
/// storage.commit(Commit::new().put("/pods/a", "1")).await?;
/// let mut pods = follow(&storage, "pods", "/pods/");
/// let Some(Followed::Snapshot(page)) = pods.next().await else { panic!() };
/// assert_eq!(page.entries.len(), 1);
///
/// storage.commit(Commit::new().delete("/pods/a")).await?;
/// let Some(Followed::Event(event)) = pods.next().await else { panic!() };
/// assert_eq!(event.entry(), None);
/// # Ok(())
/// # }
/// ```
pub fn follow<'a>(storage: &'a dyn Storage, what: &'a str, prefix: &'a str) -> Follow<'a> {
    let state = State::Begin { known: None };
    Follow { storage, what, prefix, also: Vec::new(), wants_progress: false, state }
}

/// Entries and their changes: a stream, made by [`follow`].
///
/// # Guarantees
///
/// - The first item is a snapshot, unless [`after`](Self::after) says what is known already. What follows a snapshot is every change
///   after its revision, as [`Storage`] promises it of a watch.
/// - A further snapshot replaces all that was told before. It comes when changes were missed: at once if the watch fell behind, after a
///   second if the storage failed, which is logged.
/// - The stream fails never, and ends when the storage is closed.
///
/// # Cancellation
///
/// A stream that is not polled for a while misses nothing; at worst, it falls behind. Dropping it ends its watches.
///
/// Waiting after a failure needs a tokio runtime with a timer.
pub struct Follow<'a> {
    storage: &'a dyn Storage,
    what: &'a str,
    prefix: &'a str,
    also: Vec<&'a str>,
    wants_progress: bool,
    state: State<'a>,
}

/// An item of a [`Follow`].
#[derive(Clone, Debug)]
pub enum Followed {
    /// All entries below the prefix at one revision.
    Snapshot(Page),
    /// A change after that.
    Event(Arc<Event>),
    /// All changes up to this revision have been told; the answer to [`Follow::request_progress`].
    Progress(Revision),
}

enum State<'a> {
    /// To be listed, unless the entries at this revision are known.
    Begin {
        known: Option<Revision>,
    },
    Opening(BoxFuture<'a, Result<Opened, Error>>),
    Watching(Watches),
    /// Something failed.
    Waiting(Pin<Box<Sleep>>),
    Closed,
}

struct Opened {
    snapshot: Option<Page>,
    watches: Watches,
}

/// The watch of what is listed, and those of what is not.
struct Watches {
    main: Watch,
    also: Vec<Watch>,
    /// Which of them is looked at first, so that each gets its turn.
    turn: usize,
}

impl<'a> Follow<'a> {
    /// Begins after a revision whose entries are known, without a snapshot; with `None`, by a snapshot.
    #[must_use]
    pub fn after(mut self, known: Option<Revision>) -> Self {
        self.state = State::Begin { known };
        self
    }

    /// Watches other prefixes, too, whose entries are not in snapshots. Changes below different prefixes may come in another order
    /// than they were made in.
    #[must_use]
    pub fn also(mut self, prefixes: impl IntoIterator<Item = &'a str>) -> Self {
        self.also.extend(prefixes);
        self
    }

    /// Asks for one [`Followed::Progress`], which comes as soon as everything has been told that had happened by then. After a snapshot
    /// that comes meanwhile, it may still come.
    ///
    /// With [`also`](Self::also), it says nothing about the other prefixes.
    pub fn request_progress(&mut self) {
        match &mut self.state {
            State::Watching(watches) => watches.main.request_progress(),
            _ => self.wants_progress = true,
        }
    }

    /// Begins again with a snapshot.
    pub fn again(&mut self) {
        self.state = State::Begin { known: None };
    }

    /// Begins again as after a failure of the watch: for readers who found out by themselves that the storage fails.
    pub fn failed(&mut self, error: &Error) {
        self.state = match error {
            Error::Lagged { .. } | Error::Compacted { .. } => State::Begin { known: None },
            Error::Closed => State::Closed,
            error => {
                tracing::warn!(%error, "following {} failed; it is retried", self.what);
                State::Waiting(Box::pin(tokio::time::sleep(RETRY_DELAY)))
            }
        };
    }

    /// Lists, unless what there is is known, and watches from there on.
    fn open(&self, known: Option<Revision>) -> BoxFuture<'a, Result<Opened, Error>> {
        let (storage, prefix, also) = (self.storage, self.prefix, self.also.clone());
        Box::pin(async move {
            let (snapshot, revision) = match known {
                Some(revision) => (None, revision),
                None => {
                    let page = storage.range(Range::prefix(prefix)).await?;
                    let revision = page.revision;
                    (Some(page), revision)
                }
            };
            let main = storage.watch(prefix, revision).await?;
            let mut watches = Watches { main, also: Vec::new(), turn: 0 };
            for prefix in also {
                watches.also.push(storage.watch(prefix, revision).await?);
            }
            Ok(Opened { snapshot, watches })
        })
    }

    fn opened(&mut self, Opened { snapshot, mut watches }: Opened) -> Option<Followed> {
        if std::mem::take(&mut self.wants_progress) {
            watches.main.request_progress();
        }
        self.state = State::Watching(watches);
        snapshot.map(Followed::Snapshot)
    }
}

impl Stream for Follow<'_> {
    type Item = Followed;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Followed>> {
        loop {
            match &mut self.state {
                State::Begin { known } => {
                    let known = *known;
                    self.state = State::Opening(self.open(known));
                }
                State::Opening(opening) => match std::task::ready!(opening.poll_unpin(context)) {
                    Ok(opened) => {
                        if let Some(snapshot) = self.opened(opened) {
                            return Poll::Ready(Some(snapshot));
                        }
                    }
                    Err(error) => self.failed(&error),
                },
                State::Watching(watches) => match std::task::ready!(watches.poll_next(context)) {
                    Some(Ok(Update::Event(event))) => return Poll::Ready(Some(Followed::Event(event))),
                    Some(Ok(Update::Progress(revision))) => {
                        return Poll::Ready(Some(Followed::Progress(revision)));
                    }
                    Some(Err(error)) => self.failed(&error),
                    None => self.failed(&Error::Unavailable { reason: "a watch ended".into() }),
                },
                State::Waiting(wait) => {
                    std::task::ready!(wait.poll_unpin(context));
                    self.again();
                }
                State::Closed => return Poll::Ready(None),
            }
        }
    }
}

impl Watches {
    /// The next update of any of them.
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Update, Error>>> {
        let count = self.also.len() + 1;
        for at in (self.turn..count).chain(0..self.turn) {
            let watch = at.checked_sub(1).map_or(&mut self.main, |at| &mut self.also[at]);
            if let Poll::Ready(update) = watch.poll_next_unpin(context) {
                self.turn = (at + 1) % count;
                return Poll::Ready(update);
            }
        }
        Poll::Pending
    }
}

impl fmt::Debug for Follow<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Follow")
            .field("prefix", &self.prefix)
            .field("also", &self.also)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use parking_lot::Mutex;
    use tokio::time::Instant;

    use super::*;
    use crate::{Answer, Commit, Committed, Found, Limits, Memory, Options, Stats, Window};

    /// A storage whose lists fail as it is told.
    struct Failing {
        memory: Memory,
        errors: Mutex<VecDeque<Error>>,
    }

    impl Failing {
        fn new(errors: impl IntoIterator<Item = Error>) -> Self {
            let window = Window { revisions: 2, ..Window::default() };
            // What does not fit into the buffer of a watch is read from the window.
            let limits = Limits { watch_buffer: 1, ..Limits::default() };
            let memory = Memory::new(Options { window, limits, ..Options::default() });
            Self { memory, errors: Mutex::new(errors.into_iter().collect()) }
        }

        async fn put(&self, key: &str, value: &'static str) -> Revision {
            self.memory.commit(Commit::new().put(key, value)).await.unwrap().revision
        }
    }

    impl Storage for Failing {
        fn get<'a>(&'a self, key: &'a str, at: Option<Revision>) -> Answer<'a, Found> {
            self.memory.get(key, at)
        }

        fn range(&self, range: Range) -> Answer<'_, Page> {
            match self.errors.lock().pop_front() {
                Some(error) => Box::pin(std::future::ready(Err(error))),
                None => self.memory.range(range),
            }
        }

        fn commit(&self, commit: Commit) -> Answer<'_, Committed> {
            self.memory.commit(commit)
        }

        fn watch<'a>(&'a self, prefix: &'a str, after: Revision) -> Answer<'a, Watch> {
            self.memory.watch(prefix, after)
        }

        fn compact(&self, to: Revision) -> Answer<'_, ()> {
            self.memory.compact(to)
        }

        fn stats(&self) -> Stats {
            self.memory.stats()
        }
    }

    /// What is told next, in short.
    async fn told(follow: &mut Follow<'_>) -> String {
        let text = |entry: &crate::Entry| format!("{}={}", entry.key, String::from_utf8_lossy(&entry.value));
        match follow.next().await {
            Some(Followed::Snapshot(page)) => {
                let all: Vec<String> = page.entries.iter().map(|entry| text(entry)).collect();
                format!("all: {}", all.join(" "))
            }
            Some(Followed::Event(event)) => {
                event.entry().map_or_else(|| format!("no {}", event.key()), |entry| text(entry))
            }
            Some(Followed::Progress(revision)) => format!("at {revision}"),
            None => "closed".into(),
        }
    }

    #[tokio::test]
    async fn a_watch_that_fell_behind_is_told_everything_again_at_once() {
        let storage = Failing::new([]);
        storage.put("/a/1", "x").await;
        let mut follow = follow(&storage, "everything", "/a/");
        assert_eq!(told(&mut follow).await, "all: /a/1=x");
        storage.put("/b/1", "no matter").await;
        storage.put("/a/2", "y").await;
        assert_eq!(told(&mut follow).await, "/a/2=y");
        for value in ["1", "2", "3", "4"] {
            storage.put("/a/2", value).await;
        }
        storage.memory.compact(6).await.unwrap();
        let mut last = told(&mut follow).await;
        if !last.starts_with("all: ") {
            assert_eq!(last, "/a/2=1", "what was in the buffer");
            last = told(&mut follow).await;
        }
        assert_eq!(last, "all: /a/1=x /a/2=4");
        storage.put("/a/1", "z").await;
        assert_eq!(told(&mut follow).await, "/a/1=z");
    }

    #[tokio::test(start_paused = true)]
    async fn a_storage_that_fails_is_listed_again_a_second_later_until_it_is_closed() {
        let begin = Instant::now();
        let fails = || Error::Unavailable { reason: "on purpose".into() };
        let storage = Failing::new([fails(), fails()]);
        let mut follow = follow(&storage, "nothing", "/a/");
        assert_eq!(told(&mut follow).await, "all: ");
        assert_eq!(begin.elapsed(), RETRY_DELAY * 2);
        storage.errors.lock().push_back(Error::Closed);
        follow.failed(&fails());
        assert_eq!(told(&mut follow).await, "closed");
        assert_eq!(begin.elapsed(), RETRY_DELAY * 3);
        assert_eq!(told(&mut follow).await, "closed", "for good");
    }

    #[tokio::test]
    async fn what_is_known_is_not_told_unless_it_is_too_old() {
        let storage = Failing::new([]);
        let known = storage.put("/a/1", "x").await;
        storage.put("/a/2", "y").await;
        let mut recent = follow(&storage, "everything", "/a/").after(Some(known));
        assert_eq!(told(&mut recent).await, "/a/2=y");
        for value in ["1", "2", "3", "4"] {
            storage.put("/a/2", value).await;
        }
        let mut old = follow(&storage, "everything", "/a/").after(Some(known));
        assert_eq!(told(&mut old).await, "all: /a/1=x /a/2=4");
    }

    #[tokio::test]
    async fn other_prefixes_are_told_of_without_being_listed() {
        let storage = Failing::new([]);
        storage.put("/a/1", "x").await;
        storage.put("/b/1", "x").await;
        let mut follow = follow(&storage, "everything", "/a/").also(["/b/"]);
        follow.request_progress();
        assert_eq!(told(&mut follow).await, "all: /a/1=x");
        assert_eq!(told(&mut follow).await, "at 2");
        storage.put("/b/1", "y").await;
        assert_eq!(told(&mut follow).await, "/b/1=y");
        storage.put("/a/1", "y").await;
        assert_eq!(told(&mut follow).await, "/a/1=y");
        follow.again();
        assert_eq!(told(&mut follow).await, "all: /a/1=y");
    }
}
