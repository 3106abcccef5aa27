use std::borrow::Cow;
use std::fmt::Write;

/// Somebody else's text with everything that a terminal obeys or does not show written out: `\u202e` instead of what turns
/// the direction of text around. Text in JSON stays the same text in JSON.
///
/// Written out are control characters, those that change the direction of text or end a line, and those without a look of
/// their own: joiners, variation selectors, tags and the like. Emoji that are made of several are so taken apart.
///
/// ```
/// use watchkeeper_diff::visible;
/// assert_eq!(visible("plain, gr\u{fc}n, \u{5d0}"), "plain, gr\u{fc}n, \u{5d0}");
/// assert_eq!(visible("pay\u{200b}pal \u{202e}txt"), "pay\\u200bpal \\u202etxt");
/// ```
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unseen) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        if is_unseen(char) {
            for unit in char.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}"); // writing to a string does not fail
            }
        } else {
            out.push(char);
        }
    }
    out.into()
}

/// Whether a terminal obeys a character instead of showing it, or shows nothing: control characters, separators of lines
/// and paragraphs, annotations, and what Unicode calls default-ignorable.
pub(crate) fn is_unseen(char: char) -> bool {
    char.is_control()
        || matches!(
            char,
            '\u{ad}'
                | '\u{34f}'
                | '\u{61c}'
                | '\u{115f}'..='\u{1160}'
                | '\u{17b4}'..='\u{17b5}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{3164}'
                | '\u{fe00}'..='\u{fe0f}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff0}'..='\u{fffb}'
                | '\u{1bca0}'..='\u{1bca3}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_shown_or_obeyed_is_written_out() {
        let unseen = [
            0x1b, 0x7f, 0x9b, 0xad, 0x61c, 0x200b, 0x200c, 0x200d, 0x200e, 0x200f, 0x2028, 0x2029, 0x202a,
            0x202b, 0x202c, 0x202d, 0x202e, 0x2060, 0x2066, 0x2067, 0x2068, 0x2069, 0xfe0f, 0xfeff, 0xfff9,
            0xe0001, 0xe0041, 0xe0100,
        ];
        for code in unseen {
            let char = char::from_u32(code).unwrap_or_default();
            let shown = visible(&format!("a{char}b")).into_owned();
            assert!(shown.is_ascii() && shown.starts_with("a\\u"), "{code:x}: {shown}");
            // As the content of a string in JSON, it means the same as before.
            assert_eq!(
                serde_json::from_str::<String>(&format!("\"{shown}\"")).ok(),
                Some(format!("a{char}b"))
            );
        }
        for seen in
            ["", "a b", "\u{fc}", "\u{5e9}\u{5dc}", "\u{627}", "\u{4f60}", "\u{1f600}", "e\u{301}", "\u{a0}"]
        {
            assert!(matches!(visible(seen), Cow::Borrowed(same) if same == seen), "{seen}");
        }
    }
}
