//! Escape sequences: the same in classes and outside of them.

use super::Problem;
use std::fmt::Write;

/// One escape sequence, outside or inside a class.
pub(super) fn escaped(rest: &str, class: bool) -> Result<(usize, String, Option<char>), Problem> {
    let mut chars = rest.chars().skip(1);
    let Some(char) = chars.next() else {
        return Err(("trailing backslash at end of expression", String::new()));
    };
    let bad = |length: usize| Err(("invalid escape sequence", rest[..length].to_owned()));
    let ascii = |text: &str| Ok((2, text.to_owned(), None));
    match char {
        'd' => ascii("[0-9]"),
        'D' => ascii("[^0-9]"),
        's' => ascii("[\\t\\n\\x0C\\r ]"),
        'S' => ascii("[^\\t\\n\\x0C\\r ]"),
        'w' => ascii("[0-9A-Za-z_]"),
        'W' => ascii("[^0-9A-Za-z_]"),
        'p' | 'P' => unicode_class(rest, char),
        'x' => match hexadecimal(&rest[2..]) {
            Some((length, value)) => Ok((2 + length, in_class(value), Some(value))),
            None => bad(2),
        },
        '0'..='7' => {
            let digits = rest[1..].bytes().take(3).take_while(|byte| (b'0'..=b'7').contains(byte)).count();
            if char != '0' && digits < 2 {
                return bad(2);
            }
            let value = u32::from_str_radix(&rest[1..1 + digits], 8).ok().and_then(char::from_u32);
            let value = value.unwrap_or_default();
            Ok((1 + digits, in_class(value), Some(value)))
        }
        'a' => Ok((2, "\\x07".into(), Some('\u{7}'))),
        'f' => Ok((2, "\\x0C".into(), Some('\u{c}'))),
        'n' => Ok((2, "\\n".into(), Some('\n'))),
        'r' => Ok((2, "\\r".into(), Some('\r'))),
        't' => Ok((2, "\\t".into(), Some('\t'))),
        'v' => Ok((2, "\\x0B".into(), Some('\u{b}'))),
        char if char.is_ascii() && !char.is_ascii_alphanumeric() => {
            let text = if class { in_class(char) } else { regex::escape(&char.to_string()) };
            Ok((2, text, Some(char)))
        }
        char => bad(1 + char.len_utf8()),
    }
}

/// `\pL`, `\p{Greek}`, `\p{^Greek}`.
fn unicode_class(rest: &str, letter: char) -> Result<(usize, String, Option<char>), Problem> {
    let invalid = |length: usize| {
        let part = rest.get(..length).unwrap_or(rest);
        Err(("invalid character class range", part.to_owned()))
    };
    let Some(braced) = rest[2..].strip_prefix('{') else {
        let Some(name) = rest[2..].chars().next() else {
            return invalid(2);
        };
        let length = 2 + name.len_utf8();
        if !"CLMNPSZ".contains(name) {
            return invalid(length);
        }
        return Ok((length, rest[..length].to_owned(), None));
    };
    let Some(end) = braced.find('}') else {
        return invalid(rest.len());
    };
    let length = 4 + end;
    let (negated, name) = match braced[..end].strip_prefix('^') {
        Some(name) => (letter == 'p', name),
        None => (letter == 'P', &braced[..end]),
    };
    let letter = if negated { 'P' } else { 'p' };
    Ok((length, format!("\\{letter}{{{name}}}"), None))
}

/// What follows `\x`: two digits, or any number in braces.
fn hexadecimal(text: &str) -> Option<(usize, char)> {
    let (length, digits) = match text.strip_prefix('{') {
        Some(braced) => {
            let end = braced.find('}')?;
            (end + 2, &braced[..end])
        }
        None => (2, text.get(..2)?),
    };
    if digits.starts_with('+') {
        return None;
    }
    let value = u32::from_str_radix(digits, 16).ok().and_then(char::from_u32)?;
    Some((length, value))
}

/// A character that stands for itself inside and outside a class.
pub(super) fn in_class(char: char) -> String {
    let mut out = String::new();
    match char {
        '[' | ']' | '\\' | '^' | '-' | '&' | '~' | '{' | '}' | '(' | ')' | '|' | '.' | '*' | '+' | '?'
        | '$' => {
            out.push('\\');
            out.push(char);
        }
        '\0'..='\u{1f}' => {
            // Writing to a string cannot fail.
            let _ = write!(out, "\\x{:02X}", u32::from(char));
        }
        char => out.push(char),
    }
    out
}
