//! Texts that others wrote, made fit for our errors.

use std::error::Error;

/// How much of such a text goes into an error.
const LONGEST: usize = 400;

/// Shortens a text of unknown origin and puts it on one line.
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

/// The messages of an error and of its sources in one line, each once, though many errors repeat the message of their source.
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

/// Decodes percent-encoding, such as `%2F`. Malformed escapes stay as they are.
///
/// ```
/// use watchkeeper_core::text::percent_decoded;
/// assert_eq!(percent_decoded(b"a%2Fb%zz%"), b"a/b%zz%");
/// ```
pub fn percent_decoded(text: &[u8]) -> Vec<u8> {
    let digit = |byte: Option<&u8>| byte.and_then(|byte| char::from(*byte).to_digit(16));
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, after)) = rest.split_first() {
        let escaped = match (first, digit(after.first()), digit(after.get(1))) {
            (b'%', Some(high), Some(low)) => u8::try_from(high * 16 + low).ok(),
            _ => None,
        };
        bytes.push(escaped.unwrap_or(first));
        rest = if escaped.is_some() { &after[2..] } else { after };
    }
    bytes
}

/// The edit distance of two words (Damerau-Levenshtein), for "did you mean ...?".
///
/// ```
/// use watchkeeper_core::text::distance;
/// assert_eq!(distance("pods", "podes"), 1);
/// assert_eq!(distance("pdos", "pods"), 1);
/// ```
pub fn distance(left: &str, right: &str) -> usize {
    let (left, right): (Vec<char>, Vec<char>) = (left.chars().collect(), right.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=right.len()).collect()];
    for (i, a) in left.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in right.iter().enumerate() {
            let exchanged = rows[i][j] + usize::from(a != b);
            let mut best = exchanged.min(rows[i][j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *a == right[j - 1] && left[i - 1] == *b {
                best = best.min(rows[i - 1][j - 1] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[left.len()][right.len()]
}
