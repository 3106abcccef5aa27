//! The channel as a source.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::collections::BTreeMap;

use serde_json::{Value, json};
use watchkeeper_core::contract::{World, check};
use watchkeeper_core::{ChangeKind, Key, Source};
use watchkeeper_informer::Informer;
use watchkeeper_sources::channel::{Channel, Sender, channel};

struct Pair {
    sender: Sender,
    channel: Channel,
}

fn key(name: &str) -> Key {
    Key::new(None, name)
}

impl World for Pair {
    fn source(&self) -> impl Source {
        self.channel.clone()
    }

    async fn put(&self, name: &str, value: u64) {
        self.sender.put(&key(name), &value).unwrap();
    }

    async fn delete(&self, name: &str) {
        self.sender.remove(&key(name));
    }

    async fn expire(&self) -> bool {
        for value in 0..5000 {
            self.put("many", value).await;
        }
        true
    }
}

#[tokio::test]
async fn a_channel_holds_the_contract() {
    let (sender, channel) = channel("numbers");
    let kept = check(&Pair { sender, channel }).await.unwrap();
    assert_eq!(kept.len(), 7, "{kept:?}");
}

#[tokio::test]
async fn a_reader_ends_with_what_was_put_however_fast_that_was() {
    let (sender, channel) = channel("numbers");
    let informer = Informer::<u64>::builder().start(channel);
    informer.synced().await.unwrap();
    let mut changes = informer.subscribe("test");
    let mut truth = BTreeMap::new();
    for step in 0..20_000u64 {
        let name = format!("n{}", step * 7919 % 50);
        if step.is_multiple_of(5) {
            assert_eq!(sender.remove(&key(&name)), truth.remove(&name).is_some());
        } else {
            sender.put(&key(&name), &step).unwrap();
            truth.insert(name, step);
        }
        if step.is_multiple_of(1000) {
            tokio::task::yield_now().await;
        }
    }
    let shown = || -> BTreeMap<String, u64> {
        informer
            .store()
            .list()
            .iter()
            .map(|object| (object.key().to_string(), *object.get().unwrap()))
            .collect()
    };
    while shown() != truth {
        changes.next().await.unwrap();
    }
}

#[tokio::test]
async fn a_replaced_set_tells_what_differs_and_nothing_else() {
    let (sender, channel) = channel("things");
    sender.put(&key("a"), &json!({"n": 1})).unwrap();
    sender.put(&key("b"), &json!({"n": 1})).unwrap();
    let informer = Informer::<Value>::builder().start(channel);
    informer.synced().await.unwrap();
    let mut changes = informer.subscribe("test");
    while changes.try_next().is_some() {}
    let (one, two) = (json!({"n": 1}), json!({"n": 2}));
    sender.replace([(key("b"), &two), (key("c"), &one)]).unwrap();
    let mut told = Vec::new();
    while told.len() < 3 {
        let change = changes.next().await.unwrap();
        told.push((change.key.to_string(), change.kind()));
    }
    told.sort_by(|left, right| left.0.cmp(&right.0));
    let expected = [("a", ChangeKind::Deleted), ("b", ChangeKind::Modified), ("c", ChangeKind::Added)];
    assert_eq!(told, expected.map(|(name, kind)| (name.to_owned(), kind)));

    sender.replace([(key("b"), &two), (key("c"), &one)]).unwrap();
    sender.put(&key("last"), &one).unwrap();
    assert_eq!(changes.next().await.unwrap().key, key("last"));
}

#[tokio::test]
async fn an_object_that_is_removed_and_put_again_is_another_one() {
    let (sender, channel) = channel("things");
    sender.put(&key("a"), &1).unwrap();
    let informer = Informer::<u64>::builder().start(channel);
    informer.synced().await.unwrap();
    let mut changes = informer.subscribe("test");
    changes.next().await.unwrap();
    sender.remove(&key("a"));
    sender.put(&key("a"), &1).unwrap();
    assert_eq!(changes.next().await.unwrap().kind(), ChangeKind::Deleted);
    assert_eq!(changes.next().await.unwrap().kind(), ChangeKind::Added);
}
