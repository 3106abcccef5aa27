//! A storage in a directory: who may open it, what is left in it, what a restart keeps.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use futures_executor::block_on;
use futures_util::StreamExt;
use futures_util::future::join_all;
use watchkeeper_storage::{
    Clock, Commit, Durability, Embedded, Error, Limits, Memory, Options, Range, Storage, Update, Window,
};

fn open(directory: &tempfile::TempDir) -> Result<Embedded, Error> {
    Embedded::open(directory.path(), Options::default())
}

fn put(storage: &dyn Storage, key: &str, value: &str) -> u64 {
    block_on(storage.commit(Commit::new().put(key, value.to_owned()))).unwrap().revision
}

#[test]
fn a_second_opener_is_told_who_holds_the_directory() {
    let directory = tempfile::tempdir().unwrap();
    let first = open(&directory).unwrap();
    let Err(error) = open(&directory) else { panic!("opened twice") };
    assert!(matches!(error, Error::Locked { .. }));
    let text = error.to_string();
    assert!(text.contains(&format!("is in use by process {}", std::process::id())), "{text}");
    assert!(text.contains(directory.path().to_str().unwrap()), "{text}");
    drop(first);
    open(&directory).unwrap();
}

#[test]
fn what_was_committed_is_there_after_a_restart_with_its_past() {
    let directory = tempfile::tempdir().unwrap();
    {
        let storage = open(&directory).unwrap();
        put(&storage, "/a", "1");
        put(&storage, "/a", "2");
        block_on(storage.commit(Commit::new().delete("/a").put("/b", "3"))).unwrap();
    }
    let storage = open(&directory).unwrap();
    let past = block_on(storage.get("/a", Some(2))).unwrap().entry.unwrap();
    assert_eq!((&*past.value, past.created, past.modified), (&b"2"[..], 1, 2));
    assert!(block_on(storage.get("/a", None)).unwrap().entry.is_none());
    let mut watch = block_on(storage.watch("/a", 1)).unwrap();
    let Some(Ok(Update::Event(event))) = block_on(watch.next()) else { panic!() };
    assert_eq!(event.revision, 2);
    assert_eq!(put(&storage, "/c", "4"), 4);
}

#[test]
fn checkpoints_make_the_log_superfluous_and_a_restart_begins_there() {
    let directory = tempfile::tempdir().unwrap();
    let limits = Limits { segment_bytes: 2_000, log_bytes: 6_000, ..Limits::default() };
    let options = Options { limits, durability: Durability::Relaxed, ..Options::default() };
    let mut round = 0;
    {
        let storage = Embedded::open(directory.path(), options.clone()).unwrap();
        // Checkpoints are made on the side and take their time; the log shrinks when one is done.
        while round < 3_000 || storage.stats().checkpoints < 2 || storage.stats().log_bytes > 10_000 {
            put(&storage, &format!("/{}", round % 10), &format!("{round:050}"));
            round += 1;
        }
        assert_eq!(storage.stats().checkpoint_failures, 0);
    }
    let used: u64 =
        fs::read_dir(directory.path()).unwrap().map(|file| file.unwrap().metadata().unwrap().len()).sum();
    assert!(used < 20_000, "{used} bytes are left of {round} commits to ten keys");
    let storage = Embedded::open(directory.path(), options).unwrap();
    let stats = storage.stats();
    assert_eq!((stats.revision, stats.entries), (round, 10));
    assert!(stats.oldest > 0, "the past before the checkpoint is forgotten");
    let refused = block_on(storage.range(Range::prefix("/").at(1))).unwrap_err();
    assert!(matches!(refused, Error::Compacted { oldest } if oldest == stats.oldest), "{refused}");
}

#[test]
fn commits_that_wait_together_share_a_sync() {
    let directory = tempfile::tempdir().unwrap();
    let storage = open(&directory).unwrap();
    let commits = (0..500).map(|number| storage.commit(Commit::new().put(format!("/{number}"), "1")));
    for committed in block_on(join_all(commits)) {
        committed.unwrap();
    }
    let stats = storage.stats();
    assert_eq!(stats.commits, 500);
    assert!(stats.syncs < 100, "{} syncs for 500 commits", stats.syncs);
}

#[test]
fn a_damaged_file_is_refused_by_name_and_place_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    {
        let storage = open(&directory).unwrap();
        for round in 0..100 {
            put(&storage, "/a", &round.to_string());
        }
    }
    let log = directory.path().join("log-00000000000000000001");
    let mut bytes = fs::read(&log).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&log, &bytes).unwrap();
    let Err(error) = open(&directory) else { panic!("opened") };
    let text = error.to_string();
    assert!(matches!(error, Error::Corrupt { .. }), "{text}");
    assert!(text.contains("log-00000000000000000001 is damaged at byte "), "{text}");
    assert_eq!(fs::read(&log).unwrap(), bytes);
}

#[test]
fn a_format_of_the_future_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    put(&open(&directory).unwrap(), "/a", "1");
    let log = directory.path().join("log-00000000000000000001");
    let mut bytes = fs::read(&log).unwrap();
    bytes[8] = 9;
    fs::write(&log, &bytes).unwrap();
    let Err(error) = open(&directory) else { panic!("opened") };
    assert!(error.to_string().ends_with("has format 9, this version reads format 1"), "{error}");
}

#[test]
fn watches_end_when_the_storage_is_closed() {
    let directory = tempfile::tempdir().unwrap();
    let storage = open(&directory).unwrap();
    let mut watch = block_on(storage.watch("/", 0)).unwrap();
    put(&storage, "/a", "1");
    let waiting = std::thread::spawn(move || {
        let first = block_on(watch.next());
        assert!(matches!(first, Some(Ok(Update::Event(_)))), "{first:?}");
        let second = block_on(watch.next());
        assert!(matches!(second, Some(Err(Error::Closed))), "{second:?}");
        assert!(block_on(watch.next()).is_none());
    });
    drop(storage);
    waiting.join().unwrap();
}

#[test]
fn the_past_is_forgotten_by_age_and_count() {
    let time = Arc::new(parking_lot::Mutex::new(Duration::ZERO));
    let clock = {
        let time = Arc::clone(&time);
        Clock::new(move || *time.lock())
    };
    let window = Window { revisions: 10, age: Duration::from_secs(60), ..Window::default() };
    let storage = Memory::new(Options { window, clock, ..Options::default() });
    for _ in 0..15 {
        put(&storage, "/a", "1");
    }
    assert_eq!(storage.stats().oldest, 5);
    *time.lock() = Duration::from_secs(61);
    put(&storage, "/a", "1");
    assert_eq!((storage.stats().oldest, storage.stats().events), (15, 1));
}

#[test]
fn a_commit_costs_the_same_however_many_watch_something_else() {
    let storage = Memory::new(Options::default());
    let run = || {
        let start = std::time::Instant::now();
        for _ in 0..500 {
            put(&storage, "/registry/pods/ns-77777/pod", "1");
        }
        start.elapsed()
    };
    // The best of several runs: the machine may be busy with something else in any of them.
    let measure = || (0..10).map(|_| run()).min().unwrap();
    let alone = measure();
    let watches: Vec<_> = (0..10_000)
        .map(|number| block_on(storage.watch(&format!("/registry/pods/ns-{number:05}/"), 0)))
        .collect::<Result<_, _>>()
        .unwrap();
    let watched = measure();
    assert_eq!(storage.stats().watchers, watches.len());
    // A commit that looked at every watcher would take a hundred times as long.
    assert!(watched < alone * 10, "{watched:?} with 10,000 watchers, {alone:?} alone");
}

/// Needs a file system of about a megabyte: `mount -t tmpfs -o size=1M tmpfs /mnt/small`, then
/// `STORAGE_SMALL_DISK=/mnt/small cargo test -p watchkeeper-storage --test directory -- --ignored`.
#[test]
#[ignore = "needs a small file system, named by STORAGE_SMALL_DISK"]
fn a_real_full_disk_refuses_commits_until_there_is_space() {
    let small = std::env::var("STORAGE_SMALL_DISK").expect("STORAGE_SMALL_DISK names a small file system");
    let directory = tempfile::tempdir_in(small).unwrap();
    let ballast = directory.path().join("ballast");
    fs::write(&ballast, vec![0; 300_000]).unwrap();
    let storage = open(&directory).unwrap();
    let try_put =
        |number: u64| block_on(storage.commit(Commit::new().put(format!("/{number}"), vec![b'x'; 5_000])));
    let mut committed = 0;
    let error = loop {
        match try_put(committed) {
            Ok(_) => committed += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::Full { .. }), "{error}");
    assert!(committed > 50);
    assert!(matches!(try_put(committed), Err(Error::Full { .. })));
    assert_eq!(storage.stats().revision, committed);
    fs::remove_file(&ballast).unwrap();
    assert_eq!(try_put(committed).unwrap().revision, committed + 1);
    drop(storage);
    assert_eq!(open(&directory).unwrap().stats().entries as u64, committed + 1);
}
