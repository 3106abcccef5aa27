//! All backends hold the contract, and the suite notices storages that do not.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::sync::Arc;
use std::time::Duration;

use watchkeeper_storage::contract::{Violation, World, check};
use watchkeeper_storage::{Durability, Embedded, Memory, Options, Storage};

struct InMemory;

impl World for InMemory {
    async fn open(&self) -> Arc<dyn Storage> {
        Arc::new(Memory::new(Options::default()))
    }
}

struct InDirectory {
    durability: Durability,
}

/// Removes its directory when it is dropped.
struct Temporary {
    storage: Embedded,
    _directory: tempfile::TempDir,
}

impl World for InDirectory {
    async fn open(&self) -> Arc<dyn Storage> {
        let directory = tempfile::tempdir().unwrap();
        let options = Options { durability: self.durability, ..Options::default() };
        Arc::new(Temporary {
            storage: Embedded::open(directory.path(), options).unwrap(),
            _directory: directory,
        })
    }
}

async fn checked(world: &impl World) -> Result<usize, Violation> {
    let checked = tokio::time::timeout(Duration::from_secs(60), check(world)).await;
    checked.expect("the suite waits for something that never comes").map(|kept| kept.len())
}

#[tokio::test]
async fn a_storage_in_memory_holds_the_contract() {
    assert_eq!(checked(&InMemory).await, Ok(16));
}

#[tokio::test]
async fn a_storage_in_a_directory_holds_the_contract() {
    let world = InDirectory { durability: Durability::Relaxed };
    assert_eq!(checked(&world).await, Ok(16));
}

#[tokio::test]
async fn a_storage_that_syncs_holds_the_contract() {
    let world = InDirectory { durability: Durability::Sync };
    assert_eq!(checked(&world).await, Ok(16));
}

mod broken;

/// One etcd for the whole suite, with a prefix for each promise. A server leads, and a stranger writes elsewhere all the time.
#[cfg(feature = "etcd")]
struct InCluster {
    server: watchkeeper_etcd::testing::Server,
    opened: std::sync::atomic::AtomicU64,
}

#[cfg(feature = "etcd")]
impl World for InCluster {
    async fn open(&self) -> Arc<dyn Storage> {
        let number = self.opened.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let options = watchkeeper_storage::EtcdOptions {
            prefix: format!("/world-{number}"),
            compaction_interval: None,
            timeout: Duration::from_secs(60),
            ..watchkeeper_storage::EtcdOptions::default()
        };
        let client = self.server.builder().build().unwrap();
        Arc::new(watchkeeper_storage::Etcd::open(client, options, Options::default()).await.unwrap())
    }
}

#[cfg(feature = "etcd")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storage_in_etcd_holds_the_contract() {
    let Some(server) = watchkeeper_etcd::testing::Server::start().await.unwrap() else { return };
    let stranger = server.builder().build().unwrap();
    let writing = tokio::spawn(async move {
        loop {
            stranger.put(&watchkeeper_etcd::Put::new("/elsewhere", "1")).await.unwrap();
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    });
    let world = InCluster { server, opened: std::sync::atomic::AtomicU64::new(0) };
    let checked = tokio::time::timeout(Duration::from_secs(300), check(&world)).await;
    let kept = checked.expect("the suite waits for something that never comes").map(|kept| kept.len());
    assert_eq!(kept, Ok(16));
    assert!(!writing.is_finished(), "the stranger went on");
    writing.abort();
}
