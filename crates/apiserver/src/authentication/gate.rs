use std::sync::Arc;

use futures_util::future::BoxFuture;
use http::header::{AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{Extensions, StatusCode};
use watchkeeper_front::{ACCESS_LOG, Body, LogUser, Peer, Request, Response};

use super::authenticator::{Unidentified, bearer_token, identify};
use super::web_socket_token::{self, InvalidOffer};
use super::{ANONYMOUS, Authenticator, ClientCertificate, Presented, Service};
use crate::Clock;

/// Finds out who sends a request, and has a [`Service`] answer it.
///
/// - Every request reaches the service with the [`Identity`](super::Identity) of whoever sent it; one with a token that nobody
///   knows is answered with 401 here and never does, one whose token cannot be looked up at the moment with 503 and `Retry-After`.
/// - A request with a certificate that has expired is answered with 401, also on a connection that was opened before.
/// - The front learns whose connections are whose, so that strangers do not keep the authenticated out.
pub struct Gate(Arc<Inner>);

struct Inner {
    service: Box<dyn Service>,
    authenticators: Vec<Box<dyn Authenticator>>,
    /// By which certificates expire.
    clock: Clock,
    anonymous: bool,
}

impl Gate {
    /// In front of this service, with these ways to find out who asks, in order. The certificates of clients expire by the clock.
    /// Who shows nothing is anonymous, or turned away.
    pub fn new(
        service: impl Service,
        authenticators: Vec<Box<dyn Authenticator>>,
        clock: Clock,
        anonymous: bool,
    ) -> Self {
        Self(Arc::new(Inner { service: Box::new(service), authenticators, clock, anonymous }))
    }
}

impl watchkeeper_front::Service for Gate {
    fn call(&self, request: Request) -> BoxFuture<'static, Response> {
        Box::pin(admit(Arc::clone(&self.0), request))
    }

    fn connected(&self, peer: &Peer, extensions: &mut Extensions) {
        let Some(certificate) = peer.certificates().first() else { return };
        let certificate = ClientCertificate::read(certificate);
        if let Some(identity) = certificate.identity().filter(|identity| identity.is_authenticated()) {
            peer.authenticated(&identity.user);
        }
        extensions.insert(Arc::new(certificate));
    }

    fn panicked(&self) -> Response {
        let message = "the server failed at this request; see its log";
        status(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message, None)
    }
}

async fn admit(gate: Arc<Inner>, mut request: Request) -> Response {
    let peer = Peer::of(&request).cloned();
    let certificate = peer.as_ref().and_then(|peer| peer.get::<Arc<ClientCertificate>>());
    let is_expired = certificate.is_some_and(|certificate| certificate.is_expired(gate.clock.now()));
    let certificate = certificate.filter(|_| !is_expired).map(|certificate| &**certificate);
    let of_socket = match web_socket_token::take(request.headers_mut()) {
        Ok(token) => token,
        Err(InvalidOffer) if certificate.is_none() => return unauthorized(),
        Err(InvalidOffer) => None,
    };
    let token = bearer_token(request.headers()).or(of_socket.as_deref());
    let presented = Presented { token, certificate };
    let identity = match identify(&gate.authenticators, presented, is_expired).await {
        Ok(identity) if gate.anonymous || identity.user != ANONYMOUS => identity,
        Ok(_) | Err(Unidentified::Unauthorized) => return unauthorized(),
        Err(Unidentified::Unavailable(why)) => {
            tracing::debug!(why = %why.0, "a token cannot be looked up");
            let message = "the token cannot be looked up, because the storage is not available: try again";
            return status(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", message, Some(1));
        }
    };
    if let Some(peer) = peer.filter(|_| identity.is_authenticated()) {
        peer.authenticated(&identity.user);
    }
    let user = tracing::enabled!(target: ACCESS_LOG, tracing::Level::DEBUG).then(|| identity.user.clone());
    // It has served its purpose, and nobody behind this needs to be trusted with it.
    request.headers_mut().remove(AUTHORIZATION);
    let mut response = gate.service.call(request, identity).await;
    if let Some(user) = user {
        response.extensions_mut().insert(LogUser(user));
    }
    response
}

fn unauthorized() -> Response {
    status(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized", None)
}

/// An answer of the gate itself, as Kubernetes clients understand it, and after how many seconds to try again. The texts need no escaping.
fn status(code: StatusCode, reason: &str, message: &str, retry_after: Option<u16>) -> Response {
    let details = match retry_after {
        Some(seconds) => format!(r#""details":{{"retryAfterSeconds":{seconds}}},"#),
        None => String::new(),
    };
    let body = format!(
        r#"{{"kind":"Status","apiVersion":"v1","metadata":{{}},"status":"Failure","message":"{message}","reason":"{reason}",{details}"code":{}}}"#,
        code.as_u16(),
    );
    let mut response = Response::new(Body::whole(body + "\n"));
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    if let Some(seconds) = retry_after {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}
