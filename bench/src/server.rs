//! An API server in this process for one kind, behind the clients of ours and of the peer: no socket, no JSON work
//! of its own, so that what is measured is the client's side.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::{Stream, StreamExt, stream};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use kube_client::Client;
use tokio::sync::watch;
use watchkeeper_connection::{Body, Connection, Error, Transport};

use crate::sample::Sample;

/// Bytes arrive in pieces of this size, as they do from a socket.
const CHUNK: usize = 16 << 10;
/// What a page holds by default, for ours and for the peer.
const PAGE: usize = 500;
/// The version of the list; entries follow.
pub const LIST_VERSION: u64 = 1_000_000;

type Answer = Response<StreamBody<stream::BoxStream<'static, Result<Frame<Bytes>, Infallible>>>>;

/// What the server has to say.
pub struct Fixture {
    sample: Sample,
    items: Vec<Bytes>,
    /// The same objects as watch lines, cut into chunks.
    initial: Vec<Bytes>,
    /// Watch lines, cut into chunks.
    entries: Vec<Bytes>,
    last_version: u64,
    /// Pages that were asked for before, so that serving them again costs nothing that could be counted as the client's.
    pages: Mutex<HashMap<(usize, usize), Vec<Bytes>>>,
    /// Whether the first log ends with the news that its version is gone, so that the client has to list again.
    expires: bool,
}

impl Fixture {
    /// `objects` objects, then `changes` changes of the first `changing` of them, one after the other.
    pub fn new(sample: Sample, objects: usize, changes: usize, changing: usize) -> Arc<Self> {
        let mut lines = Vec::new();
        for change in 0..changes {
            let version = LIST_VERSION + 1 + change as u64;
            lines.extend_from_slice(br#"{"type":"MODIFIED","object":"#);
            lines.extend_from_slice(&sample.json(change % changing.max(1), version));
            lines.extend_from_slice(b"}\n");
        }
        Arc::new(Self {
            last_version: LIST_VERSION + changes as u64,
            entries: chunks(lines.into()),
            ..Self::of(sample, objects)
        })
    }

    /// `objects` objects, and a log that expires, so that they have to be listed again.
    pub fn expiring(sample: Sample, objects: usize) -> Arc<Self> {
        let gone = br#"{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","message":"too old resource version","reason":"Expired","code":410}}"#;
        let entries = vec![Bytes::from([gone, &b"\n"[..]].concat())];
        Arc::new(Self { entries, expires: true, ..Self::of(sample, objects) })
    }

    fn of(sample: Sample, objects: usize) -> Self {
        let items: Vec<_> = (0..objects).map(|n| Bytes::from(sample.json(n, n as u64 + 1))).collect();
        let mut lines = Vec::new();
        for item in &items {
            lines.extend_from_slice(br#"{"type":"ADDED","object":"#);
            lines.extend_from_slice(item);
            lines.extend_from_slice(b"}\n");
        }
        let fixture = Self {
            sample,
            items,
            initial: chunks(lines.into()),
            entries: Vec::new(),
            last_version: LIST_VERSION,
            pages: Mutex::default(),
            expires: false,
        };
        for from in (0..objects).step_by(PAGE) {
            fixture.page(from, PAGE);
        }
        fixture
    }

    /// The version of the last change.
    pub fn last_version(&self) -> u64 {
        self.last_version
    }

    /// The objects' JSON.
    pub fn items(&self) -> &[Bytes] {
        &self.items
    }

    /// The peer's client of this server. The log is held back until `go` is true.
    pub fn client(self: &Arc<Self>, go: watch::Receiver<bool>) -> Client {
        let fixture = Arc::clone(self);
        let expired = AtomicBool::new(false);
        let service = tower::service_fn(move |request: Request<kube_client::client::Body>| {
            let response = fixture.answer(&request, go.clone(), &expired);
            async move { Ok::<_, Infallible>(response) }
        });
        Client::new(service, "default")
    }

    /// Our connection to this server. The log is held back until `go` is true.
    pub fn connection(self: &Arc<Self>, go: watch::Receiver<bool>) -> Connection {
        let served = Served { fixture: Arc::clone(self), go, expired: AtomicBool::new(false) };
        Connection::over(served, "default")
    }

    fn answer<B>(
        self: &Arc<Self>,
        request: &Request<B>,
        go: watch::Receiver<bool>,
        expired: &AtomicBool,
    ) -> Answer {
        let query = request.uri().query().unwrap_or_default();
        let parameter = |name: &str| {
            query
                .split('&')
                .find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
                .unwrap_or_default()
                .to_owned()
        };
        let body = if ["1", "true"].contains(&&*parameter("watch")) {
            let initial = parameter("sendInitialEvents") == "true";
            // What expires does so once; the log after the second list is quiet.
            let quiet = self.expires && expired.swap(true, Ordering::Relaxed);
            self.watch(initial, quiet, go).boxed()
        } else {
            // As the real server does, a list from the cache is not cut into pages.
            let limit = if parameter("resourceVersion") == "0" { "" } else { &*parameter("limit") };
            stream::iter(
                self.page(parameter("continue").parse().unwrap_or(0), limit.parse().unwrap_or(usize::MAX)),
            )
            .boxed()
        };
        Response::new(StreamBody::new(body.map(|chunk| Ok(Frame::data(chunk))).boxed()))
    }

    fn page(&self, from: usize, limit: usize) -> Vec<Bytes> {
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        pages.entry((from, limit)).or_insert_with(|| self.make_page(from, limit)).clone()
    }

    fn make_page(&self, from: usize, limit: usize) -> Vec<Bytes> {
        let to = from.saturating_add(limit).min(self.items.len());
        let next = if to < self.items.len() { format!(r#","continue":"{to}""#) } else { String::new() };
        let mut body = format!(
            r#"{{"kind":"{}List","apiVersion":"v1","metadata":{{"resourceVersion":"{LIST_VERSION}"{next}}},"items":["#,
            self.sample.kind()
        )
        .into_bytes();
        for (at, item) in self.items[from..to].iter().enumerate() {
            body.extend_from_slice(if at == 0 { b"" } else { b"," });
            body.extend_from_slice(item);
        }
        body.extend_from_slice(b"]}");
        chunks(body.into())
    }

    fn watch(
        self: &Arc<Self>,
        initial: bool,
        quiet: bool,
        mut go: watch::Receiver<bool>,
    ) -> impl Stream<Item = Bytes> + use<> {
        let objects = if initial { self.initial.clone() } else { Vec::new() };
        let bookmark = format!(
            r#"{{"type":"BOOKMARK","object":{{"kind":"{}","apiVersion":"v1","metadata":{{"resourceVersion":"{LIST_VERSION}","annotations":{{"k8s.io/initial-events-end":"true"}}}}}}}}"#,
            self.sample.kind()
        );
        let bookmark = initial.then(|| Bytes::from(bookmark + "\n"));
        let wait =
            stream::once(async move { go.wait_for(|go| *go).await.is_ok() }).filter_map(|_| async { None });
        let entries = if quiet { Vec::new() } else { self.entries.clone() };
        stream::iter(objects)
            .chain(stream::iter(bookmark))
            .chain(wait)
            .chain(stream::iter(entries))
            .chain(stream::pending())
    }
}

struct Served {
    fixture: Arc<Fixture>,
    go: watch::Receiver<bool>,
    expired: AtomicBool,
}

impl Transport for Served {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'static, Result<Response<Body>, Error>> {
        let answer = self.fixture.answer(&request, self.go.clone(), &self.expired);
        Box::pin(std::future::ready(Ok(answer.map(Body::wrap))))
    }
}

fn chunks(bytes: Bytes) -> Vec<Bytes> {
    (0..bytes.len()).step_by(CHUNK).map(|at| bytes.slice(at..bytes.len().min(at + CHUNK))).collect()
}
