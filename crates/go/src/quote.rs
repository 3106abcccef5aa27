//! Quoted strings, as Go's `strconv` writes and reads them.

use std::fmt::Write;

/// A text in double quotes, as `%q` prints it.
///
/// ```
/// use watchkeeper_go::quote;
/// assert_eq!(quote("a\"b\u{7f}"), r#""a\"b\x7f""#);
/// ```
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for char in text.chars() {
        match char {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            ' '..='~' => out.push(char),
            '\0'..='\u{7f}' => push_escape(&mut out, 'x', 2, char),
            _ if is_printable(char) => out.push(char),
            '\0'..='\u{ffff}' => push_escape(&mut out, 'u', 4, char),
            _ => push_escape(&mut out, 'U', 8, char),
        }
    }
    out.push('"');
    out
}

/// Whether `unicode.IsPrint` holds for a character.
pub fn is_print(char: char) -> bool {
    match char {
        ' '..='~' => true,
        '\0'..='\u{7f}' => false,
        _ => is_printable(char),
    }
}

/// Whether a character beyond ASCII is shown as it is. The standard library knows: it does not escape such a character
/// anywhere but at the beginning of a string.
fn is_printable(char: char) -> bool {
    let mut probe = String::from("a");
    probe.push(char);
    !probe.escape_debug().skip(1).any(|shown| shown == '\\')
}

/// Adds an escape of `width` hexadecimal digits.
pub(crate) fn push_escape(out: &mut String, letter: char, width: usize, char: char) {
    // Writing to a string cannot fail.
    let _ = write!(out, "\\{letter}{:0width$x}", u32::from(char));
}

/// Bytes in quotes as Go's `time` package prints them in its errors: every byte beyond ASCII as two digits.
pub(crate) fn of_time(bytes: &[u8]) -> String {
    let mut out = String::from("\"");
    for byte in bytes {
        match byte {
            b'"' | b'\\' => out.extend(['\\', char::from(*byte)]),
            b' '..=b'\x7f' => out.push(char::from(*byte)),
            _ => push_escape(&mut out, 'x', 2, char::from(*byte)),
        }
    }
    out.push('"');
    out
}

/// The text between two quotes without its escapes; `None` if an escape is wrong, or if there is an escape and a quote
/// that is not escaped. Bytes that are not UTF-8 become U+FFFD.
pub fn unquote(text: &str, quote: char) -> Option<String> {
    if !text.contains('\\') {
        return Some(text.to_owned());
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(char) = rest.next() {
        if char == quote {
            return None;
        }
        if char != '\\' {
            push(&mut bytes, char);
            continue;
        }
        match rest.next()? {
            'a' => bytes.push(7),
            'b' => bytes.push(8),
            'f' => bytes.push(12),
            'n' => bytes.push(b'\n'),
            'r' => bytes.push(b'\r'),
            't' => bytes.push(b'\t'),
            'v' => bytes.push(11),
            '\\' => bytes.push(b'\\'),
            escaped @ ('"' | '\'') if escaped == quote => bytes.push(escaped as u8),
            'x' => bytes.push(u8::try_from(digits(&mut rest, 2, 16)?).ok()?),
            'u' => push(&mut bytes, char::from_u32(digits(&mut rest, 4, 16)?)?),
            'U' => push(&mut bytes, char::from_u32(digits(&mut rest, 8, 16)?)?),
            first @ '0'..='7' => {
                let high = first.to_digit(8)? * 64;
                bytes.push(u8::try_from(high + digits(&mut rest, 2, 8)?).ok()?);
            }
            _ => return None,
        }
    }
    Some(
        String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
    )
}

fn push(bytes: &mut Vec<u8>, char: char) {
    bytes.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
}

fn digits(rest: &mut std::str::Chars<'_>, count: usize, radix: u32) -> Option<u32> {
    (0..count).try_fold(0u32, |number, _| {
        let digit = rest.next()?.to_digit(radix)?;
        number.checked_mul(radix)?.checked_add(digit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded;
    use proptest::prelude::*;

    #[test]
    fn strings_are_quoted_as_go_quotes_them() {
        for case in recorded(include_str!("cases/quotes.jsonl")) {
            let text = case["in"].as_str().unwrap();
            assert_eq!(case["quoted"], quote(text), "{case}");
            let printed: Vec<bool> = text.chars().map(is_print).collect();
            assert_eq!(case["print"], serde_json::json!(printed), "{case}");
        }
    }

    #[test]
    fn escapes_are_read_as_go_reads_them() {
        for case in recorded(include_str!("cases/unquotes.jsonl")) {
            let text = case["in"].as_str().unwrap();
            // Without any escape nothing is looked at, as in `strconv.Unquote`, which is not asked where a quote ends.
            if text.contains('\\') {
                for (name, quote) in [("double", '"'), ("single", '\'')] {
                    assert_eq!(case[name], serde_json::json!(unquote(text, quote)), "{case}");
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(crate::cases(512)))]

        #[test]
        fn what_is_quoted_is_read_again(text in any::<String>()) {
            let quoted = quote(&text);
            prop_assert_eq!(unquote(&quoted[1..quoted.len() - 1], '"'), Some(text));
        }

        #[test]
        fn any_text_is_read_or_refused(text in any::<String>(), likely in r#"([a-c"']|\\[abx0-9uU]?){0,8}"#) {
            let _ = (unquote(&text, '"'), unquote(&likely, '\''));
        }
    }
}
