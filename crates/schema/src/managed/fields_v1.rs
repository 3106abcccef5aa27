use super::element::PathElement;
use super::set::{Entry, FieldSet};
use serde_json::{Map, Value};
use watchkeeper_go as go;

impl FieldSet {
    /// Reads the value of `fieldsV1`. Kinds of elements that are not known are ignored; the error is a text for people.
    pub fn from_json(fields: &Value) -> Result<Self, String> {
        read(fields).map(|(set, _)| set)
    }

    /// The value of `fieldsV1`.
    pub fn to_json(&self) -> Value {
        Value::Object(self.to_fields(false))
    }

    fn to_fields(&self, is_member: bool) -> Map<String, Value> {
        let mut fields = Map::new();
        if is_member && !self.is_empty() {
            fields.insert(".".into(), Value::Object(Map::new()));
        }
        for entry in self.entries() {
            fields.insert(write_element(&entry.element), Value::Object(entry.below.to_fields(entry.member)));
        }
        fields
    }
}

/// The set below a place, and whether the place itself is a member: it is if it says so, or if there is nothing below.
fn read(value: &Value) -> Result<(FieldSet, bool), String> {
    let fields = match value {
        Value::Object(fields) => fields,
        Value::Null => return Ok((FieldSet::new(), true)),
        other => return Err(format!("expected an object, got {}", go::fmt::reflected_type(other))),
    };
    let mut entries = Vec::with_capacity(fields.len());
    let mut is_member = false;
    for (name, below) in fields {
        if name == "." {
            is_member = true;
        } else if let Some(element) = read_element(name)? {
            let (below, member) = read(below)?;
            entries.push(Entry { element, member, below });
        }
    }
    let set = FieldSet::from_entries(entries);
    let is_member = is_member || set.is_empty();
    Ok((set, is_member))
}

fn read_element(text: &str) -> Result<Option<PathElement>, String> {
    let bytes = text.as_bytes();
    if bytes.len() < 2 {
        return Err("key must be 2 characters long:".into());
    }
    if bytes[1] != b':' {
        return Err(format!("missing colon: {text}"));
    }
    let (kind, rest) = text.split_at(2);
    let json = || serde_json::from_str::<Value>(rest).map_err(|error| error.to_string());
    Ok(Some(match kind {
        "f:" => PathElement::Field(rest.into()),
        "v:" => PathElement::Value(json()?),
        "k:" => {
            let Value::Object(fields) = json()? else {
                return Err(format!("expected an object: {text}"));
            };
            let mut key: Vec<_> =
                fields.into_iter().map(|(name, value)| (name.into_boxed_str(), value)).collect();
            key.sort_by(|(left, _), (right, _)| left.cmp(right));
            PathElement::Key(key)
        }
        "i:" => PathElement::Index(rest.parse().map_err(|_| format!("not an index: {text}"))?),
        _ => return Ok(None),
    }))
}

fn write_element(element: &PathElement) -> String {
    match element {
        PathElement::Field(name) => ["f:", name].concat(),
        PathElement::Key(fields) => {
            let fields: Map<String, Value> =
                fields.iter().map(|(name, value)| (name.to_string(), value.clone())).collect();
            format!("k:{}", go::json::encode(&Value::Object(fields)))
        }
        PathElement::Value(value) => format!("v:{}", go::json::encode(value)),
        PathElement::Index(index) => format!("i:{index}"),
    }
}
