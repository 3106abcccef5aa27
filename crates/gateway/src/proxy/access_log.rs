//! The access log: a line of JSON for a request, when its last byte is sent.

use std::io::Write;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, SystemTime};

use http::Method;
use serde_json::json;
use watchkeeper_core::Key;
use watchkeeper_go::Time;

use crate::table::RouteHead;

/// How many lines may wait to be written. More are lost, and counted.
const WAITING: usize = 4_096;

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
    sender: Option<SyncSender<Vec<u8>>>,
    /// Of so many requests, one is logged; all that failed with a code from 500 are.
    one_in: u64,
    seen: AtomicU64,
    pub(crate) lost: AtomicU64,
}

impl AccessLog {
    /// Writes to this, from a thread of its own, so that nobody waits for a disk.
    pub(crate) fn start(mut output: Box<dyn Write + Send>, one_in: u64) -> std::io::Result<Self> {
        let (sender, lines): (_, Receiver<Vec<u8>>) = sync_channel(WAITING);
        std::thread::Builder::new().name("access-log".into()).spawn(move || {
            while let Ok(line) = lines.recv() {
                // Where nothing can be written, nothing can be said about it either.
                let _ = output.write_all(&line);
                for line in lines.try_iter() {
                    let _ = output.write_all(&line);
                }
                let _ = output.flush();
            }
        })?;
        Ok(Self { sender: Some(sender), one_in: one_in.max(1), ..Self::default() })
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
        if sender.try_send(format!("{line}\n").into_bytes()).is_err() {
            self.lost.fetch_add(1, Relaxed);
        }
    }
}
