//! Label selectors, as the API reads them.

use std::collections::{BTreeMap, BTreeSet};

/// Which labels an object must have.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Selector(Vec<Requirement>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    label: String,
    rule: Rule,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Rule {
    In(BTreeSet<String>),
    NotIn(BTreeSet<String>),
    Exists,
    Absent,
}

/// A label selector that does not parse.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a label selector: {selector:?}: {problem}")]
pub struct SelectorError {
    /// What was given.
    pub selector: String,
    /// What is wrong with it.
    pub problem: String,
}

impl Selector {
    /// Reads `a=b,c!=d,e in (f,g),h notin (i),j,!k`. Nothing at all selects everything.
    pub(crate) fn parse(text: &str) -> Result<Self, SelectorError> {
        let failed = |problem: String| SelectorError { selector: text.to_owned(), problem };
        let mut requirements = Vec::new();
        for part in split(text) {
            requirements.push(requirement(part.trim()).map_err(failed)?);
        }
        Ok(Self(requirements))
    }

    pub(crate) fn matches(&self, labels: Option<&BTreeMap<String, String>>) -> bool {
        self.0.iter().all(|Requirement { label, rule }| {
            let value = labels.and_then(|labels| labels.get(label));
            match rule {
                Rule::In(values) => value.is_some_and(|value| values.contains(value)),
                Rule::NotIn(values) => value.is_none_or(|value| !values.contains(value)),
                Rule::Exists => value.is_some(),
                Rule::Absent => value.is_none(),
            }
        })
    }
}

/// The requirements: commas separate, but not within parentheses.
fn split(text: &str) -> Vec<&str> {
    if text.trim().is_empty() {
        return Vec::new();
    }
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0_usize);
    for (at, char) in text.char_indices() {
        match char {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

fn requirement(text: &str) -> Result<Requirement, String> {
    let of = |label: &str, rule| Ok(Requirement { label: name(label)?, rule });
    let one = |value: &str| Ok::<_, String>(BTreeSet::from([self::value(value)?]));
    if let Some((label, right)) = text.split_once("!=") {
        return of(label, Rule::NotIn(one(right)?));
    }
    if let Some((label, right)) = text.split_once("==").or_else(|| text.split_once('=')) {
        return of(label, Rule::In(one(right)?));
    }
    if let Some(label) = text.strip_prefix('!') {
        return of(label, Rule::Absent);
    }
    let mut words = text.splitn(2, char::is_whitespace);
    let (label, rest) = (words.next().unwrap_or_default(), words.next().map(str::trim).unwrap_or_default());
    if rest.is_empty() {
        return of(label, Rule::Exists);
    }
    let (operator, list) = rest.split_at(rest.find('(').ok_or_else(|| format!("no values in {text:?}"))?);
    let values = values(list)?;
    match operator.trim() {
        "in" => of(label, Rule::In(values)),
        "notin" => of(label, Rule::NotIn(values)),
        other => Err(format!("unknown operator {other:?}")),
    }
}

fn values(list: &str) -> Result<BTreeSet<String>, String> {
    let inner = list.trim().strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
    inner.ok_or_else(|| format!("unclosed values {list:?}"))?.split(',').map(value).collect()
}

fn name(text: &str) -> Result<String, String> {
    let text = text.trim();
    let good = |char: char| char.is_ascii_alphanumeric() || matches!(char, '-' | '_' | '.' | '/');
    if text.is_empty() || !text.chars().all(good) {
        return Err(format!("{text:?} is not the name of a label"));
    }
    Ok(text.to_owned())
}

fn value(text: &str) -> Result<String, String> {
    let text = text.trim();
    let good = |char: char| char.is_ascii_alphanumeric() || matches!(char, '-' | '_' | '.');
    if !text.chars().all(good) {
        return Err(format!("{text:?} is not the value of a label"));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selects(selector: &str, labels: &[(&str, &str)]) -> bool {
        let labels = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Selector::parse(selector).unwrap().matches(Some(&labels))
    }

    #[test]
    fn every_operator_means_what_it_means_to_the_server() {
        let web = &[("app", "web"), ("tier", "")][..];
        for yes in [
            "",
            "app",
            "app=web",
            "app == web",
            "app!=db",
            "none!=x",
            "!none",
            "app in (a, web)",
            "app notin (a,b)",
            "none notin (a)",
            "tier=",
            "app in (web),tier,!x",
        ] {
            assert!(selects(yes, web), "{yes}");
        }
        for no in
            ["none", "app=db", "app!=web", "!app", "app in (a,b)", "app notin (web)", "none=", "none in (a)"]
        {
            assert!(!selects(no, web), "{no}");
        }
    }

    #[test]
    fn what_does_not_parse_is_told() {
        for bad in ["=a", "a in b", "a in (b", "a like (b)", "a,,b", "a=b c", "a b"] {
            assert!(Selector::parse(bad).is_err(), "{bad}");
        }
    }
}
