//! The text form of certificates and keys.

use rustls_pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use watchkeeper_go::base64;

/// A certificate.
pub fn certificate(certificate: &CertificateDer<'_>) -> String {
    encode("CERTIFICATE", certificate)
}

/// A key, in PKCS #8. A secret.
pub fn key(key: &PrivatePkcs8KeyDer<'_>) -> String {
    encode("PRIVATE KEY", key.secret_pkcs8_der())
}

fn encode(label: &str, bytes: &[u8]) -> String {
    let base64 = base64::encode(bytes);
    let mut text = format!("-----BEGIN {label}-----\n");
    let mut rest = base64.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(64));
        text.push_str(line);
        text.push('\n');
        rest = after;
    }
    text.push_str(&format!("-----END {label}-----\n"));
    text
}
