//! A feed of a table that is read until something is there. The suites of all databases share it.

use std::collections::BTreeMap;

use futures_util::StreamExt as _;
use serde_json::Value;
use watchkeeper_core::{Document, Error, Event, Feed, Freshness, Source, Start, Version};

use crate::server::LONG;

pub(crate) struct Tap {
    feed: Feed,
    pub(crate) values: BTreeMap<String, Value>,
    pub(crate) log: Vec<String>,
    /// The objects as they came.
    pub(crate) bodies: BTreeMap<String, String>,
    /// The last position of the log.
    pub(crate) position: Option<Version>,
}

impl Tap {
    /// Opens a feed and reads its first snapshot.
    pub(crate) async fn on(source: &impl Source) -> Self {
        let mut tap = Self::closed(source);
        tap.until_said("complete").await;
        tap
    }

    pub(crate) fn closed(source: &impl Source) -> Self {
        Self::start(source, Start::Snapshot(Freshness::Any))
    }

    pub(crate) fn start(source: &impl Source, start: Start) -> Self {
        Self {
            feed: source.open(start),
            values: BTreeMap::new(),
            log: Vec::new(),
            bodies: BTreeMap::new(),
            position: None,
        }
    }

    /// Why a feed that is opened fails at once.
    pub(crate) async fn refusal(source: &impl Source) -> Error {
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
            Event::Put { document, position } => {
                self.put(&document);
                self.position = position.or(self.position.take());
                format!("put {}", name(&document))
            }
            Event::Gone { key, position } => {
                self.values.remove(&key.to_string());
                self.position = position.or(self.position.take());
                format!("gone {key}")
            }
            Event::Complete(version) => {
                self.position = Some(version);
                "complete".into()
            }
            Event::Position(version) => {
                let line = format!("position {version}");
                self.position = Some(version);
                line
            }
            Event::Rejected(rejection) => format!("rejected {rejection}"),
            Event::Delete { document, .. } => panic!("{}: no last states are kept", name(&document)),
            other => panic!("{other:?}"),
        };
        self.log.push(line);
    }

    fn put(&mut self, document: &Document) {
        let (key, body) =
            (document.header.key.to_string(), String::from_utf8(document.body.to_vec()).unwrap());
        self.values.insert(key.clone(), serde_json::from_str(&body).unwrap());
        self.bodies.insert(key, body);
    }
}
