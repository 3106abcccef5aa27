//! Certificates in a definition.

use serde_json::Value;
use watchkeeper_x509::der::{self, SEQUENCE};

/// What is wrong with a `caBundle`, in the words of client-go; an empty one is right.
///
/// Certificates are looked at from outside only: a frame of PEM around base64 around something that begins as a
/// certificate does. What is wrong further inside shows when the webhook is called.
pub(super) fn problem(bundle: &Value) -> Option<String> {
    let bytes = decode(bundle.as_str()?.as_bytes()).unwrap_or_default();
    if bytes.is_empty() {
        return None;
    }
    let text = String::from_utf8_lossy(&bytes);
    let mut blocks = blocks(&text).peekable();
    if blocks.peek().is_none() {
        return Some("unable to load root certificates: unable to parse bytes as PEM block".into());
    }
    let mut certificates = blocks.filter(|(label, _)| label == "CERTIFICATE").peekable();
    if certificates.peek().is_none() {
        return Some("unable to load root certificates: unable to parse bytes as PEM block".into());
    }
    let is_good = certificates.any(|(_, bytes)| der::only(SEQUENCE, &bytes).is_ok());
    (!is_good).then(|| {
        "unable to load root certificates: failed to parse certificate: x509: malformed certificate".into()
    })
}

/// The labels and contents of the PEM blocks in a text.
fn blocks(text: &str) -> impl Iterator<Item = (String, Vec<u8>)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            let (_, after) = rest.split_once("-----BEGIN ")?;
            let (label, body) = after.split_once("-----")?;
            rest = after;
            let Some((body, after)) = body.split_once(format!("-----END {label}-----").as_str()) else {
                continue;
            };
            if let Some(content) = decode(body.as_bytes()) {
                rest = after;
                return Some((label.to_string(), content));
            }
        }
    })
}

/// Base64 with padding; line breaks and blanks are passed over.
fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count, mut padding) = (0u32, 0u32, 0u32);
    for byte in text.iter().copied().filter(|byte| !byte.is_ascii_whitespace()) {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            b'=' => {
                padding += 1;
                continue;
            }
            _ => return None,
        };
        if padding > 0 {
            return None;
        }
        bits = bits << 6 | u32::from(value);
        count += 1;
        if count == 4 {
            out.extend(&bits.to_be_bytes()[1..]);
            (bits, count) = (0, 0);
        }
    }
    match (count, padding) {
        (0, 0) => {}
        (2, 2) => out.extend(&(bits << 12).to_be_bytes()[1..2]),
        (3, 1) => out.extend(&(bits << 6).to_be_bytes()[1..3]),
        _ => return None,
    }
    Some(out)
}
