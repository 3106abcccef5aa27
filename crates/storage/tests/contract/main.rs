//! Both backends hold the contract, and the suite notices storages that do not.

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
