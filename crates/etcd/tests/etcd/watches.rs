//! Watches.

use std::time::Duration;

use watchkeeper_etcd::{
    Change, ChangeKind, Client, Delete, Keys, Notice, Put, Range, Txn, Watch, WatchId, Watcher,
};

use crate::server;

/// Longer than anything takes, also where the machine is busy.
const LONG: Duration = Duration::from_secs(30);

async fn next(watcher: &mut Watcher) -> Notice {
    tokio::time::timeout(LONG, watcher.next()).await.expect("something to be told").unwrap()
}

async fn created(watcher: &mut Watcher, watch: &Watch) -> WatchId {
    let id = watcher.watch(watch).await.unwrap();
    let Notice::Created { id: told, .. } = next(watcher).await else { panic!("it was not created") };
    assert_eq!(told, id);
    id
}

async fn changes(watcher: &mut Watcher, count: usize) -> Vec<(WatchId, Change)> {
    let mut all = Vec::new();
    while all.len() < count {
        match next(watcher).await {
            Notice::Changes { id, changes, .. } => all.extend(changes.into_iter().map(|change| (id, change))),
            other => panic!("{other:?}"),
        }
    }
    all
}

async fn revision(client: &Client) -> i64 {
    client.range(&Range::of(Keys::one("?")).count_only()).await.unwrap().header.revision
}

#[tokio::test]
async fn one_stream_has_many_watches_and_each_is_told_its_own() {
    let server = server!();
    let client = server.builder().build().unwrap();
    let mut watcher = client.watcher().await.unwrap();
    let a = created(&mut watcher, &Watch::of(Keys::prefix("/a/")).previous()).await;
    let b = created(&mut watcher, &Watch::of(Keys::one("/b"))).await;
    client.put(&Put::new("/a/1", "x")).await.unwrap();
    client.put(&Put::new("/b", "y")).await.unwrap();
    client.put(&Put::new("/b2", "z")).await.unwrap();
    client.put(&Put::new("/a/1", "w")).await.unwrap();
    client.delete(&Delete::of(Keys::one("/a/1"))).await.unwrap();
    let told = changes(&mut watcher, 4).await;
    let of_a: Vec<_> = told.iter().filter(|(id, _)| *id == a).map(|(_, change)| change).collect();
    let of_b: Vec<_> = told.iter().filter(|(id, _)| *id == b).map(|(_, change)| change).collect();
    assert_eq!((of_a.len(), of_b.len()), (3, 1));
    assert!(of_a[0].previous.is_none());
    assert_eq!(&*of_a[1].previous.as_ref().unwrap().value, b"x");
    assert_eq!((of_a[2].kind, &*of_a[2].kv.key), (ChangeKind::Delete, &b"/a/1"[..]));
    assert_eq!(&*of_a[2].previous.as_ref().unwrap().value, b"w");
    assert!(
        of_a[0].kv.mod_revision < of_a[1].kv.mod_revision
            && of_a[1].kv.mod_revision < of_a[2].kv.mod_revision
    );

    watcher.cancel(b).await.unwrap();
    let Notice::Cancelled { id, compacted: None, .. } = next(&mut watcher).await else { panic!() };
    assert_eq!(id, b);
    client.put(&Put::new("/b", "unseen")).await.unwrap();
    client.put(&Put::new("/a/2", "seen")).await.unwrap();
    assert_eq!(changes(&mut watcher, 1).await[0].0, a);
}

#[tokio::test]
async fn a_watch_begins_at_its_revision_and_one_that_was_compacted_is_cancelled() {
    let server = server!();
    let client = server.builder().build().unwrap();
    let start = revision(&client).await;
    for number in 0..10 {
        client.put(&Put::new("/a", number.to_string())).await.unwrap();
    }
    let mut watcher = client.watcher().await.unwrap();
    created(&mut watcher, &Watch::of(Keys::one("/a")).from(start + 4)).await;
    let told = changes(&mut watcher, 7).await;
    let values: Vec<String> =
        told.iter().map(|(_, change)| String::from_utf8(change.kv.value.to_vec()).unwrap()).collect();
    assert_eq!(values, ["3", "4", "5", "6", "7", "8", "9"]);

    client.compact(start + 8, true).await.unwrap();
    let id = watcher.watch(&Watch::of(Keys::one("/a")).from(start + 4)).await.unwrap();
    loop {
        match next(&mut watcher).await {
            Notice::Created { .. } => {}
            Notice::Cancelled { id: over, compacted, .. } => {
                assert_eq!((over, compacted), (id, Some(start + 8)));
                break;
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn progress_is_told_when_it_is_asked_for_and_by_itself() {
    let server = server!("--watch-progress-notify-interval", "100ms");
    let client = server.builder().build().unwrap();
    let mut watcher = client.watcher().await.unwrap();
    let id = created(&mut watcher, &Watch::of(Keys::one("/idle")).progress()).await;
    client.put(&Put::new("/other", "x")).await.unwrap();
    let now = revision(&client).await;
    loop {
        let Notice::Progress { id: told, revision } = next(&mut watcher).await else { panic!() };
        assert_eq!(told, Some(id));
        if revision >= now {
            break;
        }
    }
    watcher.request_progress().await.unwrap();
    loop {
        let Notice::Progress { id, revision } = next(&mut watcher).await else { panic!() };
        assert!(revision >= now);
        if id.is_none() {
            break;
        }
    }
}

#[tokio::test]
async fn large_answers_come_in_parts_that_say_so() {
    let server = server!();
    let client = server.builder().build().unwrap();
    let start = revision(&client).await;
    // One revision, three times as large as a message of etcd.
    let large = vec![b'x'; 400_000];
    let mut txns = Vec::new();
    for round in 0..4 {
        let txn = (0..3).fold(Txn::new(), |txn, number| {
            txn.then(Put::new(format!("/a/{round}-{number}"), large.clone()))
        });
        txns.push(client.txn(&txn).await.unwrap().header.revision);
    }
    let mut watcher = client.watcher().await.unwrap();
    let id = watcher.watch(&Watch::of(Keys::prefix("/a/")).from(start + 1)).await.unwrap();
    let (mut parts, mut seen) = (Vec::new(), Vec::new());
    while seen.len() < 12 {
        match next(&mut watcher).await {
            Notice::Changes { id: told, changes, complete } => {
                assert_eq!(told, id);
                parts.push(complete);
                seen.extend(changes.iter().map(|change| change.kv.mod_revision));
            }
            Notice::Created { .. } => {}
            other => panic!("{other:?}"),
        }
    }
    assert!(
        seen.is_sorted() && txns.iter().all(|revision| seen.iter().filter(|r| *r == revision).count() == 3)
    );
    assert!(parts.contains(&false) && parts.last() == Some(&true), "{parts:?}");
}

#[tokio::test]
async fn a_message_larger_than_allowed_is_refused_and_not_read() {
    let server = server!();
    let client = server.builder().max_message_bytes(100_000).build().unwrap();
    let big = server.builder().build().unwrap();
    big.put(&Put::new("/big", vec![b'x'; 500_000])).await.unwrap();
    let error = client.range(&Range::of(Keys::one("/big"))).await.unwrap_err();
    assert!(
        matches!(error, watchkeeper_etcd::Error::TooLarge { bytes: 500_000.., limit: 100_000 }),
        "{error}"
    );
    assert_eq!(client.range(&Range::of(Keys::one("/big")).keys_only()).await.unwrap().kvs.len(), 1);
    let mut watcher = client.watcher().await.unwrap();
    created(&mut watcher, &Watch::of(Keys::prefix("/"))).await;
    big.put(&Put::new("/big", vec![b'x'; 500_000])).await.unwrap();
    let error = tokio::time::timeout(LONG, watcher.next()).await.unwrap().unwrap_err();
    assert!(matches!(error, watchkeeper_etcd::Error::TooLarge { .. }), "{error}");
    assert_eq!(watcher.next().await.unwrap_err(), error, "it is over");
    assert_eq!(watcher.watch(&Watch::of(Keys::one("a"))).await.unwrap_err(), error);
}
