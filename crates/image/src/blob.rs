use bytes::Bytes;
use serde_json::{Value, json};

/// Bytes with their digest and media type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blob {
    /// The media type.
    pub media_type: &'static str,
    /// `sha256:` and the digest in hexadecimal.
    pub digest: String,
    /// The bytes.
    pub bytes: Bytes,
}

/// The SHA-256 of bytes, as images write it.
pub fn digest(bytes: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
    let hex: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

impl Blob {
    pub(crate) fn new(media_type: &'static str, bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        Self { media_type, digest: digest(&bytes), bytes }
    }

    /// JSON with sorted keys.
    pub(crate) fn json(media_type: &'static str, value: &Value) -> Self {
        Self::new(media_type, value.to_string())
    }

    /// The descriptor, by which manifests refer to the blob.
    pub fn descriptor(&self) -> Value {
        json!({"mediaType": self.media_type, "digest": self.digest, "size": self.bytes.len()})
    }

    /// The digest without the name of its algorithm.
    pub fn hex(&self) -> &str {
        self.digest.trim_start_matches("sha256:")
    }
}
