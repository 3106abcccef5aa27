use std::collections::BTreeMap;

use serde_json::Value;

use crate::definition::Definition;
use crate::lint::{Finding, Severity};

/// Finds incompatible changes between two versions of a definition: fields that are gone or narrower, fields that are newly required,
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
        self.values(path, old, new);
        self.rules(path, old, new);
        self.merging(path, old, new);
        self.open(path, old, new);
        let fields =
            |schema: &Value| schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
        let (before, after) = (fields(old), fields(new));
        for (name, old) in &before {
            match after.get(name) {
                Some(new) => self.compare(&inside(name), old, new),
                None if keeps_all(new) || takes_any_name(new) => {}
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
        for (key, exclusive) in [("maximum", "exclusiveMaximum"), ("minimum", "exclusiveMinimum")] {
            // A limit that is newly excluded or moved as well is told once, as a limit.
            if is_true(new, exclusive) && !is_true(old, exclusive) && old.get(key) == new.get(key) {
                self.add(path, format!("its {key} is newly excluded: objects may have it"));
            }
        }
        let factor = |schema: &Value| schema.get("multipleOf").and_then(Value::as_f64);
        if let Some(is) = factor(new)
            // What is a multiple of 10 is one of 5.
            && factor(old).is_none_or(|was| is != 0.0 && was % is != 0.0)
        {
            self.add(path, format!("it has to be a multiple of {is}: objects may have other values"));
        }
    }

    /// What values of a type may be.
    fn values(&mut self, path: &str, old: &Value, new: &Value) {
        let format = |schema: &Value| schema.get("format").and_then(Value::as_str).map(str::to_owned);
        if let Some(is) = format(new) {
            let was = format(old);
            let widened =
                matches!((was.as_deref(), is.as_str()), (Some("int32"), "int64") | (Some("float"), "double"));
            if was.as_ref() != Some(&is) && !widened {
                let was = was.unwrap_or_else(|| "any".to_owned());
                self.add(path, format!("its format was {was} and is {is}: objects may have another"));
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
    }

    /// What else has to hold for a value.
    fn rules(&mut self, path: &str, old: &Value, new: &Value) {
        let list = |schema: &Value, key: &str| schema.get(key).and_then(Value::as_array).cloned();
        for key in ["oneOf", "anyOf", "allOf", "not"] {
            let (was, Some(is)) = (old.get(key), new.get(key)) else { continue };
            let wider = match (key, list(old, key), list(new, key)) {
                // More alternatives, or fewer conditions.
                ("anyOf", Some(was), Some(is)) => was.iter().all(|one| is.contains(one)),
                ("allOf", Some(was), Some(is)) => is.iter().all(|one| was.contains(one)),
                _ => was == Some(is),
            };
            if !wider {
                self.add(path, format!("{key} is new or another: objects may not be of that form"));
            }
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

    /// How lists and maps of several writers become one.
    fn merging(&mut self, path: &str, old: &Value, new: &Value) {
        for (key, default) in [("x-kubernetes-list-type", "atomic"), ("x-kubernetes-map-type", "granular")] {
            let of = |schema: &Value| schema.get(key).and_then(Value::as_str).unwrap_or(default).to_owned();
            let (was, is) = (of(old), of(new));
            if was != is {
                let what = if is == "atomic" {
                    "who applies a part of it takes all of it from others"
                } else {
                    "objects may have items twice, and fields may have other owners"
                };
                self.add(path, format!("its {key} was {was} and is {is}: {what}"));
            }
        }
        let keys = |schema: &Value| schema.get("x-kubernetes-list-map-keys").cloned();
        if let (Some(was), Some(is)) = (keys(old), keys(new))
            && was != is
        {
            self.add(
                path,
                format!("the keys of its items were {was} and are {is}: objects may have items twice"),
            );
        }
    }

    /// Whether fields are kept that the schema does not name.
    fn open(&mut self, path: &str, old: &Value, new: &Value) {
        if (keeps_all(old) || takes_any_name(old)) && !keeps_all(new) && !takes_any_name(new) {
            let message = "it no longer takes fields of any name: what objects have in others is dropped";
            self.add(path, message.to_owned());
        }
    }
}

fn is_true(schema: &Value, key: &str) -> bool {
    schema.get(key) == Some(&Value::Bool(true))
}

fn keeps_all(schema: &Value) -> bool {
    is_true(schema, "x-kubernetes-preserve-unknown-fields")
}

fn takes_any_name(schema: &Value) -> bool {
    schema.get("additionalProperties").is_some_and(|values| *values != Value::Bool(false))
}
