use std::sync::Arc;
use std::time::Duration;

use http::header::{HOST, HeaderValue, USER_AGENT};
use http::{Request, Uri};
use tokio::time::{sleep, timeout};
use watchkeeper_front::Body;

use super::{Backend, Connections, EndpointState};

/// How servers are asked how they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ActiveCheck {
    pub(crate) path: String,
    pub(crate) interval: Duration,
    pub(crate) timeout: Duration,
    pub(crate) unhealthy_after: u32,
    pub(crate) healthy_after: u32,
}

/// Asks a server of a backend how it is, for ever.
pub(crate) async fn check_actively(backend: Arc<Backend>, endpoint: Arc<EndpointState>, check: ActiveCheck) {
    // Not all at once.
    sleep(check.interval.mul_f64(fastrand::f64() * 0.2)).await;
    loop {
        let ok = matches!(timeout(check.timeout, ask(&backend, &endpoint, &check)).await, Ok(true));
        let enough = if ok { check.healthy_after } else { check.unhealthy_after };
        if endpoint.checked(ok, enough) {
            let (backend, endpoint) = (&backend.key, &endpoint.address);
            match ok {
                true => tracing::info!(%backend, %endpoint, "healthy again"),
                false => tracing::warn!(%backend, %endpoint, "unhealthy: gets no requests"),
            }
        }
        sleep(check.interval.mul_f64(0.9 + fastrand::f64() * 0.2)).await;
    }
}

/// Whether a server answers with a code below 400.
async fn ask(backend: &Backend, endpoint: &Arc<EndpointState>, check: &ActiveCheck) -> bool {
    let transport = &backend.transport;
    let scheme = if transport.tls.is_some() { "https" } else { "http" };
    let uri = match transport.http2 {
        true => format!("{scheme}://{}{}", endpoint.address, check.path).parse(),
        false => check.path.parse::<Uri>(),
    };
    let Ok(uri) = uri else { return false };
    let mut request = Request::new(Body::empty());
    *request.uri_mut() = uri;
    let host = backend.host.clone().or_else(|| HeaderValue::from_str(&endpoint.address).ok());
    if let Some(host) = host.filter(|_| !transport.http2) {
        request.headers_mut().insert(HOST, host);
    }
    request.headers_mut().insert(USER_AGENT, HeaderValue::from_static("watchkeeper-gateway"));
    // The connection is closed with the response: a server that is asked rarely needs none that waits. That all connections are used by
    // clients says nothing of how the server is.
    let asked = endpoint.send_with(transport, request, Connections::Unlimited).await;
    asked.is_ok_and(|(response, _)| response.status().as_u16() < 400)
}
