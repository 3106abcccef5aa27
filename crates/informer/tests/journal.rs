//! The journal: everything, in order, and what happened in between.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod support;

use std::time::Duration;

use support::*;
use tokio::sync::mpsc;
use watchkeeper_core::contract::Memory;
use watchkeeper_core::{Error, Event, Reason, Rejection, Start};
use watchkeeper_informer::{Entry, Informer};

fn start(source: &Memory, capacity: usize) -> (Informer<Thing>, mpsc::Receiver<Entry<Thing>>) {
    let (journal, entries) = mpsc::channel(capacity);
    (Informer::builder().seed(7).journal(journal).start(source.clone()), entries)
}

fn words(entry: &Entry<Thing>) -> String {
    match entry {
        Entry::Changed(change) => line(change),
        Entry::Complete(version) => format!("complete at {version}"),
        Entry::Resumed => "resumed".into(),
        Entry::Rejected(rejection) => format!("rejected {rejection}"),
        Entry::Interrupted { error, next, .. } => {
            let next = match next {
                Start::Snapshot(_) => "snapshot",
                Start::Resume(_) => "resume",
            };
            format!("{}, {next} next", error.as_ref().map_or("no error", Error::class))
        }
        other => format!("{other:?}"),
    }
}

async fn ready(entries: &mut mpsc::Receiver<Entry<Thing>>) -> Vec<String> {
    settle().await;
    let mut lines = Vec::new();
    while let Ok(entry) = entries.try_recv() {
        lines.push(words(&entry));
        tokio::task::yield_now().await;
    }
    lines
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_is_slow_misses_nothing() {
    let source = Memory::new();
    source.put(&key("a"), 0);
    let (_informer, mut entries) = start(&source, 1);
    settle().await;
    for value in 1..=500 {
        source.put(&key("a"), value);
        settle().await;
    }
    let mut lines = Vec::new();
    while lines.len() < 502 {
        lines.push(words(&entries.recv().await.unwrap()));
    }
    assert_eq!(lines[..3], ["*+a=0", "complete at 1", "~a=0>1"]);
    for (at, line) in lines[2..].iter().enumerate() {
        assert_eq!(*line, format!("~a={at}>{}", at + 1));
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_interrupted_says_so_and_goes_on_where_it_stopped() {
    let source = Memory::new();
    source.put(&key("a"), 1);
    let (_informer, mut entries) = start(&source, 100);
    assert_eq!(ready(&mut entries).await, ["*+a=1", "complete at 1"]);

    source.cut_feeds(&Error::Unavailable { answered: false, reason: "down".into() });
    assert_eq!(ready(&mut entries).await, ["unavailable, resume next"]);
    source.put(&key("a"), 2);
    source.delete(&key("a"));
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(ready(&mut entries).await, ["resumed", "~a=1>2", "-a=2"]);
}

#[tokio::test(start_paused = true)]
async fn a_new_snapshot_is_told_as_how_it_differs() {
    let source = Memory::new();
    for name in ["a", "b", "c"] {
        source.put(&key(name), 1);
    }
    let (_informer, mut entries) = start(&source, 100);
    ready(&mut entries).await;
    source.refuse_next(Error::Expired("gone".into()));
    source.cut_feeds(&Error::Expired("gone".into()));
    source.put(&key("a"), 2);
    source.put(&key("a"), 3);
    source.delete(&key("b"));
    source.delete(&key("c"));
    source.put(&key("c"), 1);
    tokio::time::sleep(Duration::from_secs(60)).await;
    let lines = ready(&mut entries).await;
    let changes: Vec<_> = lines.iter().filter(|line| !line.contains("next")).collect();
    assert!(lines[0] == "expired, snapshot next", "{lines:?}");
    assert_eq!(changes.len(), 5, "{lines:?}");
    for expected in ["~a=1>3", "-b=1", "-c=1", "+c=1", "complete at 8"] {
        assert!(lines.iter().any(|line| line == expected), "{expected} in {lines:?}");
    }
    assert_eq!(lines.last().unwrap(), "complete at 8");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_understood_is_an_entry_too() {
    let source = Memory::new();
    let (_informer, mut entries) = start(&source, 100);
    ready(&mut entries).await;
    source.inject(&Event::Rejected(Rejection::new(Some(key("a")), Reason::TooLarge, "9 MiB")));
    assert_eq!(ready(&mut entries).await, ["rejected shop/a: too_large (9 MiB)"]);
}

#[tokio::test(start_paused = true)]
async fn without_a_reader_the_informer_goes_on() {
    let source = Memory::new();
    let (informer, entries) = start(&source, 1);
    informer.synced().await.unwrap();
    drop(entries);
    for value in 0..100 {
        source.put(&key("a"), value);
        settle().await;
    }
    assert_equal_to_source(&informer, &source);
}
