//! A feed that is read until something is there.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::StreamExt as _;
use serde_json::Value;
use watchkeeper_core::{Document, Error, Event, Feed, Freshness, Source as _, Start, Version};
use watchkeeper_sources::etcd::Etcd;

/// Longer than anything takes, also where the machine is busy.
pub(crate) const LONG: Duration = Duration::from_secs(30);

pub(crate) struct Tap {
    feed: Feed,
    pub(crate) values: BTreeMap<String, Value>,
    pub(crate) log: Vec<String>,
    pub(crate) position: Option<Version>,
    listed: Option<Vec<String>>,
}

impl Tap {
    /// Opens a feed and reads its first snapshot.
    pub(crate) async fn on(etcd: &Etcd) -> Self {
        let mut tap = Self::open(etcd, Start::Snapshot(Freshness::Any));
        tap.until(|tap| tap.log.last().is_some_and(|last| last == "complete")).await;
        tap
    }

    pub(crate) fn open(etcd: &Etcd, start: Start) -> Self {
        Self {
            feed: etcd.open(start),
            values: BTreeMap::new(),
            log: Vec::new(),
            position: None,
            listed: None,
        }
    }

    /// Reads one event, or the error that ends the feed.
    pub(crate) async fn step(&mut self) -> Result<(), Error> {
        match tokio::time::timeout(LONG, self.feed.next()).await {
            Ok(Some(Ok(event))) => {
                self.take(event);
                Ok(())
            }
            Ok(Some(Err(error))) => Err(error),
            other => panic!("{other:?} after {:#?}", self.log),
        }
    }

    pub(crate) async fn until(&mut self, done: impl Fn(&Self) -> bool) {
        while !done(self) {
            self.step().await.unwrap_or_else(|error| panic!("{error} after {:#?}", self.log));
        }
    }

    /// Reads on until the feed fails, and gives the error.
    pub(crate) async fn failure(&mut self) -> Error {
        loop {
            if let Err(error) = self.step().await {
                return error;
            }
        }
    }

    pub(crate) async fn until_value(&mut self, name: &str, value: impl Into<Value>) {
        let value = value.into();
        self.until(|tap| tap.values.get(name) == Some(&value)).await;
    }

    pub(crate) async fn until_said(&mut self, text: &str) {
        self.until(|tap| tap.says(text)).await;
    }

    pub(crate) fn says(&self, text: &str) -> bool {
        self.log.iter().any(|line| line.contains(text))
    }

    pub(crate) fn revision(&self) -> u64 {
        self.position.as_ref().and_then(Version::number).unwrap()
    }

    fn take(&mut self, event: Event) {
        let name = |document: &Document| document.header.key.to_string();
        let at = |position: &Option<Version>| if position.is_some() { "" } else { " without position" };
        let line = match event {
            Event::Begin => {
                self.listed = Some(Vec::new());
                "begin".into()
            }
            Event::Item(document) => {
                let (name, value) = (name(&document), serde_json::from_slice(&document.body).unwrap());
                self.listed.as_mut().expect("a snapshot that has begun").push(name.clone());
                let line = format!("item {name}={value}");
                self.values.insert(name, value);
                line
            }
            Event::Put { document, position } => {
                let (name, value) = (name(&document), serde_json::from_slice(&document.body).unwrap());
                let line = format!("put {name}={value}{}", at(&position));
                self.values.insert(name, value);
                self.position = position.or(self.position.take());
                line
            }
            Event::Gone { key, position } => {
                self.values.remove(&key.to_string());
                let line = format!("gone {key}{}", at(&position));
                self.position = position.or(self.position.take());
                line
            }
            Event::Complete(version) => {
                let listed = self.listed.take().expect("a snapshot that has begun");
                self.values.retain(|name, _| listed.contains(name));
                self.position = Some(version);
                "complete".into()
            }
            Event::Position(version) => {
                self.position = Some(version);
                "position".into()
            }
            Event::Rejected(rejection) => {
                let key = rejection.key.as_ref().map(ToString::to_string);
                self.listed.iter_mut().for_each(|listed| listed.extend(key.clone()));
                self.position = rejection.position.clone().or(self.position.take());
                format!("rejected {rejection}")
            }
            other => panic!("{other:?}"),
        };
        self.log.push(line);
    }
}
