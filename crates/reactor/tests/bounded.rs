//! A flood of changes: memory and the state file stay as large as the objects are.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "tests")]

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;
use watchkeeper_core::{
    Capabilities, Document, Event, Feed, Follow, Order, Projection, Source, Start, Version,
};
use watchkeeper_counting::Counting;
use watchkeeper_reactor::{Engine, Options, Reactor};

#[global_allocator]
static MEMORY: Counting = Counting::new();

const OBJECTS: u64 = 1_000;
const REACTIONS: u64 = 3;

/// So many changes may wait to be delivered before the flood waits: a flood that nobody stops is one change for each object.
const AHEAD: u64 = 2_000;

/// Has `OBJECTS` objects, and changes them until it has told `changes`.
struct Flood {
    changes: u64,
    delivered: Arc<AtomicU64>,
}

fn document(at: u64) -> Document {
    let n = at.wrapping_mul(7_919) % OBJECTS;
    let filler = "x".repeat(300);
    // Some changes are run, some are posted.
    let (run, post) = (at.is_multiple_of(500), at.is_multiple_of(50));
    let json = format!(
        r#"{{"metadata":{{"name":"object-{n}","resourceVersion":"{}"}},"value":{at},"run":{run},"post":{post},"filler":"{filler}"}}"#,
        at + 1
    );
    Document::read(json.as_bytes(), &Projection::default()).unwrap()
}

impl Source for Flood {
    fn name(&self) -> &str {
        "flood"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new(Order::Total, Follow::Log)
    }

    fn open(&self, start: Start) -> Feed {
        assert!(matches!(start, Start::Snapshot(_)), "the feed never ends");
        let items = stream::iter((0..OBJECTS).map(|at| Event::Item(document(at))));
        let snapshot = stream::iter([Event::Begin]).chain(items);
        let snapshot = snapshot.chain(stream::iter([Event::Complete(Version::from(OBJECTS))]));
        let delivered = Arc::clone(&self.delivered);
        let log = stream::iter(OBJECTS..self.changes).then(move |at| {
            let delivered = Arc::clone(&delivered);
            async move {
                while at.saturating_sub(delivered.load(Ordering::Relaxed)) > AHEAD {
                    tokio::time::sleep(Duration::from_micros(200)).await;
                }
                let (document, position) = (document(at), Some(Version::from(at + 1)));
                if at.is_multiple_of(97) {
                    Event::Delete { document, position }
                } else {
                    Event::Put { document, position }
                }
            }
        });
        Box::pin(snapshot.chain(log).chain(stream::pending()).map(Ok))
    }
}

/// Answers 200 to whatever it is asked, and counts.
async fn hook(posted: Arc<AtomicU64>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let posted = Arc::clone(&posted);
            tokio::spawn(async move {
                let mut socket = BufReader::new(socket);
                loop {
                    let (mut line, mut length) = (String::new(), 0);
                    while line != "\r\n" {
                        line.clear();
                        if socket.read_line(&mut line).await.unwrap_or(0) == 0 {
                            return;
                        }
                        if let Some((name, value)) = line.split_once(':')
                            && name.eq_ignore_ascii_case("content-length")
                        {
                            length = value.trim().parse().unwrap();
                        }
                    }
                    tokio::io::copy(&mut (&mut socket).take(length), &mut tokio::io::sink()).await.unwrap();
                    posted.fetch_add(1, Ordering::Relaxed);
                    socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
                }
            });
        }
    });
    address
}

const FILE: &str = "
apiVersion: run.watchkeeper.dev/v1alpha1
kind: Reactor
spec:
  sources: [{name: flood, url: 'file:nowhere'}]
  reactions:
  - {name: none, on: flood, concurrency: 2, filter: [{path: .value, equals: -1}], do: {shell: 'false'}}
  - {name: run, on: flood, concurrency: 2, filter: [{path: .run, equals: true}], do: {shell: 'true'}}
  - {name: post, on: flood, concurrency: 2, filter: [{path: .post, equals: true}], do: {post: {url: 'http://HOOK/'}}}
";

async fn flood(changes: u64) {
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("state");
    let delivered = Arc::new(AtomicU64::new(0));
    let posted = Arc::new(AtomicU64::new(0));
    let file = FILE.replace("HOOK", &hook(Arc::clone(&posted)).await.to_string());
    let reactor = Reactor::read(&file, "r.yaml", Path::new("/")).unwrap();
    let reactor = reactor.with_source("flood", Flood { changes, delivered: Arc::clone(&delivered) }).unwrap();
    let options = Options { state: Some(state.clone()), ..Options::default() };
    let engine = Engine::start(reactor, options).unwrap();
    let (mut early, mut most, mut largest) = (0, 0, 0);
    loop {
        tokio::time::sleep(Duration::from_millis(1)).await;
        let summary = engine.summary();
        // Changes in quick succession are one, so that fewer are delivered than were told: the flood goes on when all queues are empty.
        let handled = (summary.done + summary.filtered) / REACTIONS;
        let idle = engine.is_idle();
        delivered.fetch_max(handled, Ordering::Relaxed);
        if idle {
            delivered.fetch_add(AHEAD / 2, Ordering::Relaxed);
        }
        let live = MEMORY.in_use() as u64;
        if early == 0 && delivered.load(Ordering::Relaxed) > changes / 10 {
            early = live;
        }
        if early > 0 {
            most = most.max(live);
        }
        largest = largest.max(state.metadata().map_or(0, |metadata| metadata.len()));
        if delivered.load(Ordering::Relaxed) >= changes + AHEAD && idle {
            break;
        }
    }
    let summary = engine.summary();
    assert_eq!(summary.given_up, 0);
    assert!(summary.filtered > changes / 4, "{summary:?} of {changes}");
    // Changes of one object in quick succession are one, so that some of them are never seen.
    let posted = posted.load(Ordering::Relaxed);
    assert!(posted > changes / 500 && summary.done > posted, "{posted} were posted: {summary:?}");
    assert!(engine.delivered() as u64 <= REACTIONS * OBJECTS, "{}", engine.delivered());
    println!("{changes} changes: {summary:?}, {early} bytes early, {most} at most, state file {largest}");
    // Room for what is under way: buffers, and changes that wait.
    assert!(most < early + (8 << 20), "memory grew from {early} to {most}");
    assert!(largest < 6 << 20, "the state file had {largest} bytes");
    engine.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_thousand_changes_leave_memory_as_it_was() {
    flood(20_000).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a million changes; `make soak` runs it"]
async fn a_million_changes_leave_memory_as_it_was() {
    flood(1_000_000).await;
}
