//! Where two JSON values differ, in words.

use serde_json::Value;

/// The places at which `got` is not what was `expected`, each as one line.
pub fn differences(expected: &Value, got: &Value) -> Vec<String> {
    let mut found = Vec::new();
    descend("", Some(&by_manager(expected)), Some(&by_manager(got)), &mut found);
    found
}

/// The same with the entries of managedFields in the order of their managers. Servers sort them by time first, which is the same for
/// requests within one second and otherwise is not.
fn by_manager(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(by_manager).collect(),
        Value::Object(fields) => {
            let sorted = |(name, value): (&String, &Value)| {
                let mut value = by_manager(value);
                if let ("managedFields", Value::Array(entries)) = (name.as_str(), &mut value) {
                    let text =
                        |entry: &Value, field: &str| entry[field].as_str().unwrap_or_default().to_owned();
                    entries.sort_by_cached_key(|entry| {
                        ["operation", "manager", "subresource"].map(|field| text(entry, field))
                    });
                }
                (name.clone(), value)
            };
            Value::Object(fields.iter().map(sorted).collect())
        }
        other => other.clone(),
    }
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
    fn the_order_of_managers_does_not_matter() {
        let managers =
            |names: [&str; 2]| json!({"managedFields": names.map(|name| json!({"manager": name}))});
        assert_eq!(differences(&managers(["a", "b"]), &managers(["b", "a"])), Vec::<String>::new());
        assert_eq!(differences(&managers(["a", "b"]), &managers(["b", "c"])).len(), 2);
    }

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
