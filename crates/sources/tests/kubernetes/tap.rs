//! Shows what a feed delivers as short lines of text.

use std::time::Duration;

use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use watchkeeper_core::{Document, Event, Freshness, Source, Start, Version};
use watchkeeper_sources::kubernetes::Kubernetes;

use crate::server::Server;

/// A feed that is read in the background. Dropping it drops the feed.
pub(crate) struct Tap {
    lines: mpsc::UnboundedReceiver<String>,
    task: JoinHandle<()>,
}

impl Tap {
    pub(crate) fn open(source: &Kubernetes, start: Start) -> Self {
        let mut feed = source.open(start);
        let (sender, lines) = mpsc::unbounded_channel();
        let task = tokio::spawn(async move {
            while let Some(event) = feed.next().await {
                let line = event.map_or_else(|error| format!("error {error}"), |event| show(&event));
                let _ = sender.send(line);
            }
            let _ = sender.send("end".into());
            assert!(feed.next().await.is_none());
        });
        Self { lines, task }
    }

    /// The next event, the error, or `end`.
    pub(crate) async fn next(&mut self) -> String {
        let line = tokio::time::timeout(Duration::from_secs(20), self.lines.recv()).await;
        line.expect("the feed delivers nothing").expect("the feed is over")
    }

    /// The next so many events.
    pub(crate) async fn take(&mut self, count: usize) -> Vec<String> {
        let mut lines = Vec::new();
        for _ in 0..count {
            lines.push(self.next().await);
        }
        lines
    }

    /// All events to the end, which is not among them.
    pub(crate) async fn all(mut self) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            match self.next().await {
                line if line == "end" => return lines,
                line => lines.push(line),
            }
        }
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(crate) fn pods(server: &Server) -> Kubernetes {
    Kubernetes::of::<Pod>(server.connection())
}

/// As [`pods`], with lists in pages only.
pub(crate) fn paged_pods(server: &Server) -> Kubernetes {
    pods(server).streaming(false)
}

pub(crate) fn any() -> Start {
    Start::Snapshot(Freshness::Any)
}

pub(crate) fn newest() -> Start {
    Start::Snapshot(Freshness::Newest)
}

pub(crate) fn not_older(version: u64) -> Start {
    Start::Snapshot(Freshness::NotOlderThan(Version::from(version)))
}

pub(crate) fn resume(version: &str) -> Start {
    Start::Resume(Version::from(version))
}

/// Lets a time pass at once. The clock stands still only while this runs: sockets and paused clocks do not go together.
pub(crate) async fn let_pass(time: Duration) {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

fn show(event: &Event) -> String {
    let object = |document: &Document| format!("{}@{}", document.header.key, document.header.version);
    let at = |position: &Option<Version>| position.as_ref().map(|at| format!(" >{at}")).unwrap_or_default();
    match event {
        Event::Begin => "begin".into(),
        Event::Item(document) => format!("item {}", object(document)),
        Event::Complete(version) => format!("complete >{version}"),
        Event::Put { document, position } => format!("put {}{}", object(document), at(position)),
        Event::Delete { document, position } => format!("delete {}{}", object(document), at(position)),
        Event::Gone { key, position } => format!("gone {key}{}", at(position)),
        Event::Position(version) => format!("nothing >{version}"),
        Event::Rejected(rejection) => format!("rejected {rejection}{}", at(&rejection.position)),
        other => panic!("{other:?}"),
    }
}

/// A pod.
pub(crate) fn pod(name: &str, version: u64) -> String {
    format!(
        r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"{name}","namespace":"n","uid":"u-{name}","resourceVersion":"{version}"}},"spec":{{"secret":"s3cr3t"}}}}"#
    )
}

/// An entry of a watch.
pub(crate) fn entry(kind: &str, object: &str) -> String {
    format!(r#"{{"type":"{kind}","object":{object}}}"#)
}

pub(crate) fn added(name: &str, version: u64) -> String {
    entry("ADDED", &pod(name, version))
}

pub(crate) fn modified(name: &str, version: u64) -> String {
    entry("MODIFIED", &pod(name, version))
}

pub(crate) fn deleted(name: &str, version: u64) -> String {
    entry("DELETED", &pod(name, version))
}

pub(crate) fn bookmark(version: u64) -> String {
    entry(
        "BOOKMARK",
        &format!(r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"resourceVersion":"{version}"}}}}"#),
    )
}

/// The bookmark that ends the initial entries.
pub(crate) fn end_bookmark(version: u64) -> String {
    entry(
        "BOOKMARK",
        &format!(
            r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"resourceVersion":"{version}","annotations":{{"k8s.io/initial-events-end":"true"}}}}}}"#
        ),
    )
}

/// A `Status` as the server sends it.
pub(crate) fn status(code: u16, reason: &str, message: &str) -> String {
    format!(
        r#"{{"kind":"Status","apiVersion":"v1","metadata":{{}},"status":"Failure","message":"{message}","reason":"{reason}","code":{code}}}"#
    )
}

/// A page of a list; the items do not say their kind, as those of built-in kinds do not.
pub(crate) fn page(version: u64, names: &[&str], next: &str) -> String {
    let items: Vec<String> = names
        .iter()
        .map(|name| format!(r#"{{"metadata":{{"name":"{name}","namespace":"n","resourceVersion":"1"}}}}"#))
        .collect();
    format!(
        r#"{{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":"{version}","continue":"{next}"}},"items":[{}]}}"#,
        items.join(",")
    )
}
