use std::sync::Arc;

use futures_util::future::BoxFuture;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Extensions, StatusCode};

use crate::{Body, Peer};

/// A request as a [`Service`] sees it. If it came in over a socket, its [`Peer`] is among its extensions.
pub type Request = http::Request<Body>;

/// The response of a [`Service`].
pub type Response = http::Response<Body>;

/// Answers requests. A function from [`Request`] to a future of [`Response`] is a service.
///
/// A service knows nothing about sockets: the front calls it for every request that comes in over one, and programs call
/// it directly. Calls run concurrently. Dropping the future of a call, or the body of its response, means that the client
/// has gone.
///
/// A service limits how much it reads of a body ([`Body::read`]) and how long an answer may take; it ends streams that
/// would go on forever when the [`Shutdown`](crate::Shutdown) of their request begins. If it finds out who its clients are, it
/// tells the front ([`Peer::authenticated`]), which then does not take their connections away for those of strangers.
pub trait Service: Send + Sync + 'static {
    /// Answers one request.
    fn call(&self, request: Request) -> BoxFuture<'static, Response>;

    /// Called once for each connection, after the TLS handshake and before the first request. What it leaves in `extensions`
    /// can be asked for with every request of the connection ([`Peer::get`]), and has to be made only once.
    fn connected(&self, _peer: &Peer, _extensions: &mut Extensions) {}

    /// The answer to a request at which [`call`](Self::call) panicked. The code should be 500.
    fn panicked(&self) -> Response {
        plain(StatusCode::INTERNAL_SERVER_ERROR, "the server failed at this request; see its log\n")
    }
}

/// A shared service is a service.
impl<S: Service + ?Sized> Service for Arc<S> {
    fn call(&self, request: Request) -> BoxFuture<'static, Response> {
        (**self).call(request)
    }

    fn connected(&self, peer: &Peer, extensions: &mut Extensions) {
        (**self).connected(peer, extensions);
    }

    fn panicked(&self) -> Response {
        (**self).panicked()
    }
}

impl<F, A> Service for F
where
    F: Fn(Request) -> A + Send + Sync + 'static,
    A: Future<Output = Response> + Send + 'static,
{
    fn call(&self, request: Request) -> BoxFuture<'static, Response> {
        Box::pin(self(request))
    }
}

/// An answer of the front itself.
pub(crate) fn plain(code: StatusCode, text: &'static str) -> Response {
    let mut response = Response::new(Body::whole(text));
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}
