//! Everything that a storage holds is taken from one place to another.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;

use futures_executor::block_on;
use watchkeeper_storage::{Commit, Durability, Embedded, Error, Limits, Options, Range, Snapshot, Storage};

/// Small files, so that they are replaced all the time.
fn options() -> Options {
    let limits = Limits { segment_bytes: 4_000, log_bytes: 20_000, ..Limits::default() };
    Options { limits, ..Options::default() }
}

fn put(storage: &dyn Storage, key: &str, value: &str) -> u64 {
    block_on(storage.commit(Commit::new().put(key, value.to_owned()))).unwrap().revision
}

/// Some keys, of which one was changed and one deleted. Gives the last revision.
fn fill(directory: &Path) -> u64 {
    // On a thread that no runtime has: there, whoever waits for so much would be made to yield.
    thread::scope(|scope| scope.spawn(|| fill_here(directory)).join().unwrap())
}

fn fill_here(directory: &Path) -> u64 {
    let options = Options { durability: Durability::Relaxed, ..Options::default() };
    let storage = Embedded::open(directory, options).unwrap();
    for number in 0..500 {
        put(&storage, &format!("/objects/{number:03}"), &"x".repeat(number));
    }
    put(&storage, "/objects/007", "changed");
    block_on(storage.commit(Commit::new().delete("/objects/008"))).unwrap().revision
}

/// Ends the writers, also if something is found out.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

#[test]
fn a_directory_is_read_while_it_is_written_to_and_nothing_acknowledged_is_missing() {
    let directory = tempfile::tempdir().unwrap();
    let storage = Embedded::open(directory.path(), options()).unwrap();
    put(&storage, "/first", "1");
    let (done, acknowledged) = (AtomicBool::new(false), AtomicU64::new(1));
    thread::scope(|scope| {
        for writer in 0..3 {
            let (storage, done, acknowledged) = (&storage, &done, &acknowledged);
            scope.spawn(move || {
                for number in 0_u64.. {
                    if done.load(SeqCst) {
                        return;
                    }
                    // Two keys that are always the same.
                    let (one, other) = (format!("/{writer}/a"), format!("/{writer}/b"));
                    let value = format!("{number} {}", "x".repeat(fastrand::usize(..500)));
                    let commit = Commit::new().put(one, value.clone()).put(other, value);
                    let revision = block_on(storage.commit(commit)).unwrap().revision;
                    acknowledged.fetch_max(revision, SeqCst);
                }
            });
        }
        let _ended = Ends(&done);
        let mut read = 0;
        while read < 50 || storage.stats().checkpoints < 2 {
            let before = acknowledged.load(SeqCst);
            let snapshot = Snapshot::of_directory(directory.path()).unwrap();
            assert!(snapshot.revision() >= before, "{} after {before}", snapshot.revision());
            // What is in the log may be about to be shown.
            while storage.stats().revision < snapshot.revision() {
                thread::yield_now();
            }
            let state = block_on(storage.range(Range::prefix("/").at(snapshot.revision()))).unwrap();
            assert!(state.entries.iter().eq(snapshot.entries()), "at {}", snapshot.revision());
            read += 1;
        }
    });
}

#[test]
fn what_was_exported_to_a_file_comes_back_with_its_revisions() {
    let directory = tempfile::tempdir().unwrap();
    let (old, new) = (directory.path().join("old"), directory.path().join("new"));
    let file = directory.path().join("backup");
    let last = fill(&old);
    let told = AtomicU64::new(0);
    let snapshot = Snapshot::of_directory(&old).unwrap();
    let size = snapshot
        .to_file(&file, &|done| {
            told.fetch_max(done as u64, SeqCst);
        })
        .unwrap();
    assert_eq!(std::fs::metadata(&file).unwrap().len(), size);
    assert_eq!((snapshot.len(), snapshot.revision()), (499, last));

    Snapshot::of_file(&file).unwrap().to_directory(&new, &|_| ()).unwrap();
    let (old, restored) =
        (Embedded::open(&old, options()).unwrap(), Embedded::open(&new, options()).unwrap());
    let all = |storage: &Embedded| block_on(storage.range(Range::prefix("/"))).unwrap();
    assert_eq!(all(&old).entries, all(&restored).entries);
    assert_eq!(all(&restored).revision, last);
    assert!(block_on(restored.watch("/", last)).is_ok(), "clients go on where they were");
    assert_eq!(put(&restored, "/next", "1"), last + 1);
    drop(restored);
    let again = Embedded::open(&new, options()).unwrap();
    assert_eq!(all(&again).revision, last + 1);
}

#[test]
fn a_backup_that_was_damaged_or_cut_off_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let (data, file) = (directory.path().join("data"), directory.path().join("backup"));
    fill(&data);
    Snapshot::of_directory(&data).unwrap().to_file(&file, &|_| ()).unwrap();
    let good = std::fs::read(&file).unwrap();
    for position in [0, 9, 40, good.len() / 2, good.len() - 1] {
        let mut bad = good.clone();
        bad[position] ^= 1;
        std::fs::write(&file, bad).unwrap();
        let refused = Snapshot::of_file(&file).map(drop);
        assert!(
            matches!(refused, Err(Error::Corrupt { .. } | Error::Format { .. })),
            "{position}: {refused:?}"
        );
    }
    for length in [0, 10, 100, good.len() - 1] {
        std::fs::write(&file, &good[..length]).unwrap();
        assert!(matches!(Snapshot::of_file(&file), Err(Error::Corrupt { .. })), "{length}");
    }
}

#[test]
fn what_is_there_is_never_written_over() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    fill(&data);
    let snapshot = Snapshot::of_directory(&data).unwrap();
    let refused = snapshot.to_directory(&data, &|_| ()).unwrap_err();
    assert!(refused.to_string().contains("holds a storage already"), "{refused}");
    let nothing = Snapshot::of_directory(directory.path()).map(drop).unwrap_err();
    assert!(nothing.to_string().contains("no server keeps its objects there"), "{nothing}");
}

#[cfg(feature = "etcd")]
mod cluster {
    use super::*;
    use watchkeeper_etcd::testing::Server;
    use watchkeeper_etcd::{Delete, Keys, Put};
    use watchkeeper_storage::{Etcd, EtcdOptions, Layout};

    async fn of_etcd(server: &Server, prefix: &str) -> Result<Snapshot, Error> {
        Snapshot::of_etcd(&server.builder().build().unwrap(), prefix, &Layout::Own, &|_| ()).await
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn what_was_copied_to_etcd_is_all_there_and_comes_back() {
        let Some(server) = Server::start().await.unwrap() else { return };
        let client = server.builder().build().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let (old, new) = (directory.path().join("old"), directory.path().join("new"));
        fill(&old);
        let snapshot = Snapshot::of_directory(&old).unwrap();
        snapshot.to_etcd(&client, "/ours", &|_| ()).await.unwrap();

        let copied = of_etcd(&server, "/ours").await.unwrap();
        let values = |snapshot: &Snapshot| -> Vec<_> {
            snapshot.entries().map(|entry| (entry.key.clone(), entry.value.clone())).collect()
        };
        assert_eq!(values(&copied), values(&snapshot));
        let modified = |key: &str| copied.entries().find(|entry| *entry.key == *key).unwrap().modified;
        assert!(modified("/objects/007") >= modified("/objects/499"), "what was newer is newer");

        // A server writes there; what is read back has etcd's revisions.
        let options = EtcdOptions { prefix: "/ours".into(), ..EtcdOptions::default() };
        let storage = Etcd::open(client.clone(), options, Options::default()).await.unwrap();
        let written = storage.commit(Commit::new().put("/objects/new", "1")).await.unwrap().revision;
        drop(storage);
        let back = of_etcd(&server, "/ours").await.unwrap();
        assert!(back.revision() >= written);
        back.to_directory(&new, &|_| ()).unwrap();
        let restored = Embedded::open(&new, Options::default()).unwrap();
        let entry = restored.get("/objects/new", None).await.unwrap().entry.unwrap();
        assert_eq!(entry.modified, written);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn nothing_is_imported_over_something_else() {
        let Some(server) = Server::start().await.unwrap() else { return };
        let client = server.builder().build().unwrap();
        let directory = tempfile::tempdir().unwrap();
        fill(directory.path());
        let snapshot = Snapshot::of_directory(directory.path()).unwrap();
        client.put(&Put::new("/full/a", "1")).await.unwrap();
        let refused = snapshot.to_etcd(&client, "/full", &|_| ()).await.unwrap_err();
        assert!(refused.to_string().contains("there are keys under /full/"), "{refused}");
        client.put(&Put::new("/used:leader", "")).await.unwrap();
        let refused = snapshot.to_etcd(&client, "/used/", &|_| ()).await.unwrap_err();
        assert!(refused.to_string().contains("a server uses /used/"), "{refused}");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn an_import_that_was_interrupted_is_not_served_and_can_be_repeated() {
        let Some(server) = Server::start().await.unwrap() else { return };
        let client = server.builder().build().unwrap();
        let directory = tempfile::tempdir().unwrap();
        fill(directory.path());
        let snapshot = Snapshot::of_directory(directory.path()).unwrap();
        // As it is when the importer is killed half-way.
        for (key, value) in [("/ours:importing", ""), ("/ours/objects/001", "x"), ("/ours/gone", "x")] {
            client.put(&Put::new(key, value)).await.unwrap();
        }
        let options = EtcdOptions { prefix: "/ours".into(), ..EtcdOptions::default() };
        let refused = Etcd::open(client.clone(), options.clone(), Options::default()).await.err().unwrap();
        assert!(refused.to_string().contains("has not ended"), "{refused}");
        assert!(of_etcd(&server, "/ours").await.is_err());

        snapshot.to_etcd(&client, "/ours", &|_| ()).await.unwrap();
        assert_eq!(of_etcd(&server, "/ours").await.unwrap().len(), snapshot.len());
        Etcd::open(client.clone(), options, Options::default()).await.unwrap();
        client.delete(&Delete::of(Keys::prefix("/ours"))).await.unwrap();
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_value_that_etcd_does_not_take_is_named() {
        let Some(server) = Server::start().await.unwrap() else { return };
        let client = server.builder().build().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let storage = Embedded::open(directory.path(), Options::default()).unwrap();
        storage.commit(Commit::new().put("/small", "1")).await.unwrap();
        storage.commit(Commit::new().put("/large", "x".repeat(2 << 20))).await.unwrap();
        let snapshot = Snapshot::of_directory(directory.path()).unwrap();
        let refused = snapshot.to_etcd(&client, "/ours", &|_| ()).await.unwrap_err();
        assert!(refused.to_string().contains("/large: "), "{refused}");
    }
}
