//! Watches over a WebSocket, as browsers have them: through TLS, with the token among the subprotocols.

use std::sync::Arc;

use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use watchkeeper_apiserver::authentication::{Credentials, Identity, Options, Tokens, listen};
use watchkeeper_apiserver::front::{Front, Limits, Listener};
use watchkeeper_storage::{Memory, Storage};

use crate::harness::{Api, config_map};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A server on a socket, and one beside it that writes.
struct Listening {
    _front: Front,
    api: Api,
    address: std::net::SocketAddr,
    credentials: Credentials,
}

impl Listening {
    async fn start() -> Self {
        let storage: Arc<dyn Storage> = Arc::new(Memory::new(watchkeeper_storage::Options::default()));
        let server = Api::over(Arc::clone(&storage)).await.server;
        let (api, credentials) = (Api::over(storage).await, Credentials::load_or_create(None).unwrap());
        let listener = Listener::bind(([127, 0, 0, 1], 0).into()).unwrap();
        let address = listener.address();
        let mut tokens = Tokens::new();
        tokens.add(credentials.admin_token(), Identity::admin());
        let tls = credentials.tls(&listener, &[]).unwrap();
        let options = Options {
            https: (listener, tls),
            http: None,
            authenticators: vec![Box::new(tokens)],
            limits: Limits::default(),
            clock: watchkeeper_apiserver::Clock::default(),
            anonymous: false,
        };
        let front = listen(options, server).unwrap();
        Self { _front: front, api, address, credentials }
    }

    /// Asks to watch over a WebSocket that offers these subprotocols. Returns the head of the answer, and what follows.
    async fn watch(&self, protocols: &str) -> (String, TlsStream<TcpStream>) {
        let mut roots = RootCertStore::empty();
        let authority = self.credentials.authority_certificate();
        roots.add(CertificateDer::from_pem_slice(authority.as_bytes()).unwrap()).unwrap();
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let socket = TcpStream::connect(self.address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let mut stream = TlsConnector::from(Arc::new(config)).connect(name, socket).await.unwrap();
        let request = format!(
            "GET {MAPS}?watch=1 HTTP/1.1\r\nhost: localhost\r\norigin: https://headlamp.example\r\nconnection: Upgrade\r\n\
             upgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
             sec-websocket-protocol: {protocols}\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        (String::from_utf8(head).unwrap().to_lowercase(), stream)
    }
}

/// The event in the next message.
async fn event(stream: &mut TlsStream<TcpStream>) -> Value {
    assert_eq!(stream.read_u8().await.unwrap(), 0x81, "a text in one frame");
    let length = match stream.read_u8().await.unwrap() {
        126 => usize::from(stream.read_u16().await.unwrap()),
        length => usize::from(length),
    };
    let mut text = vec![0; length];
    stream.read_exact(&mut text).await.unwrap();
    serde_json::from_slice(&text).unwrap()
}

#[tokio::test]
async fn a_browser_watches_with_its_token_among_the_subprotocols() {
    let server = Listening::start().await;
    let token = watchkeeper_go::base64::RAW_URL.encode(server.credentials.admin_token());
    let token = format!("base64url.bearer.authorization.k8s.io.{token}");
    let (head, mut stream) = server.watch(&format!("base64.binary.k8s.io, {token}")).await;
    assert!(head.starts_with("http/1.1 101"), "{head}");
    assert!(head.contains("sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo="), "{head}");
    assert!(
        head.contains("sec-websocket-protocol: base64.binary.k8s.io\r\n"),
        "the token is not said back: {head}"
    );
    for name in ["a", "b"] {
        server.api.post(MAPS, config_map(name, json!({"text": "x".repeat(200)}))).await.ok();
        let event = event(&mut stream).await;
        assert_eq!((&event["type"], &event["object"]["metadata"]["name"]), (&json!("ADDED"), &json!(name)));
    }
}

#[tokio::test]
async fn a_browser_without_a_token_that_is_known_is_turned_away() {
    let server = Listening::start().await;
    let token = |token: &str| {
        let token = watchkeeper_go::base64::RAW_URL.encode(token);
        format!("base64url.bearer.authorization.k8s.io.{token}")
    };
    let known = token(server.credentials.admin_token());
    for protocols in [
        "base64.binary.k8s.io".to_owned(),
        format!("base64.binary.k8s.io, {}", token("nobody")),
        // Nothing is left to say back.
        known.clone(),
        format!("base64.binary.k8s.io, {known}, {known}"),
    ] {
        let (head, _) = server.watch(&protocols).await;
        assert!(head.starts_with("http/1.1 401"), "{head}");
    }
}
