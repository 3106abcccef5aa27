//! A cursor over JSON bytes that checks the grammar and builds nothing.
//!
//! It exists because most bytes of most objects are never looked at: to find out which object a line is about and to
//! cut a field out of it, the bytes have to be walked once, not turned into a tree. The cursor accepts exactly the
//! grammar of RFC 8259, except that strings are not checked for UTF-8 (check the whole slice once, it is faster)
//! and that lone surrogate escapes pass.
//!
//! Bytes that end too early are [`SyntaxError::Truncated`], which a reader of a stream takes as "come back with more".

use std::borrow::Cow;
use std::ops::Range;

/// The depth to which values may be nested: that of serde_json, so that everything that passes here can be decoded later.
pub const MAX_DEPTH: u32 = 128;

/// The error of bytes that are not JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SyntaxError {
    /// The bytes end within a value.
    #[error("cut off")]
    Truncated,
    /// Another byte was expected.
    #[error("expected {expected} at byte {at}")]
    Unexpected {
        /// The offset from the start of the bytes.
        at: usize,
        /// A description of what was expected.
        expected: &'static str,
    },
    /// Nested deeper than [`MAX_DEPTH`].
    #[error("nested too deeply at byte {at}")]
    TooDeep {
        /// The offset from the start of the bytes.
        at: usize,
    },
}

/// A position in JSON bytes.
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// A JSON string as it is encoded, without its quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Text<'a> {
    /// The bytes between the quotes, escapes unresolved.
    pub raw: &'a [u8],
    escaped: bool,
}

impl<'a> Text<'a> {
    /// The string's value, or `None` if it is not valid Unicode.
    pub fn decode(&self) -> Option<Cow<'a, str>> {
        let raw = std::str::from_utf8(self.raw).ok()?;
        if self.escaped { unescape(raw).map(Cow::Owned) } else { Some(Cow::Borrowed(raw)) }
    }
}

impl<'a> Cursor<'a> {
    /// A cursor at the start of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// The position, counted from the start of the bytes.
    pub fn position(&self) -> usize {
        self.at
    }

    /// Skips white space and shows the byte that begins the next token.
    pub fn peek(&mut self) -> Result<u8, SyntaxError> {
        while let Some(&byte) = self.bytes.get(self.at) {
            // Nearly always the first question is enough: servers write no white space.
            if byte > b' ' || !matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
                return Ok(byte);
            }
            self.at += 1;
        }
        Err(SyntaxError::Truncated)
    }

    /// Consumes one punctuation byte.
    pub fn expect(&mut self, byte: u8, expected: &'static str) -> Result<(), SyntaxError> {
        if self.peek()? != byte {
            return Err(self.unexpected(expected));
        }
        self.at += 1;
        Ok(())
    }

    /// After `{` or `[`: consumes `close` if the container is empty. Returns whether the container is empty.
    pub fn closes_at_once(&mut self, close: u8) -> Result<bool, SyntaxError> {
        let closes = self.peek()? == close;
        self.at += usize::from(closes);
        Ok(closes)
    }

    /// After an element: consumes the comma and returns `true`, or consumes `close` and returns `false`.
    pub fn more(&mut self, close: u8) -> Result<bool, SyntaxError> {
        match self.peek()? {
            b',' => {
                self.at += 1;
                Ok(true)
            }
            byte if byte == close => {
                self.at += 1;
                Ok(false)
            }
            _ => Err(self.unexpected("a comma or the end of the container")),
        }
    }

    /// Consumes a member's name and its colon.
    pub fn name(&mut self) -> Result<Text<'a>, SyntaxError> {
        let name = self.string()?;
        self.expect(b':', "a colon")?;
        Ok(name)
    }

    /// Consumes a string.
    pub fn string(&mut self) -> Result<Text<'a>, SyntaxError> {
        if self.peek()? != b'"' {
            return Err(self.unexpected("a string"));
        }
        let start = self.at + 1;
        let mut at = start;
        let mut escaped = false;
        loop {
            at = skip_plain(self.bytes, at);
            match self.bytes.get(at) {
                Some(b'"') => {
                    self.at = at + 1;
                    return Ok(Text { raw: &self.bytes[start..at], escaped });
                }
                Some(b'\\') => {
                    escaped = true;
                    at += escape_length(self.bytes, at)?;
                }
                Some(_) => {
                    return Err(SyntaxError::Unexpected { at, expected: "no control character in a string" });
                }
                None => return Err(SyntaxError::Truncated),
            }
        }
    }

    /// Consumes a string, or any other value as `None`.
    pub fn string_or_other(&mut self) -> Result<Option<Text<'a>>, SyntaxError> {
        if self.peek()? == b'"' { self.string().map(Some) } else { self.skip().map(|_| None) }
    }

    /// Consumes any value. Returns its range.
    pub fn skip(&mut self) -> Result<Range<usize>, SyntaxError> {
        self.peek()?;
        let start = self.at;
        self.skip_within(MAX_DEPTH)?;
        Ok(start..self.at)
    }

    /// Consumes any value. Returns its bytes.
    pub fn raw(&mut self) -> Result<&'a [u8], SyntaxError> {
        let span = self.skip()?;
        Ok(&self.bytes[span])
    }

    /// Checks that nothing but white space follows.
    pub fn end(&mut self) -> Result<(), SyntaxError> {
        match self.peek() {
            Ok(_) => Err(self.unexpected("the end")),
            Err(_) => Ok(()),
        }
    }

    fn skip_within(&mut self, depth: u32) -> Result<(), SyntaxError> {
        match self.peek()? {
            b'"' => self.string().map(drop),
            b'{' => self.skip_container(depth, b'}'),
            b'[' => self.skip_container(depth, b']'),
            b't' => self.literal(b"true"),
            b'f' => self.literal(b"false"),
            b'n' => self.literal(b"null"),
            b'-' | b'0'..=b'9' => self.number(),
            _ => Err(self.unexpected("a value")),
        }
    }

    fn skip_container(&mut self, depth: u32, close: u8) -> Result<(), SyntaxError> {
        if depth == 0 {
            return Err(SyntaxError::TooDeep { at: self.at });
        }
        self.at += 1;
        if self.closes_at_once(close)? {
            return Ok(());
        }
        loop {
            if close == b'}' {
                self.name()?;
            }
            self.skip_within(depth - 1)?;
            if !self.more(close)? {
                return Ok(());
            }
        }
    }

    fn literal(&mut self, literal: &'static [u8]) -> Result<(), SyntaxError> {
        let rest = &self.bytes[self.at..];
        if rest.starts_with(literal) {
            self.at += literal.len();
            Ok(())
        } else if literal.starts_with(rest) {
            Err(SyntaxError::Truncated)
        } else {
            Err(self.unexpected("true, false or null"))
        }
    }

    fn number(&mut self) -> Result<(), SyntaxError> {
        self.at += usize::from(self.bytes[self.at] == b'-');
        let leading_zero = self.bytes.get(self.at) == Some(&b'0');
        let integer = self.digits()?;
        if leading_zero && integer > 1 {
            return Err(self.unexpected("no digit after a leading zero"));
        }
        if self.bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.bytes.get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            self.at += usize::from(matches!(self.bytes.get(self.at), Some(b'+' | b'-')));
            self.digits()?;
        }
        Ok(())
    }

    /// Consumes at least one digit.
    fn digits(&mut self) -> Result<usize, SyntaxError> {
        let count = self.bytes[self.at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        match count {
            0 if self.at == self.bytes.len() => Err(SyntaxError::Truncated),
            0 => Err(self.unexpected("a digit")),
            _ => Ok(count),
        }
    }

    fn unexpected(&self, expected: &'static str) -> SyntaxError {
        SyntaxError::Unexpected { at: self.at, expected }
    }
}

/// Names the innermost value that the bytes before `offset` end in, or that begins there, as `spec.containers[0].name`; `.` is the
/// whole.
///
/// Decoders say at which byte they gave up; this says what a person calls the place. Bytes that are not JSON are named as far
/// as they can be read.
pub fn path_at(bytes: &[u8], offset: usize) -> String {
    let mut path = String::new();
    let mut cursor = Cursor::new(bytes);
    // A path that ends at a mistake is still the best that can be said.
    let _ = descend(&mut cursor, offset, MAX_DEPTH, &mut path);
    if path.is_empty() { ".".to_owned() } else { path }
}

/// Walks a value until `offset`; says whether the value reaches it. Then `path` names the innermost one that does.
fn descend(
    cursor: &mut Cursor<'_>,
    offset: usize,
    depth: u32,
    path: &mut String,
) -> Result<bool, SyntaxError> {
    let open = cursor.peek()?;
    if cursor.position() >= offset {
        return Ok(cursor.position() == offset);
    }
    if !matches!(open, b'{' | b'[') {
        cursor.skip()?;
        return Ok(cursor.position() >= offset);
    }
    let depth = depth.checked_sub(1).ok_or(SyntaxError::TooDeep { at: cursor.position() })?;
    let close = open + 2;
    cursor.expect(open, "a container")?;
    if cursor.closes_at_once(close)? {
        return Ok(cursor.position() >= offset);
    }
    for index in 0.. {
        let length = path.len();
        if open == b'{' {
            let name = cursor.name()?.decode().unwrap_or_default();
            if length > 0 {
                path.push('.');
            }
            path.push_str(&name);
        } else {
            path.push_str(&format!("[{index}]"));
        }
        if descend(cursor, offset, depth, path)? {
            return Ok(true);
        }
        path.truncate(length);
        // What is between two elements belongs to the container.
        if cursor.position() >= offset {
            return Ok(true);
        }
        if !cursor.more(close)? {
            break;
        }
    }
    Ok(cursor.position() >= offset)
}

/// The position of the first byte from `at` on that is a quote, a backslash or a control character, eight at a time.
fn skip_plain(bytes: &[u8], mut at: usize) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = ONES << 7;
    while let Some(chunk) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(*chunk);
        let quote = word ^ (ONES * b'"' as u64);
        let slash = word ^ (ONES * b'\\' as u64);
        // The lowest flagged byte is always a true hit: a borrow can only raise false flags above one.
        let hits = ((quote.wrapping_sub(ONES) & !quote)
            | (slash.wrapping_sub(ONES) & !slash)
            | (word.wrapping_sub(ONES * 0x20) & !word))
            & HIGHS;
        if hits != 0 {
            return at + (hits.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    while bytes.get(at).is_some_and(|&byte| byte >= 0x20 && byte != b'"' && byte != b'\\') {
        at += 1;
    }
    at
}

/// The length of the escape sequence that begins at `at`.
fn escape_length(bytes: &[u8], at: usize) -> Result<usize, SyntaxError> {
    match bytes.get(at + 1) {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(2),
        Some(b'u') => {
            for at in at + 2..at + 6 {
                match bytes.get(at) {
                    Some(byte) if byte.is_ascii_hexdigit() => {}
                    Some(_) => {
                        return Err(SyntaxError::Unexpected { at, expected: "four hexadecimal digits" });
                    }
                    None => return Err(SyntaxError::Truncated),
                }
            }
            Ok(6)
        }
        Some(_) => Err(SyntaxError::Unexpected { at: at + 1, expected: "an escape sequence" }),
        None => Err(SyntaxError::Truncated),
    }
}

/// Resolves the escapes of a string that passed the grammar; `None` for a lone surrogate.
fn unescape(raw: &str) -> Option<String> {
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let (char, length) = match rest.as_bytes()[at + 1] {
            b'u' => unescape_unicode(&rest[at..])?,
            b'b' => ('\u{8}', 2),
            b'f' => ('\u{c}', 2),
            b'n' => ('\n', 2),
            b'r' => ('\r', 2),
            b't' => ('\t', 2),
            itself => (itself as char, 2),
        };
        out.push(char);
        rest = &rest[at + length..];
    }
    out.push_str(rest);
    Some(out)
}

fn unescape_unicode(escape: &str) -> Option<(char, usize)> {
    let unit = |at: usize| u32::from_str_radix(escape.get(at..at + 4)?, 16).ok();
    let high = unit(2)?;
    if !(0xd800..0xdc00).contains(&high) {
        return Some((char::from_u32(high)?, 6));
    }
    let low = escape.get(6..8).filter(|next| *next == "\\u").and_then(|_| unit(8))?;
    let low = (0xdc00..0xe000).contains(&low).then(|| low - 0xdc00)?;
    Some((char::from_u32(0x10000 + ((high - 0xd800) << 10) + low)?, 12))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn accepts(bytes: &[u8]) -> bool {
        let mut cursor = Cursor::new(bytes);
        cursor.skip().and_then(|_| cursor.end()).is_ok()
    }

    #[test]
    fn accepts_what_is_json_and_refuses_what_is_not() {
        for good in
            ["0", "-1.5e+3", "\"\\u00e9\\n\"", " [1, {\"a\": [] }, null] ", "{}", "true", "1E5", "\"\""]
        {
            assert!(accepts(good.as_bytes()), "{good}");
        }
        for bad in [
            "",
            "01",
            "1.",
            "-",
            "+1",
            "NaN",
            "tru",
            "nulL",
            "\"\n\"",
            "\"\\x\"",
            "\"\\u12g4\"",
            "[1,]",
            "{a:1}",
            "{\"a\" 1}",
            "{\"a\":1,}",
            "[1 2]",
            "\"",
            "{}{}",
            "1e",
            ".5",
            "'a'",
        ] {
            assert!(!accepts(bad.as_bytes()), "{bad}");
        }
    }

    #[test]
    fn nesting_is_limited_like_the_decoder_limits_it() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(accepts(nested(MAX_DEPTH as usize).as_bytes()));
        assert!(!accepts(nested(MAX_DEPTH as usize + 1).as_bytes()));
        assert!(!accepts("[".repeat(10_000_000).as_bytes()));
    }

    #[test]
    fn a_path_names_the_innermost_value_at_an_offset() {
        let json = br#"{"spec": {"list": [1, {"a\u0062": "x"}], "n": 12}, "e": {}}"#;
        let text = std::str::from_utf8(json).unwrap();
        let after = |part: &str| text.find(part).unwrap() + part.len();
        for (part, path) in [
            ("\"x\"", "spec.list[1].ab"),
            ("{\"a", "spec.list[1]"),
            ("\"x\"}", "spec.list[1]"),
            ("[1", "spec.list[0]"),
            ("}]", "spec.list"),
            (" 1", "spec.list[0]"),
            (": 12", "spec.n"),
            ("12}", "spec"),
            ("{}", "e"),
            ("{}}", "."),
            ("\"spec\": ", "spec"),
            ("\"list\": ", "spec.list"),
            ("[1, ", "spec.list[1]"),
        ] {
            let after = if part == " 1" { after("[1") } else { after(part) };
            assert_eq!(path_at(json, after), path, "after {part}");
        }
        assert_eq!(path_at(b"", 0), ".");
        assert_eq!(path_at(br#"{"a": tru"#, 9), "a");
    }

    #[test]
    fn escapes_are_resolved() {
        let decode = |json: &'static str| Cursor::new(json.as_bytes()).string().unwrap().decode();
        assert_eq!(decode(r#""a\/b\u0041\ud83d\ude00\n""#).unwrap(), "a/bA😀\n");
        assert_eq!(decode(r#""\ud83d""#), None);
        assert_eq!(decode(r#""\ud83d\u0041""#), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        /// serde_json is the judge of what is JSON.
        #[test]
        fn agrees_with_serde_json_on_broken_json(
            json in r#"(\{"[a-c]{0,9}":|\[|1|-0|0\.5|e9|"[ -~]{0,12}"|\\u00e9|,|\]|\}|true|null| |:){0,12}"#,
        ) {
            let theirs = serde_json::from_str::<serde_json::Value>(&json);
            // Out of range for a float is valid JSON; their parser refuses it.
            prop_assume!(!theirs.as_ref().is_err_and(|error| error.to_string().contains("out of range")));
            prop_assert_eq!(accepts(json.as_bytes()), theirs.is_ok(), "{:?}", json);
        }

        #[test]
        fn every_prefix_of_a_document_is_truncated(text in "\\PC{0,20}", number in any::<f64>()) {
            let json = serde_json::to_vec(&serde_json::json!({"a": [text, number, null, true], "b": {}})).unwrap();
            for end in 0..json.len() {
                prop_assert_eq!(Cursor::new(&json[..end]).skip().unwrap_err(), SyntaxError::Truncated);
            }
            prop_assert!(accepts(&json));
        }
    }
}
