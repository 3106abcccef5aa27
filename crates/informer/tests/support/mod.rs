//! What the informer's tests share.
#![allow(dead_code, unreachable_pub)]

use std::time::Duration;

use serde::{Deserialize, Serialize};
use watchkeeper_core::contract::Memory;
use watchkeeper_core::{Change, Key, Start};
use watchkeeper_informer::{Informer, Object, Subscription};

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Thing {
    pub metadata: serde_json::Value,
    pub spec: Spec,
}

#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
pub struct Spec {
    pub value: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

pub fn key(name: &str) -> Key {
    Key::new(Some("shop"), name)
}

/// Lets everything run that can run. The clock is paused, so this takes no time, and no timer longer than this fires.
pub async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

pub async fn informer(source: &Memory) -> Informer<Thing> {
    let informer = Informer::builder().seed(7).start(source.clone());
    informer.synced().await.unwrap();
    informer
}

pub fn value(object: &Object<Thing>) -> u64 {
    object.get().unwrap().spec.value
}

/// A change in one line: `+a=1`, `~a=1>2`, `-a=2`; `*` in front of what is initial, `=` for a resync.
pub fn line(change: &Change<Object<Thing>>) -> String {
    let name = change.key.name();
    let mark = match change.delivery {
        watchkeeper_core::Delivery::Initial => "*",
        watchkeeper_core::Delivery::Live => "",
        watchkeeper_core::Delivery::Resync => "=",
    };
    let line = match (&change.old, &change.new) {
        (None, Some(new)) => format!("+{name}={}", value(new)),
        (Some(old), Some(new)) => format!("~{name}={}>{}", value(old), value(new)),
        (Some(old), None) => format!("-{name}={}", value(old)),
        (None, None) => unreachable!("a change without a state"),
    };
    format!("{mark}{line}")
}

/// Everything that is ready for a subscriber.
pub async fn drain(subscription: &mut Subscription<Thing>) -> Vec<String> {
    settle().await;
    let mut lines = Vec::new();
    while let Ok(Some(change)) = tokio::time::timeout(Duration::ZERO, subscription.next()).await {
        lines.push(line(&change));
    }
    lines
}

/// Store and source have the same objects in the same versions.
pub fn assert_equal_to_source(informer: &Informer<Thing>, source: &Memory) {
    let mut held: Vec<_> = informer
        .store()
        .list()
        .iter()
        .map(|object| (object.key().clone(), object.version().clone()))
        .collect();
    held.sort_by(|left, right| left.0.cmp(&right.0));
    let truth: Vec<_> = source
        .documents()
        .into_iter()
        .map(|document| (document.header.key, document.header.version))
        .collect();
    assert_eq!(held, truth);
}

pub fn snapshots(source: &Memory) -> usize {
    source.opened().iter().filter(|start| matches!(start, Start::Snapshot(_))).count()
}
