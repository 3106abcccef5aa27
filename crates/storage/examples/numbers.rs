//! What opening, recovering, listing and watching cost with 100,000 small objects.
//!
//! `cargo run --release -p watchkeeper-storage --example numbers`

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a program for a person who wants to know")]

use std::time::{Duration, Instant};

use futures_executor::block_on;
use futures_util::{FutureExt, StreamExt};
use watchkeeper_counting::Counting;
use watchkeeper_storage::{Commit, Durability, Embedded, Memory, Options, Range, Storage, Window};

#[global_allocator]
static MEMORY: Counting = Counting::new();

const OBJECTS: usize = 100_000;

fn key(number: usize) -> String {
    format!("/registry/example.com/widgets/default/widget-{number:06}")
}

fn timed<T>(what: &str, act: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = act();
    let took = start.elapsed();
    println!("{what:<60} {:>10.3} ms", took.as_secs_f64() * 1e3);
    result
}

fn fill(storage: &dyn Storage) {
    for chunk in (0..OBJECTS).collect::<Vec<_>>().chunks(100) {
        let commits =
            chunk.iter().map(|number| storage.commit(Commit::new().put(key(*number), vec![b'x'; 600])));
        for committed in block_on(futures_util::future::join_all(commits)) {
            committed.unwrap();
        }
    }
}

fn main() {
    memory();
    durable();
    watchers();
}

fn memory() {
    for (window, what) in [
        (Window::default(), "all of them in the window"),
        (Window { revisions: 0, ..Window::default() }, "none of them in the window"),
    ] {
        let before = MEMORY.in_use();
        let storage = Memory::new(Options { window, ..Options::default() });
        fill(&storage);
        let plain = OBJECTS * (key(0).len() + 600);
        let overhead = (MEMORY.in_use() - before).saturating_sub(plain) / OBJECTS;
        println!("{:<60} {overhead:>10} bytes", format!("overhead per entry, {what}"));
        timed("list 100,000", || block_on(storage.range(Range::prefix("/registry/"))).unwrap());
        timed("first page of 500, with the rest counted", || {
            block_on(storage.range(Range::prefix("/registry/").limit(500))).unwrap()
        });
    }
}

fn durable() {
    let directory = tempfile::tempdir_in(".").unwrap();
    let options = Options { durability: Durability::Relaxed, ..Options::default() };
    timed("open an empty directory", || Embedded::open(directory.path(), options.clone()).unwrap());
    let storage = Embedded::open(directory.path(), options.clone()).unwrap();
    fill(&storage);
    println!("{:<60} {:?}", "", storage.stats());
    timed("close", || drop(storage));
    let storage =
        timed("open with 100,000 objects", || Embedded::open(directory.path(), options.clone()).unwrap());
    assert_eq!(storage.stats().entries, OBJECTS);
    timed("a list 50,000 revisions ago", || {
        let at = storage.stats().oldest.max(OBJECTS as u64 / 2);
        block_on(storage.range(Range::prefix("/registry/").at(at))).unwrap()
    });
}

fn watchers() {
    let storage = Memory::new(Options::default());
    let mut watches: Vec<_> = (0..100).map(|_| block_on(storage.watch("/registry/", 0)).unwrap()).collect();
    let start = Instant::now();
    let mut told = 0_u64;
    while start.elapsed() < Duration::from_secs(1) {
        for number in 0..50 {
            block_on(storage.commit(Commit::new().put(key(number), vec![b'x'; 600]))).unwrap();
        }
        for watch in &mut watches {
            while watch.next().now_or_never().is_some() {
                told += 1;
            }
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    println!("{:<60} {:>10.0} events/s", "100 watchers of everything", told as f64 / seconds);
    drop(watches);
    let before = MEMORY.in_use();
    let watches: Vec<_> = (0..10_000)
        .map(|number| {
            block_on(
                storage
                    .watch(&format!("/registry/example.com/widgets/ns-{number}/"), storage.stats().revision),
            )
            .unwrap()
        })
        .collect();
    println!("{:<60} {:>10} bytes", "memory of an idle watcher", (MEMORY.in_use() - before) / watches.len());
    timed("10,000 commits with 10,000 watchers of something else", || {
        for number in 0..10_000 {
            block_on(storage.commit(Commit::new().put(key(number), "x"))).unwrap();
        }
    });
}
