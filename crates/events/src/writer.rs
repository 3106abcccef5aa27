use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use watchkeeper_connection::{Connection, RequestError};
use watchkeeper_wire::ResourcePath;

use crate::EventOptions;
use crate::counts::{Counters, count};
use crate::series::Write;

/// How long a request may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How long to wait before trying again when there is not much time left.
const SHUTDOWN_RETRY_DELAY: Duration = Duration::from_millis(100);

/// Sends events to the server.
pub(crate) struct Writer {
    pub(crate) connection: Connection,
    pub(crate) options: EventOptions,
    pub(crate) counters: Arc<Counters>,
    /// Whether there is not much time left.
    pub(crate) hurry: watch::Receiver<bool>,
}

enum Failure {
    /// The server has said no.
    Rejected(u16, String),
    /// It may say yes another time.
    Retry(String),
}

impl Writer {
    /// Writes one, however often that has to be tried.
    pub(crate) async fn write(&mut self, write: Write) {
        for tried in 1.. {
            match self.try_to(&write).await {
                Ok(()) => return,
                Err(Failure::Rejected(code, why)) => {
                    tracing::warn!(code, %why, "event refused by the API server");
                    return count(&self.counters.rejected);
                }
                Err(Failure::Retry(why)) if tried >= self.options.tries && !*self.hurry.borrow() => {
                    tracing::warn!(%why, "event could not be written");
                    return count(&self.counters.failed);
                }
                Err(Failure::Retry(why)) => tracing::debug!(%why, "an event could not be written yet"),
            }
            self.pause().await;
        }
    }

    async fn pause(&mut self) {
        if *self.hurry.borrow_and_update() {
            return sleep(SHUTDOWN_RETRY_DELAY).await;
        }
        let pause = self.options.retry.mul_f64(1.0 + 0.25 * fastrand::f64());
        tokio::select! {
            () = sleep(pause) => {}
            Ok(()) = self.hurry.changed() => {}
        }
    }

    async fn try_to(&self, write: &Write) -> Result<(), Failure> {
        match write {
            Write::Create(object) => self.create(object).await,
            Write::Grow(object) => {
                let patch = json!({"series": object["series"]});
                match self
                    .send(Method::PATCH, &path(object, true), "application/merge-patch+json", &patch)
                    .await
                {
                    // It has expired meanwhile.
                    Err(Failure::Rejected(404, _)) => self.create(object).await,
                    answer => answer,
                }
            }
        }
    }

    async fn create(&self, object: &Value) -> Result<(), Failure> {
        match self.send(Method::POST, &path(object, false), "application/json", object).await {
            // An earlier try got there, only its answer did not come back.
            Ok(()) | Err(Failure::Rejected(409, _)) => {
                count(&self.counters.created);
                Ok(())
            }
            failure => failure,
        }
    }

    async fn send(&self, method: Method, path: &str, content: &str, body: &Value) -> Result<(), Failure> {
        let request = Request::builder().method(method).uri(path).header("content-type", content);
        let request = request.body(body.to_string().into_bytes());
        let request = request.map_err(|error| Failure::Rejected(0, error.to_string()))?;
        match timeout(TIMEOUT, self.connection.request(request)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(RequestError::Refused(status))) if !status.refusal().is_transient() => {
                Err(Failure::Rejected(status.code.unwrap_or_default(), status.message))
            }
            Ok(Err(error)) => Err(Failure::Retry(error.to_string())),
            Err(_) => Err(Failure::Retry("no answer in time".into())),
        }
    }
}

fn path(object: &Value, named: bool) -> String {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    let (events, namespace) = (ResourcePath::new("events.k8s.io", "v1", "events"), Some(text("namespace")));
    if named { events.object(namespace, text("name")) } else { events.collection(namespace) }
}
