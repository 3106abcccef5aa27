//! JSON for people who look at it with curl.

use bytes::Bytes;
use http_body_util::BodyExt;

use crate::front::Body;

/// What is longer than this when it is indented is sent as it is, if it is sent as a whole.
const MOST_INDENTED: usize = 16 << 20;

/// Puts every field and item of JSON on a line of its own. The JSON may come in pieces, cut anywhere; nothing is kept of it but
/// how deep it is.
#[derive(Debug, Default)]
pub(super) struct Indenter {
    depth: usize,
    /// Within a text; `true` if the next character is escaped.
    text: Option<bool>,
    /// An object or a list has begun, and nothing is in it so far.
    is_empty: bool,
}

impl Indenter {
    /// Adds the next piece to what is written.
    pub(super) fn push(&mut self, json: &[u8], out: &mut Vec<u8>) {
        for byte in json {
            self.byte(*byte, out);
        }
    }

    fn byte(&mut self, byte: u8, out: &mut Vec<u8>) {
        if let Some(is_escaped) = self.text {
            out.push(byte);
            self.text = match byte {
                b'"' if !is_escaped => None,
                byte => Some(byte == b'\\' && !is_escaped),
            };
            return;
        }
        if byte.is_ascii_whitespace() {
            return;
        }
        let was_empty = std::mem::take(&mut self.is_empty);
        if let b'}' | b']' = byte {
            self.depth = self.depth.saturating_sub(1);
            if !was_empty {
                self.line(out);
            }
            return out.push(byte);
        }
        if was_empty {
            self.line(out);
        }
        out.push(byte);
        match byte {
            b'"' => self.text = Some(false),
            b'{' | b'[' => {
                self.depth += 1;
                self.is_empty = true;
            }
            b',' => self.line(out),
            b':' => out.push(b' '),
            _ => {}
        }
    }

    fn line(&self, out: &mut Vec<u8>) {
        out.push(b'\n');
        out.resize(out.len() + 2 * self.depth, b' ');
    }
}

/// The same for a whole document; as it is if it would be too long.
pub(super) fn whole(json: Vec<u8>) -> Vec<u8> {
    let mut out = Vec::with_capacity(json.len() * 2);
    let mut indenter = Indenter::default();
    for piece in json.chunks(64 << 10) {
        indenter.push(piece, &mut out);
        if out.len() > MOST_INDENTED {
            return json;
        }
    }
    out
}

/// The same for a document that is sent as it is made.
pub(super) fn body(body: Body) -> Body {
    let mut indenter = Indenter::default();
    Body::wrap(body.map_frame(move |frame| {
        frame.map_data(|piece: Bytes| {
            let mut out = Vec::with_capacity(piece.len() * 2);
            indenter.push(&piece, &mut out);
            Bytes::from(out)
        })
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn shown(json: &[u8]) -> String {
        String::from_utf8(whole(json.to_vec())).unwrap()
    }

    #[test]
    fn json_is_indented_as_serde_json_indents_it() {
        for text in [
            r#"{"a":{},"b":[],"c":[1,-2.5,null,true,"x"],"d":{"e":"{[,:\"\\"}}"#,
            r#"[[[]],[{"":[{}]}]]"#,
            r#""text""#,
            "0",
        ] {
            let value: Value = serde_json::from_str(text).unwrap();
            let expected = serde_json::to_string_pretty(&value).unwrap();
            assert_eq!(shown(text.as_bytes()), expected);
            assert_eq!(shown(expected.as_bytes()), expected, "again");
            for size in 1..7 {
                let (mut indenter, mut out) = (Indenter::default(), Vec::new());
                text.as_bytes().chunks(size).for_each(|piece| indenter.push(piece, &mut out));
                assert_eq!(String::from_utf8(out).unwrap(), expected, "in pieces of {size}");
            }
        }
        assert_eq!(shown(b" { \"a\" : [ ] } \n"), "{\n  \"a\": []\n}");
    }

    #[test]
    fn what_would_be_far_longer_when_indented_is_not_indented() {
        let deep = format!("{}{}0{}", "[".repeat(100), "0,".repeat(1_000_000), "]".repeat(100));
        assert_eq!(whole(deep.clone().into_bytes()), deep.into_bytes());
    }
}
