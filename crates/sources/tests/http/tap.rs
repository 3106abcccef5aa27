//! A feed that is read until something is there.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::StreamExt as _;
use serde_json::Value;
use watchkeeper_core::{Document, Error, Event, Feed, Freshness, Source as _, Start};
use watchkeeper_sources::http::Http;

/// Longer than anything takes, also where the machine is busy.
pub(crate) const LONG: Duration = Duration::from_secs(30);

pub(crate) struct Tap {
    feed: Feed,
    pub(crate) values: BTreeMap<String, u64>,
    pub(crate) log: Vec<String>,
}

impl Tap {
    pub(crate) async fn on(http: &Http) -> Self {
        let mut tap = Self::closed(http);
        tap.until(|tap| tap.log.last().is_some_and(|last| last == "complete")).await;
        tap
    }

    pub(crate) fn closed(http: &Http) -> Self {
        Self { feed: http.open(Start::Snapshot(Freshness::Any)), values: BTreeMap::new(), log: Vec::new() }
    }

    pub(crate) async fn until(&mut self, done: impl Fn(&Self) -> bool) {
        while !done(self) {
            match tokio::time::timeout(LONG, self.feed.next()).await {
                Ok(Some(Ok(event))) => self.take(event),
                other => panic!("{other:?} after {:#?}", self.log),
            }
        }
    }

    pub(crate) async fn failure(&mut self) -> Error {
        loop {
            match tokio::time::timeout(LONG, self.feed.next()).await {
                Ok(Some(Ok(event))) => self.take(event),
                Ok(Some(Err(error))) => return error,
                other => panic!("{other:?} after {:#?}", self.log),
            }
        }
    }

    pub(crate) async fn until_value(&mut self, name: &str, value: u64) {
        self.until(|tap| tap.values.get(name) == Some(&value)).await;
    }

    fn take(&mut self, event: Event) {
        let name = |document: &Document| document.header.key.to_string();
        self.log.push(match event {
            Event::Begin => {
                self.values.clear();
                "begin".into()
            }
            Event::Item(document) | Event::Put { document, .. } => {
                let body: Value = serde_json::from_slice(&document.body).unwrap();
                self.values.insert(name(&document), body["value"].as_u64().unwrap());
                format!("put {}", name(&document))
            }
            Event::Gone { key, .. } => {
                self.values.remove(&key.to_string());
                format!("gone {key}")
            }
            Event::Complete(_) => "complete".into(),
            Event::Rejected(rejection) => format!("rejected {rejection}"),
            other => panic!("{other:?}"),
        });
    }
}
