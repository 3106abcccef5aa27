//! By what other servers believe this one.

use std::time::SystemTime;

use watchkeeper_front::{Authority, Error, Key, Purpose, pem};

/// The name in the certificate that this server shows. Other servers believe no other.
pub(crate) const ALLOWED_NAME: &str = "front-proxy-client";

/// A certificate that is shown to other servers, of an authority that issues no other: nobody else can say on whose behalf they ask.
pub(crate) struct FrontProxy {
    authority: String,
    certificate: String,
    key: String,
}

impl FrontProxy {
    /// One for this server alone.
    pub(crate) fn generate() -> Result<Self, Error> {
        let (now, key) = (SystemTime::now(), Key::generate()?);
        let authority = Authority::with_key("watchkeeper-front-proxy-ca", Key::generate()?, now)?;
        let certificate = authority.issue(&key, (ALLOWED_NAME, &[]), &Purpose::Client, now)?;
        Ok(Self {
            authority: pem::certificate(authority.certificate()),
            certificate: pem::certificate(&certificate),
            key: pem::key(key.pkcs8()),
        })
    }

    /// The authority, in PEM.
    pub(super) fn authority(&self) -> &str {
        &self.authority
    }

    /// The certificate and its key, in PEM.
    pub(super) fn shown(&self) -> (Vec<u8>, Vec<u8>) {
        (self.certificate.clone().into_bytes(), self.key.clone().into_bytes())
    }
}
