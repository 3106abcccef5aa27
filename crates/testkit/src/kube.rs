//! Clients of the `kube` crate, for tests that judge by what another client sees.

use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use kube_client::Client;
use kube_client::client::Body as ClientBody;
use tower_service::Service;
use watchkeeper_connection::{Body, Connection, Error};

use crate::TestEnv;

/// A client of the `kube` crate whose requests go over a connection.
pub fn client(connection: &Connection) -> Client {
    let namespace = connection.default_namespace().to_owned();
    Client::new(Over(Arc::new(connection.clone())), namespace)
}

impl TestEnv {
    /// A client of the `kube` crate with all rights. Its default namespace is `default`.
    pub fn client(&self) -> Client {
        client(&self.connection())
    }

    /// A client of the `kube` crate, of this user in these groups.
    pub fn client_as(&self, user: &str, groups: &[&str]) -> Client {
        client(&self.connection_as(user, groups))
    }
}

struct Over(Arc<Connection>);

impl Service<Request<ClientBody>> for Over {
    type Response = Response<Body>;
    type Error = Box<dyn std::error::Error + Send + Sync>;
    type Future = BoxFuture<'static, Result<Response<Body>, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<ClientBody>) -> Self::Future {
        let connection = Arc::clone(&self.0);
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await?.to_bytes();
            // What a transport was stopped by is what its sender is told.
            connection.send(Request::from_parts(parts, body)).await.map_err(|error| match error {
                Error::Stopped(reason) => reason,
                error => error.into(),
            })
        })
    }
}
