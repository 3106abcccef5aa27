//! Statuses beside their objects.

use serde_json::json;
use watchkeeper_core::{Error, Key, ObjectStatus, Source as _, Version};
use watchkeeper_etcd::{Client, Delete, Keys, Put, Range};
use watchkeeper_sources::etcd::Etcd;

use crate::server;
use crate::tap::Tap;

async fn written(client: &Client, key: &str) -> Option<String> {
    let found = client.range(&Range::of(Keys::one(key))).await.unwrap();
    found.kvs.first().map(|pair| String::from_utf8(pair.value.to_vec()).unwrap())
}

fn status(revision: i64, json: &str) -> ObjectStatus {
    let version = Version::from(revision.unsigned_abs());
    ObjectStatus::new(Key::new(Some("shop"), "cart"), version, json)
}

#[tokio::test]
async fn a_status_is_written_beside_its_object_and_wakes_nobody() {
    let server = server!();
    let client = server.builder().build().unwrap();
    for (way, key) in [("prefix", "/a/status/shop/cart"), ("suffix", "/a/shop/cart.status")] {
        let etcd = Etcd::prefix([server.endpoint()], "/a/").namespaced();
        let etcd = match way {
            "prefix" => etcd.status_prefix("/a/status/"),
            _ => etcd.status_suffix(".status"),
        };
        assert!(etcd.capabilities().status_write_back);
        let done = client.put(&Put::new("/a/shop/cart", "{}")).await.unwrap();
        let mut tap = Tap::on(&etcd).await;
        etcd.write_status(status(done.header.revision, r#"{"ready":true}"#)).await.unwrap();
        assert_eq!(written(&client, key).await.as_deref(), Some(r#"{"ready":true}"#));
        client.put(&Put::new("/a/shop/last", "{}")).await.unwrap();
        tap.until_value("shop/last", json!({})).await;
        let told: Vec<&String> = tap.log.iter().filter(|line| line.contains('=')).collect();
        assert_eq!(told, ["item shop/cart={}", "put shop/last={}"], "{way}");
        // A new snapshot does not have it either.
        assert_eq!(Tap::on(&etcd).await.values.len(), 2, "{way}");
        client.delete(&Delete::of(Keys::prefix("/a/"))).await.unwrap();
    }
}

#[tokio::test]
async fn a_status_is_written_for_the_state_that_it_is_about_or_not_at_all() {
    let server = server!();
    let client = server.builder().build().unwrap();
    let etcd = Etcd::prefix([server.endpoint()], "/a/").status_prefix("/status/");
    let first = client.put(&Put::new("/a/shop/cart", "1")).await.unwrap().header.revision;
    client.put(&Put::new("/a/shop/cart", "2")).await.unwrap();
    let error = etcd.write_status(status(first, "{}")).await.unwrap_err();
    assert!(matches!(error, Error::Expired(_)), "{error}");
    client.delete(&Delete::of(Keys::one("/a/shop/cart"))).await.unwrap();
    let error = etcd.write_status(status(first, "{}")).await.unwrap_err();
    assert!(matches!(error, Error::Missing(_)), "{error}");
    assert_eq!(written(&client, "/status/shop/cart").await, None);
    let nowhere = Etcd::prefix([server.endpoint()], "/a/");
    let error = nowhere.write_status(status(first, "{}")).await.unwrap_err();
    assert!(matches!(&error, Error::Fatal(text) if text.contains("status_prefix")), "{error}");
}
