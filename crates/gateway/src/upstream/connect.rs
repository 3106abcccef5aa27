use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, ServerName};
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// How servers of a backend are reached.
pub(crate) struct Transport {
    pub(crate) http2: bool,
    /// How TLS is spoken, and the name that certificates have to have if it is not that of the host.
    pub(crate) tls: Option<(Arc<ClientConfig>, Option<ServerName<'static>>)>,
    pub(crate) connect_timeout: Duration,
    pub(crate) idle_timeout: Duration,
    /// Connections to one server at a time.
    pub(crate) max_connections: Option<u32>,
    /// Connections that were opened for another number are not used: they show other certificates, or speak otherwise.
    pub(crate) epoch: u64,
}

pub(super) trait Io: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Io for S {}

/// A connection to a server, whatever it goes over.
pub(super) type Stream = Box<dyn Io>;

impl Transport {
    /// Connects to `host:port`.
    pub(super) async fn connect(&self, address: &str) -> Result<Stream, String> {
        match timeout(self.connect_timeout, self.open(address)).await {
            Ok(opened) => opened,
            Err(_) => Err(format!("connecting took longer than {:?}", self.connect_timeout)),
        }
    }

    async fn open(&self, address: &str) -> Result<Stream, String> {
        let stream = tcp(address).await?;
        let Some((config, name)) = &self.tls else { return Ok(Box::new(stream)) };
        let name = match name {
            Some(name) => name.clone(),
            None => server_name(address)?,
        };
        let connected = TlsConnector::from(Arc::clone(config)).connect(name, stream).await;
        let connected = connected.map_err(|error| format!("TLS: {error}"))?;
        if self.http2 && connected.get_ref().1.alpn_protocol() != Some(b"h2") {
            return Err("TLS: the server does not speak HTTP/2".to_owned());
        }
        Ok(Box::new(connected))
    }
}

async fn tcp(address: &str) -> Result<TcpStream, String> {
    let stream = match address.parse::<SocketAddr>() {
        Ok(address) => TcpStream::connect(address).await,
        Err(_) => TcpStream::connect(address).await,
    };
    let stream = stream.map_err(|error| error.to_string())?;
    let keepalive =
        TcpKeepalive::new().with_time(Duration::from_secs(60)).with_interval(Duration::from_secs(15));
    stream
        .set_nodelay(true)
        .and_then(|()| SockRef::from(&stream).set_tcp_keepalive(&keepalive))
        .map_err(|error| error.to_string())?;
    Ok(stream)
}

fn server_name(address: &str) -> Result<ServerName<'static>, String> {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    ServerName::try_from(host.to_owned())
        .map_err(|_| format!("{host:?} is not a name that a certificate can have"))
}

/// How TLS is spoken to servers whose authorities these are.
pub(crate) fn client_config(roots: RootCertStore, http2: bool) -> Result<Arc<ClientConfig>, String> {
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![if http2 { b"h2".to_vec() } else { b"http/1.1".to_vec() }];
    Ok(Arc::new(config))
}

/// The authorities of the system, or those in PEM.
pub(crate) fn system_roots(pem: Option<&[u8]>) -> Result<RootCertStore, String> {
    static SYSTEM: OnceLock<RootCertStore> = OnceLock::new();
    let Some(pem) = pem else {
        let read = || {
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            roots
        };
        return Ok(SYSTEM.get_or_init(read).clone());
    };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|_| "is not in PEM".to_owned())?;
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    if roots.is_empty() { Err("has no certificate in PEM".to_owned()) } else { Ok(roots) }
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transport")
            .field("http2", &self.http2)
            .field("tls", &self.tls.is_some())
            .finish_non_exhaustive()
    }
}
