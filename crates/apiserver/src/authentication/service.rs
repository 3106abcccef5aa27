use std::sync::Arc;

use futures_util::future::BoxFuture;
use watchkeeper_front::{Request, Response};
use watchkeeper_supervision::Supervisor;

use super::Identity;

/// The answers to authenticated requests: a [service](watchkeeper_front::Service) behind a [`Gate`](super::Gate).
///
/// A service knows nothing about sockets: the gate calls it for every request that comes in over one, and programs call
/// it directly. Calls run concurrently. Dropping the future of a call, or the body of its response, means that the client
/// has gone.
pub trait Service: Send + Sync + 'static {
    /// Answers one request. It has no `Authorization` header any more.
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
