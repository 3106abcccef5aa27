use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use kube_client::Client;
use kube_client::client::Body as ClientBody;
use tower_service::Service;
use watchkeeper_apiserver::authentication::Identity;
use watchkeeper_apiserver::front::{Body, Response};

use crate::entrance::{Broken, Entrance};

/// Carries the requests of a kube client to the server, without a socket.
struct Transport {
    entrance: Arc<Entrance>,
    identity: Identity,
}

/// A client whose requests come from this identity.
pub(crate) fn client(entrance: Arc<Entrance>, identity: Identity) -> Client {
    Client::new(Transport { entrance, identity }, "default")
}

impl Service<http::Request<ClientBody>> for Transport {
    type Response = Response;
    type Error = Broken;
    type Future = BoxFuture<'static, Result<Response, Broken>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<ClientBody>) -> Self::Future {
        Box::pin(Arc::clone(&self.entrance).send(request.map(Body::wrap), self.identity.clone()))
    }
}
