//! Tasks of informers that panic.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod support;

use std::time::Duration;

use futures_util::stream::BoxStream;
use support::{Thing, assert_equal_to_source, key, settle};
use tokio::sync::mpsc;
use watchkeeper_core::contract::Memory;
use watchkeeper_core::{Capabilities, Error, Event, Source, Start};
use watchkeeper_informer::{Informer, InformerMetrics, Policy};
use watchkeeper_supervision::Supervisor;

const REFLECTOR: &str = "informer things";

async fn start(source: impl Source, supervisor: &Supervisor) -> Informer<Thing> {
    let metrics = InformerMetrics::default().supervised_by(supervisor);
    let informer = Informer::builder().name("things").metrics(&metrics).seed(7).start(source);
    settle().await;
    informer
}

#[tokio::test(start_paused = true)]
async fn a_reflector_that_panics_goes_on() {
    let (memory, supervisor) = (Memory::new(), Supervisor::default());
    memory.put(&key("a"), 1);
    let informer = start(memory.clone(), &supervisor).await;
    informer.synced().await.unwrap();
    supervisor.inject(REFLECTOR);
    settle().await;
    assert_eq!(supervisor.panics(REFLECTOR), 1);
    memory.put(&key("b"), 1);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_equal_to_source(&informer, &memory);
    assert!(supervisor.failing().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_handler_whose_task_panics_goes_on() {
    let (memory, supervisor) = (Memory::new(), Supervisor::default());
    let informer = start(memory.clone(), &supervisor).await;
    let (say, mut said) = mpsc::unbounded_channel();
    let handler = informer.subscribe("test").handle(move |change| {
        say.send(change.key.name().to_owned()).unwrap();
        std::future::ready(())
    });
    for name in ["a", "b"] {
        memory.put(&key(name), 1);
        assert_eq!(said.recv().await.as_deref(), Some(name));
        supervisor.inject("handler of things");
        settle().await;
    }
    assert_eq!(supervisor.panics("handler of things"), 2);
    handler.stop().await;
    assert!(said.recv().await.is_none(), "it has ended");
}

#[cfg(feature = "compressed")]
#[tokio::test(start_paused = true)]
async fn objects_of_an_informer_that_panics_while_learning_to_compress_are_held_as_they_are() {
    for is_poisoned in [false, true] {
        let (memory, supervisor) = (Memory::new(), Supervisor::default());
        for n in 0..1_000 {
            memory.put(&key(&format!("thing-{n:04}")), n);
        }
        if is_poisoned {
            supervisor.poison("things");
        }
        let metrics = InformerMetrics::default().supervised_by(&supervisor);
        let builder = Informer::<Thing>::builder().name("things").metrics(&metrics);
        let informer = builder.policy(Policy::Compressed).seed(7).start(memory.clone());
        informer.synced().await.unwrap();
        memory.put(&key("late"), 1);
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(supervisor.panics("dictionary"), u64::from(is_poisoned), "it is not tried again");
        assert_equal_to_source(&informer, &memory);
        assert!(supervisor.failing().is_empty());
    }
}

/// A source that panics whenever it is asked, until it is mended.
struct Broken(Memory, std::sync::Arc<std::sync::atomic::AtomicBool>);

impl Source for Broken {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn identity(&self) -> String {
        self.0.identity()
    }

    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    fn open(&self, start: Start) -> BoxStream<'static, Result<Event, Error>> {
        assert!(self.1.load(std::sync::atomic::Ordering::Relaxed), "broken");
        self.0.open(start)
    }
}

#[tokio::test(start_paused = true)]
async fn a_source_that_panics_again_and_again_is_named_until_it_does_not() {
    let (memory, supervisor) = (Memory::new(), Supervisor::default());
    let mended = std::sync::Arc::default();
    let informer = start(Broken(memory.clone(), std::sync::Arc::clone(&mended)), &supervisor).await;
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert!(supervisor.failing().contains(REFLECTOR), "{supervisor:?}");
    mended.store(true, std::sync::atomic::Ordering::Relaxed);
    informer.synced().await.unwrap();
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(supervisor.failing().is_empty(), "{supervisor:?}");
}
