//! The reference source holds the contract, and the suite notices sources that do not.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::{StreamExt, stream};
use watchkeeper_core::contract::{Memory, World, check};
use watchkeeper_core::{
    Capabilities, Error, Event, Feed, Follow, Freshness, ObjectStatus, Rejection, Source, Start,
    StatusWritten, Version,
};

#[tokio::test]
async fn the_reference_source_holds_the_contract_however_it_follows() {
    for (follow, promises) in
        [(Follow::Log, 8), (Follow::Hints, 6), (Follow::Poll(Duration::from_secs(1)), 6)]
    {
        let kept = check(&Memory::following(follow)).await.unwrap();
        assert_eq!(kept.len(), promises, "{follow:?}: {kept:?}");
    }
}

/// A source with one thing wrong.
#[derive(Clone)]
struct Broken {
    memory: Memory,
    fault: Fault,
    /// Whether it cannot read on.
    cut: Arc<AtomicBool>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    DropsAnItem,
    RepeatsAnItem,
    ForgetsTheLog,
    IgnoresThePosition,
    GoesOnAfterAnError,
    LosesWritesDuringASnapshot,
    CompletesWhatItCouldNotRead,
    EndsAtABadObject,
    HidesABadObject,
    ForgetsABadObject,
    TellsOfStatuses,
    WritesStatusesForOtherStates,
}

impl Broken {
    fn new(fault: Fault) -> Self {
        Self { memory: Memory::new(), fault, cut: Arc::default() }
    }
}

impl Source for Broken {
    fn name(&self) -> &str {
        "broken"
    }

    fn capabilities(&self) -> Capabilities {
        self.memory.capabilities().status_write_back(true)
    }

    fn write_status(&self, status: ObjectStatus) -> StatusWritten {
        let there = self.memory.documents().into_iter().find(|document| document.header.key == status.key);
        let is_of_now = there.is_some_and(|document| document.header.version == status.version);
        let written = match self.fault {
            Fault::WritesStatusesForOtherStates => Ok(()),
            _ if is_of_now => Ok(()),
            _ => Err(Error::Expired("it has changed".into())),
        };
        if self.fault == Fault::TellsOfStatuses && written.is_ok() {
            self.memory.put(&status.key, 1);
        }
        Box::pin(std::future::ready(written))
    }

    fn open(&self, start: Start) -> Feed {
        let resumed = matches!(start, Start::Resume(_));
        let fault = self.fault;
        let start = match fault {
            Fault::IgnoresThePosition if resumed => Start::Snapshot(Freshness::Any),
            _ => start,
        };
        let feed = self.memory.open(start);
        match fault {
            Fault::DropsAnItem => feed
                .filter(|event| {
                    let dropped =
                        matches!(event, Ok(Event::Item(document)) if document.header.key.name() == "b");
                    std::future::ready(!dropped)
                })
                .boxed(),
            Fault::RepeatsAnItem => feed
                .flat_map(|event| {
                    let times = if matches!(event, Ok(Event::Item(_))) { 2 } else { 1 };
                    stream::iter(vec![event; times])
                })
                .boxed(),
            Fault::ForgetsTheLog => feed
                .take_while(|event| {
                    std::future::ready(!matches!(event, Ok(Event::Put { .. } | Event::Delete { .. })))
                })
                .boxed(),
            Fault::GoesOnAfterAnError => feed
                .flat_map(|event| {
                    let times = if event.is_err() { 2 } else { 1 };
                    stream::iter(vec![event; times])
                })
                .boxed(),
            Fault::LosesWritesDuringASnapshot => {
                let (memory, mut reached) = (self.memory.clone(), None);
                feed.filter(move |event| {
                    let lost = match event {
                        Ok(Event::Complete(_)) => {
                            reached = Some(memory.revision());
                            false
                        }
                        Ok(Event::Put { position, .. } | Event::Delete { position, .. }) => {
                            let position = position.as_ref().and_then(Version::number);
                            !resumed && position <= reached
                        }
                        _ => false,
                    };
                    std::future::ready(!lost)
                })
                .boxed()
            }
            Fault::CompletesWhatItCouldNotRead | Fault::None => {
                let cut = Arc::clone(&self.cut);
                let completes = fault == Fault::CompletesWhatItCouldNotRead;
                let feed = feed.filter_map(move |event| {
                    let cut = cut.load(Ordering::Relaxed);
                    std::future::ready(match event {
                        Ok(Event::Item(_)) if cut => None,
                        Ok(Event::Complete(_)) if cut && !completes => {
                            Some(Err(Error::Unavailable { answered: true, reason: "cut".into() }))
                        }
                        event => Some(event),
                    })
                });
                // It ends after its first error.
                stream::unfold(Some(feed.boxed()), |feed| async {
                    let mut feed = feed?;
                    let event = feed.next().await?;
                    let rest = event.is_ok().then_some(feed);
                    Some((event, rest))
                })
                .boxed()
            }
            Fault::EndsAtABadObject => feed
                .map(|event| match event {
                    Ok(Event::Rejected(rejection)) => Err(Error::Fatal(rejection.to_string())),
                    event => event,
                })
                .boxed(),
            Fault::HidesABadObject => {
                feed.filter(|event| std::future::ready(!matches!(event, Ok(Event::Rejected(_))))).boxed()
            }
            Fault::ForgetsABadObject => feed
                .map(|event| match event {
                    // In the log, it is told as deleted.
                    Ok(Event::Rejected(Rejection { key: Some(key), position: Some(position), .. })) => {
                        Ok(Event::Gone { key, position: Some(position) })
                    }
                    event => event,
                })
                .boxed(),
            Fault::IgnoresThePosition | Fault::TellsOfStatuses | Fault::WritesStatusesForOtherStates => feed,
        }
    }
}

impl World for Broken {
    fn source(&self) -> impl Source {
        self.clone()
    }

    async fn put(&self, name: &str, value: u64) {
        World::put(&self.memory, name, value).await;
    }

    async fn delete(&self, name: &str) {
        World::delete(&self.memory, name).await;
    }

    async fn expire(&self) -> bool {
        self.memory.expire().await
    }

    async fn corrupt(&self, name: &str) -> bool {
        World::corrupt(&self.memory, name).await
    }

    async fn cut(&self) -> bool {
        let cuts = matches!(self.fault, Fault::CompletesWhatItCouldNotRead | Fault::None);
        self.cut.store(cuts, Ordering::Relaxed);
        cuts
    }

    async fn mend(&self) {
        self.cut.store(false, Ordering::Relaxed);
    }

    fn has_statuses(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn a_source_that_fails_and_writes_statuses_holds_the_contract() {
    let kept = check(&Broken::new(Fault::None)).await.unwrap();
    assert_eq!(kept.len(), 10, "{kept:?}");
}

#[tokio::test]
async fn the_suite_notices_what_is_broken() {
    for (fault, promise) in [
        (Fault::DropsAnItem, "a snapshot holds every object once"),
        (Fault::RepeatsAnItem, "a snapshot holds every object once"),
        (Fault::ForgetsTheLog, "nothing falls between a snapshot and what follows it"),
        (Fault::IgnoresThePosition, "a resumed feed delivers every change since, in order, once"),
        (Fault::GoesOnAfterAnError, "a position that is gone is refused as expired, and the feed is over"),
        (
            Fault::LosesWritesDuringASnapshot,
            "what is written while a snapshot is read is in it or follows it",
        ),
        (
            Fault::CompletesWhatItCouldNotRead,
            "a snapshot that fails in the middle does not say that it is complete",
        ),
        (Fault::EndsAtABadObject, "one bad object is rejected, keeps its last state and ends nothing"),
        (Fault::HidesABadObject, "one bad object is rejected, keeps its last state and ends nothing"),
        (Fault::ForgetsABadObject, "one bad object is rejected, keeps its last state and ends nothing"),
        (Fault::TellsOfStatuses, "a status is written for the state that it is about, and wakes nobody"),
        (
            Fault::WritesStatusesForOtherStates,
            "a status is written for the state that it is about, and wakes nobody",
        ),
    ] {
        let violation = check(&Broken::new(fault)).await.unwrap_err();
        assert_eq!(violation.promise, promise, "{fault:?}");
    }
}
