//! Requests to the API, counted.

use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use http::{Request, Response};
use kube_client::Client;
use kube_client::client::Body;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use tower_service::Service;
use watchkeeper_sources::kubernetes::Connection;

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
    let client = connection.transport().clone();
    let namespace = client.default_namespace().to_owned();
    Client::new(Counted { client, host: host.into(), requests: requests.clone() }, namespace).into()
}

struct Counted {
    client: Client,
    host: Arc<str>,
    requests: Requests,
}

impl Service<Request<Body>> for Counted {
    type Response = Response<Body>;
    type Error = Box<dyn std::error::Error + Send + Sync>;
    type Future = BoxFuture<'static, Result<Response<Body>, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (client, requests, host) = (self.client.clone(), self.requests.clone(), Arc::clone(&self.host));
        let method = request.method().to_string();
        Box::pin(async move {
            let answer = client.send(request).await;
            let code = match &answer {
                Ok(answer) => answer.status().as_u16().to_string(),
                Err(_) => "<error>".to_owned(),
            };
            requests.get_or_create(&Answered { code, host, method }).inc();
            Ok(answer?)
        })
    }
}
