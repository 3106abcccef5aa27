//! Spans of requests, exported by OTLP: JSON over HTTP, as every collector takes it.
//!
//! A request with a `traceparent` (W3C Trace Context) belongs to that trace, and is exported if whoever began the trace wants it. Others begin a trace;
//! one in so many is exported. Backends get a `traceparent` with the span of the gateway.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout, timeout_at};
use watchkeeper_connection::HttpClient;
use watchkeeper_supervision::Supervisor;

/// The header of W3C Trace Context.
pub(crate) const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
/// The name of the task that exports spans.
const TASK: &str = "spans";
/// How many spans may wait. More are lost, and counted.
const WAITING: usize = 8_192;
/// How many are sent at once, and how long the first of them waits at most.
const BATCH: (usize, Duration) = (512, Duration::from_secs(1));
/// How long a collector may take.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(10);
/// How often failures are logged at most.
const LOG: Duration = Duration::from_secs(60);

/// Where spans go.
#[derive(Clone, Debug)]
pub struct Otlp {
    /// The collector, such as `http://127.0.0.1:4318`: spans are posted to `/v1/traces` below it.
    pub endpoint: Uri,
    /// Of so many requests that belong to no trace, one is traced.
    pub one_in: u64,
    /// What the gateway is called.
    pub service: String,
}

/// Makes spans, and hands them to the task that exports them.
pub(crate) struct Tracer {
    sender: mpsc::Sender<Value>,
    one_in: u64,
    seen: AtomicU64,
    lost: Arc<AtomicU64>,
}

/// What a request belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TraceContext {
    trace: u128,
    span: u64,
    parent: Option<u64>,
    sampled: bool,
}

/// A request, as a collector hears of it.
pub(crate) struct Span {
    context: TraceContext,
    begin: SystemTime,
    method: Method,
    host: String,
    path: String,
    client: String,
}

/// What is known of a request when it has ended.
pub(crate) struct Ended {
    pub(crate) code: u16,
    pub(crate) route: Option<String>,
    pub(crate) duration: Duration,
}

impl Tracer {
    /// Begins to export. To be called in a runtime.
    pub(crate) fn start(otlp: Otlp, supervisor: &Supervisor) -> Result<Self, String> {
        let target = otlp.endpoint.to_string();
        let target: Uri = format!("{}/v1/traces", target.trim_end_matches('/'))
            .parse()
            .map_err(|_| format!("{} is not the URL of a collector", otlp.endpoint))?;
        let client = HttpClient::new(None)?;
        let (sender, spans) = mpsc::channel(WAITING);
        let lost = Arc::<AtomicU64>::default();
        let exporter = Exporter { client, target, service: otlp.service, spans, lost: Arc::clone(&lost) };
        let supervisor = supervisor.clone();
        // It ends by itself when the last sender is gone and what it has is sent.
        tokio::spawn(async move {
            supervisor.run_with(TASK, exporter, |exporter| Box::pin(exporter.export())).await;
        });
        Ok(Self { sender, one_in: otlp.one_in.max(1), seen: AtomicU64::new(0), lost })
    }

    /// What a request with these headers belongs to.
    pub(crate) fn context(&self, headers: &HeaderMap) -> TraceContext {
        let mut given = headers.get_all(TRACEPARENT).iter();
        let known = match (given.next(), given.next()) {
            (Some(only), None) => only.to_str().ok().and_then(parse),
            _ => None,
        };
        let span = fastrand::u64(1..);
        match known {
            Some((trace, parent, sampled)) => TraceContext { trace, span, parent: Some(parent), sampled },
            None => {
                let sampled = self.seen.fetch_add(1, Relaxed).is_multiple_of(self.one_in);
                TraceContext { trace: fastrand::u128(1..), span, parent: None, sampled }
            }
        }
    }

    /// The span of a request; `None` if nobody wants it.
    pub(crate) fn begin(
        &self,
        context: TraceContext,
        method: &Method,
        host: &str,
        path: &str,
        client: std::net::IpAddr,
    ) -> Option<Box<Span>> {
        context.sampled.then(|| {
            Box::new(Span {
                context,
                begin: SystemTime::now(),
                method: method.clone(),
                host: host.to_owned(),
                path: path.to_owned(),
                client: client.to_string(),
            })
        })
    }

    /// Has a span exported.
    pub(crate) fn end(&self, span: &Span, ended: &Ended) {
        if self.sender.try_send(span.to_json(ended)).is_err() {
            self.lost.fetch_add(1, Relaxed);
        }
    }

    /// How many spans were lost: because the collector did not take them, or not fast enough.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Relaxed)
    }
}

impl TraceContext {
    /// What backends are told.
    pub(crate) fn header(&self) -> HeaderValue {
        let flags = u8::from(self.sampled);
        let text = format!("00-{:032x}-{:016x}-{flags:02x}", self.trace, self.span);
        HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static(""))
    }
}

/// Reads `00-TRACE-PARENT-FLAGS`: the trace, the span of the caller, and whether it wants the trace.
fn parse(text: &str) -> Option<(u128, u64, bool)> {
    let mut parts = text.trim().split('-');
    let (version, trace, parent, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let is_hex = |part: &str, length: usize| {
        part.len() == length && part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    // Later versions may have more parts behind those of this one.
    let is_known = version == "00" && parts.next().is_none() || version != "00" && version != "ff";
    if !(is_known && is_hex(version, 2) && is_hex(trace, 32) && is_hex(parent, 16) && is_hex(flags, 2)) {
        return None;
    }
    let (trace, parent) = (u128::from_str_radix(trace, 16).ok()?, u64::from_str_radix(parent, 16).ok()?);
    let sampled = u8::from_str_radix(flags, 16).ok()? & 1 == 1;
    (trace != 0 && parent != 0).then_some((trace, parent, sampled))
}

impl Span {
    /// The span as OTLP has it. Names of attributes are those of the semantic conventions for HTTP.
    fn to_json(&self, ended: &Ended) -> Value {
        let text = |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
        let mut attributes = vec![
            text("http.request.method", self.method.as_str()),
            text("server.address", &self.host),
            text("url.path", &self.path),
            text("client.address", &self.client),
            json!({"key": "http.response.status_code", "value": {"intValue": ended.code.to_string()}}),
        ];
        attributes.extend(ended.route.as_deref().map(|route| text("watchkeeper.route", route)));
        let mut name = self.method.to_string();
        if let Some(route) = &ended.route {
            let _ = write!(name, " {route}"); // writing to a text does not fail
        }
        let begin = self.begin.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let mut span = json!({
            "traceId": format!("{:032x}", self.context.trace),
            "spanId": format!("{:016x}", self.context.span),
            "name": name,
            "kind": 2,
            "startTimeUnixNano": begin.as_nanos().to_string(),
            "endTimeUnixNano": (begin + ended.duration).as_nanos().to_string(),
            "attributes": attributes,
        });
        if let Some(parent) = self.context.parent {
            span["parentSpanId"] = format!("{parent:016x}").into();
        }
        // Of codes below 500, it is for the client to say whether they are errors.
        if ended.code == 0 || ended.code >= 500 {
            span["status"] = json!({"code": 2});
        }
        span
    }
}

/// Sends spans to a collector.
struct Exporter {
    client: HttpClient,
    target: Uri,
    service: String,
    spans: mpsc::Receiver<Value>,
    lost: Arc<AtomicU64>,
}

impl Exporter {
    /// Sends spans as they come, many at once, until there are no more.
    async fn export(&mut self) {
        let mut logged: Option<Instant> = None;
        while let Some(first) = self.spans.recv().await {
            let deadline = Instant::now() + BATCH.1;
            let mut batch = vec![first];
            while batch.len() < BATCH.0 {
                match timeout_at(deadline, self.spans.recv()).await {
                    Ok(Some(span)) => batch.push(span),
                    Ok(None) | Err(_) => break,
                }
            }
            let count = batch.len() as u64;
            let sent = timeout(EXPORT_TIMEOUT, send(&self.client, &self.target, &self.service, batch)).await;
            let failed = match sent {
                Ok(Ok(())) => continue,
                Ok(Err(reason)) => reason,
                Err(_) => format!("no answer within {EXPORT_TIMEOUT:?}"),
            };
            self.lost.fetch_add(count, Relaxed);
            if logged.is_none_or(|logged| logged.elapsed() >= LOG) {
                logged = Some(Instant::now());
                tracing::warn!("spans are not exported to {}: {failed}", self.target);
            }
        }
    }
}

async fn send(client: &HttpClient, target: &Uri, service: &str, spans: Vec<Value>) -> Result<(), String> {
    let name = json!({"key": "service.name", "value": {"stringValue": service}});
    let scope = json!({"name": "watchkeeper-gateway", "version": env!("CARGO_PKG_VERSION")});
    let body = json!({"resourceSpans": [{
        "resource": {"attributes": [name]},
        "scopeSpans": [{"scope": scope, "spans": spans}],
    }]});
    let request = Request::post(target).header(CONTENT_TYPE, "application/json");
    let request = request.body(Bytes::from(body.to_string())).map_err(|error| error.to_string())?;
    let response = client.send(request).await.map_err(|error| error.to_string())?;
    match response.status().is_success() {
        true => Ok(()),
        false => Err(format!("the answer has code {}", response.status().as_u16())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_traceparent_is_read_as_the_standard_says() {
        let (trace, parent) = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331");
        let known = |flags: &str| parse(&format!("00-{trace}-{parent}-{flags}"));
        assert_eq!(known("01"), Some((0x0af7651916cd43dd8448eb211c80319c, 0xb7ad6b7169203331, true)));
        assert_eq!(known("00").map(|(_, _, sampled)| sampled), Some(false));
        assert!(parse(&format!("cc-{trace}-{parent}-01-what-comes-later")).is_some());
        for wrong in [
            String::new(),
            format!("ff-{trace}-{parent}-01"),
            format!("00-{trace}-{parent}-01-more"),
            format!("00-{trace}-{parent}"),
            format!("00-{}-{parent}-01", trace.to_uppercase()),
            format!("00-{}-{parent}-01", "0".repeat(32)),
            format!("00-{trace}-{}-01", "0".repeat(16)),
            format!("00-{trace}-{parent}x-01"),
        ] {
            assert_eq!(parse(&wrong), None, "{wrong}");
        }
        let context = TraceContext { trace: 1, span: 2, parent: None, sampled: true };
        assert_eq!(context.header(), "00-00000000000000000000000000000001-0000000000000002-01");
    }
}
