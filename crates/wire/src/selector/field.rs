use std::fmt;

/// A choice among objects by some of their fields: all of its terms must hold.
///
/// Prints in the syntax it is parsed from and parses back to itself, with `==` as `=`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector {
    terms: Vec<Term>,
}

/// One requirement of a field selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// The name of the field: `metadata.name`.
    pub field: String,
    /// Whether the field must have the value, or any other.
    pub is_equal: bool,
    /// The value.
    pub value: String,
}

impl FieldSelector {
    /// Parses `a=b,c!=d,e==f`, where `\,`, `\=` and `\\` stand for themselves in values. The error is the message for the
    /// client.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parts = split(text);
        parts.sort_unstable();
        let mut terms = Vec::new();
        for part in parts.into_iter().filter(|part| !part.is_empty()) {
            let Some((field, is_equal, value)) = operands(part) else {
                return Err(format!("invalid selector: '{text}'; can't understand '{part}'"));
            };
            let value = unescape(value)?;
            // A sign alone says nothing, and is no error.
            if !(field.is_empty() && value.is_empty()) {
                terms.push(Term { field: field.into(), is_equal, value });
            }
        }
        Ok(Self { terms })
    }

    /// The terms, in the order of their texts.
    pub fn terms(&self) -> &[Term] {
        &self.terms
    }

    /// Whether every object is selected.
    pub fn is_everything(&self) -> bool {
        self.terms.is_empty()
    }

    /// The value `field` must have for an object to be selected, if there is one.
    pub fn required(&self, field: &str) -> Option<&str> {
        let term = self.terms.iter().find(|term| term.is_equal && term.field == field);
        term.map(|term| term.value.as_str())
    }

    /// Whether an object is selected whose fields `value_of` knows. A field that is not there is empty.
    pub fn matches<'a>(&self, value_of: impl Fn(&str) -> Option<&'a str>) -> bool {
        let holds = |term: &Term| (value_of(&term.field).unwrap_or_default() == term.value) == term.is_equal;
        self.terms.iter().all(holds)
    }
}

/// The texts between commas, those after a backslash apart.
fn split(text: &str) -> Vec<&str> {
    let mut is_escaped = false;
    text.split(|char| {
        let is_end = char == ',' && !is_escaped;
        is_escaped = char == '\\' && !is_escaped;
        is_end
    })
    .collect()
}

/// A field, whether it must equal, and the value: split at the first operator.
fn operands(part: &str) -> Option<(&str, bool, &str)> {
    let at = part.find('=')?;
    // The sign is the first operator wherever it stands alone: a `!` anywhere else is part of the field.
    let (field, rest) = part.split_at(at);
    match field.strip_suffix('!') {
        Some(field) => Some((field, false, &rest[1..])),
        None => Some((field, true, rest.strip_prefix("==").unwrap_or(&rest[1..]))),
    }
}

fn unescape(value: &str) -> Result<String, String> {
    let mut out = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(char) = chars.next() {
        match char {
            '\\' => match chars.next() {
                Some(escaped @ ('\\' | ',' | '=')) => out.push(escaped),
                other => {
                    let sequence: String = std::iter::once('\\').chain(other).collect();
                    return Err(format!("invalid field selector: invalid escape sequence: {sequence}"));
                }
            },
            ',' | '=' => {
                let code = u32::from(char);
                return Err(format!("invalid field selector: unescaped character in value: {code}"));
            }
            char => out.push(char),
        }
    }
    Ok(out)
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, term) in self.terms.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            let sign = if term.is_equal { "=" } else { "!=" };
            let value = term.value.replace('\\', "\\\\").replace(',', "\\,").replace('=', "\\=");
            write!(f, "{comma}{}{sign}{value}", term.field)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    #[test]
    fn texts_are_understood_and_refused_as_go_does() {
        for case in recorded(include_str!("../cases/field_selectors.jsonl")) {
            match FieldSelector::parse(case["in"].as_str().unwrap()) {
                Err(message) => assert_eq!(case["error"], message, "{case}"),
                Ok(selector) => {
                    assert_eq!(case["error"], Value::Null, "{case}");
                    assert_eq!(case["out"], selector.to_string(), "{case}");
                    let sign = |term: &Term| if term.is_equal { "=" } else { "!=" };
                    let terms: Vec<Value> = selector
                        .terms()
                        .iter()
                        .map(|term| json!([term.field, sign(term), term.value]))
                        .collect();
                    assert_eq!(case["terms"], Value::Array(terms), "{case}");
                }
            }
        }
    }

    #[test]
    fn a_missing_field_is_empty() {
        let none = |_: &str| None;
        let matches = |text: &str| FieldSelector::parse(text).unwrap().matches(none);
        assert!(matches("") && matches("a=") && matches("a!=x"));
        assert!(!matches("a=x") && !matches("a!="));
        assert!(FieldSelector::parse("a=x,b!=y").unwrap().matches(|field| (field == "a").then_some("x")));
    }

    #[test]
    fn the_name_that_is_required_is_known() {
        let required =
            |text: &str| FieldSelector::parse(text).unwrap().required("metadata.name").map(str::to_owned);
        assert_eq!(required("metadata.name=x,a=b"), Some("x".into()));
        assert_eq!(required("metadata.name!=x"), None);
        assert!(FieldSelector::parse(",").unwrap().is_everything());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(crate::cases(512)))]

        #[test]
        fn any_text_is_read_or_refused(text in any::<String>()) {
            let _ = FieldSelector::parse(&text);
        }

        #[test]
        fn what_is_read_prints_to_what_reads_the_same(text in r"([a-c!]{0,2}(=|==|!=)([a-c]|\\,|\\=|\\\\|\\){0,3},?){0,4}") {
            if let Ok(selector) = FieldSelector::parse(&text) {
                let printed = selector.to_string();
                prop_assert!(printed.len() <= text.len());
                let again = FieldSelector::parse(&printed).unwrap();
                let sorted = |selector: FieldSelector| {
                    let mut terms = selector.terms;
                    terms.sort_by(|one, other| (&one.field, &one.value, one.is_equal).cmp(&(&other.field, &other.value, other.is_equal)));
                    terms
                };
                prop_assert_eq!(sorted(again), sorted(selector), "{}", printed);
            }
        }
    }
}
