use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use http::{Method, Request, Response};
use kube_client::Client;
use kube_client::client::Body;
use tower_service::Service;
use watchkeeper_sources::kubernetes::Connection;

use crate::Leadership;

/// A write was not sent, because the lease is not held any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not sent: the lease is not held any more")]
pub struct NotLeading;

/// Lets writes through only while a lease is held.
struct Fence {
    leadership: Leadership,
    client: Client,
}

impl Leadership {
    /// A connection that sends nothing but reads once the lease is not held any more: writes fail with [`NotLeading`], which
    /// is the source of the error, and do not leave the process.
    pub fn fence(&self, connection: impl Into<Connection>) -> Connection {
        let client = connection.into().transport().clone();
        let namespace = client.default_namespace().to_owned();
        Client::new(Fence { leadership: self.clone(), client }, namespace).into()
    }

    /// For writes that go another way: fails if the lease is not held.
    pub fn check(&self) -> Result<(), NotLeading> {
        if self.is_held() { Ok(()) } else { Err(NotLeading) }
    }
}

impl Service<Request<Body>> for Fence {
    type Response = Response<Body>;
    type Error = Box<dyn std::error::Error + Send + Sync>;
    type Future = BoxFuture<'static, Result<Response<Body>, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (leadership, client) = (self.leadership.clone(), self.client.clone());
        Box::pin(async move {
            // When the request is about to leave, not when it was made.
            if !matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS) {
                leadership.check()?;
            }
            Ok(client.send(request).await?)
        })
    }
}
