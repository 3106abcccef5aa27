use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use rustls_pki_types::PrivateKeyDer;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier};
use tokio_rustls::rustls::sign::{CertifiedKey, SingleCertAndKey};
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

use super::authority::{LEAF_LIFE, Purpose};
use super::certificates::{Certificates, Origin};
use super::{Credentials, Error};

/// The names by which every server can be reached: from this machine, and as `kubernetes` from inside a cluster.
const NAMES: [&str; 7] = [
    "localhost",
    "127.0.0.1",
    "::1",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
];

/// How a server with these certificates speaks TLS: HTTP/2 before HTTP/1.1, with the certificates of clients welcome but
/// not required. One that no authority of ours issued fails the handshake. The names go into the certificate of the
/// server, if it is ours to issue.
pub(super) fn server_config(certificates: &Certificates, names: &[String]) -> Result<ServerConfig, Error> {
    let failed = |error: &dyn fmt::Display| Error::Cryptography(format!("setting up TLS: {error}"));
    let provider = Arc::new(ring::default_provider());
    let server: Arc<dyn ResolvesServerCert> = match &certificates.0 {
        Origin::Issued(credentials) => {
            Arc::new(ServerCertificate::issue(credentials.clone(), names, &provider)?)
        }
        Origin::Given(given) => Arc::new(SingleCertAndKey::from(given.certified(&provider)?)),
    };
    let authorities = match &certificates.0 {
        Origin::Issued(credentials) => std::slice::from_ref(&credentials.authority.certificate),
        Origin::Given(given) => &given.authorities,
    };
    let mut roots = RootCertStore::empty();
    for authority in authorities {
        roots.add(authority.clone()).map_err(|error| failed(&error))?;
    }
    let config = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| failed(&error))?;
    let config = if roots.is_empty() {
        config.with_no_client_auth()
    } else {
        let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
            .allow_unauthenticated()
            .build()
            .map_err(|error| failed(&error))?;
        config.with_client_cert_verifier(clients)
    };
    let mut config = config.with_cert_resolver(server);
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// The certificate of the server, which is issued again in the middle of its life: a server may run for years.
struct ServerCertificate {
    credentials: Credentials,
    names: Vec<String>,
    provider: Arc<CryptoProvider>,
    current: Mutex<(Arc<CertifiedKey>, SystemTime)>,
}

impl ServerCertificate {
    fn issue(
        credentials: Credentials,
        more: &[String],
        provider: &Arc<CryptoProvider>,
    ) -> Result<Self, Error> {
        let names = names(more)?;
        let now = SystemTime::now();
        let current = Mutex::new((certified(&credentials, &names, provider, now)?, now + LEAF_LIFE / 2));
        Ok(Self { credentials, names, provider: Arc::clone(provider), current })
    }

    fn at(&self, now: SystemTime) -> Arc<CertifiedKey> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if now > current.1 {
            match certified(&self.credentials, &self.names, &self.provider, now) {
                Ok(certificate) => *current = (certificate, now + LEAF_LIFE / 2),
                Err(error) => tracing::warn!(%error, "the certificate of the server could not be renewed"),
            }
        }
        Arc::clone(&current.0)
    }
}

/// All names of a server: the usual ones and these.
pub(super) fn names(more: &[String]) -> Result<Vec<String>, Error> {
    let mut names: Vec<String> = NAMES.map(str::to_owned).to_vec();
    for name in more {
        let lower = name.to_ascii_lowercase();
        if name.is_empty() || !name.is_ascii() || name.contains(|char: char| char <= ' ' || char == '/') {
            let reason = "it is neither a host name nor an address";
            return Err(Error::Name { name: name.clone(), reason });
        }
        if !names.contains(&lower) {
            names.push(lower);
        }
    }
    Ok(names)
}

fn certified(
    credentials: &Credentials,
    names: &[String],
    provider: &CryptoProvider,
    now: SystemTime,
) -> Result<Arc<CertifiedKey>, Error> {
    let key = &credentials.server_key;
    let certificate = credentials.authority.issue(key, ("watchkeeper", &[]), &Purpose::Server(names), now)?;
    let signer = provider.key_provider.load_private_key(PrivateKeyDer::Pkcs8(key.pkcs8.clone_key()));
    let signer = signer.map_err(|error| Error::Cryptography(format!("the key of the server: {error}")))?;
    Ok(Arc::new(CertifiedKey::new(vec![certificate], signer)))
}

impl ResolvesServerCert for ServerCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.at(SystemTime::now()))
    }
}

impl fmt::Debug for ServerCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerCertificate").field("names", &self.names).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_certificate_is_issued_again_in_the_middle_of_its_life() {
        let credentials = Credentials::load_or_create(None).unwrap();
        let provider = Arc::new(ring::default_provider());
        let server = ServerCertificate::issue(credentials, &["api.example".into()], &provider).unwrap();
        let now = SystemTime::now();
        let first = server.at(now);
        assert!(Arc::ptr_eq(&first, &server.at(now + LEAF_LIFE / 3)));
        let second = server.at(now + LEAF_LIFE / 3 * 2);
        assert!(!Arc::ptr_eq(&first, &second));
        assert!(Arc::ptr_eq(&second, &server.at(now + LEAF_LIFE)));
    }
}
