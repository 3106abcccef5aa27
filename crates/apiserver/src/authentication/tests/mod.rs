//! Who is who, with real sockets and clients that are not ours.

mod authentication;
mod certificates;
#[path = "../../../../front/src/tests/client.rs"]
mod client;
mod credentials;
mod kubeconfig;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use watchkeeper_front::{Front, Limits, Listener, Request, Response, Tls, TlsFiles, pem};

use self::client::{BOTH, Client, get, text};
use super::*;
use crate::Clock;

/// Says who asks.
#[derive(Clone, Default)]
struct WhoAmI {
    /// The requests that have come.
    calls: Arc<AtomicUsize>,
}

impl Service for WhoAmI {
    fn call(&self, request: Request, identity: Identity) -> BoxFuture<'static, Response> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            assert_ne!(request.uri().path(), "/panic", "as the test asked");
            let secret = request.headers().contains_key("authorization");
            let Identity { user, uid, groups, .. } = identity;
            Response::new(format!("{user} {uid} {} {secret}", groups.join("|")).into())
        })
    }
}

fn any() -> Listener {
    Listener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap()
}

struct Server {
    _front: Front,
    https: SocketAddr,
    credentials: Credentials,
    calls: Arc<AtomicUsize>,
}

impl Server {
    async fn start() -> Self {
        Self::with(Credentials::load_or_create(None).unwrap()).await
    }

    async fn with(credentials: Credentials) -> Self {
        Self::by(credentials, Clock::default()).await
    }

    async fn by(credentials: Credentials, clock: Clock) -> Self {
        let service = WhoAmI::default();
        let calls = Arc::clone(&service.calls);
        let mut tokens = Tokens::new();
        tokens.add(credentials.admin_token(), Identity::admin());
        let listener = any();
        let https = listener.address();
        let tls = credentials.tls(&listener, &[]).unwrap();
        let options = Options {
            https: (listener, tls),
            http: None,
            authenticators: vec![Box::new(ClientCertificates), Box::new(tokens)],
            limits: Limits::default(),
            clock,
            anonymous: true,
        };
        Self { _front: listen(options, service).unwrap(), https, credentials, calls }
    }

    async fn tls(&self, alpn: &str, certificate: Option<&IssuedCertificate>) -> TlsStream<TcpStream> {
        handshake(self.https, &self.credentials, alpn, certificate).await.unwrap()
    }

    fn token(&self) -> String {
        format!("Bearer {}", self.credentials.admin_token())
    }

    async fn client(&self, alpn: &str) -> Client {
        Client::over(self.tls(alpn, None).await, alpn).await
    }
}

/// Connects as a client that trusts these credentials.
async fn handshake(
    server: SocketAddr,
    trusted: &Credentials,
    alpn: &str,
    certificate: Option<&IssuedCertificate>,
) -> std::io::Result<TlsStream<TcpStream>> {
    let certificate = certificate.map(|issued| (issued.certificate.as_str(), issued.key.as_str()));
    client::handshake(server, &trusted.authority_certificate(), alpn, certificate).await
}
