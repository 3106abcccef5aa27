//! A feed that is read until something is there.

use std::time::Duration;

use futures_util::StreamExt as _;
use serde_json::Value;
use watchkeeper_core::{Document, Error, Event, Feed, Freshness, Source as _, Start, Version};
use watchkeeper_sources::union::Union;

/// Longer than anything takes, also where the machine is busy.
pub(crate) const LONG: Duration = Duration::from_secs(120);

pub(crate) struct Tap {
    feed: Feed,
    pub(crate) log: Vec<String>,
    pub(crate) position: Option<Version>,
    pub(crate) documents: Vec<Document>,
}

impl Tap {
    /// Opens a feed and reads its first snapshot.
    pub(crate) async fn on(union: &Union) -> Self {
        let mut tap = Self::open(union, Start::Snapshot(Freshness::Any));
        tap.until("complete").await;
        tap
    }

    pub(crate) fn open(union: &Union, start: Start) -> Self {
        Self { feed: union.open(start), log: Vec::new(), position: None, documents: Vec::new() }
    }

    /// What came since it was asked last, up to what begins so.
    pub(crate) async fn until(&mut self, text: &str) -> Vec<String> {
        let from = self.log.len();
        while !self.log[from..].iter().any(|line| line.starts_with(text)) {
            self.step().await.unwrap_or_else(|error| panic!("{error} after {:#?}", self.log));
        }
        self.log[from..].to_vec()
    }

    /// Whether something comes within a time.
    pub(crate) async fn is_silent(&mut self, time: Duration) -> bool {
        let from = self.log.len();
        let _ = tokio::time::timeout(time, async { while self.step().await.is_ok() {} }).await;
        self.log[from..].iter().all(|line| line == "position")
    }

    pub(crate) async fn failure(&mut self) -> Error {
        loop {
            if let Err(error) = self.step().await {
                return error;
            }
        }
    }

    async fn step(&mut self) -> Result<(), Error> {
        match tokio::time::timeout(LONG, self.feed.next()).await {
            Ok(Some(Ok(event))) => {
                self.take(event);
                Ok(())
            }
            Ok(Some(Err(error))) => Err(error),
            other => panic!("{other:?} after {:#?}", self.log),
        }
    }

    fn take(&mut self, event: Event) {
        let mut show = |document: Document| {
            let body: Value = serde_json::from_slice(&document.body).unwrap();
            let value = body.pointer("/spec/value").cloned().unwrap_or(body);
            let key = document.header.key.clone();
            self.documents.push(document);
            format!("{key}={value}")
        };
        let mut moved = None;
        let line = match event {
            Event::Begin => "begin".into(),
            Event::Item(document) => format!("item {}", show(document)),
            Event::Put { document, position } => {
                moved = position;
                format!("put {}", show(document))
            }
            Event::Delete { document, position } => {
                moved = position;
                format!("gone {}", document.header.key)
            }
            Event::Gone { key, position } => {
                moved = position;
                format!("gone {key}")
            }
            Event::Complete(version) => {
                moved = Some(version);
                "complete".into()
            }
            Event::Position(version) => {
                moved = Some(version);
                "position".into()
            }
            Event::Rejected(rejection) => format!("rejected {rejection}"),
            other => panic!("{other:?}"),
        };
        self.position = moved.or(self.position.take());
        self.log.push(line);
    }
}
