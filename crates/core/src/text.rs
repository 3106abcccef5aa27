//! Texts that others wrote, made fit for our errors.

use std::error::Error;

/// How much of such a text goes into an error.
const LONGEST: usize = 400;

/// Somebody else's text, short and on one line.
///
/// ```
/// use watchkeeper_core::text::bounded;
/// assert_eq!(bounded("no\nway"), "no way");
/// assert_eq!(bounded(&"x".repeat(500)).chars().count(), 401);
/// ```
pub fn bounded(text: &str) -> String {
    let mut out: String =
        text.chars().take(LONGEST).map(|char| if char.is_control() { ' ' } else { char }).collect();
    if text.chars().nth(LONGEST).is_some() {
        out.push('…');
    }
    out
}

/// An error and what caused it. Many errors repeat in their own text what their source says; here each is said once.
pub fn causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}
