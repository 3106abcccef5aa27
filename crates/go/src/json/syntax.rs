//! Why bytes are not JSON, in the words of Go's scanner.

/// Where a value stands in what is around it.
#[derive(Clone, Copy)]
enum Around {
    Key,
    Value,
    Element,
}

/// The message of `json.Unmarshal` about bytes that are not one JSON document; `None` if they are one.
///
/// ```
/// use watchkeeper_go::json;
/// assert_eq!(json::syntax_error(b"nonsense").as_deref(), Some("invalid character 'o' in literal null (expecting 'u')"));
/// assert_eq!(json::syntax_error(br#"{"a": 1"#).as_deref(), Some("unexpected end of JSON input"));
/// assert_eq!(json::syntax_error(br#"{"a": 1}"#), None);
/// ```
pub fn syntax_error(bytes: &[u8]) -> Option<String> {
    let mut scanner = Scanner { bytes, at: 0, around: Vec::new() };
    scanner.document().err()
}

struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    around: Vec<Around>,
}

type Scanned = Result<(), String>;

impl Scanner<'_> {
    fn document(&mut self) -> Scanned {
        self.value()?;
        while !self.around.is_empty() {
            self.after_value()?;
        }
        match self.skip_spaces() {
            None => Ok(()),
            Some(byte) => Err(invalid(byte, "after top-level value")),
        }
    }

    /// Begins a value; what is inside of an object or array is left to [`after_value`](Self::after_value).
    fn value(&mut self) -> Scanned {
        while self.spaces()? == b'[' {
            self.at += 1;
            if self.spaces()? == b']' {
                self.at += 1;
                return Ok(());
            }
            self.around.push(Around::Element);
        }
        match self.spaces()? {
            b'{' => {
                self.at += 1;
                if self.spaces()? == b'}' {
                    self.at += 1;
                    return Ok(());
                }
                self.key()
            }
            b'"' => self.string(),
            b'-' | b'0'..=b'9' => self.number(),
            b't' => self.literal("true"),
            b'f' => self.literal("false"),
            b'n' => self.literal("null"),
            byte => Err(invalid(byte, "looking for beginning of value")),
        }
    }

    fn key(&mut self) -> Scanned {
        match self.spaces()? {
            b'"' => self.string()?,
            byte => return Err(invalid(byte, "looking for beginning of object key string")),
        }
        self.around.push(Around::Key);
        Ok(())
    }

    fn after_value(&mut self) -> Scanned {
        let byte = self.spaces()?;
        let Some(around) = self.around.pop() else { return Ok(()) };
        self.at += 1;
        match (around, byte) {
            (Around::Key, b':') => {
                self.around.push(Around::Value);
                self.value()
            }
            (Around::Value, b',') => self.key(),
            (Around::Element, b',') => {
                self.around.push(Around::Element);
                self.value()
            }
            (Around::Value, b'}') | (Around::Element, b']') => Ok(()),
            (Around::Key, byte) => Err(invalid(byte, "after object key")),
            (Around::Value, byte) => Err(invalid(byte, "after object key:value pair")),
            (Around::Element, byte) => Err(invalid(byte, "after array element")),
        }
    }

    fn string(&mut self) -> Scanned {
        self.at += 1;
        loop {
            match self.next()? {
                b'"' => return Ok(()),
                b'\\' => match self.next()? {
                    b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"' => {}
                    b'u' => {
                        for _ in 0..4 {
                            let byte = self.next()?;
                            if !byte.is_ascii_hexdigit() {
                                return Err(invalid(byte, "in \\u hexadecimal character escape"));
                            }
                        }
                    }
                    byte => return Err(invalid(byte, "in string escape code")),
                },
                byte @ 0..0x20 => return Err(invalid(byte, "in string literal")),
                _ => {}
            }
        }
    }

    fn number(&mut self) -> Scanned {
        let mut byte = self.next()?;
        if byte == b'-' {
            byte = self.next()?;
        }
        match byte {
            b'0' => {}
            b'1'..=b'9' => self.digits(),
            byte => return Err(invalid(byte, "in numeric literal")),
        }
        if self.bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.some_digits("after decimal point in numeric literal")?;
        }
        if matches!(self.bytes.get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.bytes.get(self.at), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.some_digits("in exponent of numeric literal")?;
        }
        Ok(())
    }

    fn some_digits(&mut self, place: &str) -> Scanned {
        match self.next()? {
            b'0'..=b'9' => {
                self.digits();
                Ok(())
            }
            byte => Err(invalid(byte, place)),
        }
    }

    fn digits(&mut self) {
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
    }

    fn literal(&mut self, literal: &str) -> Scanned {
        for expected in literal.bytes() {
            let byte = self.next()?;
            if byte != expected {
                let place = format!("in literal {literal} (expecting {})", quoted(expected));
                return Err(invalid(byte, &place));
            }
        }
        Ok(())
    }

    fn next(&mut self) -> Result<u8, String> {
        let byte = self.bytes.get(self.at).copied().ok_or_else(end)?;
        self.at += 1;
        Ok(byte)
    }

    /// The next byte that is no space, not taken.
    fn spaces(&mut self) -> Result<u8, String> {
        self.skip_spaces().ok_or_else(end)
    }

    fn skip_spaces(&mut self) -> Option<u8> {
        while matches!(self.bytes.get(self.at), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
        self.bytes.get(self.at).copied()
    }
}

fn end() -> String {
    "unexpected end of JSON input".into()
}

fn invalid(byte: u8, place: &str) -> String {
    format!("invalid character {} {place}", quoted(byte))
}

/// A byte as a character, in single quotes.
fn quoted(byte: u8) -> String {
    match byte {
        b'\'' => r"'\''".into(),
        b'"' => "'\"'".into(),
        byte => {
            let text = crate::quote(&char::from(byte).to_string());
            format!("'{}'", &text[1..text.len() - 1])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn errors_are_worded_as_go_words_them() {
        for (bytes, expected) in [
            (&b""[..], "unexpected end of JSON input"),
            (b"  ", "unexpected end of JSON input"),
            (b"this", "invalid character 'h' in literal true (expecting 'r')"),
            (b"{a}", "invalid character 'a' looking for beginning of object key string"),
            (b"{\"a\" 1}", "invalid character '1' after object key"),
            (b"{\"a\":1 2}", "invalid character '2' after object key:value pair"),
            (b"[1 2]", "invalid character '2' after array element"),
            (b"[1,]", "invalid character ']' looking for beginning of value"),
            (b"{\"a\":1,}", "invalid character '}' looking for beginning of object key string"),
            (b"1 2", "invalid character '2' after top-level value"),
            (b"\"\n\"", r"invalid character '\n' in string literal"),
            (b"\"\\x\"", "invalid character 'x' in string escape code"),
            (b"\"\\u12g\"", "invalid character 'g' in \\u hexadecimal character escape"),
            (b"-a", "invalid character 'a' in numeric literal"),
            (b"1.a", "invalid character 'a' after decimal point in numeric literal"),
            (b"1ex", "invalid character 'x' in exponent of numeric literal"),
            (b"\x9e", r"invalid character '\u009e' looking for beginning of value"),
            (b"'", r"invalid character '\'' looking for beginning of value"),
            (b"NaN", "invalid character 'N' looking for beginning of value"),
            (b"nan", "invalid character 'a' in literal null (expecting 'u')"),
        ] {
            assert_eq!(syntax_error(bytes).as_deref(), Some(expected), "{}", String::from_utf8_lossy(bytes));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(crate::cases(512)))]

        #[test]
        fn any_bytes_are_read_or_refused(bytes in any::<Vec<u8>>()) {
            let _ = syntax_error(&bytes);
        }

        #[test]
        fn what_is_no_json_is_complained_about(text in "[\\[\\]{},:\"a0-9.eE+ -]{0,12}") {
            let is_json = serde_json::from_str::<serde_json::Value>(&text).is_ok();
            // Numbers beyond all floats are JSON, but not values.
            prop_assert!(syntax_error(text.as_bytes()).is_none() == is_json || text.contains(['e', 'E']), "{}", text);
        }
    }
}
