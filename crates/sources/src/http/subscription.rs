//! A stream of server-sent events, reconnected; each event triggers a read of the list.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, StatusCode, Uri};
use http_body_util::BodyExt as _;
use tokio::time::{Instant, sleep_until};
use watchkeeper_connection::Body;
use watchkeeper_core::Error;

use super::listing::jittered;
use super::settings::{Settings, shown};
use super::sse::Reader;
use super::transport::{Transport, unavailable};
use super::{answer, credentials};

/// How long to wait before the first new connection, unless the service says something else; twice as long after each failure.
const RETRY_DELAY: Duration = Duration::from_secs(1);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(60);

pub(super) struct Subscription {
    settings: Arc<Settings>,
    url: String,
    reader: Reader,
    state: State,
    failures: u32,
}

enum State {
    Waiting(Instant),
    Connecting(BoxFuture<'static, Result<Option<Body>, Error>>),
    Open(Body),
    /// The service asked not to come again.
    Over,
}

impl Subscription {
    pub(super) fn new(settings: &Arc<Settings>) -> Option<Self> {
        let url = settings.events.clone()?;
        let state = State::Waiting(Instant::now());
        Some(Self { settings: Arc::clone(settings), url, reader: Reader::default(), state, failures: 0 })
    }

    /// Resolves when there is a reason to look: an event, or a new connection, before which events may have been lost. Cancel-safe.
    pub(super) async fn hint(&mut self, transport: &Arc<Transport>) {
        while !self.step(transport).await {}
    }

    /// Resolves when the stream is open, or could not be opened at the first attempt. Cancel-safe.
    pub(super) async fn tried(&mut self, transport: &Arc<Transport>) {
        while !self.step(transport).await && self.failures == 0 && !matches!(self.state, State::Over) {}
    }

    /// Whether there is a reason to look, or only the next state has been reached.
    async fn step(&mut self, transport: &Arc<Transport>) -> bool {
        match &mut self.state {
            State::Over => std::future::pending().await,
            State::Waiting(until) => {
                sleep_until(*until).await;
                let connecting = connect(
                    Arc::clone(&self.settings),
                    Arc::clone(transport),
                    self.url.clone(),
                    self.reader.last_id.clone(),
                );
                self.state = State::Connecting(Box::pin(connecting));
            }
            State::Connecting(connecting) => match connecting.await {
                Ok(Some(body)) => {
                    self.reader.reconnected();
                    self.state = State::Open(body);
                    return true;
                }
                Ok(None) => self.state = State::Over,
                Err(error) => {
                    let events = shown(&self.url);
                    tracing::warn!(source = self.settings.name, events, %error, "event stream failed; the list is polled");
                    self.wait();
                }
            },
            State::Open(body) => match body.frame().await {
                Some(Ok(frame)) => {
                    self.failures = 0;
                    return frame.data_ref().is_some_and(|bytes| self.reader.push(bytes) > 0);
                }
                Some(Err(_)) | None => self.wait(),
            },
        }
        false
    }

    fn wait(&mut self) {
        let first = self.reader.retry.unwrap_or(RETRY_DELAY).min(MAX_RETRY_DELAY);
        let wait = first.saturating_mul(1 << self.failures.min(6)).min(MAX_RETRY_DELAY);
        self.failures += 1;
        self.state = State::Waiting(Instant::now() + jittered(wait));
    }
}

async fn connect(
    settings: Arc<Settings>,
    transport: Arc<Transport>,
    url: String,
    last_id: Option<String>,
) -> Result<Option<Body>, Error> {
    let url: Uri = url.parse().map_err(|_| Error::Fatal("this is no URL".into()))?;
    let mut headers = credentials::headers(&settings).await?;
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Some(id) = last_id.and_then(|id| HeaderValue::from_str(&id).ok()) {
        headers.insert(HeaderName::from_static("last-event-id"), id);
    }
    let answer = transport.get(&url, headers, settings.timeout).await?;
    if answer.status() == StatusCode::NO_CONTENT {
        return Ok(None);
    }
    if let Some(error) = answer::refusal(answer.status(), answer.headers()) {
        return Err(error);
    }
    let kind = answer.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if !kind.starts_with("text/event-stream") {
        return Err(unavailable("the answer is not a stream of events"));
    }
    Ok(Some(answer.into_body()))
}
