//! Requests become reviews, within limits.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::header::{ALLOW, CONNECTION, CONTENT_TYPE, HeaderValue};
use http::{Method, StatusCode, Version};
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use watchkeeper_front::{Body, BodyError, Request, Response};
use watchkeeper_supervision::Supervisor;

use crate::admission::{Answer, Handler, Review, Verdict};
use crate::conversion::{ConversionReview, Conversions};
use crate::metrics::WebhookMetrics;

/// The largest review. An object has 3 MiB at most in a request, and a review of an update has two of them; controller-runtime has the same limit.
const REVIEW_BYTES: usize = 7 << 20;
/// The largest review of conversion: a server may send many objects at once.
const CONVERSION_BYTES: usize = 32 << 20;
/// Bytes of reviews that are held at a time. Who sends more waits, or is told to come again.
const HELD_KIB: usize = 128 << 10;
/// How long a review may take if the server does not say; its own default.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest that a server waits.
const MAX_TIMEOUT: Duration = Duration::from_secs(30);
/// Answered this long before the server gives up, so that it hears who was slow.
const LEEWAY: Duration = Duration::from_millis(500);

/// Where conversion is served: for all kinds at one path.
pub(crate) const CONVERT: &str = "/convert";

/// What is served under which path.
#[derive(Clone, Default)]
pub(crate) struct Routes {
    pub(crate) admission: BTreeMap<String, (Arc<str>, Handler)>,
    pub(crate) conversion: Vec<Arc<Conversions>>,
}

/// Answers reviews.
#[derive(Clone)]
pub(crate) struct WebhookService(Arc<Inner>);

struct Inner {
    routes: Routes,
    metrics: WebhookMetrics,
    supervisor: Supervisor,
    held: Arc<Semaphore>,
    convert: Arc<str>,
    /// From when on clients are told to use another connection for their next review.
    leaving: CancellationToken,
}

/// Why a request is not answered with a review.
struct Refusal(StatusCode, &'static str, String);

impl WebhookService {
    pub(crate) fn new(
        routes: Routes,
        metrics: WebhookMetrics,
        supervisor: Supervisor,
        leaving: CancellationToken,
    ) -> Self {
        let held = Arc::new(Semaphore::new(HELD_KIB));
        let convert = "convert".into();
        Self(Arc::new(Inner { routes, metrics, supervisor, held, convert, leaving }))
    }
}

impl watchkeeper_front::Service for WebhookService {
    fn call(&self, request: Request) -> BoxFuture<'static, Response> {
        let inner = Arc::clone(&self.0);
        let is_kept = request.version() < Version::HTTP_2;
        Box::pin(async move {
            let mut response = match inner.answer(request).await {
                Ok(value) => response(StatusCode::OK, "application/json", value.to_string()),
                Err(Refusal(code, reason, text)) => {
                    inner.metrics.refused(reason);
                    tracing::debug!(%code, reason, "request refused");
                    let mut response = response(code, "text/plain; charset=utf-8", text + "\n");
                    if code == StatusCode::METHOD_NOT_ALLOWED {
                        response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
                    }
                    response
                }
            };
            if is_kept && inner.leaving.is_cancelled() {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            response
        })
    }
}

impl Inner {
    async fn answer(&self, request: Request) -> Result<Value, Refusal> {
        let path = request.uri().path();
        let converts = path == CONVERT && !self.routes.conversion.is_empty();
        let admission = self.routes.admission.get(path).cloned();
        if !converts && admission.is_none() {
            return Err(Refusal(StatusCode::NOT_FOUND, "path", "no webhook is served here".into()));
        }
        if request.method() != Method::POST {
            return Err(Refusal(StatusCode::METHOD_NOT_ALLOWED, "method", "reviews are sent by POST".into()));
        }
        let content_type = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let media_type = content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim();
        if !media_type.eq_ignore_ascii_case("application/json") {
            let text = "reviews are sent as application/json".into();
            return Err(Refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, "type", text));
        }
        let (begin, within) = (Instant::now(), time(request.uri().query().unwrap_or_default()));
        let name = admission.as_ref().map_or(&self.convert, |(name, _)| name).clone();
        let underway = self.metrics.begin(&name);
        let answer = async {
            let limit = if converts { CONVERSION_BYTES } else { REVIEW_BYTES };
            let body = read(request.into_body(), limit, within).await?;
            // Held until it is answered.
            let held = u32::try_from(body.len() >> 10).unwrap_or(u32::MAX);
            let _held = match timeout(within, Arc::clone(&self.held).acquire_many_owned(held)).await {
                Ok(held) => held,
                Err(_) => {
                    let text = "too many reviews at a time; try again".into();
                    return Err(Refusal(StatusCode::SERVICE_UNAVAILABLE, "busy", text));
                }
            };
            let left = within.saturating_sub(begin.elapsed());
            match admission {
                Some((name, handler)) => self.admit(&name, &handler, &body, left).await,
                None => self.convert(body, left).await,
            }
        };
        let answer = answer.await;
        drop(underway);
        let code = answer.as_ref().map_or_else(|Refusal(code, ..)| code.as_u16(), |_| 200);
        self.metrics.answered(&name, code, begin.elapsed().as_secs_f64());
        answer
    }

    async fn admit(
        &self,
        name: &Arc<str>,
        handler: &Handler,
        body: &[u8],
        within: Duration,
    ) -> Result<Value, Refusal> {
        let review = Review::read(body)
            .map_err(|error| Refusal(StatusCode::BAD_REQUEST, "malformed", error.to_string()))?;
        let asked = &review.request;
        // Also the call itself may panic, before there is anything to await.
        let answering = AssertUnwindSafe(async { handler(Arc::clone(asked)).await }).catch_unwind();
        let answer: Answer = match timeout(within, answering).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => {
                self.metrics.panics.inc();
                let object = format!("{} {}/{}", asked.kind.kind, asked.namespace, asked.name);
                self.supervisor.panicked(&format!("webhook {name}"), Some(&object));
                Verdict::failed(500, format!("the webhook {name} panicked; its log says where")).into()
            }
            Err(_) => {
                tracing::warn!(webhook = %name, object = %asked.name, "webhook took too long");
                let text = format!("the webhook {name} has not decided within {within:.1?}");
                Verdict::failed(504, text).into()
            }
        };
        self.metrics.verdict(name, answer.verdict.code());
        Ok(review.answer(&answer))
    }

    async fn convert(&self, body: Bytes, within: Duration) -> Result<Value, Refusal> {
        let review = ConversionReview::read(&body)
            .map_err(|error| Refusal(StatusCode::BAD_REQUEST, "malformed", error.to_string()))?;
        drop(body);
        let (review, kinds) = (Arc::new(review), self.routes.conversion.clone());
        let converting = Arc::clone(&review);
        let converted = tokio::task::spawn_blocking(move || converting.convert(&kinds));
        let converted = match timeout(within, converted).await {
            Ok(Ok(converted)) => converted,
            Ok(Err(_)) => {
                self.metrics.panics.inc();
                self.supervisor.panicked("webhook convert", None);
                Err("the conversion panicked; the log of the operator says where".to_owned())
            }
            Err(_) => Err(format!("the conversion is not done after {within:.1?}")),
        };
        self.metrics.verdict(&self.convert, if converted.is_ok() { 200 } else { 500 });
        Ok(review.answer(converted))
    }
}

async fn read(body: Body, limit: usize, within: Duration) -> Result<Bytes, Refusal> {
    match timeout(within, body.read(limit)).await {
        Ok(Ok(body)) => Ok(body),
        Ok(Err(error @ BodyError::TooLarge { .. })) => {
            Err(Refusal(StatusCode::PAYLOAD_TOO_LARGE, "size", error.to_string()))
        }
        Ok(Err(error)) => Err(Refusal(StatusCode::REQUEST_TIMEOUT, "body", error.to_string())),
        Err(_) => Err(Refusal(StatusCode::REQUEST_TIMEOUT, "body", "the review did not come in time".into())),
    }
}

/// How long an answer may take: what the server says (`?timeout=5s`), less a bit.
fn time(query: &str) -> Duration {
    let said = query.split('&').find_map(|pair| pair.strip_prefix("timeout="));
    let said = said.and_then(|text| text.strip_suffix('s')?.parse().ok()).map(Duration::from_secs);
    let whole = said.filter(|time| !time.is_zero()).unwrap_or(DEFAULT_TIMEOUT).min(MAX_TIMEOUT);
    whole - LEEWAY.min(whole / 4)
}

fn response(code: StatusCode, content_type: &'static str, text: String) -> Response {
    let mut response = Response::new(Body::whole(text));
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_answered_before_the_server_gives_up() {
        assert_eq!(time("timeout=5s"), Duration::from_millis(4500));
        assert_eq!(time("a=1&timeout=1s"), Duration::from_millis(750));
        assert_eq!(time("timeout=999999999s"), Duration::from_millis(29_500));
        for nonsense in ["", "timeout=", "timeout=x", "timeout=-3s", "timeout=0s"] {
            assert_eq!(time(nonsense), Duration::from_millis(9500), "{nonsense}");
        }
    }
}
