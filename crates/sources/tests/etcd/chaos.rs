//! An etcd that is compacted, killed and cut off, against a model of what was written.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use watchkeeper_core::{Change, ChangeKind, Source as _};
use watchkeeper_etcd::testing::{Proxy, Server};
use watchkeeper_etcd::{Client, Delete, Keys, Put, Range, Txn};
use watchkeeper_informer::{Informer, Object, SourceBackoff};
use watchkeeper_sources::etcd::Etcd;

use crate::server;
use crate::tap::LONG;

/// A small generator of random numbers, so that a run can be repeated.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// One thing that happens to a cluster.
async fn step(
    dice: &mut Dice,
    step: u64,
    server: &Server,
    proxy: &Proxy,
    client: &Client,
    truth: &mut BTreeMap<String, u64>,
) {
    let name = format!("n{}", dice.below(12));
    let value = |value: u64| format!(r#"{{"value":{value}}}"#);
    match dice.below(200) {
        0 => {
            server.kill();
            server.restart().await.unwrap();
            // A read finds out that the connection is gone; a write would not know what became of it.
            client.range(&Range::of(Keys::one("?"))).await.unwrap();
        }
        1..6 => proxy.cut(),
        6..8 => {
            proxy.refuse(true);
            tokio::time::sleep(Duration::from_millis(dice.below(20))).await;
            proxy.refuse(false);
        }
        8..18 => {
            let now = client.range(&Range::of(Keys::one("?"))).await.unwrap().header.revision;
            // It may have been compacted there before.
            let _ = client.compact(now, dice.below(2) == 0).await;
        }
        18..22 => tokio::time::sleep(Duration::from_millis(dice.below(10))).await,
        22..30 => {
            // Compacted while nobody watches.
            proxy.cut();
            client.delete(&Delete::of(Keys::one(format!("/a/{name}")))).await.unwrap();
            truth.remove(&name);
            let now = client.range(&Range::of(Keys::one("?"))).await.unwrap().header.revision;
            let _ = client.compact(now, false).await;
        }
        30..80 => {
            client.delete(&Delete::of(Keys::one(format!("/a/{name}")))).await.unwrap();
            truth.remove(&name);
        }
        80..100 => {
            let other = format!("m{}", dice.below(12));
            let txn = Txn::new()
                .then(Put::new(format!("/a/{name}"), value(step)))
                .then(Put::new(format!("/a/{other}"), value(step)))
                .then(Delete::of(Keys::one("/a/t")));
            client.txn(&txn).await.unwrap();
            truth.extend([(name, step), (other, step)]);
        }
        100..110 => drop(client.put(&Put::new("/elsewhere", value(step))).await.unwrap()),
        _ => {
            client.put(&Put::new(format!("/a/{name}"), value(step))).await.unwrap();
            truth.insert(name, step);
        }
    }
}

async fn run(steps: u64, seed: u64) {
    let server = server!();
    let client = server.builder().build().unwrap();
    let proxy = Proxy::to(server.port()).await.unwrap();
    let mut truth: BTreeMap<String, u64> = (0..20).map(|number| (format!("still-{number}"), 1)).collect();
    for name in truth.keys() {
        client.put(&Put::new(format!("/a/{name}"), r#"{"value":1}"#)).await.unwrap();
    }
    let quick = Duration::from_millis(20);
    let etcd =
        Etcd::prefix([proxy.endpoint()], "/a/").page_size(7).progress_interval(quick).check_drift(quick);
    let backoff = SourceBackoff::new(Duration::from_millis(1), quick).with_refused_cap(quick);
    let informer = Informer::<Value>::builder().backoff(backoff).start(etcd.clone());
    informer.synced().await.unwrap();
    let mut changes = informer.subscribe("test");
    let mut dice = Dice(seed);
    let check = |change: Change<Object<Value>>| {
        let still = change.key.name().starts_with("still");
        assert!(
            !still || change.kind() == ChangeKind::Added,
            "seed {seed}: {} {}",
            change.kind(),
            change.key
        );
    };
    for at in 0..steps {
        // What is told meanwhile is looked at before something else takes its place.
        while let Some(change) = changes.try_next() {
            check(change);
        }
        step(&mut dice, at, &server, &proxy, &client, &mut truth).await;
    }
    let shown = || -> BTreeMap<String, u64> {
        let value = |object: &Value| object["value"].as_u64().unwrap();
        let list = informer.store().list();
        list.iter().map(|object| (object.key().to_string(), value(&object.get().unwrap()))).collect()
    };
    while shown() != truth {
        match tokio::time::timeout(LONG, changes.next()).await {
            Ok(change) => check(change.unwrap()),
            Err(_) => panic!("seed {seed}: the store has {:#?}, etcd has {truth:#?}", shown()),
        }
    }
    while let Some(change) = changes.try_next() {
        check(change);
    }
    assert_eq!(etcd.drift(), 0, "seed {seed}");
}

#[tokio::test]
async fn whatever_happens_to_etcd_the_store_ends_equal_to_it() {
    for seed in 0..3 {
        run(300, seed).await;
    }
}

#[tokio::test]
#[ignore = "takes a while; make soak runs it"]
async fn whatever_happens_to_etcd_ten_thousand_times_the_store_ends_equal_to_it() {
    for seed in 100..103 {
        run(10_000, seed).await;
    }
}
