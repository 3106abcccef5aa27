//! Expected lines and how they are compared with those that came.
//!
//! In an expected line, `<age>`, `<uid>`, `<rv>`, `<time>`, `<word>` and `<any>` stand for what differs from run to
//! run; everything else stands for itself. A line `<...>` stands for any number of lines. Runs of two or more blanks
//! inside a line are equal to each other, because the width of a column follows its longest value.

use regex::Regex;

const WORDS: &[(&str, &str)] = &[
    ("<age>", r"(?:\d+[smhdy])+"),
    ("<uid>", r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"),
    ("<rv>", r"\d+"),
    ("<time>", r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z"),
    ("<word>", r"\S+"),
    ("<any>", r".*"),
];

/// A line-by-line comparison.
#[derive(Debug, Default)]
pub struct Comparison {
    /// Whether every line came as expected.
    pub equal: bool,
    /// The lines of both, marked ` ` where they agree, `-` where one was expected and `+` where one came.
    pub lines: Vec<String>,
    /// The lines that came, each replaced by the expected line that it matches.
    pub accepted: Vec<String>,
}

/// Compares the lines that came with those that were expected.
pub fn compare(expected: &[String], came: &[String]) -> Comparison {
    let patterns: Vec<Expected> = expected.iter().map(|line| Expected::of(line)).collect();
    // cost[i][j]: how many lines do not agree from expected i and came j on.
    let (rows, columns) = (patterns.len(), came.len());
    let mut cost = vec![vec![0usize; columns + 1]; rows + 1];
    for i in (0..=rows).rev() {
        for j in (0..=columns).rev() {
            cost[i][j] = match (patterns.get(i), came.get(j)) {
                (None, _) => columns - j,
                (Some(Expected::Any), None) => cost[i + 1][j],
                (Some(Expected::Any), Some(_)) => cost[i + 1][j].min(cost[i][j + 1]),
                (Some(Expected::Line(_)), None) => cost[i + 1][j] + 1,
                (Some(line), Some(text)) if line.matches(text) => cost[i + 1][j + 1],
                (Some(Expected::Line(_)), Some(_)) => 1 + cost[i + 1][j].min(cost[i][j + 1]),
            };
        }
    }
    let mut comparison = Comparison { equal: cost[0][0] == 0, ..Comparison::default() };
    let (mut i, mut j) = (0, 0);
    while i < rows || j < columns {
        match (patterns.get(i), came.get(j)) {
            (Some(Expected::Any), Some(_)) if cost[i][j] == cost[i][j + 1] => j += 1,
            (Some(Expected::Any), _) => {
                comparison.keep(&expected[i]);
                i += 1;
            }
            (Some(line), Some(text)) if line.matches(text) => {
                comparison.keep(&expected[i]);
                (i, j) = (i + 1, j + 1);
            }
            (Some(_), text) if text.is_none() || cost[i][j] == 1 + cost[i + 1][j] => {
                comparison.lines.push(format!("-{}", expected[i]));
                i += 1;
            }
            (_, Some(text)) => {
                comparison.lines.push(format!("+{text}"));
                comparison.accepted.push(text.clone());
                j += 1;
            }
            (_, None) => break,
        }
    }
    comparison
}

impl Comparison {
    fn keep(&mut self, line: &str) {
        self.lines.push(format!(" {line}"));
        self.accepted.push(line.to_owned());
    }
}

enum Expected {
    Any,
    /// None would match nothing, but a pattern made of escaped characters and our own words always compiles.
    Line(Option<Regex>),
}

impl Expected {
    fn matches(&self, line: &str) -> bool {
        matches!(self, Self::Line(Some(pattern)) if pattern.is_match(line.trim_end()))
    }

    fn of(line: &str) -> Self {
        if line.trim() == "<...>" {
            return Self::Any;
        }
        let indent = line.len() - line.trim_start().len();
        let mut pattern = format!("^{}", &line[..indent]);
        let mut rest = line[indent..].trim_end();
        while !rest.is_empty() {
            if let Some((word, meaning)) = WORDS.iter().find(|(word, _)| rest.starts_with(word)) {
                pattern.push_str(meaning);
                rest = &rest[word.len()..];
                continue;
            }
            let blanks = rest.len() - rest.trim_start_matches(' ').len();
            if blanks >= 2 {
                pattern.push_str(" {2,}");
                rest = &rest[blanks..];
                continue;
            }
            let character: String = rest.chars().take(1).collect();
            pattern.push_str(&regex::escape(&character));
            rest = &rest[character.len()..];
        }
        pattern.push('$');
        Self::Line(Regex::new(&pattern).ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agree(expected: &str, came: &str) -> bool {
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        compare(&lines(expected), &lines(came)).equal
    }

    #[test]
    fn words_stand_for_what_differs() {
        assert!(agree("a  <age>", "a     2m3s"));
        assert!(!agree("a  <age>", "a     soon"));
        assert!(agree("uid: <uid>", "uid: 0a8f9b1c-0000-4000-8000-00000000000a"));
        assert!(!agree("uid: <uid>", "uid: 0a8f9b1c"));
        assert!(agree("<none>", "<none>"));
    }

    #[test]
    fn indentation_and_single_blanks_count() {
        assert!(!agree("  a: b", " a: b"));
        assert!(!agree("a: b", "a:  b"));
        assert!(agree("a   b", "a  b"));
    }

    #[test]
    fn an_ellipsis_stands_for_any_number_of_lines() {
        assert!(agree("a\n<...>\nz", "a\nz"));
        assert!(agree("a\n<...>\nz", "a\nb\nc\nz"));
        assert!(!agree("a\n<...>\nz", "a\nb\nc"));
        assert!(!agree("a", "a\nb"));
        assert!(!agree("a\nb", "a"));
    }

    #[test]
    fn a_difference_shows_both_sides() {
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        let comparison = compare(&lines("a\nb  <age>\nc"), &lines("a\nx\nc"));
        assert_eq!(comparison.lines, [" a", "-b  <age>", "+x", " c"]);
        assert_eq!(comparison.accepted, ["a", "x", "c"]);
    }
}
