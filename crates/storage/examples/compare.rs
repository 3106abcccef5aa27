//! Durable commits per second: this crate's log against redb and fjall, all with group commit, in turns.
//!
//! `cargo run --release -p watchkeeper-storage --example compare`
//!
//! Each writer commits one small object at a time and waits until it is durable. Commits that wait together make a
//! group: one frame and one sync here, one transaction in redb, one batch in fjall, which sync once or more for it. The
//! peers do only that; the storage also checks preconditions, keeps revisions and the past, and tells watchers.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a program for a person who wants to know")]

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use futures_executor::block_on;
use watchkeeper_storage::{Commit, Embedded, Options, Storage};

const WRITERS: [u64; 3] = [1, 16, 64];
const ROUNDS: usize = 5;
const ROUND: Duration = Duration::from_millis(800);

/// Makes one small object durable.
type Store = Box<dyn Fn(String, Vec<u8>) + Send + Sync>;

/// Opens an engine in a directory; it counts its groups.
type Open = fn(&Path, &Arc<AtomicU64>) -> Store;

/// One run: commits per second, and groups per commit.
type Result = (f64, f64);

fn main() {
    let engines: [(&str, Open); 3] = [("watchkeeper", watchkeeper), ("fjall", fjall), ("redb", redb)];
    println!("{:<12} {:>8} {:>12} {:>18}", "engine", "writers", "commits/s", "groups per commit");
    for writers in WRITERS {
        let mut results: Vec<Vec<Result>> = vec![Vec::new(); engines.len()];
        for _ in 0..ROUNDS {
            for (engine, (_, open)) in engines.iter().enumerate() {
                results[engine].push(run(*open, writers));
            }
        }
        for ((name, _), mut results) in engines.iter().zip(results) {
            results.sort_by(|one, other| one.0.total_cmp(&other.0));
            let (rate, groups) = results[ROUNDS / 2];
            println!("{name:<12} {writers:>8} {rate:>12.0} {groups:>18.2}");
        }
    }
}

fn run(open: Open, writers: u64) -> Result {
    let directory = tempfile::tempdir_in(".").unwrap();
    let groups = Arc::new(AtomicU64::new(0));
    let store = open(directory.path(), &groups);
    let (stop, commits) = (AtomicBool::new(false), AtomicU64::new(0));
    let start = Instant::now();
    thread::scope(|scope| {
        for writer in 0..writers {
            let (store, stop, commits) = (&store, &stop, &commits);
            scope.spawn(move || {
                for number in 0.. {
                    if stop.load(Relaxed) {
                        break;
                    }
                    store(
                        format!("/registry/example.com/widgets/default/{writer}-{number}"),
                        vec![b'x'; 600],
                    );
                    commits.fetch_add(1, Relaxed);
                }
            });
        }
        thread::sleep(ROUND);
        stop.store(true, Relaxed);
    });
    let seconds = start.elapsed().as_secs_f64();
    drop(store);
    let commits = commits.into_inner() as f64;
    (commits / seconds, groups.load(Relaxed) as f64 / commits)
}

fn watchkeeper(directory: &Path, groups: &Arc<AtomicU64>) -> Store {
    let storage = Embedded::open(directory, Options::default()).unwrap();
    let groups = Arc::clone(groups);
    Box::new(move |key, value| {
        block_on(storage.commit(Commit::new().absent(&*key).put(&*key, value))).unwrap();
        groups.store(storage.stats().syncs, Relaxed);
    })
}

fn redb(directory: &Path, groups: &Arc<AtomicU64>) -> Store {
    const TABLE: redb::TableDefinition<'_, &str, &[u8]> = redb::TableDefinition::new("entries");
    let database = redb::Database::create(directory.join("redb")).unwrap();
    grouped(groups, move |group| {
        let transaction = database.begin_write().unwrap();
        {
            let mut table = transaction.open_table(TABLE).unwrap();
            for (key, value) in group {
                table.insert(&**key, &**value).unwrap();
            }
        }
        transaction.commit().unwrap();
    })
}

fn fjall(directory: &Path, groups: &Arc<AtomicU64>) -> Store {
    let database = fjall::Database::builder(directory.join("fjall")).open().unwrap();
    let entries = database.keyspace("entries", fjall::KeyspaceCreateOptions::default).unwrap();
    grouped(groups, move |group| {
        let mut batch = database.batch().durability(Some(fjall::PersistMode::SyncData));
        for (key, value) in group {
            batch.insert(&entries, &**key, &**value);
        }
        batch.commit().unwrap();
    })
}

/// Gives a store the group commit that it does not have: one thread takes whatever waits.
fn grouped(groups: &Arc<AtomicU64>, commit: impl Fn(&[(String, Vec<u8>)]) + Send + 'static) -> Store {
    type Waiting = ((String, Vec<u8>), mpsc::SyncSender<()>);
    let (sender, receiver) = mpsc::channel::<Waiting>();
    let groups = Arc::clone(groups);
    thread::spawn(move || {
        while let Ok(first) = receiver.recv() {
            let waiting = std::iter::once(first).chain(receiver.try_iter());
            let (group, replies): (Vec<_>, Vec<_>) = waiting.unzip();
            commit(&group);
            groups.fetch_add(1, Relaxed);
            for reply in replies {
                reply.send(()).unwrap();
            }
        }
    });
    Box::new(move |key, value| {
        let (reply, answer) = mpsc::sync_channel(1);
        sender.send(((key, value), reply)).unwrap();
        answer.recv().unwrap();
    })
}
