//! TLS: whom to believe, and which certificate to show.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::client::{WebPkiServerVerifier, verify_server_name};
use tokio_rustls::rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error as RustlsError, OtherError, RootCertStore,
    SignatureScheme,
};
use watchkeeper_x509::Certificate;

use crate::Obstacle;
use crate::followed::Followed;
use crate::greeting::Greeted;
use crate::stream::Stream;

/// Something in PEM: where it is, or what it is.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Pem {
    File(PathBuf),
    Data(Vec<u8>),
}

/// Which servers are believed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Trust {
    /// Those whose certificates the authorities of the system have issued.
    #[default]
    System,
    /// Those of these authorities.
    Authorities(Pem),
    /// All.
    Everyone,
}

/// A certificate and its key, to show to servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) certificate: Pem,
    pub(crate) key: Pem,
}

/// How to speak TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TlsSettings {
    pub(crate) trust: Trust,
    pub(crate) identity: Option<Identity>,
    /// The name that the server's certificate has to have, if it is not that of the host.
    pub(crate) server_name: Option<String>,
}

/// Speaks TLS as its settings say. What they name files for is read again when the files change.
pub(crate) struct Tls {
    settings: TlsSettings,
    current: Followed<Arc<Read>>,
    /// What a credential plugin gave to show instead.
    shown: Mutex<Option<Identity>>,
}

/// What files held, and what was made of it.
struct Read {
    contents: Contents,
    config: Arc<ClientConfig>,
    epoch: u64,
}

#[derive(PartialEq, Eq)]
struct Contents {
    authorities: Option<Vec<u8>>,
    identity: Option<(Vec<u8>, Vec<u8>)>,
}

impl Tls {
    pub(crate) fn new(settings: TlsSettings) -> Result<Self, String> {
        let read = Read::of(&settings)?;
        Ok(Self { settings, current: Followed::new(Arc::new(read)), shown: Mutex::default() })
    }

    /// Shows another certificate from now on. Says whether it is another.
    pub(crate) fn show(&self, identity: Option<Identity>) -> Result<bool, String> {
        if *self.shown.lock() == identity {
            return Ok(false);
        }
        // Before it takes the place of the other, it has to be one.
        if let Some(identity) = &identity {
            Read::of(&TlsSettings { identity: Some(identity.clone()), ..self.settings.clone() })?;
        }
        *self.shown.lock() = identity;
        self.current.doubt();
        Ok(true)
    }

    /// How to speak TLS now, and a number that is another whenever that changes.
    pub(crate) fn current(&self) -> (Arc<ClientConfig>, u64) {
        let read = self.current.get(|before| {
            let identity = self.shown.lock().clone().or_else(|| self.settings.identity.clone());
            let settings = TlsSettings { identity, ..self.settings.clone() };
            settings.news(before).unwrap_or_else(|reason| {
                tracing::warn!(%reason, "certificates cannot be read again, the old ones stay in use");
                None
            })
        });
        (Arc::clone(&read.config), read.epoch)
    }

    /// Speaks TLS over a stream.
    pub(crate) async fn connect(
        &self,
        config: Arc<ClientConfig>,
        stream: Stream,
        host: &str,
    ) -> Result<Stream, Obstacle> {
        let name = self.settings.server_name.as_deref().unwrap_or(host);
        let name = ServerName::try_from(name.to_owned())
            .map_err(|_| format!("{name:?} is not a name that a certificate can have"))?;
        let connecting = TlsConnector::from(config).connect(name, Greeted::new(stream));
        match connecting.into_fallible().await {
            Ok(connected) => Ok(Box::new(connected)),
            Err((error, stream)) => Err(obstacle(error, &stream)),
        }
    }
}

/// What a handshake that failed says about the server.
fn obstacle(error: io::Error, stream: &Greeted) -> Obstacle {
    if let Some(first) = stream.is_no_tls() {
        return Obstacle::NoTls { first: first.to_vec(), error };
    }
    let reason = error.get_ref().and_then(|reason| reason.downcast_ref::<RustlsError>());
    match reason {
        Some(RustlsError::AlertReceived(alert)) => Obstacle::Alert { code: u8::from(*alert), error },
        Some(RustlsError::InvalidCertificate(CertificateError::Other(other))) => {
            match other.0.downcast_ref::<Distrusted>() {
                Some(Distrusted { chain, reason }) => {
                    let is_foreign =
                        matches!(reason, CertificateError::UnknownIssuer | CertificateError::BadSignature);
                    let said = RustlsError::InvalidCertificate(reason.clone());
                    let (chain, error) = (chain.clone(), io::Error::new(error.kind(), said));
                    Obstacle::Certificate { chain, is_foreign, error }
                }
                None => Obstacle::Handshake(error),
            }
        }
        _ => Obstacle::Handshake(error),
    }
}

/// A certificate that is not believed, with those that came with it.
#[derive(Debug)]
struct Distrusted {
    chain: Vec<Vec<u8>>,
    reason: CertificateError,
}

impl Distrusted {
    /// The same error with the certificates that it is about.
    fn error(
        error: RustlsError,
        end_entity: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
    ) -> RustlsError {
        let RustlsError::InvalidCertificate(reason) = error else { return error };
        let chain = std::iter::once(end_entity).chain(others).map(|one| one.to_vec()).collect();
        CertificateError::Other(OtherError(Arc::new(Self { chain, reason }))).into()
    }
}

impl fmt::Display for Distrusted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.reason, f)
    }
}

impl std::error::Error for Distrusted {}

impl TlsSettings {
    /// What files hold, if it is another than before.
    fn news(&self, before: &Read) -> Result<Option<Arc<Read>>, String> {
        let contents = Contents::of(self)?;
        if contents == before.contents {
            return Ok(None);
        }
        let config = Arc::new(self.config(&contents)?);
        Ok(Some(Arc::new(Read { contents, config, epoch: before.epoch + 1 })))
    }

    fn config(&self, contents: &Contents) -> Result<ClientConfig, String> {
        let provider = Arc::new(ring::default_provider());
        let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
        let config = match (&self.trust, &contents.authorities) {
            (Trust::Everyone, _) => config
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(Verifier { provider, trusted: None })),
            (Trust::Authorities(pem), Some(text)) => {
                let trusted = Trusted::read(text, &provider)
                    .map_err(|reason| format!("certificate-authority {pem}: {reason}"))?;
                let verifier = Verifier { provider, trusted: Some(trusted) };
                config.dangerous().with_custom_certificate_verifier(Arc::new(verifier))
            }
            _ => {
                let roots = system_roots();
                if roots.is_empty() {
                    config.with_root_certificates(roots)
                } else {
                    let authorities =
                        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
                    let authorities = authorities.build().map_err(|error| error.to_string())?;
                    let trusted = Some(Trusted { authorities, certificates: Vec::new() });
                    config
                        .dangerous()
                        .with_custom_certificate_verifier(Arc::new(Verifier { provider, trusted }))
                }
            }
        };
        let mut config = match (&self.identity, &contents.identity) {
            (Some(identity), Some((certificate, key))) => {
                let (chain, key) = identity.parse(certificate, key)?;
                config.with_client_auth_cert(chain, key).map_err(|error| {
                    format!("client-certificate {} with its key: {error}", identity.certificate)
                })?
            }
            _ => config.with_no_client_auth(),
        };
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(config)
    }
}

impl Read {
    fn of(settings: &TlsSettings) -> Result<Self, String> {
        let contents = Contents::of(settings)?;
        let config = Arc::new(settings.config(&contents)?);
        Ok(Self { contents, config, epoch: 0 })
    }
}

impl Contents {
    fn of(settings: &TlsSettings) -> Result<Self, String> {
        let authorities = match &settings.trust {
            Trust::Authorities(pem) => Some(pem.read("certificate-authority")?),
            Trust::System | Trust::Everyone => None,
        };
        let identity = match &settings.identity {
            Some(Identity { certificate, key }) => {
                Some((certificate.read("client-certificate")?, key.read("client-key")?))
            }
            None => None,
        };
        Ok(Self { authorities, identity })
    }
}

impl Identity {
    fn parse(
        &self,
        certificate: &[u8],
        key: &[u8],
    ) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), String> {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificate).collect();
        let chain = chain.ok().filter(|chain| !chain.is_empty());
        let chain =
            chain.ok_or_else(|| format!("client-certificate {}: no certificate in PEM", self.certificate))?;
        let key = PrivateKeyDer::from_pem_slice(key)
            .map_err(|_| format!("client-key {}: no key in PEM", self.key))?;
        Ok((chain, key))
    }
}

impl Pem {
    fn read(&self, field: &str) -> Result<Vec<u8>, String> {
        match self {
            Self::Data(data) => Ok(data.clone()),
            Self::File(file) => read(file).map_err(|reason| format!("{field} {}: {reason}", file.display())),
        }
    }
}

fn read(file: &Path) -> Result<Vec<u8>, String> {
    fs::read(file).map_err(|error| error.to_string())
}

/// Whom to believe. That a server holds the key of the certificate that it shows is always checked.
#[derive(Debug)]
struct Verifier {
    provider: Arc<CryptoProvider>,
    /// Without any, every server is believed.
    trusted: Option<Trusted>,
}

/// Believes servers whose certificates these authorities have issued; and, as Go does, a server whose own certificate is among those that
/// are trusted, for as long as it counts and if it is for that host. envtest hands out bundles of that kind.
#[derive(Debug)]
struct Trusted {
    authorities: Arc<WebPkiServerVerifier>,
    certificates: Vec<CertificateDer<'static>>,
}

impl Trusted {
    fn read(pem: &[u8], provider: &Arc<CryptoProvider>) -> Result<Self, String> {
        let (mut roots, mut certificates) = (RootCertStore::empty(), Vec::new());
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate = certificate.map_err(|error| format!("not in PEM: {error}"))?;
            roots.add(certificate.clone()).map_err(|error| error.to_string())?;
            certificates.push(certificate);
        }
        if roots.is_empty() {
            return Err("no certificate in PEM".to_owned());
        }
        let authorities = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
        Ok(Self { authorities: authorities.build().map_err(|error| error.to_string())?, certificates })
    }
}

/// Whether a certificate that is trusted itself is for this host, and counts now.
fn counts(certificate: &CertificateDer<'_>, host: &ServerName<'_>, now: UnixTime) -> Result<(), RustlsError> {
    verify_server_name(&ParsedCertificate::try_from(certificate)?, host)?;
    let validity = Certificate::read(certificate).map_err(|_| CertificateError::BadEncoding)?.validity;
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(now.as_secs());
    match (now < validity.not_before, now > validity.not_after) {
        (true, _) => Err(CertificateError::NotValidYet.into()),
        (_, true) => Err(CertificateError::Expired.into()),
        _ => Ok(()),
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, RustlsError> {
        let Some(Trusted { authorities, certificates }) = &self.trusted else {
            return Ok(ServerCertVerified::assertion());
        };
        let verified =
            authorities.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        let verified = match verified {
            Err(_) if certificates.iter().any(|trusted| trusted == end_entity) => {
                counts(end_entity, server_name, now).map(|()| ServerCertVerified::assertion())
            }
            verified => verified,
        };
        verified.map_err(|error| Distrusted::error(error, end_entity, intermediates))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, RustlsError> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, RustlsError> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

impl fmt::Display for Pem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(file) => write!(f, "{}", file.display()),
            Self::Data(_) => f.write_str("in the kubeconfig"),
        }
    }
}

impl fmt::Debug for Pem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pem({self})")
    }
}

/// Where the system has no authorities, no server is believed, and the handshake says so.
fn system_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}
