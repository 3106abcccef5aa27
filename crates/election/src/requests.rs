use std::time::Duration;

use http::{Method, Request};
use serde_json::Value;
use watchkeeper_connection::{Connection, RequestError};
use watchkeeper_wire::{Refusal, ResourcePath, Uri};

use crate::LeaseName;
use crate::lease::Lease;
use crate::machine::Answer;

/// Reads and writes one lease.
pub(crate) struct Requests {
    connection: Connection,
    leases: String,
    lease: String,
    name: String,
}

impl Requests {
    pub(crate) fn new(connection: Connection, name: &LeaseName) -> Self {
        let leases = ResourcePath::new("coordination.k8s.io", "v1", "leases");
        let (namespace, name) = (Some(name.namespace.as_str()), name.name.clone());
        Self {
            connection,
            leases: leases.collection(namespace),
            lease: leases.object(namespace, &name),
            name,
        }
    }

    pub(crate) async fn read(&self, timeout: Duration) -> Answer {
        match self.send(Method::GET, &self.lease, None, timeout).await {
            Ok(lease) => Answer::Found(Some(Lease::new(lease))),
            Err(Failure::Refused(Refusal::NotFound, _)) => Answer::Found(None),
            Err(failure) => failure.into(),
        }
    }

    pub(crate) async fn create(&self, lease: Lease, timeout: Duration) -> Answer {
        match self.send(Method::POST, &self.leases, Some(lease), timeout).await {
            Ok(lease) => Answer::Written(Lease::new(lease)),
            Err(failure) => failure.into(),
        }
    }

    pub(crate) async fn replace(&self, lease: Lease, timeout: Duration) -> Answer {
        match self.send(Method::PUT, &self.lease, Some(lease), timeout).await {
            Ok(lease) => Answer::Written(Lease::new(lease)),
            // It was deleted meanwhile: as good as changed.
            Err(Failure::Refused(Refusal::NotFound, _)) => Answer::Conflict,
            Err(failure) => failure.into(),
        }
    }

    /// A request for changes of the lease.
    pub(crate) fn watch(&self) -> Option<(Connection, Request<Vec<u8>>)> {
        let mut uri = Uri::new(self.leases.as_str());
        uri.pair("watch", "true");
        uri.pair("fieldSelector", &format!("metadata.name={}", self.name));
        Some((self.connection.clone(), Request::get(uri.as_str()).body(Vec::new()).ok()?))
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        lease: Option<Lease>,
        timeout: Duration,
    ) -> Result<Value, Failure> {
        let body = lease.map(|lease| lease.into_json().to_string().into_bytes()).unwrap_or_default();
        let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
        let request = request.body(body).map_err(|error| Failure::Other(error.to_string()))?;
        match tokio::time::timeout(timeout, self.connection.request(request)).await {
            Ok(Ok(answer)) => serde_json::from_slice(&answer)
                .map_err(|error| Failure::Other(format!("the answer is not a lease: {error}"))),
            Ok(Err(RequestError::Refused(status))) => Err(Failure::Refused(status.refusal(), status.message)),
            Ok(Err(error)) => Err(Failure::Other(error.to_string())),
            Err(_) => Err(Failure::TimedOut(timeout)),
        }
    }
}

enum Failure {
    Refused(Refusal, String),
    TimedOut(Duration),
    Other(String),
}

impl From<Failure> for Answer {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Refused(Refusal::Conflict | Refusal::AlreadyExists, _) => Self::Conflict,
            Failure::Refused(_, why) | Failure::Other(why) => Self::Failed { why, timed_out: false },
            Failure::TimedOut(timeout) => {
                Self::Failed { why: format!("no answer within {timeout:?}"), timed_out: true }
            }
        }
    }
}
