use super::label_syntax;
use crate::field::{FieldError, Path};
use crate::names::{label_key_problems, label_value_problems};
use serde_json::{Map, Value};
use std::fmt;
use watchkeeper_go::quote;

/// A choice among objects by their labels: all of its requirements must hold.
///
/// Prints in the syntax it is parsed from, requirements by key and values in order, and parses back to itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector {
    requirements: Vec<Requirement>,
    is_nothing: bool,
}

/// One requirement of a label selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    key: String,
    operator: Operator,
    values: Vec<String>,
}

/// The relation of a label to the values of a requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `a in (x,y)`
    In,
    /// `a notin (x,y)`: also if there is no such label.
    NotIn,
    /// `a=x`
    Equals,
    /// `a==x`
    DoubleEquals,
    /// `a!=x`: also if there is no such label.
    NotEquals,
    /// `a`
    Exists,
    /// `!a`
    DoesNotExist,
    /// `a>5`: both sides are integers.
    GreaterThan,
    /// `a<5`
    LessThan,
}

impl LabelSelector {
    /// Parses `a=b,c!=d,e in (x,y),f notin (z),g,!h,i>5`. The error is the message for the client.
    pub fn parse(text: &str) -> Result<Self, String> {
        Ok(Self::of(label_syntax::parse(text)?))
    }

    /// Reads a `LabelSelector` object: `matchLabels` and `matchExpressions`. No selector at all selects nothing, an empty
    /// one everything. Fields of another type than they should have count as missing.
    pub fn from_object(object: Option<&Value>) -> Result<Self, String> {
        let Some(Value::Object(object)) = object else {
            return Ok(Self::nothing());
        };
        let mut requirements = Vec::new();
        for (key, value) in object.get("matchLabels").and_then(Value::as_object).into_iter().flatten() {
            let values = vec![text_of(Some(value))];
            requirements.push(Requirement::new(key.clone(), Operator::Equals, values)?);
        }
        for expression in object.get("matchExpressions").and_then(Value::as_array).into_iter().flatten() {
            requirements.push(Requirement::from_object(expression)?);
        }
        Ok(Self::of(requirements))
    }

    /// Selects no object at all.
    pub fn nothing() -> Self {
        Self { requirements: Vec::new(), is_nothing: true }
    }

    fn of(mut requirements: Vec<Requirement>) -> Self {
        requirements.sort_by(|one, other| one.key.cmp(&other.key));
        Self { requirements, is_nothing: false }
    }

    /// Whether every object is selected, whatever its labels.
    pub fn is_everything(&self) -> bool {
        self.requirements.is_empty() && !self.is_nothing
    }

    /// The labels that every selected object has.
    pub fn required(&self) -> impl Iterator<Item = (&str, &str)> {
        self.requirements.iter().filter_map(|requirement| {
            match (requirement.operator, &*requirement.values) {
                (Operator::In | Operator::Equals | Operator::DoubleEquals, [value]) => {
                    Some((requirement.key.as_str(), value.as_str()))
                }
                _ => None,
            }
        })
    }

    /// Whether an object with `labels` is selected.
    pub fn matches(&self, labels: Option<&Map<String, Value>>) -> bool {
        self.matches_pairs(|key| labels?.get(key)?.as_str())
    }

    /// Whether an object is selected whose labels `value_of` knows.
    pub fn matches_pairs<'a>(&self, value_of: impl Fn(&str) -> Option<&'a str>) -> bool {
        let met = |requirement: &Requirement| requirement.is_met_by(value_of(&requirement.key));
        !self.is_nothing && self.requirements.iter().all(met)
    }
}

impl Requirement {
    /// A requirement whose key and values are well-formed and fit the operator.
    pub(super) fn new(key: String, operator: Operator, values: Vec<String>) -> Result<Self, String> {
        let mut errors = Vec::new();
        let of_key = label_key_problems(&key);
        if !of_key.is_empty() {
            errors.push(FieldError::invalid(&Path::root().child("key"), key.as_str(), of_key.join("; ")));
        }
        let at = Path::root().child("values");
        match operator {
            Operator::In | Operator::NotIn if values.is_empty() => {
                let rule = "for 'in', 'notin' operators, values set can't be empty";
                errors.push(FieldError::invalid(&at, Value::Null, rule));
            }
            Operator::Exists | Operator::DoesNotExist if !values.is_empty() => {
                let rule = "values set must be empty for exists and does not exist";
                errors.push(FieldError::invalid(&at, values.clone(), rule));
            }
            Operator::GreaterThan | Operator::LessThan => {
                for (index, value) in values.iter().enumerate().filter(|(_, value)| integer(value).is_none())
                {
                    let rule = "for 'Gt', 'Lt' operators, the value must be an integer";
                    errors.push(FieldError::invalid(&at.index(index), value.as_str(), rule));
                }
            }
            _ => {}
        }
        for (index, value) in values.iter().enumerate() {
            let problems = label_value_problems(value);
            if !problems.is_empty() {
                let at = at.index(index).key(&key);
                errors.push(FieldError::invalid(&at, value.as_str(), problems.join("; ")));
            }
        }
        match errors.as_slice() {
            [] => Ok(Self { key, operator, values }),
            [error] => Err(error.to_string()),
            errors => {
                let texts: Vec<String> = errors.iter().map(FieldError::to_string).collect();
                Err(format!("[{}]", texts.join(", ")))
            }
        }
    }

    fn from_object(expression: &Value) -> Result<Self, String> {
        let operator = match expression["operator"].as_str() {
            Some("In") => Operator::In,
            Some("NotIn") => Operator::NotIn,
            Some("Exists") => Operator::Exists,
            Some("DoesNotExist") => Operator::DoesNotExist,
            other => {
                let other = quote(other.unwrap_or_default());
                return Err(format!("{other} is not a valid label selector operator"));
            }
        };
        let values = expression["values"].as_array().into_iter().flatten();
        let values = values.map(|value| text_of(Some(value))).collect();
        Self::new(text_of(expression.get("key")), operator, values)
    }

    fn is_met_by(&self, label: Option<&str>) -> bool {
        let is_listed = |label: &str| self.values.iter().any(|value| value == label);
        let compares = |holds: fn(&i64, &i64) -> bool| {
            let value = self.values.first().and_then(|value| integer(value));
            let label = label.and_then(integer);
            label.zip(value).is_some_and(|(label, value)| holds(&label, &value))
        };
        match self.operator {
            Operator::In | Operator::Equals | Operator::DoubleEquals => label.is_some_and(is_listed),
            Operator::NotIn | Operator::NotEquals => !label.is_some_and(is_listed),
            Operator::Exists => label.is_some(),
            Operator::DoesNotExist => label.is_none(),
            Operator::GreaterThan => compares(i64::gt),
            Operator::LessThan => compares(i64::lt),
        }
    }
}

fn text_of(value: Option<&Value>) -> String {
    value.and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn integer(text: &str) -> Option<i64> {
    text.parse().ok()
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, requirement) in self.requirements.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{requirement}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut values: Vec<&str> = self.values.iter().map(String::as_str).collect();
        values.sort_unstable();
        let (key, values) = (&self.key, values.join(","));
        match self.operator {
            Operator::In => write!(f, "{key} in ({values})"),
            Operator::NotIn => write!(f, "{key} notin ({values})"),
            Operator::Equals => write!(f, "{key}={values}"),
            Operator::DoubleEquals => write!(f, "{key}=={values}"),
            Operator::NotEquals => write!(f, "{key}!={values}"),
            Operator::Exists => write!(f, "{key}"),
            Operator::DoesNotExist => write!(f, "!{key}"),
            Operator::GreaterThan => write!(f, "{key}>{values}"),
            Operator::LessThan => write!(f, "{key}<{values}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded;
    use proptest::prelude::*;
    use serde_json::json;

    fn check(case: &Value, parsed: Result<LabelSelector, String>) {
        let samples = json!([
            {}, {"a": "b"}, {"a": "x", "c": "d"}, {"e": "x", "f": "z", "g": ""}, {"n": "5", "h": "1"},
            {"n": "12", "a": ""}, {"n": "x", "app.kubernetes.io/name": "web"},
        ]);
        match parsed {
            Err(message) => assert_eq!(case["error"], message, "{case}"),
            Ok(selector) => {
                assert_eq!(case["error"], Value::Null, "{case}");
                assert_eq!(case["out"], selector.to_string(), "{case}");
                for (labels, matches) in
                    samples.as_array().unwrap().iter().zip(case["matches"].as_array().unwrap())
                {
                    assert_eq!(*matches, selector.matches(labels.as_object()), "{case} on {labels}");
                }
            }
        }
    }

    #[test]
    fn texts_are_understood_and_refused_as_go_does() {
        for case in recorded(include_str!("../cases/label_selectors.jsonl")) {
            check(&case, LabelSelector::parse(case["in"].as_str().unwrap()));
        }
    }

    #[test]
    fn objects_are_understood_and_refused_as_go_does() {
        for case in recorded(include_str!("../cases/label_selector_objects.jsonl")) {
            check(&case, LabelSelector::from_object(Some(&case["in"])));
        }
        assert!(!LabelSelector::from_object(None).unwrap().matches(None));
    }

    #[test]
    fn an_object_without_labels_is_selected_by_what_asks_for_none() {
        for (text, selected) in
            [("", true), ("!a", true), ("a!=b", true), ("a notin (b)", true), ("a", false)]
        {
            assert_eq!(LabelSelector::parse(text).unwrap().matches(None), selected, "{text}");
        }
        assert!(LabelSelector::parse(" ").unwrap().is_everything());
        assert!(!LabelSelector::parse("a").unwrap().is_everything());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(crate::cases(512)))]

        #[test]
        fn any_text_is_read_or_refused(text in any::<String>()) {
            let _ = LabelSelector::parse(&text);
        }

        #[test]
        fn what_is_read_prints_to_what_reads_the_same(text in "(!?[a-c/]{1,3}( in | notin |=|==|!=|>|<|)[(]?[a-c0-9,]{0,4}[)]?,?){0,4}") {
            if let Ok(selector) = LabelSelector::parse(&text) {
                let printed = selector.to_string();
                prop_assert!(printed.len() <= 4 * text.len());
                prop_assert_eq!(LabelSelector::parse(&printed), Ok(selector), "{}", printed);
            }
        }
    }
}
