//! Values within a file that is the user's.

use std::ops::Range;

use serde_json::Value;
use watchkeeper_schema::yaml;

/// The path of a value in a YAML file: the keys from the root.
pub type Path = &'static [&'static str];

/// The text of a user with the values of these keys as they were rendered, where they differ; all else stays as it is, comments included.
/// A key that the user has taken out stays out. `None` if nothing differs.
///
/// The error is the key of a value that cannot be replaced line by line, such as one within `{...}`.
pub(crate) fn updated(theirs: &str, rendered: &str, keys: &[Path]) -> Result<Option<String>, String> {
    let decoded = |text: &str| yaml::decode(text.as_bytes()).map(|decoded| decoded.value).unwrap_or_default();
    let wanted = decoded(rendered);
    let mut text = theirs.to_owned();
    for key in keys {
        let (Some(before), Some(after)) = (at(&decoded(theirs), key).cloned(), at(&wanted, key)) else {
            continue;
        };
        if before == *after {
            continue;
        }
        text = replaced(&text, rendered, key)
            .filter(|text| at(&decoded(text), key) == Some(after))
            .ok_or_else(|| key.join("."))?;
    }
    Ok((text != theirs).then_some(text))
}

fn at(value: &Value, key: Path) -> Option<&Value> {
    key.iter().try_fold(value, |value, part| value.get(*part))
}

/// The lines of a key in one text in the place of those in another.
fn replaced(theirs: &str, rendered: &str, key: Path) -> Option<String> {
    let (theirs, rendered): (Vec<&str>, Vec<&str>) = (theirs.lines().collect(), rendered.lines().collect());
    let (old, new) = (span(&theirs, key)?, span(&rendered, key)?);
    let shift = indent(theirs[old.start]);
    let from = indent(rendered[new.start]);
    let moved = rendered[new].iter().map(|line| match line.get(from..) {
        Some(rest) if !rest.is_empty() => format!("{}{rest}", " ".repeat(shift)),
        _ => String::new(),
    });
    let lines = theirs[..old.start].iter().map(|line| (*line).to_owned());
    let lines: Vec<String> =
        lines.chain(moved).chain(theirs[old.end..].iter().map(|line| (*line).to_owned())).collect();
    Some(lines.join("\n") + "\n")
}

/// The lines of a key with its value.
fn span(lines: &[&str], key: Path) -> Option<Range<usize>> {
    let mut found = 0..lines.len();
    let mut begin = 0;
    for part in key {
        let is_content = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
        let depth = lines[begin..found.end].iter().find(|line| is_content(line)).map(|line| indent(line))?;
        let is_key = |line: &str| {
            let rest = line.trim_start();
            let rest = [rest.strip_prefix(*part), rest.strip_prefix(&format!("{part:?}"))];
            indent(line) == depth && rest.into_iter().flatten().any(|rest| rest.starts_with(':'))
        };
        let start = begin + lines[begin..found.end].iter().position(|line| is_key(line))?;
        let is_outside = |line: &str| !line.trim().is_empty() && indent(line) <= depth;
        let after = lines[start + 1..found.end].iter().position(|line| is_outside(line));
        let mut end = after.map_or(found.end, |after| start + 1 + after);
        while end > start + 1 && lines[end - 1].trim().is_empty() {
            end -= 1;
        }
        found = start..end;
        begin = start + 1;
    }
    Some(found)
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: &[Path] =
        &[&["appVersion"], &["annotations", "example.com/kinds"], &["annotations", "example.com/gone"]];
    const RENDERED: &str = "annotations:\n  example.com/gone: x\n  example.com/kinds: |\n    - kind: A\n\n    - kind: B\nappVersion: 2.0.0\nversion: 2.0.0\n";

    #[test]
    fn the_values_of_keys_follow_and_everything_else_stays_as_the_user_wrote_it() {
        let theirs = "# Mine.\nversion: 7.1.0 # of the chart\nappVersion: \"1.0.0\"\n\nannotations:\n    # Kinds of ours.\n    example.com/kinds: |\n        - kind: A\n    example.com/team: shop\n# The end.\n";
        let text = updated(theirs, RENDERED, KEYS).unwrap().unwrap();
        assert_eq!(
            text,
            "# Mine.\nversion: 7.1.0 # of the chart\nappVersion: 2.0.0\n\nannotations:\n    # Kinds of ours.\n    example.com/kinds: |\n      - kind: A\n\n      - kind: B\n    example.com/team: shop\n# The end.\n"
        );
        assert_eq!(updated(&text, RENDERED, KEYS), Ok(None));
        // How a value is written is the user's.
        assert_eq!(updated("appVersion: '2.0.0' # as it is\n", RENDERED, KEYS), Ok(None));
        assert_eq!(updated("version: 1.0.0\n", RENDERED, KEYS), Ok(None));
    }

    #[test]
    fn a_value_that_has_no_lines_of_its_own_is_named() {
        let error = updated("{appVersion: 1.0.0, version: 1.0.0}\n", RENDERED, KEYS).unwrap_err();
        assert_eq!(error, "appVersion");
        let theirs = "appVersion: 2.0.0\nannotations: {example.com/kinds: none}\n";
        assert_eq!(updated(theirs, RENDERED, KEYS).unwrap_err(), "annotations.example.com/kinds");
    }
}
