//! The certificate that a replica shows. Its key never leaves the process.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::RootCertStore;
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::ServerCertVerifier as _;
use tokio_rustls::rustls::crypto::ring;
use watchkeeper_front::{Key, Purpose, ServerCertificate};

use super::record::Trusted;
use super::step::due;

/// A certificate with its key, and who signed it.
#[derive(Clone)]
pub(crate) struct Leaf {
    pub(crate) certificate: ServerCertificate,
    der: CertificateDer<'static>,
    /// The certificate of the authority.
    pub(crate) issuer: Arc<str>,
    names: Vec<String>,
    due: SystemTime,
    pub(crate) end: SystemTime,
}

impl Leaf {
    /// A new one for these names and addresses.
    pub(crate) fn issue(
        by: &Trusted,
        names: &[String],
        now: SystemTime,
        life: Duration,
    ) -> Result<Self, String> {
        let authority = by.authority()?;
        let said = |error: watchkeeper_front::Error| error.to_string();
        let key = Key::generate().map_err(said)?;
        let name = names.first().map_or("webhook", String::as_str);
        let end = (now + life).min(authority.end());
        let life = end.duration_since(now).unwrap_or_default();
        let der = authority.issue_for(&key, (name, &[]), &Purpose::Server(names), now, life).map_err(said)?;
        let key = key.pkcs8().clone_key().into();
        let certificate = ServerCertificate::new(vec![der.clone()], key).map_err(said)?;
        let (issuer, names) = (Arc::clone(&by.certificate), names.to_vec());
        Ok(Self { certificate, der, issuer, names, due: due(now, end), end })
    }

    /// Whether it has to be replaced, because of its age or because somebody else signs now.
    pub(crate) fn is_due(&self, signer: &Trusted, now: SystemTime) -> bool {
        now >= self.due || self.issuer != signer.certificate
    }

    /// Verifies it as an API server does that believes these authorities. The error says what such a server would not believe.
    pub(crate) fn verify(&self, bundle: &str, now: SystemTime) -> Result<(), String> {
        verify(std::slice::from_ref(&self.der), &self.names, bundle, now)
    }
}

/// Verifies a certificate, followed by those between it and its authority, as an API server does that asks for these names and
/// believes these authorities. The error says what such a server would not believe.
pub(crate) fn verify(
    chain: &[CertificateDer<'static>],
    names: &[String],
    bundle: &str,
    now: SystemTime,
) -> Result<(), String> {
    let (leaf, intermediates) = chain.split_first().ok_or("there is no certificate")?;
    let mut roots = RootCertStore::empty();
    for authority in CertificateDer::pem_slice_iter(bundle.as_bytes()) {
        let authority = authority.map_err(|_| "the published bundle is not in PEM")?;
        roots.add(authority).map_err(|error| format!("the published bundle: {error}"))?;
    }
    if roots.is_empty() {
        return Err("the published bundle is empty".into());
    }
    let provider = Arc::new(ring::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
    let verifier = verifier.map_err(|error| error.to_string())?;
    let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    for name in names {
        let server = ServerName::try_from(name.as_str()).map_err(|error| error.to_string())?;
        verifier
            .verify_server_cert(leaf, intermediates, &server, &[], UnixTime::since_unix_epoch(since))
            .map_err(|error| format!("the own certificate does not verify for {name}: {error}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFE: Duration = Duration::from_secs(3000);

    #[test]
    fn a_certificate_verifies_by_the_bundle_that_has_its_authority_and_by_no_other() {
        let now = SystemTime::now();
        let (one, other) =
            (Trusted::generate("a 1", now, LIFE).unwrap(), Trusted::generate("a 2", now, LIFE).unwrap());
        let names = ["hooks.shop.svc".to_owned(), "127.0.0.1".to_owned()];
        let leaf = Leaf::issue(&one, &names, now, LIFE).unwrap();
        assert_eq!(leaf.verify(&one.certificate, now), Ok(()));
        assert_eq!(leaf.verify(&format!("{}{}", other.certificate, one.certificate), now), Ok(()));
        assert!(leaf.verify(&other.certificate, now).unwrap_err().contains("UnknownIssuer"));
        assert!(leaf.verify("", now).is_err());
        assert!(leaf.verify(&one.certificate, now + LIFE * 2).unwrap_err().contains("xpired"));
        assert!(!leaf.is_due(&one, now));
        assert!(leaf.is_due(&other, now), "somebody else signs");
        assert!(leaf.is_due(&one, now + LIFE / 3 * 2));
    }
}
