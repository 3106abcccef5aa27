//! The access log: a line of JSON for a request, when its last byte is sent.

use std::io::Write;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, SystemTime};

use http::Method;
use serde_json::json;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};
use watchkeeper_core::Key;
use watchkeeper_go::Time;
use watchkeeper_supervision::Supervisor;

use crate::table::RouteHead;
use crate::thread;

/// The name of the thread that writes.
const TASK: &str = "access-log";

/// How many lines may wait to be written. More are lost, and counted.
const WAITING: usize = 4_096;
/// How long a gateway that stops waits for its lines to be written.
const FLUSH: Duration = Duration::from_secs(5);
/// How often it looks whether there is room again to ask for that.
const ROOM: Duration = Duration::from_millis(10);

/// What a line says besides what is known at the end.
pub(crate) struct Line {
    pub(crate) client: IpAddr,
    pub(crate) method: Method,
    pub(crate) host: String,
    /// Without the query: it may hold what is nobody's business.
    pub(crate) path: String,
    pub(crate) backend: Option<Key>,
    pub(crate) endpoint: Option<Arc<str>>,
}

/// Where lines go.
#[derive(Default)]
pub(crate) struct AccessLog {
    sender: Option<SyncSender<Message>>,
    /// Of so many requests, one is logged; all that failed with a code from 500 are.
    one_in: u64,
    seen: AtomicU64,
    counted: Arc<Counted>,
}

enum Message {
    Line(Vec<u8>),
    /// Answered when all that came before is written.
    Flush(oneshot::Sender<()>),
}

#[derive(Default)]
struct Counted {
    waiting: AtomicU64,
    lost: AtomicU64,
}

impl AccessLog {
    /// Writes to this, from a thread of its own, so that nobody waits for a disk.
    pub(crate) fn start(
        mut output: Box<dyn Write + Send>,
        one_in: u64,
        supervisor: &Supervisor,
    ) -> std::io::Result<Self> {
        let (sender, messages) = sync_channel(WAITING);
        let (counted, entry) = (Arc::<Counted>::default(), supervisor.enter(TASK));
        let counts = Arc::clone(&counted);
        std::thread::Builder::new()
            .name(TASK.into())
            .spawn(move || thread::run(&entry, || write(&messages, &mut *output, &counts)))?;
        Ok(Self { sender: Some(sender), one_in: one_in.max(1), counted, ..Self::default() })
    }

    /// How many lines were lost, because nobody took them or they could not be written.
    pub(crate) fn lost(&self) -> u64 {
        self.counted.lost.load(Relaxed)
    }

    /// Waits until all lines are written, but not for ever.
    pub(crate) async fn flush(&self) {
        let Some(sender) = &self.sender else { return };
        let (done, flushed) = oneshot::channel();
        let mut message = Message::Flush(done);
        let flushing = async {
            while let Err(TrySendError::Full(full)) = sender.try_send(message) {
                message = full;
                sleep(ROOM).await;
            }
            let _ = flushed.await; // the thread lives as long as the sender
        };
        if timeout(FLUSH, flushing).await.is_err() {
            let waiting = self.counted.waiting.load(Relaxed);
            self.counted.lost.fetch_add(waiting, Relaxed);
            tracing::error!("{waiting} lines of the access log are lost: not written within {FLUSH:?}");
        }
    }

    /// A line for a request, if there is a log.
    pub(crate) fn line(&self, client: IpAddr, method: &Method, host: &str, path: &str) -> Option<Box<Line>> {
        self.sender.as_ref()?;
        let (host, path) = (host.to_owned(), path.to_owned());
        Some(Box::new(Line { client, method: method.clone(), host, path, backend: None, endpoint: None }))
    }

    pub(super) fn write(
        &self,
        line: Line,
        route: Option<&RouteHead>,
        code: u16,
        bytes: u64,
        duration: Duration,
    ) {
        let Some(sender) = &self.sender else { return };
        if !self.seen.fetch_add(1, Relaxed).is_multiple_of(self.one_in) && code < 500 {
            return;
        }
        let Line { client, method, host, path, backend, endpoint } = line;
        let time = Time::from(SystemTime::now()).rfc3339_micro();
        let line = json!({
            "time": time,
            "client": client.to_string(),
            "method": method.as_str(),
            "host": host,
            "path": path,
            "code": code,
            "bytes": bytes,
            "milliseconds": duration.as_micros() as f64 / 1e3,
            "route": route.map(|route| route.key.to_string()),
            "backend": backend.map(|backend| backend.to_string()),
            "endpoint": endpoint.as_deref(),
        });
        self.counted.waiting.fetch_add(1, Relaxed);
        if sender.try_send(Message::Line(format!("{line}\n").into_bytes())).is_err() {
            self.counted.waiting.fetch_sub(1, Relaxed);
            self.counted.lost.fetch_add(1, Relaxed);
        }
    }
}

/// Writes lines until no more can come.
fn write(messages: &Receiver<Message>, output: &mut dyn Write, counted: &Counted) {
    while let Ok(first) = messages.recv() {
        for message in std::iter::once(first).chain(messages.try_iter()) {
            match message {
                Message::Line(line) => {
                    counted.waiting.fetch_sub(1, Relaxed);
                    // Lost, unless it is written: this may panic.
                    counted.lost.fetch_add(1, Relaxed);
                    if output.write_all(&line).is_ok() {
                        counted.lost.fetch_sub(1, Relaxed);
                    }
                }
                Message::Flush(done) => {
                    let _ = output.flush(); // where nothing can be written, nothing can be said about it either
                    let _ = done.send(()); // nobody waits any more
                }
            }
        }
        let _ = output.flush();
    }
}
