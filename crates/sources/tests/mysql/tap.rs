//! A feed that is read until something is there.

use std::collections::BTreeMap;

use futures_util::StreamExt as _;
use serde_json::Value;
use watchkeeper_core::{Document, Error, Event, Feed, Freshness, Source as _, Start};
use watchkeeper_sources::mysql::Mysql;

use crate::server::LONG;

pub(crate) struct Tap {
    feed: Feed,
    pub(crate) values: BTreeMap<String, Value>,
    pub(crate) log: Vec<String>,
    bodies: BTreeMap<String, String>,
}

impl Tap {
    /// Opens a feed and reads its first snapshot.
    pub(crate) async fn on(source: &Mysql) -> Self {
        let mut tap = Self::closed(source);
        tap.until_said("complete").await;
        tap
    }

    pub(crate) fn closed(source: &Mysql) -> Self {
        let feed = source.open(Start::Snapshot(Freshness::Any));
        Self { feed, values: BTreeMap::new(), log: Vec::new(), bodies: BTreeMap::new() }
    }

    /// Why a feed that is opened fails at once.
    pub(crate) async fn refusal(source: &Mysql) -> Error {
        Self::closed(source).failure().await
    }

    pub(crate) async fn until(&mut self, done: impl Fn(&Self) -> bool) {
        while !done(self) {
            match tokio::time::timeout(LONG, self.feed.next()).await {
                Ok(Some(Ok(event))) => self.take(event),
                other => panic!("{other:?} after {:#?}", self.log),
            }
        }
    }

    /// Reads on until the feed fails, and gives the error.
    pub(crate) async fn failure(&mut self) -> Error {
        loop {
            match tokio::time::timeout(LONG, self.feed.next()).await {
                Ok(Some(Ok(event))) => self.take(event),
                Ok(Some(Err(error))) => return error,
                other => panic!("{other:?} after {:#?}", self.log),
            }
        }
    }

    /// The object as it came.
    pub(crate) fn body(&self, name: &str) -> &str {
        &self.bodies[name]
    }

    pub(crate) fn value(&self, name: &str) -> Option<i64> {
        self.values.get(name).and_then(|row| row["value"].as_i64())
    }

    pub(crate) async fn until_value(&mut self, name: &str, value: i64) {
        self.until(|tap| tap.value(name) == Some(value)).await;
    }

    pub(crate) async fn until_gone(&mut self, name: &str) {
        self.until(|tap| !tap.values.contains_key(name)).await;
    }

    pub(crate) async fn until_said(&mut self, text: &str) {
        if !self.log.iter().any(|line| line.contains(text)) {
            self.until(|tap| tap.log.last().is_some_and(|line| line.contains(text))).await;
        }
    }

    pub(crate) fn names(&self) -> Vec<&str> {
        self.values.keys().map(String::as_str).collect()
    }

    fn take(&mut self, event: Event) {
        let name = |document: &Document| document.header.key.to_string();
        let line = match event {
            Event::Begin => {
                self.values.clear();
                "begin".into()
            }
            Event::Item(document) => {
                self.put(&document);
                format!("item {}", name(&document))
            }
            Event::Put { document, .. } => {
                self.put(&document);
                format!("put {}", name(&document))
            }
            Event::Gone { key, .. } => {
                self.values.remove(&key.to_string());
                format!("gone {key}")
            }
            Event::Complete(_) => "complete".into(),
            Event::Position(_) => panic!("a table that is polled has no log"),
            Event::Rejected(rejection) => format!("rejected {rejection}"),
            Event::Delete { document, .. } => panic!("{}: no last states are kept", name(&document)),
        };
        self.log.push(line);
    }

    fn put(&mut self, document: &Document) {
        let body = serde_json::from_slice(&document.body).unwrap();
        self.values.insert(document.header.key.to_string(), body);
        let body = String::from_utf8(document.body.to_vec()).unwrap();
        self.bodies.insert(document.header.key.to_string(), body);
    }
}
