//! The front with real sockets, and clients that are not ours.

mod abuse;
mod bodies;
mod client;
mod connections;
mod head;
mod limits;
mod listeners;
mod metrics;
mod shutdown;
mod tls;
mod upgrades;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream;
use http::Extensions;
use http_body_util::{BodyExt, Full};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio_rustls::client::TlsStream;
use watchkeeper_supervision::Supervisor;

use self::client::{BOTH, Client, TIMEOUT, get, handshake, text, until};
use super::*;

const MAX_REQUEST_BYTES: usize = 3 << 20;
/// What whoever sends this is taken for `admin` by.
const TOKEN: &str = "Bearer secret";

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

/// How many certificates a connection came with, noted when it was opened.
#[derive(Clone)]
struct Shown(usize);

struct Shared(Arc<Example>);

impl Service for Shared {
    fn call(&self, request: Request) -> BoxFuture<'static, Response> {
        let example = Arc::clone(&self.0);
        example.open.fetch_add(1, Ordering::SeqCst);
        let open = Open(Arc::clone(&example.open));
        Box::pin(async move { answer(&example, request, open).await })
    }

    fn connected(&self, peer: &Peer, extensions: &mut Extensions) {
        extensions.insert(Shown(peer.certificates().len()));
    }
}

async fn answer(example: &Example, request: Request, open: Open) -> Response {
    let shutdown = Shutdown::of(&request);
    let is_admin = request.headers().get("authorization").is_some_and(|token| token == TOKEN);
    if let Some(peer) = Peer::of(&request).filter(|_| is_admin) {
        peer.authenticated("admin");
    }
    match request.uri().path() {
        "/whoami" => {
            let shown = Peer::of(&request).and_then(|peer| peer.get::<Shown>()).map_or(0, |shown| shown.0);
            let who = if is_admin { "admin" } else { "stranger" };
            Response::new(format!("{who} with {shown} certificates").into())
        }
        "/read" => match request.into_body().read(MAX_REQUEST_BYTES).await {
            Ok(body) => Response::new(body.len().to_string().into()),
            Err(BodyError::TooLarge { .. }) => {
                http::Response::builder().status(413).body("too large".into()).unwrap()
            }
            Err(_) => http::Response::builder().status(400).body(Body::empty()).unwrap(),
        },
        "/watch" => Response::new(Body::stream(stream::unfold(0, move |count| {
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
        "/stubborn" => Response::new(Body::stream(stream::pending())),
        "/large" => {
            let piece = Bytes::from(vec![b'x'; 64 << 10]);
            Response::new(Body::stream(stream::iter((0..960).map(move |_| piece.clone()))))
        }
        "/slow" => {
            example.arrived.notify_one();
            example.finish.notified().await;
            Response::new("done".into())
        }
        "/panic" => panic!("as the test asked"),
        _ => http::Response::builder().status(404).body(Body::empty()).unwrap(),
    }
}

/// An authority, and what it issues: in PEM, a certificate and its key.
struct Site(Authority);

impl Site {
    fn new() -> Self {
        Self(Authority::with_key("test", Key::generate().unwrap(), SystemTime::now()).unwrap())
    }

    fn authority(&self) -> String {
        pem::certificate(self.0.certificate())
    }

    fn issue(&self, user: &str, purpose: &Purpose<'_>) -> (String, String) {
        let key = Key::generate().unwrap();
        let issued = self.0.issue(&key, (user, &[]), purpose, SystemTime::now()).unwrap();
        (pem::certificate(&issued), pem::key(key.pkcs8()))
    }

    fn server(&self) -> (String, String) {
        self.issue("server", &Purpose::Server(&["localhost".into()]))
    }

    fn client(&self, user: &str) -> (String, String) {
        self.issue(user, &Purpose::Client)
    }

    fn tls(&self) -> Tls {
        let (certificate, key) = self.server();
        let certificate = ServerCertificate::from_pem(certificate.as_bytes(), key.as_bytes()).unwrap();
        Tls::new(certificate, &ClientAuth::Optional(vec![self.0.certificate().clone()])).unwrap()
    }
}

fn any() -> Listener {
    Listener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap()
}

struct Server {
    front: Front,
    https: SocketAddr,
    http: SocketAddr,
    site: Site,
    example: Arc<Example>,
}

impl Server {
    async fn start() -> Self {
        Self::limited(Limits::default())
    }

    fn limited(limits: Limits) -> Self {
        let (site, example) = (Site::new(), Arc::new(Example::default()));
        let front = Front::builder(Shared(Arc::clone(&example)))
            .https(any(), site.tls())
            .http(any())
            .limits(limits)
            .supervisor(example.supervisor.clone())
            .start()
            .unwrap();
        let addresses: Vec<_> = front.addresses().collect();
        Self { front, https: addresses[0], http: addresses[1], site, example }
    }

    async fn connect(&self, alpn: &str) -> std::io::Result<TlsStream<TcpStream>> {
        handshake(self.https, &self.site.authority(), alpn, None).await
    }

    async fn tls(&self, alpn: &str) -> TlsStream<TcpStream> {
        self.connect(alpn).await.unwrap()
    }

    async fn client(&self, alpn: &str) -> Client {
        Client::over(self.tls(alpn).await, alpn).await
    }
}
