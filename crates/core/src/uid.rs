use std::fmt;
use std::sync::Arc;

/// The identity of one incarnation of an object. An object that is deleted and created anew has another one.
///
/// Kubernetes writes UUIDs; those are held in sixteen bytes without an allocation. Any other text works too.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Uid(Form);

#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Form {
    /// A UUID whose canonical text (lower case, 8-4-4-4-12) is exactly what was given.
    Uuid([u8; 16]),
    Text(Arc<str>),
}

/// Where the dashes of a UUID's canonical text are.
const DASHES: [usize; 4] = [8, 13, 18, 23];

impl From<&str> for Uid {
    fn from(text: &str) -> Self {
        Self(parse_uuid(text.as_bytes()).map_or_else(|| Form::Text(text.into()), Form::Uuid))
    }
}

/// The sixteen bytes, if the text is canonical: only then does printing them give the text back.
fn parse_uuid(text: &[u8]) -> Option<[u8; 16]> {
    if text.len() != 36 || DASHES.iter().any(|&at| text[at] != b'-') {
        return None;
    }
    let mut digits =
        text.iter().enumerate().filter(|(at, _)| !DASHES.contains(at)).map(|(_, &digit)| match digit {
            b'0'..=b'9' => Some(digit - b'0'),
            b'a'..=b'f' => Some(digit - b'a' + 10),
            _ => None,
        });
    let mut bytes = [0; 16];
    for byte in &mut bytes {
        *byte = digits.next()?? << 4 | digits.next()??;
    }
    Some(bytes)
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Form::Text(text) => f.write_str(text),
            Form::Uuid(bytes) => {
                for (at, byte) in bytes.iter().enumerate() {
                    if matches!(at, 4 | 6 | 8 | 10) {
                        f.write_str("-")?;
                    }
                    write!(f, "{byte:02x}")?;
                }
                Ok(())
            }
        }
    }
}

impl fmt::Debug for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Uid({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_prints_as_it_was_given() {
        for text in [
            "0b6f5a3c-52a1-4a67-9c7b-0f5f6d2f8a10",
            "0B6F5A3C-52A1-4A67-9C7B-0F5F6D2F8A10",
            "0b6f5a3c052a1-4a67-9c7b-0f5f6d2f8a10",
            "0b6f5a3c-52a1-4a67-9c7b-0f5f6d2f8a1g",
            "",
            "17",
        ] {
            assert_eq!(Uid::from(text).to_string(), text);
        }
    }

    #[test]
    fn a_uuid_needs_no_allocation() {
        assert!(matches!(Uid::from("0b6f5a3c-52a1-4a67-9c7b-0f5f6d2f8a10").0, Form::Uuid(_)));
        assert!(matches!(Uid::from("0B6F5A3C-52A1-4A67-9C7B-0F5F6D2F8A10").0, Form::Text(_)));
    }
}
