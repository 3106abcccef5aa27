//! Finds the end of a JSON value without buffering it.

use memchr::memchr2;

/// Passes over one object, list or string, however its bytes are split.
///
/// It knows strings and brackets and nothing else: enough for a value that its writer's encoder has produced.
#[derive(Debug, Default)]
pub(super) struct Skip {
    depth: usize,
    in_string: bool,
    escaped: bool,
}

impl Skip {
    /// Takes the next bytes, and says where in them the value ends if it does.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Result<Option<usize>, &'static str> {
        let mut at = 0;
        while at < bytes.len() {
            if self.in_string {
                at = self.string(bytes, at);
            } else {
                match bytes[at] {
                    b'"' => self.in_string = true,
                    b'{' | b'[' => self.depth += 1,
                    b'}' | b']' => self.depth = self.depth.checked_sub(1).ok_or("a bracket too many")?,
                    _ if self.depth == 0 => return Err("a value without an end"),
                    _ => {}
                }
                at += 1;
            }
            if self.depth == 0 && !self.in_string {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    /// Goes to the end of the string, or of the bytes.
    fn string(&mut self, bytes: &[u8], mut at: usize) -> usize {
        if std::mem::take(&mut self.escaped) {
            at += 1;
        }
        while let Some(found) = bytes.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
            at += found;
            if bytes[at] == b'"' {
                self.in_string = false;
                return at + 1;
            }
            if at + 1 == bytes.len() {
                self.escaped = true;
            }
            at += 2;
        }
        bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_end_of_a_value_is_found_wherever_the_chunks_end(
            text in "[\\PC\"\\\\{}\\[\\]]{0,12}",
            size in 1..9usize,
            in_list in any::<bool>(),
        ) {
            let value = if in_list { serde_json::json!([{"a": text, "b": []}, 1]) } else { serde_json::json!(text) };
            let json = value.to_string();
            let bytes = format!("{json},]}}").into_bytes();
            let mut skip = Skip::default();
            let mut before = 0;
            for chunk in bytes.chunks(size) {
                if let Some(end) = skip.feed(chunk).unwrap() {
                    prop_assert_eq!(before + end, json.len());
                    return Ok(());
                }
                before += chunk.len();
            }
            prop_assert!(false, "no end");
        }
    }

    #[test]
    fn what_has_no_end_is_an_error() {
        assert!(Skip::default().feed(b"12345").is_err());
        assert!(Skip::default().feed(b"]").is_err());
    }
}
