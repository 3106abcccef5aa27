use std::fmt;

use serde_json::Value;

use crate::compare::Difference;
use crate::visible::{is_unseen, visible};

/// A difference in words: `spec.replicas: 1 -> 3`, `+ metadata.labels.x: y`, `- spec.paused: true`.
///
/// Values are on one line and not longer than asked for. Of two long texts, the part is shown in which they differ. What
/// could be taken for something else, or could move a terminal's cursor, is in quotes and escaped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wording {
    /// The path of the field.
    pub path: String,
    /// The value before.
    pub from: Option<String>,
    /// The value after.
    pub to: Option<String>,
}

impl Wording {
    /// The words for a difference whose values may be about so many characters long each.
    pub fn of(difference: &Difference, limit: usize) -> Self {
        let (from, to) = match (&difference.from, &difference.to) {
            (Some(Value::String(from)), Some(Value::String(to))) => {
                let (from, to) = texts(from, to, limit);
                (Some(from), Some(to))
            }
            (from, to) => {
                (from.as_ref().map(|from| value(from, limit)), to.as_ref().map(|to| value(to, limit)))
            }
        };
        Self { path: visible(&difference.path.to_string()).into_owned(), from, to }
    }
}

impl fmt::Display for Wording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, from, to } = self;
        match (from, to) {
            (Some(from), Some(to)) => write!(f, "{path}: {from} -> {to}"),
            (None, Some(to)) => write!(f, "+ {path}: {to}"),
            (Some(from), None) => write!(f, "- {path}: {from}"),
            (None, None) => f.write_str(path),
        }
    }
}

/// How much of what two long texts share is shown around where they differ.
const AROUND: usize = 12;

fn value(value: &Value, limit: usize) -> String {
    match value {
        Value::String(text) => shortened(&text.chars().collect::<Vec<_>>(), 0..limit, text),
        other => {
            let text = visible(&other.to_string()).into_owned();
            let count = text.chars().count();
            if count <= limit { text } else { text.chars().take(limit).chain(['…']).collect() }
        }
    }
}

/// Two texts, each reduced to where they differ if it is too long.
fn texts(from: &str, to: &str, limit: usize) -> (String, String) {
    let (left, right): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    if left.len() <= limit && right.len() <= limit {
        return (plain_or_quoted(from), plain_or_quoted(to));
    }
    let begin = left.iter().zip(&right).take_while(|(left, right)| left == right).count();
    let shared = left.len().min(right.len()) - begin;
    let end = left
        .iter()
        .rev()
        .zip(right.iter().rev())
        .take(shared)
        .take_while(|(left, right)| left == right)
        .count();
    let part = |chars: &[char], text: &str| {
        let start = begin.saturating_sub(AROUND);
        let stop = (chars.len() - end + AROUND).min(start + limit);
        shortened(chars, start..stop, text)
    };
    (part(&left, from), part(&right, to))
}

/// A range of a text in quotes, with dots where something was left out; the text as it is if nothing was.
fn shortened(chars: &[char], range: std::ops::Range<usize>, whole: &str) -> String {
    let range = range.start.min(chars.len())..range.end.min(chars.len());
    if range == (0..chars.len()) {
        return plain_or_quoted(whole);
    }
    let part: String = chars[range.clone()].iter().collect();
    let (before, after) =
        (if range.start > 0 { "…" } else { "" }, if range.end < chars.len() { "…" } else { "" });
    let quoted = visible(&Value::from(part).to_string()).into_owned();
    format!("\"{before}{}{after}\"", &quoted[1..quoted.len() - 1])
}

fn plain_or_quoted(text: &str) -> String {
    let ends = |char: Option<char>| char.is_none_or(char::is_whitespace);
    let ambiguous = ends(text.chars().next())
        || ends(text.chars().next_back())
        || text.starts_with(['"', '{', '['])
        || text.contains(" -> ")
        || text.chars().any(is_unseen)
        || serde_json::from_str::<Value>(text).is_ok();
    if ambiguous { visible(&Value::from(text).to_string()).into_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Path, Segment};

    fn words(from: Option<Value>, to: Option<Value>, limit: usize) -> String {
        let path = "x".parse().unwrap_or_default();
        Wording::of(&Difference { path, from, to }, limit).to_string()
    }

    #[test]
    fn values_are_plain_unless_that_could_be_misread() {
        for (from, to, expected) in [
            (Some(json!(1)), Some(json!(3)), "x: 1 -> 3"),
            (None, Some(json!("y")), "+ x: y"),
            (Some(json!(true)), None, "- x: true"),
            (Some(json!("False")), Some(json!("True")), "x: False -> True"),
            (Some(json!("1")), Some(json!(1)), "x: \"1\" -> 1"),
            (Some(json!("")), Some(json!("null")), "x: \"\" -> \"null\""),
            (Some(json!(" a")), Some(json!("a b")), "x: \" a\" -> a b"),
            (Some(json!("a -> b")), Some(json!("a\nb")), "x: \"a -> b\" -> \"a\\nb\""),
            (Some(json!({"b": [1]})), Some(json!([])), "x: {\"b\":[1]} -> []"),
            (None, Some(json!("\u{1b}[2Jgone\u{202e}")), "+ x: \"\\u001b[2Jgone\\u202e\""),
            (None, Some(json!({"a": "\u{9b}2J"})), "+ x: {\"a\":\"\\u009b2J\"}"),
            (None, Some(json!("a\u{e0041}b\u{61c}")), "+ x: \"a\\udb40\\udc41b\\u061c\""),
            (None, Some(json!({"a\u{200b}": 1})), "+ x: {\"a\\u200b\":1}"),
        ] {
            assert_eq!(words(from, to, 60), expected);
        }
    }

    #[test]
    fn names_of_fields_are_as_visible_as_values() {
        for (path, expected) in [
            (Segment::field("a\u{202e}b"), "[\"a\\u202eb\"]: 1 -> 2"),
            (Segment::item("name", &json!("a\u{200b}b")), "[name=\"a\\u200bb\"]: 1 -> 2"),
        ] {
            let difference = Difference { path: Path(vec![path]), from: Some(json!(1)), to: Some(json!(2)) };
            assert_eq!(Wording::of(&difference, 60).to_string(), expected);
        }
    }

    #[test]
    fn long_values_are_shortened_to_where_they_differ() {
        let long = |middle: &str| json!(format!("{}{middle}{}", "a".repeat(100), "z".repeat(100)));
        let a = "a".repeat(AROUND);
        let z = "z".repeat(AROUND);
        assert_eq!(
            words(Some(long("1")), Some(long("22")), 40),
            format!("x: \"…{a}1{z}…\" -> \"…{a}22{z}…\"")
        );
        assert_eq!(words(None, Some(long("1")), 5), "+ x: \"aaaaa…\"");
        assert_eq!(words(None, Some(json!([1, 2, 3, 4])), 5), "+ x: [1,2,…");
        // One within the other: nothing is shown twice.
        assert_eq!(
            words(Some(json!("ab")), Some(json!("ab".repeat(30))), 20),
            format!("x: ab -> \"{}…\"", "ab".repeat(10))
        );
        assert_eq!(
            words(Some(json!("é".repeat(30))), Some(json!("é")), 10),
            format!("x: \"{}…\" -> é", "é".repeat(10))
        );
    }
}
