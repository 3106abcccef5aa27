//! Object identifiers, encoded.

/// `2.5.4.3`, an attribute of a name.
pub const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
/// `2.5.4.10`, an attribute of a name.
pub const ORGANIZATION: &[u8] = &[0x55, 0x04, 0x0a];
/// `1.3.6.1.4.1.57683.2`, the attribute of a name in which kube-apiserver looks for the uid of a user.
pub const KUBERNETES_UID: &[u8] = &[0x2b, 0x06, 0x01, 0x04, 0x01, 0x83, 0xc2, 0x53, 0x02];

/// `2.5.29.14`, an extension.
pub const SUBJECT_KEY_ID: &[u8] = &[0x55, 0x1d, 0x0e];
/// `2.5.29.15`, an extension.
pub const KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x0f];
/// `2.5.29.17`, an extension.
pub const ALTERNATIVE_NAMES: &[u8] = &[0x55, 0x1d, 0x11];
/// `2.5.29.19`, an extension.
pub const BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 0x13];
/// `2.5.29.35`, an extension.
pub const AUTHORITY_KEY_ID: &[u8] = &[0x55, 0x1d, 0x23];
/// `2.5.29.37`, an extension.
pub const EXTENDED_KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x25];
/// `1.3.6.1.5.5.7.3.1`, an extended key usage.
pub const SERVER_AUTH: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x01];
/// `1.3.6.1.5.5.7.3.2`, an extended key usage.
pub const CLIENT_AUTH: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x02];

/// `1.2.840.10045.2.1`, a kind of key.
pub const EC_PUBLIC_KEY: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
/// `1.2.840.113549.1.1.1`, a kind of key.
pub const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
/// `1.2.840.10045.3.1.7`, a curve.
pub const P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
/// `1.3.132.0.34`, a curve.
pub const P384: &[u8] = &[0x2b, 0x81, 0x04, 0x00, 0x22];
/// `1.2.840.10045.4.3.2`, a signature algorithm.
pub const ECDSA_WITH_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02];
/// `1.3.101.112`, a kind of key and the algorithm that it signs with.
pub const ED25519: &[u8] = &[0x2b, 0x65, 0x70];
