//! Label selectors and label sets as text.

use serde_json::Value;
use watchkeeper_wire::LabelSelector;

/// A set of labels: `a=1,b=2`, or `<none>`.
pub fn labels(labels: &Value) -> String {
    let pairs: Vec<String> = pairs(labels).map(|(key, value)| format!("{key}={value}")).collect();
    if pairs.is_empty() { "<none>".into() } else { pairs.join(",") }
}

/// A label selector: `app=web,tier in (a,b)`, `<none>` if it has no requirements, `<error>` if it is not valid.
pub fn shown(selector: &Value) -> String {
    match text(selector) {
        None => "<error>".into(),
        Some(text) if text.is_empty() => "<none>".into(),
        Some(text) => text,
    }
}

/// A label selector in the syntax of queries, its requirements ordered by key. `None` if it is not valid.
pub fn text(selector: &Value) -> Option<String> {
    LabelSelector::from_object(Some(selector)).ok().map(|selector| selector.to_string())
}

fn pairs(labels: &Value) -> impl Iterator<Item = (&str, &str)> {
    let entries = labels.as_object().into_iter().flatten();
    entries.map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()))
}
