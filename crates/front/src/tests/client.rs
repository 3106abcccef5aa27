//! A client of hyper's, for either protocol. The tests of the API server use this file, too.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

pub(crate) const BOTH: [&str; 2] = ["http/1.1", "h2"];
/// Long enough for a machine that is busy with other things; nothing waits for it when all is well.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);

/// Connects as a client that trusts an authority and may have a certificate with its key; all in PEM.
pub(crate) async fn handshake(
    server: SocketAddr,
    trusted: &str,
    alpn: &str,
    certificate: Option<(&str, &str)>,
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(trusted.as_bytes()).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let mut config = match certificate {
        Some((certificate, key)) => config
            .with_client_auth_cert(
                vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()],
                PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap(),
            )
            .unwrap(),
        None => config.with_no_client_auth(),
    };
    config.alpn_protocols = vec![alpn.as_bytes().to_vec()];
    let socket = TcpStream::connect(server).await?;
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, socket).await
}

pub(crate) enum Client {
    One(http1::SendRequest<Full<Bytes>>),
    Two(http2::SendRequest<Full<Bytes>>),
}

impl Client {
    pub(crate) async fn over<S>(stream: S, alpn: &str) -> Self
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

    pub(crate) async fn send(
        &mut self,
        request: http::Request<Full<Bytes>>,
    ) -> hyper::Result<http::Response<hyper::body::Incoming>> {
        match self {
            Self::One(client) => client.send_request(request).await,
            Self::Two(client) => client.send_request(request).await,
        }
    }

    pub(crate) async fn get(
        &mut self,
        path: &str,
        token: Option<&str>,
    ) -> http::Response<hyper::body::Incoming> {
        self.send(get(path, token)).await.unwrap()
    }
}

pub(crate) fn get(path: &str, token: Option<&str>) -> http::Request<Full<Bytes>> {
    let request = http::Request::get(format!("https://localhost{path}")).header("host", "localhost");
    let request = match token {
        Some(token) => request.header("authorization", token),
        None => request,
    };
    request.body(Full::default()).unwrap()
}

pub(crate) async fn text(response: http::Response<hyper::body::Incoming>) -> String {
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Waits until something is so.
pub(crate) async fn until(mut condition: impl FnMut() -> bool) {
    let waiting = async {
        while !condition() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(TIMEOUT, waiting).await.expect("this never became so");
}
