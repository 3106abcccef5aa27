//! Hiding what differs from run to run, and only that.

use std::collections::{HashMap, HashSet};

use regex::Regex;
use serde_json::{Map, Value};

/// Masks the answers of one file, in order.
///
/// What a version or a uid says by being the same as before is kept: `<rv new>` was not seen yet, `<rv latest>` is the one
/// that this object had when it was last seen, `<rv earlier>` one that it had before; a write that should not have
/// happened shows.
#[derive(Debug)]
pub struct Mask {
    namespace: String,
    managed_fields: bool,
    hashes: bool,
    uids: HashSet<String>,
    /// The versions that were seen of each uid, in the order of their first appearance.
    versions: HashMap<String, Vec<String>>,
    texts: Vec<(Regex, &'static str)>,
    uid: Option<Regex>,
    age: Option<Regex>,
}

const TEXTS: &[(&str, &str)] = &[
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z", "<time>"),
    (r"kube-api-access-[a-z0-9]{5}", "kube-api-access-<random>"),
    (r"\bgen-[a-z0-9]{5}\b", "gen-<random>"),
    (r"X509SHA256=[0-9a-f]+", "X509SHA256=<hash>"),
    (r"10\.0\.\d+\.\d+", "<ip>"),
    (r"resource version: (\d+) \(\d+\)", "resource version: $1 (<rv>)"),
    (r"current: \d+", "current: <rv>"),
    (r"in record \(\d+\)", "in record (<rv>)"),
    // Dumps of objects and of the real server's own structures: nobody parses them, and nobody else has them.
    (r#"(?s)Invalid value: "\{.*\}": "#, r#"Invalid value: "<object>": "#),
    (r#"Invalid value: \[?\{"[A-Z].*?\}\]?: "#, "Invalid value: <structure>: "),
    (r"(?s)pod updates may not change fields.*", "pod updates may not change fields..."),
    (r#"in scheme "[^"]*""#, "in scheme <scheme>"),
    (r#"resourceVersion: "\d+""#, r#"resourceVersion: "<rv>""#),
    (r#""resourceVersion": ?"\d+""#, r#""resourceVersion":"<rv>""#),
    (r"\?hash=[0-9A-F]+", "?hash=<hash>"),
    (r"https://127\.0\.0\.1:\d+", "<server>"),
    (r"eyJ[A-Za-z0-9_-]+\.eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+", "<token>"),
];

impl Mask {
    /// A mask for answers about this namespace, with the managed fields of objects or without.
    pub fn new(namespace: &str, managed_fields: bool) -> Self {
        let texts =
            TEXTS.iter().filter_map(|(pattern, word)| Some((Regex::new(pattern).ok()?, *word))).collect();
        let uid = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";
        Self {
            namespace: namespace.to_owned(),
            managed_fields,
            hashes: false,
            uids: HashSet::new(),
            versions: HashMap::new(),
            texts,
            uid: Regex::new(uid).ok(),
            age: Regex::new(r"^(?:\d+[smhdy])+$").ok(),
        }
    }

    /// The same with the hashes of storage versions.
    #[must_use]
    pub fn keeping_hashes(self, hashes: bool) -> Self {
        Self { hashes, ..self }
    }

    /// A document that is not JSON, line by line.
    pub fn lines(&mut self, text: &str) -> String {
        let mut within = false;
        let mut kept = String::new();
        for line in text.split_inclusive('\n') {
            // The managed fields of an object in YAML: a list as far in as its name.
            within = line.trim_end() == "  managedFields:"
                || (within && (line.starts_with("  -") || line.starts_with("   ")));
            if self.managed_fields || !within {
                kept.push_str(line);
            }
        }
        self.text(&kept)
    }

    /// A text with times, uids and addresses hidden.
    pub fn text(&mut self, text: &str) -> String {
        let mut masked = text.replace(&self.namespace, "{namespace}");
        for (pattern, word) in &self.texts {
            masked = pattern.replace_all(&masked, *word).into_owned();
        }
        if let Some(pattern) = &self.uid {
            let uids = &mut self.uids;
            masked =
                pattern.replace_all(&masked, |found: &regex::Captures<'_>| uid(uids, &found[0])).into_owned();
        }
        masked
    }

    /// A JSON value with everything hidden that differs from run to run.
    pub fn json(&mut self, value: &mut Value) {
        match value {
            Value::Object(fields) => self.object(fields),
            Value::Array(items) => items.iter_mut().for_each(|item| self.json(item)),
            Value::String(text) if self.age.as_ref().is_some_and(|age| age.is_match(text)) => {
                *text = "<age>".to_owned();
            }
            Value::String(text) => *text = self.text(text),
            _ => {}
        }
    }

    fn object(&mut self, fields: &mut Map<String, Value>) {
        let object = fields.get("uid").and_then(Value::as_str).map(str::to_owned);
        let is_object = object.is_some();
        if is_object && !self.managed_fields {
            fields.remove("managedFields");
        }
        if fields.contains_key("generateName") && is_object {
            fields.insert("name".to_owned(), "<generated>".into());
        }
        // In the order of their names, so that numbers are given in the same order on every server.
        let mut names: Vec<String> = fields.keys().cloned().collect();
        names.sort_unstable();
        for name in names {
            let Some(value) = fields.get_mut(&name) else {
                continue;
            };
            match (name.as_str(), &mut *value) {
                ("resourceVersion", Value::String(text))
                    if text.parse::<u64>().is_ok_and(|version| version > 0) =>
                {
                    *text = match &object {
                        Some(object) => version(self.versions.entry(object.clone()).or_default(), text),
                        None => "<rv>".to_owned(),
                    };
                }
                ("storageVersionHash", Value::String(text)) if !self.hashes => *text = "<hash>".to_owned(),
                ("serverAddress", Value::String(text)) => *text = "<address>".to_owned(),
                // Not ours to keep.
                ("description", Value::String(text)) if !text.is_empty() => {
                    *text = "<description>".to_owned();
                }
                ("continue", Value::String(text)) if !text.is_empty() => *text = "<continue>".to_owned(),
                ("nodePort", Value::Number(port)) if port.as_u64() > Some(0) => {
                    *value = "<port>".into();
                }
                _ => self.json(value),
            }
        }
    }

    /// The form of a value: names and types down to a depth, without the values.
    pub fn structure(value: &Value, depth: usize) -> Value {
        match value {
            Value::Object(fields) if depth > 0 => fields
                .iter()
                .map(|(name, value)| (name.clone(), Self::structure(value, depth - 1)))
                .collect::<Map<_, _>>()
                .into(),
            Value::Object(_) => "object".into(),
            Value::Array(_) => "array".into(),
            Value::String(_) => "string".into(),
            Value::Number(_) => "number".into(),
            Value::Bool(_) => "boolean".into(),
            Value::Null => Value::Null,
        }
    }
}

fn uid(seen: &mut HashSet<String>, text: &str) -> String {
    if seen.insert(text.to_owned()) { "<uid new>" } else { "<uid>" }.to_owned()
}

fn version(seen: &mut Vec<String>, text: &str) -> String {
    match seen.iter().position(|version| version == text) {
        Some(place) if place + 1 == seen.len() => "<rv latest>",
        Some(_) => "<rv earlier>",
        None => {
            seen.push(text.to_owned());
            "<rv new>"
        }
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn identities_stay_and_values_go() {
        let mut mask = Mask::new("here", false);
        let object = |version: &str| {
            json!({"metadata": {"uid": "0a8f9b1c-0000-4000-8000-00000000000a", "resourceVersion": version,
                "creationTimestamp": "2026-01-02T03:04:05Z", "namespace": "here", "name": "a"}})
        };
        let mut answers = ["17", "17", "23", "17", "23"].map(object);
        answers.iter_mut().for_each(|answer| mask.json(answer));
        let field = |answer: usize, name: &str| answers[answer]["metadata"][name].clone();
        let versions: Vec<_> = (0..5).map(|answer| field(answer, "resourceVersion")).collect();
        assert_eq!(versions, ["<rv new>", "<rv latest>", "<rv new>", "<rv earlier>", "<rv latest>"]);
        assert_eq!([field(0, "uid"), field(1, "uid")], ["<uid new>", "<uid>"]);
        assert_eq!(answers[0]["metadata"]["namespace"], "{namespace}");
        assert_eq!(answers[0]["metadata"]["creationTimestamp"], "<time>");
    }

    #[test]
    fn the_version_of_a_list_is_only_hidden() {
        let mut list = json!({"metadata": {"resourceVersion": "17", "continue": "abc"}, "items": []});
        Mask::new("here", false).json(&mut list);
        assert_eq!(
            list,
            json!({"metadata": {"resourceVersion": "<rv>", "continue": "<continue>"}, "items": []})
        );
    }

    #[test]
    fn managed_fields_are_left_out_of_yaml_too() {
        let text = "metadata:\n  managedFields:\n  - manager: x\n    time: now\n  name: a\n";
        assert_eq!(Mask::new("here", false).lines(text), "metadata:\n  name: a\n");
        assert_eq!(Mask::new("here", true).lines(text), text);
    }

    #[test]
    fn a_structure_has_names_and_types() {
        let value = json!({"a": {"b": 1, "c": {"d": 2}}, "e": []});
        assert_eq!(Mask::structure(&value, 2), json!({"a": {"b": "number", "c": "object"}, "e": "array"}));
    }
}
