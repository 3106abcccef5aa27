//! Bytes as text, as Go's `encoding/base64` writes and reads them.

/// What stands for no digit in [`Encoding::values`].
const NONE: u8 = 0xff;

/// A way to write bytes with 64 characters.
///
/// ```
/// use watchkeeper_go::base64::{RAW_URL, STANDARD};
/// assert_eq!(STANDARD.encode(b"f?>"), "Zj8+");
/// assert_eq!(RAW_URL.encode(b"f?>f"), "Zj8-Zg");
/// assert_eq!(STANDARD.decode("Zg"), Err("illegal base64 data at input byte 0".to_owned()));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Encoding {
    alphabet: &'static [u8; 64],
    values: [u8; 256],
    is_padded: bool,
    is_strict: bool,
}

/// The encoding of bytes in objects: padded.
pub static STANDARD: Encoding =
    Encoding::new(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", true);
/// The encoding of tokens: fit for URLs, not padded.
pub static RAW_URL: Encoding =
    Encoding::new(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", false);

/// Writes bytes in the [`STANDARD`] encoding.
pub fn encode(bytes: impl AsRef<[u8]>) -> String {
    STANDARD.encode(bytes)
}

/// Reads bytes in the [`STANDARD`] encoding.
///
/// # Errors
///
/// See [`Encoding::decode`].
pub fn decode(text: impl AsRef<[u8]>) -> Result<Vec<u8>, String> {
    STANDARD.decode(text)
}

impl Encoding {
    const fn new(alphabet: &'static [u8; 64], is_padded: bool) -> Self {
        let mut values = [NONE; 256];
        let mut value = 0;
        while value < 64 {
            values[alphabet[value as usize] as usize] = value;
            value += 1;
        }
        Self { alphabet, values, is_padded, is_strict: false }
    }

    /// Makes the encoding strict: apart from line breaks, the same bytes have one text only, since the bits behind the last byte have to
    /// be zero.
    #[must_use]
    pub const fn strict(self) -> Self {
        Self { is_strict: true, ..self }
    }

    /// Writes bytes, without line breaks.
    pub fn encode(&self, bytes: impl AsRef<[u8]>) -> String {
        let bytes = bytes.as_ref();
        let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
        for chunk in bytes.chunks(3) {
            let word = chunk.iter().fold(0_u32, |word, byte| word << 8 | u32::from(*byte));
            let word = word << (8 * (3 - chunk.len()));
            for place in 0..4 {
                let digit = (word >> (18 - 6 * place)) & 0x3f;
                if place <= chunk.len() {
                    text.push(char::from(self.alphabet[digit as usize]));
                } else if self.is_padded {
                    text.push('=');
                }
            }
        }
        text
    }

    /// Reads bytes. Line breaks are skipped.
    ///
    /// # Errors
    ///
    /// Go's message, which names the first byte that is out of place.
    pub fn decode(&self, text: impl AsRef<[u8]>) -> Result<Vec<u8>, String> {
        self.read(text.as_ref()).map_err(|at| format!("illegal base64 data at input byte {at}"))
    }

    /// The bytes, or where the first byte is that is out of place.
    fn read(&self, text: &[u8]) -> Result<Vec<u8>, usize> {
        let mut bytes = Vec::with_capacity(text.len() / 4 * 3 + 3);
        let mut rest = text.iter().copied().enumerate().filter(|(_, byte)| !matches!(byte, b'\n' | b'\r'));
        let (mut word, mut digits) = (0_u32, 0);
        while let Some((at, byte)) = rest.next() {
            let value = self.values[usize::from(byte)];
            if value != NONE {
                (word, digits) = (word << 6 | u32::from(value), digits + 1);
                if digits == 4 {
                    bytes.extend_from_slice(&word.to_be_bytes()[1..]);
                    (word, digits) = (0, 0);
                }
                continue;
            }
            if byte != b'=' || !self.is_padded || digits < 2 {
                return Err(at);
            }
            if digits == 2 {
                match rest.next() {
                    Some((_, b'=')) => {}
                    Some((second, _)) => return Err(second - 1),
                    None => return Err(text.len()),
                }
            }
            return match rest.next() {
                Some((after, _)) => Err(after),
                None => self.end(bytes, word, digits, text.len()),
            };
        }
        match digits {
            0 => Ok(bytes),
            1 => Err(text.len() - 1),
            _ if self.is_padded => Err(text.len() - digits),
            _ => self.end(bytes, word, digits, text.len()),
        }
    }

    /// Adds the one or two bytes of the last two or three digits.
    fn end(&self, mut bytes: Vec<u8>, word: u32, digits: usize, length: usize) -> Result<Vec<u8>, usize> {
        // Digits have six bits, bytes eight.
        let unused = 6 * digits % 8;
        if self.is_strict && word & ((1 << unused) - 1) != 0 {
            return Err(length - (4 - digits));
        }
        let word = word >> unused;
        bytes.extend_from_slice(&word.to_be_bytes()[4 - (digits - 1)..]);
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn texts_are_read_and_refused_as_go_does() {
        for case in recorded(include_str!("cases/base64.jsonl")) {
            for (name, encoding) in [
                ("std", STANDARD),
                ("url", RAW_URL),
                ("strict_std", STANDARD.strict()),
                ("strict_url", RAW_URL.strict()),
            ] {
                let read = encoding.decode(case["in"].as_str().unwrap());
                let said = read.map_or_else(|error| json!({"error": error}), |bytes| json!(bytes));
                assert_eq!(case[name], said, "{name} {case}");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(crate::cases(512)))]

        #[test]
        fn what_is_written_is_read(bytes in any::<Vec<u8>>()) {
            for encoding in [STANDARD.strict(), RAW_URL.strict()] {
                prop_assert_eq!(encoding.decode(encoding.encode(&bytes)), Ok(bytes.clone()));
            }
        }

        #[test]
        fn any_text_is_read_or_refused(text in any::<Vec<u8>>(), likely in "[A-Za-z0-9+/=\n]{0,20}") {
            let _ = (STANDARD.decode(text), RAW_URL.strict().decode(likely));
        }
    }
}
