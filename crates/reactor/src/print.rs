//! Fingerprints of objects.

use std::fmt::Write as _;
use std::io;

use ring::digest::{Context, SHA256};
use serde_json::Value;

/// Tells two states of an object apart. Stays the same over restarts and versions of this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Print([u8; 16]);

impl Print {
    /// The fingerprint of a state, whatever says only that it was written: `resourceVersion` and `managedFields` do not count.
    pub(crate) fn of(value: &Value) -> Self {
        let mut digest = Digest(Context::new(&SHA256));
        // Writing into a digest does not fail, and a value that was JSON is JSON.
        let _ = match (value, value.get("metadata")) {
            (Value::Object(members), Some(Value::Object(metadata)))
                if metadata.contains_key("resourceVersion") || metadata.contains_key("managedFields") =>
            {
                let mut metadata = metadata.clone();
                metadata.remove("resourceVersion");
                metadata.remove("managedFields");
                let mut members = members.clone();
                members.insert("metadata".into(), metadata.into());
                serde_json::to_writer(&mut digest, &members)
            }
            _ => serde_json::to_writer(&mut digest, value),
        };
        digest.print()
    }

    /// The fingerprint of several texts.
    pub(crate) fn of_texts(texts: &[&str]) -> Self {
        let mut digest = Digest(Context::new(&SHA256));
        for text in texts {
            digest.0.update(&(text.len() as u64).to_le_bytes());
            digest.0.update(text.as_bytes());
        }
        digest.print()
    }

    pub(crate) fn hex(self) -> String {
        self.0.iter().fold(String::new(), |mut text, byte| {
            // Writing to a text does not fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
    }

    pub(crate) fn from_hex(text: &str) -> Option<Self> {
        let mut bytes = [0; 16];
        if text.len() != 32 || !text.is_ascii() {
            return None;
        }
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()?;
        }
        Some(Self(bytes))
    }
}

struct Digest(Context);

impl Digest {
    fn print(self) -> Print {
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&self.0.finish().as_ref()[..16]);
        Print(bytes)
    }
}

impl io::Write for Digest {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_only_says_that_something_was_written_does_not_count() {
        let state = |version: &str, size: u8| json!({"metadata": {"name": "a", "resourceVersion": version}, "size": size});
        assert_eq!(Print::of(&state("1", 1)), Print::of(&state("2", 1)));
        assert_eq!(Print::of(&state("1", 1)), Print::of(&json!({"size": 1, "metadata": {"name": "a"}})));
        assert_ne!(Print::of(&state("1", 1)), Print::of(&state("1", 2)));
    }

    #[test]
    fn a_print_is_text_and_back() {
        let print = Print::of_texts(&["a", "b"]);
        assert_eq!(Print::from_hex(&print.hex()), Some(print));
        assert_ne!(print, Print::of_texts(&["ab", ""]));
        for wrong in [
            "",
            "00",
            "zz000000000000000000000000000000",
            "\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}",
        ] {
            assert_eq!(Print::from_hex(wrong), None);
        }
    }
}
