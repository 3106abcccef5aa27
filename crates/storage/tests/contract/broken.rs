//! The suite is worth something only if it notices.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll};

use futures_util::{FutureExt, StreamExt};
use watchkeeper_storage::contract::World;
use watchkeeper_storage::{
    Answer, Change, Commit, Committed, Entry, Error, Event, Found, Memory, Options, Page, Range, Revision,
    Stats, Storage, Update, Watch, Watching,
};

use crate::{Temporary, checked};

/// Passes everything on to a storage that holds the contract.
impl Storage for Temporary {
    fn get<'a>(&'a self, key: &'a str, at: Option<Revision>) -> Answer<'a, Found> {
        self.storage.get(key, at)
    }
    fn range(&self, range: Range) -> Answer<'_, Page> {
        self.storage.range(range)
    }
    fn commit(&self, commit: Commit) -> Answer<'_, Committed> {
        self.storage.commit(commit)
    }
    fn watch<'a>(&'a self, prefix: &'a str, after: Revision) -> Answer<'a, Watch> {
        self.storage.watch(prefix, after)
    }
    fn compact(&self, to: Revision) -> Answer<'_, ()> {
        self.storage.compact(to)
    }
    fn stats(&self) -> Stats {
        self.storage.stats()
    }
}

#[derive(Clone, Copy, Debug)]
enum Fault {
    SkipsARevision,
    IgnoresPreconditions,
    ForgetsWhatWasInTheWay,
    ReadsThePresent,
    PagesFromThePresent,
    RepeatsTheLastKey,
    CompactsNothing,
    RepeatsEvents,
    DropsEvents,
    IgnoresThePrefix,
    StartsOneTooLate,
    CopiesEvents,
    ForgetsThePrevious,
    NeverLags,
    ProgressTooEarly,
}

/// A storage with one thing wrong.
struct Broken {
    memory: Memory,
    fault: Fault,
    commits: AtomicU64,
}

struct BrokenWorld(Fault);

impl World for BrokenWorld {
    async fn open(&self) -> Arc<dyn Storage> {
        Arc::new(Broken {
            memory: Memory::new(Options::default()),
            fault: self.0,
            commits: AtomicU64::new(0),
        })
    }
}

impl Storage for Broken {
    fn get<'a>(&'a self, key: &'a str, at: Option<Revision>) -> Answer<'a, Found> {
        let fault = self.fault;
        let answer = self.memory.get(key, at);
        answer
            .then(async move |found| match (fault, found) {
                (Fault::ReadsThePresent, Ok(found)) => {
                    Ok(Found { entry: self.memory.get(key, None).await?.entry, ..found })
                }
                (_, found) => found,
            })
            .boxed()
    }

    fn range(&self, range: Range) -> Answer<'_, Page> {
        let fault = self.fault;
        async move {
            let mut page = self.memory.range(range.clone()).await?;
            match fault {
                Fault::PagesFromThePresent => {
                    let present = range.at(self.memory.stats().revision);
                    page.entries = self.memory.range(present).await?.entries;
                }
                Fault::RepeatsTheLastKey if page.more => {
                    page.entries.extend(page.entries.last().cloned());
                }
                _ => {}
            }
            Ok(page)
        }
        .boxed()
    }

    fn commit(&self, commit: Commit) -> Answer<'_, Committed> {
        async move {
            let number = self.commits.fetch_add(1, Relaxed);
            if let Fault::SkipsARevision = self.fault
                && number == 3
            {
                self.memory.commit(Commit::new().put("/hidden", "1")).await?;
                self.memory.commit(Commit::new().delete("/hidden")).await?;
            }
            match (self.fault, self.memory.commit(commit.clone()).await) {
                (Fault::IgnoresPreconditions, Err(Error::Conflict { revision, .. })) => {
                    Ok(Committed { revision, previous: vec![] })
                }
                (Fault::ForgetsWhatWasInTheWay, Err(Error::Conflict { key, revision, .. })) => {
                    Err(Error::Conflict { key, current: None, revision })
                }
                (_, answer) => answer,
            }
        }
        .boxed()
    }

    fn watch<'a>(&'a self, prefix: &'a str, after: Revision) -> Answer<'a, Watch> {
        let fault = self.fault;
        async move {
            let watch = match fault {
                Fault::IgnoresThePrefix => self.memory.watch("", after).await?,
                Fault::StartsOneTooLate if after < self.memory.stats().revision => {
                    self.memory.watch(prefix, after + 1).await?
                }
                _ => self.memory.watch(prefix, after).await?,
            };
            Ok(Watch::new(BrokenWatch { watch, fault, told: 0, again: None, progress: false }))
        }
        .boxed()
    }

    fn compact(&self, to: Revision) -> Answer<'_, ()> {
        match self.fault {
            Fault::CompactsNothing => std::future::ready(Ok(())).boxed(),
            _ => self.memory.compact(to),
        }
    }

    fn stats(&self) -> Stats {
        self.memory.stats()
    }
}

struct BrokenWatch {
    watch: Watch,
    fault: Fault,
    told: u64,
    again: Option<Arc<Event>>,
    progress: bool,
}

impl Watching for BrokenWatch {
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Update, Error>>> {
        if let Some(event) = self.again.take() {
            return Poll::Ready(Some(Ok(Update::Event(event))));
        }
        if std::mem::take(&mut self.progress) {
            return Poll::Ready(Some(Ok(Update::Progress(self.told))));
        }
        let polled = self.watch.poll_next_unpin(context);
        let Poll::Ready(Some(Ok(Update::Event(event)))) = &polled else {
            return match (self.fault, polled) {
                (Fault::NeverLags, Poll::Ready(Some(Err(Error::Lagged { .. })))) => Poll::Ready(None),
                (_, polled) => polled,
            };
        };
        self.told += 1;
        let event = match self.fault {
            Fault::RepeatsEvents if self.told == 3 => {
                self.again = Some(Arc::clone(event));
                Arc::clone(event)
            }
            Fault::DropsEvents if self.told == 3 => return self.poll_next(context),
            Fault::CopiesEvents => Arc::new(Event { revision: event.revision, change: copy(event) }),
            Fault::ForgetsThePrevious => match event.entry() {
                Some(entry) => {
                    Arc::new(Event { revision: event.revision, change: Change::Created(Arc::clone(entry)) })
                }
                None => Arc::clone(event),
            },
            _ => Arc::clone(event),
        };
        Poll::Ready(Some(Ok(Update::Event(event))))
    }

    fn request_progress(&mut self) {
        match self.fault {
            Fault::ProgressTooEarly => self.progress = true,
            _ => self.watch.request_progress(),
        }
    }
}

fn copy(event: &Event) -> Change {
    let shared = |entry: &Arc<Entry>| Arc::clone(entry);
    match &event.change {
        Change::Created(entry) => Change::Created(shared(entry)),
        Change::Deleted(entry) => Change::Deleted(shared(entry)),
        Change::Updated { previous, entry } => {
            Change::Updated { previous: shared(previous), entry: shared(entry) }
        }
    }
}

#[tokio::test]
async fn the_suite_notices_what_is_wrong() {
    for fault in [
        Fault::SkipsARevision,
        Fault::IgnoresPreconditions,
        Fault::ForgetsWhatWasInTheWay,
        Fault::ReadsThePresent,
        Fault::PagesFromThePresent,
        Fault::RepeatsTheLastKey,
        Fault::CompactsNothing,
        Fault::RepeatsEvents,
        Fault::DropsEvents,
        Fault::IgnoresThePrefix,
        Fault::StartsOneTooLate,
        Fault::CopiesEvents,
        Fault::ForgetsThePrevious,
        Fault::NeverLags,
        Fault::ProgressTooEarly,
    ] {
        let violation = checked(&BrokenWorld(fault)).await.expect_err(&format!("{fault:?} went unnoticed"));
        println!("{fault:?}: {violation}");
    }
}
