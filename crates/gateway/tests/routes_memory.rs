//! What routes take of memory: alone in its process, and counted, so that it is the same on every machine.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "tests")]

use std::cmp::Ordering;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use watchkeeper_core::{
    Capabilities, Document, Event, Feed, Follow, ObjectStatus, Order, Projection, Source, Start,
    StatusWritten, Version,
};
use watchkeeper_counting::Counting;
use watchkeeper_gateway::kinds::API_VERSION;
use watchkeeper_gateway::{From, Gateway, Options};
use watchkeeper_sources::files::Files;

#[global_allocator]
static MEMORY: Counting = Counting::new();

/// What is counted is that of the whole process.
static ALONE: Mutex<()> = Mutex::new(());

/// Whatever takes longer has failed.
const TIMEOUT: Duration = Duration::from_secs(120);
/// Routes of a gateway that has many.
const ROUTES: usize = 10_000;
/// What a gateway with so many routes of a cluster may have in use, in bytes. The limit is that no more than 60 MB are resident with them; besides what
/// is in use, these are the program itself, what the allocator needs, and what it could not give back.
const OF_CLUSTER: usize = 30_000_000;
/// The same for routes of files.
const OF_FILES: usize = 33_500_000;

/// The routes of a gateway that has many, and under the number 0 the backend of all.
fn member(number: usize) -> Value {
    let rule =
        json!({"matches": [{"path": {"prefix": format!("/r{number}")}}], "backends": [{"name": "r0"}]});
    let (kind, spec) = match number {
        0 => ("GatewayBackend", json!({"url": "http://127.0.0.1:1"})),
        _ => ("GatewayRoute", json!({"rules": [rule]})),
    };
    json!({"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": format!("r{number}")}, "spec": spec})
}

/// Objects as an API server has them, each of which comes back with the status that was written; after them, one more. It keeps none of them, so
/// that what is counted is what the gateway keeps.
struct Cluster {
    writes: mpsc::UnboundedSender<usize>,
    written: Mutex<Option<mpsc::UnboundedReceiver<usize>>>,
}

impl Cluster {
    fn new() -> Self {
        let (writes, written) = mpsc::unbounded_channel();
        Self { writes, written: Mutex::new(Some(written)) }
    }

    fn document(number: usize, version: &Version, status: Value) -> Document {
        let mut object = member(number);
        object["metadata"] = json!({
            "name": format!("r{number}"), "namespace": "default", "generation": 1,
            "uid": format!("00000000-0000-4000-8000-{number:012}"), "resourceVersion": version.to_string(),
            "creationTimestamp": "2026-01-01T00:00:00Z", "managedFields": [{"manager": "test", "operation": "Update"}],
        });
        object["status"] = status;
        Document::read(object.to_string().as_bytes(), &Projection::default()).unwrap()
    }

    /// The entry of the log of this number.
    async fn change(written: &mut mpsc::UnboundedReceiver<usize>, entry: usize) -> Option<Event> {
        let position = Version::from(&*(ROUTES + entry + 1).to_string());
        let document = match entry.cmp(&ROUTES) {
            Ordering::Less => Self::document(written.recv().await?, &position, status()),
            Ordering::Equal => Self::document(ROUTES, &position, Value::Null),
            Ordering::Greater => std::future::pending().await,
        };
        Some(Event::Put { document, position: Some(position) })
    }
}

/// That of an object that is served.
fn status() -> Value {
    let conditions =
        [("Accepted", "Accepted"), ("ResolvedRefs", "ResolvedRefs"), ("Programmed", "Programmed")];
    let conditions = conditions.map(|(name, reason)| {
        json!({
            "type": name, "status": "True", "reason": reason, "message": "", "observedGeneration": 1,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        })
    });
    json!({"observedGeneration": 1, "conditions": conditions})
}

impl Source for Cluster {
    fn name(&self) -> &str {
        "cluster"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new(Order::Total, Follow::Log).status_write_back(true)
    }

    fn open(&self, _: Start) -> Feed {
        let written = self.written.lock().take().expect("the feed does not end");
        let version = Version::from(&*ROUTES.to_string());
        let complete = Event::Complete(version.clone());
        let items = (0..ROUTES).map(move |number| Event::Item(Self::document(number, &version, Value::Null)));
        let listed = std::iter::once(Event::Begin).chain(items).chain([complete]);
        let changes = stream::unfold((written, 0), async |(mut written, entry)| {
            let event = Self::change(&mut written, entry).await?;
            Some((event, (written, entry + 1)))
        });
        Box::pin(stream::iter(listed).chain(changes).map(Ok))
    }

    fn write_status(&self, status: ObjectStatus) -> StatusWritten {
        let number = status.key.name().trim_start_matches('r').parse().unwrap();
        // Nobody reads it when the gateway stops.
        let _ = self.writes.send(number);
        Box::pin(std::future::ready(Ok(())))
    }
}

/// What a gateway has in use when it has so many objects of a source, in bytes. When this returns, all of it is free again.
fn in_use(source: impl Source, objects: usize) -> usize {
    let before = MEMORY.in_use();
    Runtime::new().unwrap().block_on(async {
        let from = vec![From::Source(Arc::new(source))];
        let gateway = Gateway::start(Options { from, ..Options::default() }).unwrap();
        let mut handle = gateway.handle().clone();
        let all = async {
            while handle.reports().len() < objects {
                handle.changed().await;
            }
        };
        tokio::time::timeout(TIMEOUT, all).await.expect("all objects are there in time");
        let in_use = MEMORY.in_use() - before;
        println!("{objects} objects: {in_use} bytes, {} each", in_use / objects);
        gateway.stop(Duration::ZERO).await;
        in_use
    })
}

#[test]
fn ten_thousand_routes_of_a_cluster_take_no_more_than_they_may() {
    let _alone = ALONE.lock();
    let in_use = in_use(Cluster::new(), ROUTES + 1);
    assert!(in_use < OF_CLUSTER, "{in_use} bytes");
}

#[test]
fn ten_thousand_routes_of_files_take_no_more_than_they_may() {
    let _alone = ALONE.lock();
    let directory = tempfile::tempdir().unwrap();
    for number in 0..ROUTES {
        let file = directory.path().join(format!("r{number}.json"));
        std::fs::write(file, member(number).to_string()).unwrap();
    }
    let in_use = in_use(Files::directory(directory.path()), ROUTES);
    assert!(in_use < OF_FILES, "{in_use} bytes");
}
