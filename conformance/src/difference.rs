//! Where two JSON values differ, in words.

use serde_json::Value;

/// The places at which `got` is not what was `expected`, each as one line.
pub fn differences(expected: &Value, got: &Value) -> Vec<String> {
    let mut found = Vec::new();
    descend("", Some(expected), Some(got), &mut found);
    found
}

fn descend(path: &str, expected: Option<&Value>, got: Option<&Value>, found: &mut Vec<String>) {
    let at = |name: &dyn std::fmt::Display| {
        if path.is_empty() { name.to_string() } else { format!("{path}.{name}") }
    };
    match (expected, got) {
        (Some(Value::Object(left)), Some(Value::Object(right))) => {
            let missing = left.keys();
            let surplus = right.keys().filter(|name| !left.contains_key(*name));
            for name in missing.chain(surplus) {
                descend(&at(name), left.get(name), right.get(name), found);
            }
        }
        (Some(Value::Array(left)), Some(Value::Array(right))) => {
            for index in 0..left.len().max(right.len()) {
                descend(&at(&index), left.get(index), right.get(index), found);
            }
        }
        (expected, got) if expected == got => {}
        (expected, got) => found.push(format!("{path}: expected {}, got {}", shown(expected), shown(got))),
    }
}

fn shown(value: Option<&Value>) -> String {
    const LONGEST: usize = 400;
    let text = value.map_or_else(|| "nothing".to_owned(), Value::to_string);
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}... ({} bytes)", &text[..end], text.len()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_place_that_differs_is_named() {
        let expected = json!({"a": 1, "b": {"c": [1, 2]}, "d": null});
        let got = json!({"a": 1, "b": {"c": [1, 3, 4]}, "e": "x"});
        assert_eq!(
            differences(&expected, &got),
            [
                "b.c.1: expected 2, got 3",
                "b.c.2: expected nothing, got 4",
                "d: expected null, got nothing",
                "e: expected nothing, got \"x\"",
            ]
        );
        assert!(differences(&expected, &expected).is_empty());
    }
}
