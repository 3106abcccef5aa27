//! Texts that others wrote, made fit for a terminal.

use watchkeeper_diff::visible;

/// Somebody else's words on one line: without what would move the cursor, and with what would not be seen, or would turn
/// the direction of text around, written out.
pub(crate) fn one_line(text: &str) -> String {
    let line: String = text.chars().map(|char| if char.is_control() { ' ' } else { char }).collect();
    visible(&line).into_owned()
}

/// The same for several lines.
pub(crate) fn lines(text: &str) -> String {
    text.lines().map(one_line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_others_do_not_move_the_cursor_and_hide_nothing() {
        assert_eq!(one_line("a\nb\u{1b}[2J\u{9b}2J"), "a b [2J 2J");
        assert_eq!(one_line("gr\u{fc}n \u{202e}txt.exe\u{200b}"), "gr\u{fc}n \\u202etxt.exe\\u200b");
        assert_eq!(lines("one\r\ntwo\u{2028}\n"), "one\ntwo\\u2028");
    }
}
