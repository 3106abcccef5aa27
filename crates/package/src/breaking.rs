use std::collections::BTreeMap;

use serde_json::Value;

use crate::definition::Definition;
use crate::lint::{Finding, Severity};

/// What would break for those who have objects of an earlier definition: fields that are gone or narrower, fields that are newly required,
/// versions that are no longer served.
///
/// Adding is compatible: fields that are optional, versions, values of an enumeration, wider limits.
pub fn breaking(before: &Definition<'_>, after: &Definition<'_>) -> Vec<Finding> {
    let mut found = Changes { definition: after.name.to_owned(), found: Vec::new() };
    for (field, old, new) in [
        ("spec.names.kind", before.kind, after.kind),
        ("spec.names.plural", before.plural, after.plural),
        ("spec.group", before.group, after.group),
    ] {
        if old != new {
            found.add(field, format!("was {old} and is {new}: clients ask for the old name"));
        }
    }
    if before.namespaced != after.namespaced {
        found.add("spec.scope", "it cannot be changed once there are objects: make another kind".to_owned());
    }
    let served: BTreeMap<&str, _> = after
        .versions()
        .filter(|version| version.is("served"))
        .map(|version| (version.name, version))
        .collect();
    for old in before.versions().filter(|version| version.is("served")) {
        let Some(new) = served.get(old.name) else {
            found.add(
                "spec.versions",
                format!("version {} is no longer served: serve it until no client asks for it", old.name),
            );
            continue;
        };
        found.definition = format!("{} {}", after.name, old.name);
        if let (Some(old), Some(new)) = (old.schema(), new.schema()) {
            found.compare("", old, new);
        }
        for part in ["status", "scale"] {
            let has = |value: &Value| value.pointer(&format!("/subresources/{part}")).is_some();
            if has(old.value) && !has(new.value) {
                found.add("", format!("the subresource {part} is gone"));
            }
        }
    }
    found.found
}

struct Changes {
    definition: String,
    found: Vec<Finding>,
}

impl Changes {
    fn add(&mut self, field: &str, message: String) {
        let (definition, field) = (self.definition.clone(), field.to_owned());
        self.found.push(Finding { severity: Severity::Error, definition, field, message });
    }

    /// Compares the schemas of a field before and after.
    fn compare(&mut self, path: &str, old: &Value, new: &Value) {
        let inside = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        if !self.same_type(path, old, new) {
            return;
        }
        self.limits(path, old, new);
        let fields =
            |schema: &Value| schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
        let (before, after) = (fields(old), fields(new));
        let keeps_all = new.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true));
        for (name, old) in &before {
            match after.get(name) {
                Some(new) => self.compare(&inside(name), old, new),
                None if keeps_all || new.get("additionalProperties").is_some() => {}
                None => self
                    .add(&inside(name), "the field is gone: what objects have in it is dropped".to_owned()),
            }
        }
        let required = |schema: &Value| -> Vec<String> {
            let names = schema.get("required").and_then(Value::as_array).into_iter().flatten();
            names.filter_map(|name| Some(name.as_str()?.to_owned())).collect()
        };
        let was = required(old);
        for name in required(new) {
            let has_default = after.get(&name).is_some_and(|schema| schema.get("default").is_some());
            if !was.contains(&name) && !has_default {
                self.add(
                    &inside(&name),
                    "it is newly required: objects without it can no longer be written; give it a default"
                        .to_owned(),
                );
            }
        }
        for (key, mark) in [("items", "[]"), ("additionalProperties", "{}")] {
            if let (Some(old), Some(new)) = (old.get(key), new.get(key)) {
                self.compare(&format!("{path}{mark}"), old, new);
            }
        }
    }

    fn same_type(&mut self, path: &str, old: &Value, new: &Value) -> bool {
        let of = |schema: &Value| schema.get("type").and_then(Value::as_str).unwrap_or("any").to_owned();
        let (was, is) = (of(old), of(new));
        let widened = (was == "integer" && is == "number") || is == "any";
        if was != is && !widened {
            self.add(path, format!("its type was {was} and is {is}"));
            return false;
        }
        let may_be_null = |schema: &Value| schema.get("nullable") == Some(&Value::Bool(true));
        if may_be_null(old) && !may_be_null(new) {
            self.add(path, "it may no longer be null".to_owned());
        }
        true
    }

    fn limits(&mut self, path: &str, old: &Value, new: &Value) {
        for (key, is_upper) in [
            ("maximum", true),
            ("maxLength", true),
            ("maxItems", true),
            ("maxProperties", true),
            ("minimum", false),
            ("minLength", false),
            ("minItems", false),
            ("minProperties", false),
        ] {
            let number = |schema: &Value| schema.get(key).and_then(Value::as_f64);
            let narrower = match (number(old), number(new)) {
                (_, None) => false,
                // A lower limit of nothing is none.
                (None, Some(limit)) => is_upper || limit > 0.0 || key == "minimum",
                (Some(was), Some(is)) => {
                    if is_upper {
                        is < was
                    } else {
                        is > was
                    }
                }
            };
            if narrower {
                let was = old.get(key).map_or_else(|| "not limited".to_owned(), Value::to_string);
                let is = new.get(key).map(Value::to_string).unwrap_or_default();
                self.add(path, format!("its {key} was {was} and is {is}: objects may be outside of it"));
            }
        }
        if let Some(pattern) = new.get("pattern").filter(|pattern| old.get("pattern") != Some(*pattern)) {
            self.add(path, format!("it has to match another pattern, {pattern}: objects may not"));
        }
        let values = |schema: &Value| schema.get("enum").and_then(Value::as_array).cloned();
        match (values(old), values(new)) {
            (None, Some(_)) => {
                self.add(path, "it is newly an enumeration: objects may have other values".to_owned());
            }
            (Some(was), Some(is)) => {
                for value in was.iter().filter(|value| !is.contains(value)) {
                    self.add(path, format!("the value {value} is gone"));
                }
            }
            _ => {}
        }
        let rules = |schema: &Value| {
            schema.get("x-kubernetes-validations").and_then(Value::as_array).cloned().unwrap_or_default()
        };
        let was: Vec<Value> = rules(old).iter().filter_map(|rule| rule.get("rule").cloned()).collect();
        for rule in rules(new).iter().filter_map(|rule| rule.get("rule")) {
            if !was.contains(rule) {
                self.add(path, format!("there is a new rule, {rule}: objects may break it"));
            }
        }
    }
}
