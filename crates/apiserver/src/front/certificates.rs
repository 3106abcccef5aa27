use std::fmt;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::crypto::CryptoProvider;
use tokio_rustls::rustls::sign::CertifiedKey;

use super::{Credentials, Error, private_file};

/// What a server shows to its clients, and whose certificates it believes.
///
/// Either it issues them itself, from its [`Credentials`], or somebody else did and left them in [files](Self::files).
pub struct Certificates(pub(super) Origin);

pub(super) enum Origin {
    Issued(Credentials),
    Given(Given),
}

/// Certificates that others issued.
pub(super) struct Given {
    /// The certificate of the server, and those between it and its authority.
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    /// Whose certificates of clients are believed.
    pub(super) authorities: Vec<CertificateDer<'static>>,
}

impl Certificates {
    /// The certificate and the key in these files, and the certificates of the authorities that clients have theirs from;
    /// all in PEM. Without authorities, no client is asked for a certificate.
    pub fn files(certificate: &Path, key: &Path, authorities: Option<&Path>) -> Result<Self, Error> {
        let chain = certificates(certificate)?;
        let authorities = authorities.map(certificates).transpose()?.unwrap_or_default();
        let text = fs::read(key).map_err(|error| wrong(key, error))?;
        let key = PrivateKeyDer::from_pem_slice(&text).map_err(|_| wrong(key, "holds no key in PEM"))?;
        Ok(Self(Origin::Given(Given { chain, key, authorities })))
    }

    /// Puts a certificate for these names and its key into two files, as kube-apiserver does where it finds none. Does
    /// nothing if both are there; one without the other is an error.
    ///
    /// The authority behind it is in the first file too, as the last certificate: clients have to trust it.
    pub fn create_files(certificate: &Path, key: &Path, names: &[String]) -> Result<(), Error> {
        match (certificate.exists(), key.exists()) {
            (true, true) => return Ok(()),
            (false, false) => {}
            (true, false) => return Err(wrong(key, "is missing, but the certificate is there")),
            (false, true) => return Err(wrong(certificate, "is missing, but the key is there")),
        }
        let credentials = Credentials::load_or_create(None)?;
        let issued = credentials.issue_server(names)?;
        let chain = issued.certificate + &credentials.authority_certificate();
        for (file, text) in [(key, issued.key), (certificate, chain)] {
            if let Some(directory) = file.parent() {
                private_file::create_directory(directory).map_err(|error| wrong(directory, error))?;
            }
            private_file::write(file, text.as_bytes()).map_err(|error| wrong(file, error))?;
        }
        Ok(())
    }
}

impl Given {
    pub(super) fn certified(&self, provider: &CryptoProvider) -> Result<Arc<CertifiedKey>, Error> {
        let certified = CertifiedKey::from_der(self.chain.clone(), self.key.clone_key(), provider);
        let certified = certified.map_err(|error| {
            Error::Cryptography(format!("the certificate and the key of the server: {error}"))
        })?;
        Ok(Arc::new(certified))
    }
}

impl From<&Credentials> for Certificates {
    fn from(credentials: &Credentials) -> Self {
        Self(Origin::Issued(credentials.clone()))
    }
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let text = fs::read(file).map_err(|error| wrong(file, error))?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    match certificates {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        _ => Err(wrong(file, "holds no certificate in PEM")),
    }
}

fn wrong(file: &Path, reason: impl fmt::Display) -> Error {
    Error::Credentials { file: file.into(), reason: reason.to_string() }
}

impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Certificates")
    }
}
