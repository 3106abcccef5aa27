//! Requests to the API, counted.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Request, Response};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use watchkeeper_connection::{Body, Connection, Error, Transport};

/// How many requests there were, by what became of them: `rest_client_requests_total`.
pub(crate) type Requests = Family<Answered, Counter>;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Answered {
    /// The code of the answer, or `<error>` if there was none.
    code: String,
    /// Which cluster: `own`, or the name under which the manager knows it.
    host: Arc<str>,
    method: String,
}

/// A connection that counts what is sent over it.
pub(crate) fn counted(connection: &Connection, host: &str, requests: &Requests) -> Connection {
    connection.with_transport(Counted {
        connection: connection.clone(),
        host: host.into(),
        requests: requests.clone(),
    })
}

struct Counted {
    connection: Connection,
    host: Arc<str>,
    requests: Requests,
}

impl Transport for Counted {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'static, Result<Response<Body>, Error>> {
        let (connection, requests, host) =
            (self.connection.clone(), self.requests.clone(), Arc::clone(&self.host));
        Box::pin(async move {
            let method = request.method().to_string();
            let answer = connection.send(request).await;
            let code = match &answer {
                Ok(answer) => answer.status().as_u16().to_string(),
                Err(_) => "<error>".to_owned(),
            };
            requests.get_or_create(&Answered { code, host, method }).inc();
            answer
        })
    }
}
