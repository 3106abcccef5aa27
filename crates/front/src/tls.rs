use std::fmt;
use std::sync::Arc;

use parking_lot::RwLock;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

use crate::tls_files::Followed;
use crate::{Error, TlsFiles};

/// The TLS of a listener: its certificates, and the authorities of client certificates that it trusts. TLS 1.2 and 1.3, HTTP/2
/// before HTTP/1.1.
///
/// It can be [replaced](Self::replace) at any time, for all clones. Open connections stay as they are; new ones, including
/// resumed sessions, get the new certificate and are checked with the new authorities.
#[derive(Clone)]
pub struct Tls {
    current: Arc<RwLock<Arc<ServerConfig>>>,
    files: Option<Arc<Followed>>,
}

/// Whether clients are asked for a certificate, and the authorities that have to have issued it. With a certificate of another
/// issuer, or an expired one, the handshake fails.
#[derive(Clone, Debug, Default)]
pub enum ClientAuth {
    /// Clients are not asked for a certificate.
    #[default]
    Off,
    /// Clients may present a certificate of one of these authorities.
    Optional(Vec<CertificateDer<'static>>),
    /// Clients must present a certificate of one of these authorities.
    Required(Vec<CertificateDer<'static>>),
}

/// A certificate with its key, as a server shows it. Clones are cheap.
#[derive(Clone)]
pub struct ServerCertificate(Arc<CertifiedKey>);

/// Says which certificate a client is shown. A [`ServerCertificate`] says itself.
pub trait CertificateSource: Send + Sync + 'static {
    /// The certificate for a client that asks for this host, if it says which. `None` fails the handshake.
    ///
    /// Called with every handshake, on a thread that others wait for.
    fn certificate(&self, host: Option<&str>) -> Option<ServerCertificate>;
}

impl Tls {
    /// Shows the certificates of this source, and believes those of these clients.
    pub fn new(certificates: impl CertificateSource, clients: &ClientAuth) -> Result<Self, Error> {
        let config = server_config(certificates, clients)?;
        Ok(Self { current: Arc::new(RwLock::new(Arc::new(config))), files: None })
    }

    /// Shows and believes what is in files. A [`Front`](crate::Front) reads them again every ten seconds; what they hold by then
    /// takes the place of what they held, if it can be used.
    pub fn files(files: TlsFiles) -> Result<Self, Error> {
        let (followed, certificate, clients) = Followed::read(files)?;
        let tls = Self::new(certificate, &clients)?;
        Ok(Self { files: Some(Arc::new(followed)), ..tls })
    }

    /// Takes this for whoever connects from now on. If it cannot be used, everything stays as it is.
    pub fn replace(&self, certificates: impl CertificateSource, clients: &ClientAuth) -> Result<(), Error> {
        let config = server_config(certificates, clients)?;
        *self.current.write() = Arc::new(config);
        Ok(())
    }

    /// Reads the files again that it comes from, if any. Says whether there was something new. What cannot be used is an error
    /// once, and changes nothing. Blocks while it reads.
    pub fn refresh(&self) -> Result<bool, Error> {
        let news = self.files.as_ref().map_or(Ok(None), |files| files.news())?;
        let Some((certificate, clients)) = news else { return Ok(false) };
        self.replace(certificate, &clients)?;
        Ok(true)
    }

    pub(crate) fn has_files(&self) -> bool {
        self.files.is_some()
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.current.read()))
    }
}

fn server_config(certificates: impl CertificateSource, clients: &ClientAuth) -> Result<ServerConfig, Error> {
    let failed = |error: &dyn fmt::Display| Error::Cryptography(format!("setting up TLS: {error}"));
    let provider = Arc::new(ring::default_provider());
    let config = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| failed(&error))?;
    let config = match clients {
        ClientAuth::Off => config.with_no_client_auth(),
        ClientAuth::Optional(authorities) | ClientAuth::Required(authorities) => {
            let mut roots = RootCertStore::empty();
            for authority in authorities {
                roots.add(authority.clone()).map_err(|error| failed(&error))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            let verifier = match clients {
                ClientAuth::Required(_) => verifier,
                _ => verifier.allow_unauthenticated(),
            };
            config.with_client_cert_verifier(verifier.build().map_err(|error| failed(&error))?)
        }
    };
    let mut config = config.with_cert_resolver(Arc::new(Resolver(certificates)));
    #[cfg(feature = "http2")]
    config.alpn_protocols.push(b"h2".to_vec());
    config.alpn_protocols.push(b"http/1.1".to_vec());
    Ok(config)
}

impl ServerCertificate {
    /// Makes a server certificate of a chain and the key of its first certificate.
    pub fn new(chain: Vec<CertificateDer<'static>>, key: PrivateKeyDer<'static>) -> Result<Self, Error> {
        let certified = CertifiedKey::from_der(chain, key, &ring::default_provider());
        let certified = certified.map_err(|error| {
            Error::Cryptography(format!("the certificate and the key of the server: {error}"))
        })?;
        Ok(Self(Arc::new(certified)))
    }

    /// Makes a server certificate of a chain and a key in PEM, from a Secret for example. For files there is [`TlsFiles`].
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, Error> {
        let wrong = |what: &str| Error::Cryptography(format!("the {what} of the server is not in PEM"));
        let chain = CertificateDer::pem_slice_iter(chain).collect::<Result<Vec<_>, _>>();
        let chain = chain.map_err(|_| wrong("certificate"))?;
        Self::new(chain, PrivateKeyDer::from_pem_slice(key).map_err(|_| wrong("key"))?)
    }
}

/// Equal are those that show the same certificates.
impl PartialEq for ServerCertificate {
    fn eq(&self, other: &Self) -> bool {
        self.0.cert == other.0.cert
    }
}

impl CertificateSource for ServerCertificate {
    fn certificate(&self, _host: Option<&str>) -> Option<ServerCertificate> {
        Some(self.clone())
    }
}

struct Resolver<S>(S);

impl<S: CertificateSource> ResolvesServerCert for Resolver<S> {
    fn resolve(&self, client: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.certificate(client.server_name()).map(|certificate| certificate.0)
    }
}

impl<S> fmt::Debug for Resolver<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Resolver")
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}

impl fmt::Debug for ServerCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServerCertificate")
    }
}
