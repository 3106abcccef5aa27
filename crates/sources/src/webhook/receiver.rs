//! The HTTP service that receives deliveries.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Method, StatusCode};
use tokio::sync::broadcast;
use watchkeeper_core::Source;
use watchkeeper_front::{Body, BodyError, Request, Response, Service};

use super::doubles::Doubles;
use super::secrets::Secrets;
use super::signature::{Scheme, verify};
use super::{Hooked, Payload};

/// So many deliveries wait for a feed that is busy. If there are more, it reads everything, which is as good.
const WAITING: usize = 256;

/// Receives webhooks and verifies them: a [`Service`] to be put behind a [`Front`](watchkeeper_front::Front).
///
/// ```no_run
/// # use std::net::{Ipv4Addr, SocketAddr};
/// # use watchkeeper_front::{Front, Listener};
/// # use watchkeeper_sources::webhook::Receiver;
/// # fn example<S: watchkeeper_core::Source>(orders: S) -> Result<(), watchkeeper_front::Error> {
/// let receiver = Receiver::standard("/var/run/secrets/shop/webhook");
/// // Reads the orders again whenever the shop says that there is something new.
/// let orders = receiver.hints_for(orders);
/// let listener = Listener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 8088)))?;
/// let front = Front::builder(receiver).http(listener).start()?;
/// # Ok(()) }
/// ```
///
/// # What it answers
///
/// - 202 as soon as a delivery is verified, and 200 if it came before: before anything is done about it, since who sends does not wait
///   for long.
/// - 401 if it is not signed with a secret of the file, or if its time is off by more than the [tolerance](Self::tolerance). The reason is in
///   the log and not in the answer.
/// - 413 if it is too large, before anything is computed over it. 405 for anything but `POST`. 503 if the secrets cannot be read.
///
/// # What it does not promise
///
/// GitHub signs neither the time nor the id: what was recorded can be sent again at any time. With [`hints_for`](Self::hints_for) it is a reason to look,
/// and nothing more. With [`states_of`](Self::states_of) it is passed over if a newer version is known; the state of an object that is not there and
/// of which no version is known, as after a restart, is believed until the other source was read, three seconds later.
#[derive(Clone)]
pub struct Receiver {
    inner: Arc<Inner>,
    max_body_bytes: usize,
    tolerance: Duration,
}

struct Inner {
    scheme: Scheme,
    secrets: Secrets,
    doubles: Mutex<Doubles>,
    deliveries: broadcast::Sender<Bytes>,
    refused: AtomicU64,
}

impl Receiver {
    /// Deliveries as in the specification of Standard Webhooks. The file has a secret in each line, `whsec_` and base64.
    pub fn standard(secrets: impl Into<PathBuf>) -> Self {
        Self::new(Scheme::Standard, secrets.into())
    }

    /// Deliveries that are signed as GitHub does (`x-hub-signature-256`). The file has a secret in each line.
    pub fn github(secrets: impl Into<PathBuf>) -> Self {
        Self::new(Scheme::GitHub, secrets.into())
    }

    fn new(scheme: Scheme, secrets: PathBuf) -> Self {
        let inner = Inner {
            scheme,
            secrets: Secrets::new(secrets),
            doubles: Mutex::default(),
            deliveries: broadcast::Sender::new(WAITING),
            refused: AtomicU64::new(0),
        };
        Self { inner: Arc::new(inner), max_body_bytes: 1 << 20, tolerance: Duration::from_secs(300) }
    }

    /// Sets the maximum size of a delivery. Default: 1 MiB.
    #[must_use]
    pub fn max_body_bytes(mut self, bytes: usize) -> Self {
        self.max_body_bytes = bytes;
        self
    }

    /// Sets how far the time of a delivery may be from the local time, to both sides. Default: five minutes.
    #[must_use]
    pub fn tolerance(mut self, tolerance: Duration) -> Self {
        self.tolerance = tolerance;
        self
    }

    /// A source that reads another one again for every delivery.
    ///
    /// ```
    /// # use watchkeeper_sources::webhook::Receiver;
    /// # fn example<S: watchkeeper_core::Source>(orders: S) -> impl watchkeeper_core::Source {
    /// let receiver = Receiver::github("/var/run/secrets/shop/webhook");
    /// receiver.hints_for(orders)
    /// # }
    /// ```
    pub fn hints_for<S: Source>(&self, source: S) -> Hooked<S> {
        Hooked::new(source, self.clone(), None)
    }

    /// A source that takes deliveries for states of another one's objects, if they are newer than what is known. See [`Payload`].
    ///
    /// ```
    /// # use watchkeeper_sources::webhook::{Payload, Receiver};
    /// # fn example<S: watchkeeper_core::Source>(orders: S) -> impl watchkeeper_core::Source {
    /// // {"data": {"id": "17", "version": 4, "total": 3}} or {"data": {"id": "17", "version": 5}, "deleted": true}
    /// let payload = Payload {
    ///     object: "/data".into(),
    ///     key: "/id".into(),
    ///     version: "/version".into(),
    ///     deleted: Some("/deleted".into()),
    /// };
    /// Receiver::standard("/var/run/secrets/shop/webhook").states_of(orders, payload)
    /// # }
    /// ```
    pub fn states_of<S: Source>(&self, source: S, payload: Payload) -> Hooked<S> {
        Hooked::new(source, self.clone(), Some(payload))
    }

    /// Deliveries that were refused.
    pub fn refused(&self) -> u64 {
        self.inner.refused.load(Ordering::Relaxed)
    }

    pub(super) fn listen(&self) -> broadcast::Receiver<Bytes> {
        self.inner.deliveries.subscribe()
    }

    async fn receive(self, request: Request) -> StatusCode {
        if request.method() != Method::POST {
            return StatusCode::METHOD_NOT_ALLOWED;
        }
        let (head, body) = request.into_parts();
        let body = match body.read(self.max_body_bytes).await {
            Ok(body) => body,
            Err(BodyError::TooLarge { .. }) => return StatusCode::PAYLOAD_TOO_LARGE,
            Err(_) => return StatusCode::BAD_REQUEST,
        };
        let secrets = match self.inner.secrets.get() {
            Ok(secrets) => secrets,
            Err(error) => {
                tracing::error!(error, "webhooks cannot be verified");
                return StatusCode::SERVICE_UNAVAILABLE;
            }
        };
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        let tolerance = self.tolerance.as_secs();
        match verify(self.inner.scheme, &secrets, &head.headers, &body, now, tolerance) {
            Err(refusal) => {
                self.inner.refused.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(%refusal, "webhook delivery rejected");
                StatusCode::UNAUTHORIZED
            }
            Ok(signed) => {
                // Twice the tolerance: from the earliest to the latest moment at which it is believed.
                let mut doubles = self.inner.doubles.lock().unwrap_or_else(PoisonError::into_inner);
                if !doubles.note(&signed.id, now, 2 * tolerance) {
                    return StatusCode::OK;
                }
                drop(doubles);
                // It fails if no feed is open: then the next one begins with reading everything.
                let _ = self.inner.deliveries.send(body);
                StatusCode::ACCEPTED
            }
        }
    }
}

impl Service for Receiver {
    fn call(&self, request: Request) -> BoxFuture<'static, Response> {
        let receiver = self.clone();
        Box::pin(async move {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = receiver.receive(request).await;
            response
        })
    }
}

impl std::fmt::Debug for Receiver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Receiver").field("at", &Arc::as_ptr(&self.inner)).finish_non_exhaustive()
    }
}
