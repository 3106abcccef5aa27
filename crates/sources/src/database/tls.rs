//! TLS to a database server, as strict as its URL asks for.

use std::sync::Arc;

use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use tokio_rustls::rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};

use super::address::{Address, TlsMode};

/// What a handshake is done with.
pub(super) fn config(address: &Address) -> Result<ClientConfig, String> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let chain = match address.tls {
        // As libpq does: who names certificates wants them to be looked at.
        TlsMode::Require if address.root_certificate.is_some() => true,
        TlsMode::VerifyCa | TlsMode::VerifyFull => true,
        TlsMode::Disable | TlsMode::Prefer | TlsMode::Require => false,
    };
    let inner = match chain {
        true => {
            let roots = Arc::new(roots(address)?);
            let verifier = WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(&provider)).build();
            Some(verifier.map_err(|error| format!("the certificates that are trusted: {error}"))?)
        }
        false => None,
    };
    let verifier = Verifier { inner, name: address.tls == TlsMode::VerifyFull, provider };
    Ok(builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth())
}

/// Whose signature is good: those in the file, or those whom the system trusts.
fn roots(address: &Address) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    match &address.root_certificate {
        Some(path) => {
            let bad =
                |error: &dyn std::fmt::Display| format!("the certificates in {}: {error}", path.display());
            for certificate in CertificateDer::pem_file_iter(path).map_err(|error| bad(&error))? {
                roots.add(certificate.map_err(|error| bad(&error))?).map_err(|error| bad(&error))?;
            }
            if roots.is_empty() {
                return Err(bad(&"there are none"));
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            if roots.is_empty() {
                return Err("this system trusts no certificates: name a file in the URL".into());
            }
        }
    }
    Ok(roots)
}

/// Looks at certificates as much as it was asked to. That whoever holds the certificate speaks is always checked.
#[derive(Debug)]
struct Verifier {
    inner: Option<Arc<WebPkiServerVerifier>>,
    /// Whether the certificate has to be for the host.
    name: bool,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(inner) = &self.inner else { return Ok(ServerCertVerified::assertion()) };
        match inner.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.name => Ok(ServerCertVerified::assertion()),
            judged => judged,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
