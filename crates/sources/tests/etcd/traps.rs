//! What is easily done wrong.

use std::time::Duration;

use serde_json::json;
use watchkeeper_core::{Error, Freshness, Start, Version};
use watchkeeper_etcd::testing::Proxy;
use watchkeeper_etcd::{Client, Delete, Keys, Put, Range, Txn};
use watchkeeper_sources::etcd::Etcd;

use crate::server;
use crate::tap::Tap;

async fn put(client: &Client, key: &str, value: &str) {
    client.put(&Put::new(key, value)).await.unwrap();
}

async fn delete(client: &Client, key: &str) {
    client.delete(&Delete::of(Keys::one(key))).await.unwrap();
}

async fn revision(client: &Client) -> i64 {
    client.range(&Range::of(Keys::one("?"))).await.unwrap().header.revision
}

#[tokio::test]
async fn a_snapshot_in_pages_is_of_one_revision() {
    let server = server!();
    let client = server.builder().build().unwrap();
    for number in 0..20 {
        put(&client, &format!("/a/{number:02}"), "1").await;
    }
    let etcd = Etcd::prefix([server.endpoint()], "/a/").page_size(3);
    let mut tap = Tap::open(&etcd, Start::Snapshot(Freshness::Any));
    tap.until_said("item 02").await;
    // Between the first page and the others.
    put(&client, "/a/10", "2").await;
    delete(&client, "/a/15").await;
    put(&client, "/a/99", "2").await;
    tap.until_said("complete").await;
    assert_eq!(tap.values.len(), 20);
    assert!(tap.values.values().all(|value| *value == 1), "{:?}", tap.values);
    tap.until_said("put 99=2").await;
    assert!(tap.says("put 10=2") && tap.says("gone 15"));
    assert_eq!((tap.values.len(), tap.revision()), (20, revision(&client).await.unsigned_abs()));
}

#[tokio::test]
async fn what_was_compacted_is_expired_and_a_new_snapshot_tells_what_is_gone() {
    let server = server!();
    let client = server.builder().build().unwrap();
    for name in ["a", "b", "c", "d"] {
        put(&client, &format!("/a/{name}"), "1").await;
    }
    let etcd = Etcd::prefix([server.endpoint()], "/a/").page_size(1);
    let position = Tap::on(&etcd).await.position.unwrap();
    delete(&client, "/a/b").await;
    put(&client, "/other", "x").await;
    client.compact(revision(&client).await, true).await.unwrap();
    let error = Tap::open(&etcd, Start::Resume(position.clone())).failure().await;
    assert!(matches!(error, Error::Expired(_)), "{error}");
    let tap = Tap::on(&etcd).await;
    assert_eq!(tap.values.keys().collect::<Vec<_>>(), ["a", "c", "d"]);

    // In the middle of a snapshot.
    let mut tap = Tap::open(&etcd, Start::Snapshot(Freshness::NotOlderThan(position)));
    tap.until_said("item a").await;
    put(&client, "/a/d", "2").await;
    client.compact(revision(&client).await, true).await.unwrap();
    assert!(matches!(tap.failure().await, Error::Expired(_)));
    assert!(!tap.says("complete"));
}

#[tokio::test]
async fn all_keys_of_a_transaction_are_told_before_a_position_is() {
    let server = server!();
    let client = server.builder().build().unwrap();
    let etcd = Etcd::prefix([server.endpoint()], "/a/");
    let mut tap = Tap::on(&etcd).await;
    let before = tap.position.clone().unwrap();
    let txn = Txn::new().then(Put::new("/a/x", "1")).then(Put::new("/a/y", "1")).then(Put::new("/a/z", "1"));
    client.txn(&txn).await.unwrap();
    tap.until_value("z", 1).await;
    let put: Vec<&String> = tap.log.iter().filter(|line| line.starts_with("put")).collect();
    assert_eq!(put, ["put x=1 without position", "put y=1 without position", "put z=1"]);
    // Whoever resumes hears all of them again, or none.
    let mut again = Tap::open(&etcd, Start::Resume(before));
    again.until_value("z", 1).await;
    assert_eq!(again.values.len(), 3);
    put_and_see(&client, Tap::open(&etcd, Start::Resume(again.position.clone().unwrap()))).await;
}

async fn put_and_see(client: &Client, mut tap: Tap) {
    put(client, "/a/last", "1").await;
    tap.until_value("last", 1).await;
    assert_eq!(tap.values.len(), 1, "{:?}", tap.log);
}

#[tokio::test]
async fn progress_elsewhere_moves_the_position_so_that_it_can_be_resumed() {
    let server = server!();
    let client = server.builder().build().unwrap();
    put(&client, "/a/x", "1").await;
    let etcd = Etcd::prefix([server.endpoint()], "/a/").progress_interval(Duration::from_millis(50));
    let mut tap = Tap::on(&etcd).await;
    for number in 0..10 {
        put(&client, "/elsewhere", &number.to_string()).await;
    }
    let now = revision(&client).await;
    tap.until(|tap| tap.revision() >= now.unsigned_abs()).await;
    client.compact(now, true).await.unwrap();
    put_and_see(&client, Tap::open(&etcd, Start::Resume(tap.position.clone().unwrap()))).await;
}

#[tokio::test]
async fn a_cluster_that_was_made_anew_is_noticed() {
    let server = server!();
    let client = server.builder().build().unwrap();
    for number in 0..10 {
        put(&client, "/a/x", &number.to_string()).await;
    }
    let etcd = Etcd::prefix([server.endpoint()], "/a/");
    let tap = Tap::on(&etcd).await;
    let position = tap.position.clone().unwrap();
    drop(tap);
    server.kill();
    server.begin_anew().await.unwrap();
    put(&client, "/a/y", "1").await;
    // It is behind: etcd would wait for the revision and say nothing.
    let error = Tap::open(&etcd, Start::Resume(position.clone())).failure().await;
    assert!(matches!(error, Error::Expired(_)), "{error}");
    let error = Tap::open(&etcd, Start::Snapshot(Freshness::NotOlderThan(position.clone()))).failure().await;
    assert!(matches!(error, Error::Expired(_)), "{error}");
    let mut tap = Tap::open(&etcd, Start::Snapshot(Freshness::Newest));
    tap.until_said("complete").await;
    assert_eq!(tap.values.keys().collect::<Vec<_>>(), ["y"]);
    let error = Tap::open(&etcd, Start::Resume(Version::from("nonsense"))).failure().await;
    assert!(matches!(error, Error::Expired(_)), "{error}");
}

#[tokio::test]
async fn what_cannot_be_read_is_named_and_the_rest_goes_on() {
    let server = server!();
    let client = server.builder().build().unwrap();
    put(&client, "/a/good", "a: 1").await;
    put(&client, "/a/bad", r#"{"a": "#).await;
    client.put(&Put::new("/a/binary", b"k8s\0\xff\xfe".to_vec())).await.unwrap();
    client.put(&Put::new(b"/a/\xff".to_vec(), "{}")).await.unwrap();
    let etcd = Etcd::prefix([server.endpoint()], "/a/");
    let mut tap = Tap::on(&etcd).await;
    assert_eq!(tap.values.len(), 1);
    assert_eq!(tap.values["good"], json!({"a": 1}));
    assert!(
        tap.says("rejected bad: unreadable") && tap.says("rejected binary") && tap.says(r"rejected \xff")
    );
    let rejected = || tap.log.iter().filter(|line| line.starts_with("rejected"));
    assert!(rejected().all(|line| !line.contains(r#""a""#)), "no content: {:?}", tap.log);

    put(&client, "/a/good", "a: [\n").await;
    put(&client, "/a/other", "{}").await;
    tap.until_value("other", json!({})).await;
    assert!(tap.says("rejected good: unreadable (line"), "{:?}", tap.log);
    assert_eq!(tap.values["good"], json!({"a": 1}), "it stays as it was");
    put(&client, "/a/bad", r#"{"a": 2}"#).await;
    delete(&client, "/a/good").await;
    tap.until(|tap| !tap.values.contains_key("good")).await;
    assert_eq!(tap.values["bad"], json!({"a": 2}));
}

#[tokio::test]
async fn a_value_that_is_too_large_costs_itself_only() {
    let server = server!();
    let client = server.builder().build().unwrap();
    for number in 0..30 {
        put(&client, &format!("/a/{number:02}"), "1").await;
    }
    let large = format!("\"{}\"", "x".repeat(200_000));
    put(&client, "/a/10", &large).await;
    let etcd = Etcd::prefix([server.endpoint()], "/a/").max_message_bytes(100_000);
    let mut tap = Tap::on(&etcd).await;
    assert_eq!(tap.values.len(), 29);
    assert!(tap.says("rejected 10: too_large"), "{:?}", tap.log);
    put(&client, "/a/11", "2").await;
    tap.until_value("11", 2).await;
    // In the log there is no way around it: the feed says what to do, and the next snapshot rejects it.
    put(&client, "/a/12", &large).await;
    let error = tap.failure().await;
    assert!(matches!(&error, Error::Fatal(text) if text.contains("max_message_bytes")), "{error}");
    assert_eq!(Tap::on(&etcd).await.values.len(), 28);
}

#[tokio::test]
async fn a_dead_connection_is_noticed() {
    let server = server!("--grpc-keepalive-min-time", "100ms");
    let client = server.builder().build().unwrap();
    put(&client, "/a/x", "1").await;
    let proxy = Proxy::to(server.port()).await.unwrap();
    let etcd = Etcd::prefix([proxy.endpoint()], "/a/").keep_alive(Duration::from_millis(600));
    let mut tap = Tap::on(&etcd).await;
    tap.until_said("position").await;
    proxy.mute(true);
    let error = tap.failure().await;
    assert!(matches!(error, Error::Unavailable { .. }), "{error}");
    proxy.mute(false);
    put_and_see(&client, Tap::open(&etcd, Start::Resume(tap.position.clone().unwrap()))).await;
}

#[tokio::test]
async fn an_endpoint_that_is_not_there_is_unavailable_and_one_that_is_wrong_is_fatal() {
    let error = Tap::open(&Etcd::prefix(["http://127.0.0.1:1"], "/"), Start::Snapshot(Freshness::Any))
        .failure()
        .await;
    assert!(matches!(error, Error::Unavailable { answered: false, .. }), "{error}");
    let error = Tap::open(&Etcd::prefix(["ftp://a"], "/"), Start::Snapshot(Freshness::Any)).failure().await;
    assert!(matches!(error, Error::Fatal(_)), "{error}");
}
