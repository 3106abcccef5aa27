//! A feed that is read until something is there.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::StreamExt as _;
use serde_json::Value;
use watchkeeper_core::{Document, Event, Feed, Freshness, Source as _, Start};
use watchkeeper_sources::files::Files;

/// Longer than anything takes, also where the machine is busy.
pub(crate) const LONG: Duration = Duration::from_secs(30);

pub(crate) struct Tap {
    feed: Feed,
    pub(crate) values: BTreeMap<String, Value>,
    pub(crate) log: Vec<String>,
    /// Of the snapshot that is being taken.
    listed: Option<Vec<String>>,
}

/// The value of a Route, or all of something else.
fn value(document: &Document) -> Value {
    let value: Value = serde_json::from_slice(&document.body).unwrap();
    value.pointer("/spec/value").cloned().unwrap_or(value)
}

impl Tap {
    /// Opens a feed and reads its first snapshot.
    pub(crate) async fn on(files: &Files) -> Self {
        let feed = files.open(Start::Snapshot(Freshness::Any));
        let mut tap = Self { feed, values: BTreeMap::new(), log: Vec::new(), listed: None };
        tap.until(|tap| tap.log.last().is_some_and(|last| last == "complete")).await;
        tap
    }

    pub(crate) fn value(&self, name: &str) -> Option<u64> {
        self.values.get(name).and_then(Value::as_u64)
    }

    /// Reads on until this holds.
    pub(crate) async fn until(&mut self, done: impl Fn(&Self) -> bool) {
        while !done(self) {
            match tokio::time::timeout(LONG, self.feed.next()).await {
                Ok(Some(Ok(event))) => self.take(event),
                other => panic!("{other:?} after {:#?}", self.log),
            }
        }
    }

    /// Reads on until the feed fails, and gives the error.
    pub(crate) async fn failure(&mut self) -> watchkeeper_core::Error {
        loop {
            match tokio::time::timeout(LONG, self.feed.next()).await {
                Ok(Some(Ok(event))) => self.take(event),
                Ok(Some(Err(error))) => return error,
                other => panic!("{other:?} after {:#?}", self.log),
            }
        }
    }

    pub(crate) async fn until_value(&mut self, name: &str, value: u64) {
        self.until(|tap| tap.value(name) == Some(value)).await;
    }

    pub(crate) async fn until_gone(&mut self, name: &str) {
        self.until(|tap| !tap.values.contains_key(name)).await;
    }

    pub(crate) async fn until_said(&mut self, text: &str) {
        self.until(|tap| tap.says(text)).await;
    }

    pub(crate) fn says(&self, text: &str) -> bool {
        self.log.iter().any(|line| line.contains(text))
    }

    fn take(&mut self, event: Event) {
        let name = |document: &Document| document.header.key.name().to_owned();
        let line = match event {
            Event::Begin => {
                self.listed = Some(Vec::new());
                "begin".into()
            }
            Event::Item(document) | Event::Put { document, .. } => {
                let (name, value) = (name(&document), value(&document));
                self.listed.iter_mut().for_each(|listed| listed.push(name.clone()));
                let line = format!("put {name}={value}");
                self.values.insert(name, value);
                line
            }
            Event::Delete { document, .. } => panic!("{}: files keep no last states", name(&document)),
            Event::Gone { key, .. } => {
                self.values.remove(key.name());
                format!("gone {key}")
            }
            Event::Complete(_) => {
                let listed = self.listed.take().expect("a snapshot that has begun");
                self.values.retain(|name, _| listed.contains(name));
                "complete".into()
            }
            Event::Position(version) => format!("position {version}"),
            Event::Rejected(rejection) => {
                let key = rejection.key.as_ref().map(|key| key.name().to_owned());
                self.listed.iter_mut().for_each(|listed| listed.extend(key.clone()));
                format!("rejected {rejection}")
            }
            other => panic!("{other:?}"),
        };
        self.log.push(line);
    }
}
