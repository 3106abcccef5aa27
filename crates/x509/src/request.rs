use crate::der::{self, BIT_STRING, INTEGER, SEQUENCE};
use crate::{Malformed, Name};

/// A request for a certificate (PKCS #10). Its signature is not verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateRequest<'a> {
    /// The subject of the requested certificate.
    pub subject: Name<'a>,
    /// The key of the requested certificate: a [`PublicKeyInfo`](crate::PublicKeyInfo), as it is encoded.
    pub public_key: &'a [u8],
}

impl<'a> CertificateRequest<'a> {
    /// Reads a request.
    pub fn read(encoded: &'a [u8]) -> Result<Self, Malformed> {
        let mut request = der::only(SEQUENCE, encoded)?.reader();
        let mut signed = request.expect(SEQUENCE)?.reader();
        request.expect(SEQUENCE)?; // the algorithm of the signature
        request.expect(BIT_STRING)?;
        request.finish()?;
        signed.expect(INTEGER)?; // the version
        let subject = Name::read(&mut signed)?;
        let public_key = signed.expect(SEQUENCE)?.encoded;
        signed.expect(der::explicit(0))?; // attributes, none of which anybody looks at
        signed.finish()?;
        Ok(Self { subject, public_key })
    }
}
