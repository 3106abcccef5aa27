//! The reference source holds the contract, and the suite notices sources that do not.

use std::time::Duration;

use futures_util::StreamExt;
use watchkeeper_core::contract::{Memory, World, check};
use watchkeeper_core::{Capabilities, Event, Feed, Follow, Freshness, Source, Start};

#[tokio::test]
async fn the_reference_source_holds_the_contract_however_it_follows() {
    for (follow, promises) in
        [(Follow::Log, 6), (Follow::Hints, 4), (Follow::Poll(Duration::from_secs(1)), 4)]
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
}

#[derive(Clone, Copy, Debug)]
enum Fault {
    DropsAnItem,
    RepeatsAnItem,
    ForgetsTheLog,
    IgnoresThePosition,
    GoesOnAfterAnError,
}

impl Source for Broken {
    fn name(&self) -> &str {
        "broken"
    }

    fn capabilities(&self) -> Capabilities {
        self.memory.capabilities()
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
                    futures_util::stream::iter(vec![event; times])
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
                    futures_util::stream::iter(vec![event; times])
                })
                .boxed(),
            Fault::IgnoresThePosition => feed,
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
}

#[tokio::test]
async fn the_suite_notices_what_is_broken() {
    for (fault, promise) in [
        (Fault::DropsAnItem, "a snapshot holds every object once"),
        (Fault::RepeatsAnItem, "a snapshot holds every object once"),
        (Fault::ForgetsTheLog, "nothing falls between a snapshot and what follows it"),
        (Fault::IgnoresThePosition, "a resumed feed delivers every change since, in order, once"),
        (Fault::GoesOnAfterAnError, "a position that is gone is refused as expired, and the feed is over"),
    ] {
        let violation = check(&Broken { memory: Memory::new(), fault }).await.unwrap_err();
        assert_eq!(violation.promise, promise, "{fault:?}");
    }
}
