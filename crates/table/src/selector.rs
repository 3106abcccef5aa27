//! Label selectors and label sets as text.

use crate::fields::Fields;
use serde_json::Value;

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
    let mut requirements: Vec<(&str, String)> = Vec::new();
    for (key, value) in pairs(selector.at("matchLabels")) {
        if !is_key(key) || !is_value(value) {
            return None;
        }
        requirements.push((key, format!("{key}={value}")));
    }
    for expression in selector.list("matchExpressions") {
        let key = expression.text("key");
        requirements.push((key, requirement(key, expression)?));
    }
    requirements.sort_by_key(|(key, _)| *key);
    let texts: Vec<String> = requirements.into_iter().map(|(_, text)| text).collect();
    Some(texts.join(","))
}

fn requirement(key: &str, expression: &Value) -> Option<String> {
    let mut values: Vec<&str> = expression.list("values").iter().filter_map(Value::as_str).collect();
    if !is_key(key) || !values.iter().all(|value| is_value(value)) {
        return None;
    }
    values.sort_unstable();
    let joined = values.join(",");
    match (expression.text("operator"), values.is_empty()) {
        ("In", false) => Some(format!("{key} in ({joined})")),
        ("NotIn", false) => Some(format!("{key} notin ({joined})")),
        ("Exists", true) => Some(key.into()),
        ("DoesNotExist", true) => Some(format!("!{key}")),
        _ => None,
    }
}

fn pairs(labels: &Value) -> impl Iterator<Item = (&str, &str)> {
    let entries = labels.as_object().into_iter().flatten();
    entries.map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()))
}

/// A label key: a name, perhaps after a DNS subdomain and a slash.
fn is_key(key: &str) -> bool {
    match key.split_once('/') {
        Some((domain, name)) => is_domain(domain) && is_name(name),
        None => is_name(key),
    }
}

fn is_value(value: &str) -> bool {
    value.is_empty() || is_name(value)
}

fn is_name(name: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = name.as_bytes();
    bytes.len() <= 63 && edge(bytes.first()) && edge(bytes.last()) && name.bytes().all(inner)
}

fn is_domain(domain: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let label = |label: &str| {
        !label.is_empty() && !label.starts_with('-') && !label.ends_with('-') && label.bytes().all(inner)
    };
    domain.len() <= 253 && domain.split('.').all(label)
}
