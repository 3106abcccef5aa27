//! Percent-encoding, undone as Go's `net/url` undoes it.

/// Which part of a URL a text comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// A path: `+` stands for itself.
    Path,
    /// A query: `+` stands for a space.
    Query,
}

/// The text that `escaped` stands for, or the sequence that is no escape: `%zz`.
///
/// Bytes that are no UTF-8 become U+FFFD: nothing that exists has such a name, and in a JSON answer they would look the
/// same.
pub(crate) fn unescape(escaped: &str, part: Part) -> Result<String, &str> {
    let bytes = escaped.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'%' => {
                let digits = (hex(bytes.get(at + 1)), hex(bytes.get(at + 2)));
                let (Some(high), Some(low)) = digits else { return Err(beginning(&escaped[at..], 3)) };
                out.push(high << 4 | low);
                at += 3;
                continue;
            }
            b'+' if part == Part::Query => out.push(b' '),
            _ => out.push(byte),
        }
        at += 1;
    }
    Ok(match String::from_utf8(out) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    })
}

fn hex(byte: Option<&u8>) -> Option<u8> {
    let digit = char::from(*byte?).to_digit(16)?;
    u8::try_from(digit).ok()
}

/// At most `bytes` bytes of a text, and whole characters.
fn beginning(text: &str, bytes: usize) -> &str {
    (0..=bytes).rev().find_map(|end| text.get(..end)).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn escapes_stand_for_bytes_and_a_plus_for_a_space_in_queries_only() {
        assert_eq!(unescape("a%3Ab%2fc+d", Part::Path), Ok("a:b/c+d".into()));
        assert_eq!(unescape("a+b%2B", Part::Query), Ok("a b+".into()));
        assert_eq!(unescape("%C3%A9é%ff", Part::Path), Ok("éé\u{fffd}".into()));
    }

    #[test]
    fn what_is_no_escape_is_named() {
        for (text, bad) in [("a%zzb", "%zz"), ("%4", "%4"), ("a%", "%"), ("%é1", "%é"), ("%1é", "%1")] {
            assert_eq!(unescape(text, Part::Path), Err(bad));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(crate::request::cases(256)))]

        #[test]
        fn any_text_survives_escaping(text in any::<String>()) {
            let escaped: String = text.bytes().map(|byte| format!("%{byte:02X}")).collect();
            prop_assert_eq!(unescape(&escaped, Part::Path), Ok(text.clone()));
            prop_assert_eq!(unescape(&escaped, Part::Query), Ok(text));
        }

        #[test]
        fn nothing_grows(text in "[%+0-9a-fz/é]*", query in any::<bool>()) {
            let part = if query { Part::Query } else { Part::Path };
            if let Ok(out) = unescape(&text, part) {
                prop_assert!(out.len() <= text.len());
            }
        }
    }
}
