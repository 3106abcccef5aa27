use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::{ClientAuth, Error, ServerCertificate};

/// Files in PEM that hold what [`Tls`](crate::Tls) needs.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The certificate of the server, and those between it and its authority.
    pub certificate: PathBuf,
    /// The key of the server.
    pub key: PathBuf,
    /// The certificates of the authorities that clients have theirs from. Without it, no client is asked for a certificate.
    pub client_authorities: Option<PathBuf>,
}

/// Files, and what they held when they were read last.
pub(crate) struct Followed {
    files: TlsFiles,
    seen: Mutex<Contents>,
}

#[derive(PartialEq, Eq)]
struct Contents {
    certificate: Vec<u8>,
    key: Vec<u8>,
    client_authorities: Option<Vec<u8>>,
}

impl Followed {
    pub(crate) fn read(files: TlsFiles) -> Result<(Self, ServerCertificate, ClientAuth), Error> {
        let contents = files.read()?;
        let (certificate, clients) = files.parse(&contents)?;
        Ok((Self { files, seen: Mutex::new(contents) }, certificate, clients))
    }

    /// What the files hold now, if that is something new.
    pub(crate) fn news(&self) -> Result<Option<(ServerCertificate, ClientAuth)>, Error> {
        let contents = self.files.read()?;
        let mut seen = self.seen.lock();
        if *seen == contents {
            return Ok(None);
        }
        // Also if it cannot be used: that is said once. Two files that are written one after the other do not fit
        // together in between.
        *seen = contents;
        self.files.parse(&seen).map(Some)
    }
}

impl TlsFiles {
    fn read(&self) -> Result<Contents, Error> {
        let read = |file: &Path| fs::read(file).map_err(|error| wrong(file, error));
        Ok(Contents {
            certificate: read(&self.certificate)?,
            key: read(&self.key)?,
            client_authorities: self.client_authorities.as_deref().map(read).transpose()?,
        })
    }

    fn parse(&self, contents: &Contents) -> Result<(ServerCertificate, ClientAuth), Error> {
        let chain = certificates(&self.certificate, &contents.certificate)?;
        let clients = match (&self.client_authorities, &contents.client_authorities) {
            (Some(file), Some(text)) => ClientAuth::Optional(certificates(file, text)?),
            _ => ClientAuth::Off,
        };
        let key = PrivateKeyDer::from_pem_slice(&contents.key);
        let key = key.map_err(|_| wrong(&self.key, "holds no key in PEM"))?;
        Ok((ServerCertificate::new(chain, key)?, clients))
    }
}

fn certificates(file: &Path, text: &[u8]) -> Result<Vec<CertificateDer<'static>>, Error> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
    match certificates {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        _ => Err(wrong(file, "holds no certificate in PEM")),
    }
}

fn wrong(file: &Path, reason: impl fmt::Display) -> Error {
    Error::File { file: file.into(), reason: reason.to_string() }
}
