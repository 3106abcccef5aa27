//! The front with real sockets, and clients that are not ours.

mod abuse;
mod authentication;
mod certificates;
mod connections;
mod credentials;
mod head;
mod kubeconfig;
mod limits;
mod shutdown;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use watchkeeper_supervision::Supervisor;

use super::*;
use crate::Clock;

/// Long enough for a machine that is busy with other things; nothing waits for it when all is well.
const PATIENCE: Duration = Duration::from_secs(30);

/// A service with an answer for every test.
#[derive(Default)]
struct Example {
    /// Requests that have arrived at `/slow`.
    arrived: Notify,
    /// Lets one of them finish.
    finish: Notify,
    /// Calls that have not ended, streams included.
    open: Arc<AtomicUsize>,
    supervisor: Supervisor,
}

/// Counts a call for as long as it is there.
struct Open(Arc<AtomicUsize>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

struct Shared(Arc<Example>);

impl Service for Shared {
    fn call(&self, request: Request, identity: Identity) -> BoxFuture<'static, Response> {
        let example = Arc::clone(&self.0);
        example.open.fetch_add(1, Ordering::SeqCst);
        let open = Open(Arc::clone(&example.open));
        Box::pin(async move { answer(&example, request, identity, open).await })
    }

    fn supervisor(&self) -> Supervisor {
        self.0.supervisor.clone()
    }
}

async fn answer(example: &Example, request: Request, identity: Identity, open: Open) -> Response {
    let shutdown = Shutdown::of(&request);
    match request.uri().path() {
        "/whoami" => {
            let secret = request.headers().contains_key("authorization");
            let Identity { user, uid, groups, .. } = identity;
            http::Response::new(format!("{user} {uid} {} {secret}", groups.join("|")).into())
        }
        "/read" => match request.into_body().read(MAX_REQUEST_BYTES).await {
            Ok(body) => http::Response::new(body.len().to_string().into()),
            Err(BodyError::TooLarge { .. }) => {
                http::Response::builder().status(413).body("too large".into()).unwrap()
            }
            Err(_) => http::Response::builder().status(400).body(Body::empty()).unwrap(),
        },
        "/watch" => http::Response::new(Body::stream(stream::unfold(0, move |count| {
            let (shutdown, _open) = (shutdown.clone(), &open);
            async move {
                match count {
                    0 => Some((Bytes::from("first\n"), 1)),
                    1 => {
                        shutdown.begun().await;
                        Some((Bytes::from("bye\n"), 2))
                    }
                    _ => None,
                }
            }
        }))),
        "/stubborn" => http::Response::new(Body::stream(stream::pending())),
        "/large" => {
            let piece = Bytes::from(vec![b'x'; 64 << 10]);
            http::Response::new(Body::stream(stream::iter((0..960).map(move |_| piece.clone()))))
        }
        "/slow" => {
            example.arrived.notify_one();
            example.finish.notified().await;
            http::Response::new("done".into())
        }
        "/panic" => panic!("as the test asked"),
        _ => http::Response::builder().status(404).body(Body::empty()).unwrap(),
    }
}

struct Server {
    front: Front,
    credentials: Credentials,
    example: Arc<Example>,
}

impl Server {
    async fn start() -> Self {
        Self::with(Credentials::load_or_create(None).unwrap()).await
    }

    async fn with(credentials: Credentials) -> Self {
        Self::limited(credentials, Limits::default(), Clock::default()).await
    }

    async fn limited(credentials: Credentials, limits: Limits, clock: Clock) -> Self {
        let example = Arc::new(Example::default());
        let mut tokens = Tokens::new();
        tokens.add(credentials.admin_token(), Identity::admin());
        let options = Options {
            https: "127.0.0.1:0".parse().unwrap(),
            http: Some("127.0.0.1:0".parse().unwrap()),
            names: vec![],
            authenticators: vec![Box::new(ClientCertificates), Box::new(tokens)],
            limits,
            clock,
        };
        let front =
            Front::start(options, &credentials, Arc::new(Shared(Arc::clone(&example)))).await.unwrap();
        Self { front, credentials, example }
    }

    async fn tls(&self, alpn: &str, certificate: Option<&IssuedCertificate>) -> TlsStream<TcpStream> {
        handshake(&self.front, &self.credentials, alpn, certificate).await.unwrap()
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
    front: &Front,
    trusted: &Credentials,
    alpn: &str,
    certificate: Option<&IssuedCertificate>,
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(trusted.authority_certificate().as_bytes()).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let mut config = match certificate {
        Some(issued) => config
            .with_client_auth_cert(
                vec![CertificateDer::from_pem_slice(issued.certificate.as_bytes()).unwrap()],
                PrivateKeyDer::from_pem_slice(issued.key.as_bytes()).unwrap(),
            )
            .unwrap(),
        None => config.with_no_client_auth(),
    };
    config.alpn_protocols = vec![alpn.as_bytes().to_vec()];
    let socket = TcpStream::connect(front.https_address()).await?;
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, socket).await
}

/// A client of hyper's, for either protocol.
enum Client {
    One(http1::SendRequest<Full<Bytes>>),
    Two(http2::SendRequest<Full<Bytes>>),
}

impl Client {
    async fn over<S>(stream: S, alpn: &str) -> Self
    where
        S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
    {
        let stream = TokioIo::new(stream);
        if alpn == "h2" {
            let (client, connection) = http2::handshake(TokioExecutor::new(), stream).await.unwrap();
            tokio::spawn(connection);
            return Self::Two(client);
        }
        let (client, connection) = http1::handshake(stream).await.unwrap();
        tokio::spawn(connection);
        Self::One(client)
    }

    async fn send(
        &mut self,
        request: http::Request<Full<Bytes>>,
    ) -> hyper::Result<http::Response<hyper::body::Incoming>> {
        match self {
            Self::One(client) => client.send_request(request).await,
            Self::Two(client) => client.send_request(request).await,
        }
    }

    async fn get(&mut self, path: &str, token: Option<&str>) -> http::Response<hyper::body::Incoming> {
        self.send(get(path, token)).await.unwrap()
    }
}

fn get(path: &str, token: Option<&str>) -> http::Request<Full<Bytes>> {
    let request = http::Request::get(format!("https://localhost{path}")).header("host", "localhost");
    let request = match token {
        Some(token) => request.header("authorization", token),
        None => request,
    };
    request.body(Full::default()).unwrap()
}

async fn text(response: http::Response<hyper::body::Incoming>) -> String {
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Waits until something is so.
async fn until(mut condition: impl FnMut() -> bool) {
    let waiting = async {
        while !condition() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.expect("this never became so");
}
