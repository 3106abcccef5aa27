//! Who may not be an API server at all.

use std::net::SocketAddr;
use std::sync::Arc;

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use watchkeeper::prelude::*;
use watchkeeper_testkit::TestEnv;

use crate::kinds::v1::App;
use crate::world::started;

/// Believes everybody.
#[derive(Debug)]
struct Anybody;

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        ring::default_provider().signature_verification_algorithms.supported_schemes()
    }
}

async fn connect(address: SocketAddr) -> TlsStream<TcpStream> {
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anybody))
        .with_no_client_auth();
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap()
}

/// The code and the body of an answer that is read to the end.
async fn answer(mut stream: TlsStream<TcpStream>) -> (u16, String) {
    let mut bytes = Vec::new();
    // A server that refuses what it has not read closes at once.
    let _ = stream.read_to_end(&mut bytes).await;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let code = text.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
    (code, text.split_once("\r\n\r\n").map_or(String::new(), |(_, body)| body.to_owned()))
}

/// Sends something by POST.
pub(crate) async fn post(address: SocketAddr, path: &str, content_type: &str, body: String) -> (u16, String) {
    let mut stream = connect(address).await;
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let _ = stream.write_all(body.as_bytes()).await;
    answer(stream).await
}

#[tokio::test]
async fn what_is_no_review_is_refused_and_counted() {
    let env = TestEnv::start().await;
    let webhook =
        Webhook::of::<App>().validate(|_: &App, _: Option<&App>, _: &AdmissionRequest| Verdict::allow());
    let running = started(Manager::new("apps", env.connection()).install::<App>().webhook(webhook)).await;
    let address = running.webhook_address().unwrap();
    const PATH: &str = "/validate-example-com-v1-app";
    const JSON: &str = "application/json";
    let review = |object: &str| {
        format!(
            r#"{{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {{"uid": "1", "operation": "CREATE", "object": {object}}}}}"#
        )
    };
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    for (path, content_type, body, code) in [
        ("/", JSON, "{}".to_owned(), 404),
        ("/convert", JSON, "{}".to_owned(), 404),
        (PATH, "text/plain", "{}".to_owned(), 415),
        (PATH, JSON, String::new(), 400),
        (PATH, JSON, "{".to_owned(), 400),
        (PATH, JSON, "[]".to_owned(), 400),
        (PATH, JSON, "\u{0}\u{1}".to_owned(), 400),
        (
            PATH,
            JSON,
            json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v7"}).to_string(),
            400,
        ),
        (PATH, JSON, deep.clone(), 400),
        (PATH, JSON, "x".repeat(8 << 20), 413),
        // A review of nonsense is a review, and is answered with a no.
        (PATH, JSON, review(&deep), 200),
        (PATH, JSON, review("[1]"), 200),
        (PATH, "application/json; charset=utf-8", review(r#"{"metadata": {}, "spec": {"size": "x"}}"#), 200),
    ] {
        let shown: String = body.chars().take(60).collect();
        let (answered, text) = post(address, path, content_type, body).await;
        assert_eq!(answered, code, "{path} {shown}: {text}");
        if code == 200 {
            let answer: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert_eq!(answer["response"]["allowed"], false, "{shown}: {text}");
        }
    }
    let mut get = connect(address).await;
    get.write_all(format!("GET {PATH} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").as_bytes())
        .await
        .unwrap();
    assert_eq!(answer(get).await.0, 405);

    let metrics = running.metrics();
    for (reason, count) in [("path", 2), ("type", 1), ("malformed", 6), ("size", 1), ("method", 1)] {
        let line = format!("watchkeeper_webhook_refused_total{{reason=\"{reason}\"}} {count}");
        assert!(metrics.contains(&line), "{line} is not in {metrics}");
    }
    running.stop().await;
}

#[tokio::test]
async fn who_says_nothing_or_too_slowly_is_not_waited_for_and_keeps_nobody_out() {
    let env = TestEnv::start().await;
    let webhook =
        Webhook::of::<App>().validate(|_: &App, _: Option<&App>, _: &AdmissionRequest| Verdict::allow());
    let running = started(Manager::new("apps", env.connection()).install::<App>().webhook(webhook)).await;
    let address = running.webhook_address().unwrap();
    let mut silent = Vec::new();
    for _ in 0..600 {
        silent.push(TcpStream::connect(address).await.unwrap());
    }
    let mut slow = connect(address).await;
    let head = "POST /validate-example-com-v1-app?timeout=1s HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{";
    slow.write_all(head.as_bytes()).await.unwrap();
    let app = json!({"apiVersion": "example.com/v1", "kind": "App", "metadata": {"name": "a"}, "spec": {}});
    let (code, answered) = crate::world::ask(&env, "POST", crate::world::APPS_V1, &app).await;
    assert_eq!(code, 201, "{answered}");
    // The review that never came is given up before its second is over, and its connection is closed.
    let ended = tokio::time::timeout(Duration::from_secs(20), answer(slow)).await;
    assert_eq!(ended.map(|(code, _)| code), Ok(408));
    let metrics = running.metrics();
    let line = "watchkeeper_webhook_refused_total{reason=\"body\"} 1";
    assert!(metrics.contains(line), "{line} is not in {metrics}");
    running.stop().await;
}
