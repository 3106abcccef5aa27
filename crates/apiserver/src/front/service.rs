use std::sync::Arc;

use futures_util::future::BoxFuture;
use watchkeeper_supervision::Supervisor;

use super::{Body, Identity};

/// A request as a [`Service`] sees it: without its `Authorization` header, with the [`Shutdown`](super::Shutdown) of the
/// front among its extensions.
pub type Request = http::Request<Body>;

/// What a [`Service`] answers.
pub type Response = http::Response<Body>;

/// What answers requests, once it is known who asks.
///
/// A service knows nothing about sockets: the front calls it for every request that comes in over one, and programs call
/// it directly. Calls run concurrently. Dropping the future of a call, or the body of its response, means that the client
/// has gone.
///
/// A service limits how much it reads of a body ([`Body::read`]) and how long an answer may take; it ends streams that
/// would go on forever when the [`Shutdown`](super::Shutdown) of their request begins.
pub trait Service: Send + Sync + 'static {
    /// Answers one request.
    fn call(&self, request: Request, identity: Identity) -> BoxFuture<'static, Response>;

    /// What watches over the tasks of the front, and counts requests that panic. A service that reports its health gives its
    /// own.
    fn supervisor(&self) -> Supervisor {
        Supervisor::default()
    }
}

/// A shared service is a service.
impl<S: Service + ?Sized> Service for Arc<S> {
    fn call(&self, request: Request, identity: Identity) -> BoxFuture<'static, Response> {
        (**self).call(request, identity)
    }

    fn supervisor(&self) -> Supervisor {
        (**self).supervisor()
    }
}
