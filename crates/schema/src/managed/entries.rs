use super::set::FieldSet;
use crate::Error;
use crate::json::MAX_DEPTH;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use watchkeeper_go as go;

/// The operation by which fields came to be owned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// By server-side apply: what is no longer applied is removed.
    Apply,
    /// By create, update or patch.
    Update,
}

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// One entry of `metadata.managedFields`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The manager.
    pub manager: String,
    /// The operation by which the fields came to be owned.
    pub operation: Operation,
    /// The version the fields are recorded in.
    pub api_version: String,
    /// The time of the manager's last change.
    pub time: Option<String>,
    /// The fields that it owns.
    pub fields: FieldSet,
    /// The subresource it was done through; empty for the resource itself.
    pub subresource: String,
}

/// `metadata.managedFields`: who owns what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ManagedFields {
    /// By what makes an entry another: manager, operation and subresource, and for updates the version, as the JSON that
    /// Kubernetes sorts them by.
    entries: BTreeMap<String, Entry>,
}

impl Entry {
    pub(super) fn id(&self) -> String {
        let mut id = String::with_capacity(96);
        id.push('{');
        let mut field = |name: &str, value: &str| {
            if !value.is_empty() {
                if id.len() > 1 {
                    id.push(',');
                }
                id.extend(["\"", name, "\":"]);
                go::json::write_string(&mut id, value);
            }
        };
        field("manager", &self.manager);
        field("operation", self.operation.name());
        if self.operation == Operation::Update {
            field("apiVersion", &self.api_version);
        }
        field("subresource", &self.subresource);
        id.push('}');
        id
    }

    fn to_json(&self) -> Value {
        let mut entry = Map::new();
        let mut field = |name: &str, value: &str| {
            if !value.is_empty() {
                entry.insert(name.into(), value.into());
            }
        };
        field("apiVersion", &self.api_version);
        field("fieldsType", "FieldsV1");
        field("manager", &self.manager);
        field("operation", self.operation.name());
        field("subresource", &self.subresource);
        field("time", self.time.as_deref().unwrap_or_default());
        entry.insert("fieldsV1".into(), self.fields.to_json());
        Value::Object(entry)
    }

    /// In the order they are written: appliers first, then by time.
    fn order(&self) -> (Operation, &str, &str, &str, &str) {
        let time = self.time.as_deref().unwrap_or("1970-01-01T00:00:00Z");
        (self.operation, time, &self.manager, &self.api_version, &self.subresource)
    }
}

impl ManagedFields {
    /// Reads `metadata.managedFields` of an object. A list that is not one of entries counts as none; an entry that makes
    /// no sense is an error.
    pub fn read(object: &Value) -> Result<Self, String> {
        let mut entries = BTreeMap::new();
        for (index, raw) in raw(object).unwrap_or_default().into_iter().enumerate() {
            let entry = raw.decode(index)?;
            entries.insert(entry.id(), entry);
        }
        Ok(Self { entries })
    }

    /// Writes `metadata.managedFields`; none is no field at all.
    pub fn write(&self, object: &mut Value) {
        let Value::Object(fields) = object else {
            return;
        };
        if self.entries.is_empty() {
            clear(object);
            return;
        }
        let metadata = fields.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
        if !metadata.is_object() {
            *metadata = Value::Object(Map::new());
        }
        let mut entries: Vec<&Entry> = self.entries.values().collect();
        entries.sort_by(|left, right| left.order().cmp(&right.order()));
        metadata["managedFields"] = entries.into_iter().map(Entry::to_json).collect();
    }

    /// Whether an object with these owners can be read again: their fields stand five levels below its root, and each may
    /// have a mark below it.
    pub(super) fn fit(&self) -> Result<(), Error> {
        let fits = |entry: &Entry| entry.fields.depth() + 6 <= MAX_DEPTH;
        if self.entries.values().all(fits) { Ok(()) } else { Err(Error::TooDeep) }
    }

    /// The entries, in no order that matters.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values()
    }

    /// Whether nobody owns anything.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn get(&self, id: &str) -> Option<&Entry> {
        self.entries.get(id)
    }

    pub(super) fn get_mut(&mut self, id: &str) -> Option<&mut Entry> {
        self.entries.get_mut(id)
    }

    pub(super) fn insert(&mut self, id: String, entry: Entry) {
        self.entries.insert(id, entry);
    }

    pub(super) fn remove(&mut self, id: &str) -> Option<Entry> {
        self.entries.remove(id)
    }

    pub(super) fn with_ids(&self) -> impl Iterator<Item = (&String, &Entry)> {
        self.entries.iter()
    }

    pub(super) fn retain(&mut self, mut keep: impl FnMut(&str, &mut Entry) -> bool) {
        self.entries.retain(|id, entry| keep(id, entry));
    }
}

/// Whether a request asks to forget all owners: with an empty list, or with one empty entry.
pub(super) fn is_reset(object: &Value) -> bool {
    match object.get("metadata").and_then(|metadata| metadata.get("managedFields")) {
        Some(Value::Array(items)) => match items.as_slice() {
            [] => true,
            [Value::Object(entry)] => entry.values().all(|value| value.is_null() || value == ""),
            _ => false,
        },
        _ => false,
    }
}

pub(super) fn clear(object: &mut Value) {
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.remove("managedFields");
    }
}

/// Whether two objects differ in nothing but the times of managed fields: such a write need not happen.
pub fn same_but_times(left: &Value, right: &Value) -> bool {
    same_fields(left, right, "metadata", |left, right| {
        same_fields(left, right, "managedFields", |left, right| match (left.as_array(), right.as_array()) {
            (Some(left), Some(right)) => {
                left.len() == right.len()
                    && left
                        .iter()
                        .zip(right)
                        .all(|(left, right)| same_fields(left, right, "time", |_, _| true))
            }
            _ => left == right,
        })
    })
}

/// Whether two objects are the same, one field of which is compared in its own way. An entry may have a time where the
/// other has none.
fn same_fields(left: &Value, right: &Value, special: &str, same: impl Fn(&Value, &Value) -> bool) -> bool {
    let (Value::Object(first), Value::Object(second)) = (left, right) else {
        return left == right;
    };
    let rest = |fields: &Map<String, Value>| fields.len() - usize::from(fields.contains_key(special));
    rest(first) == rest(second)
        && first.iter().all(|(name, value)| name == special || second.get(name) == Some(value))
        && match (first.get(special), second.get(special)) {
            (Some(left), Some(right)) => same(left, right),
            (None, None) => true,
            _ => special == "time",
        }
}

/// An entry of which only the types are known to be right.
struct Raw<'v> {
    texts: [&'v str; 5],
    time: Option<String>,
    fields: Option<&'v Value>,
}

const TEXTS: [&str; 5] = ["manager", "operation", "apiVersion", "fieldsType", "subresource"];

fn raw(object: &Value) -> Option<Vec<Raw<'_>>> {
    let items = object.get("metadata")?.get("managedFields")?.as_array()?;
    items.iter().map(raw_entry).collect()
}

fn raw_entry(value: &Value) -> Option<Raw<'_>> {
    let entry = value.as_object()?;
    let mut texts = [""; 5];
    for (text, name) in texts.iter_mut().zip(TEXTS) {
        *text = match entry.get(name) {
            None | Some(Value::Null) => "",
            Some(Value::String(text)) => text,
            Some(_) => return None,
        };
    }
    let time = match entry.get("time") {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(go::Time::parse(text).ok()?.rfc3339()),
        Some(_) => return None,
    };
    Some(Raw { texts, time, fields: entry.get("fieldsV1").filter(|fields| !fields.is_null()) })
}

impl Raw<'_> {
    fn decode(self, index: usize) -> Result<Entry, String> {
        let [manager, operation, api_version, fields_type, subresource] = self.texts;
        let operation = match operation {
            "Apply" => Operation::Apply,
            "Update" => Operation::Update,
            _ => return Err("operation must be `Apply` or `Update`".into()),
        };
        if api_version.is_empty() {
            return Err("apiVersion must not be empty".into());
        }
        match fields_type {
            "FieldsV1" => {}
            "" => return Err(format!("missing fieldsType in managed fields entry {index}")),
            other => {
                let other = go::quote(other);
                return Err(format!("invalid fieldsType {other} in managed fields entry {index}"));
            }
        }
        let fields = self.fields.map_or(Ok(FieldSet::new()), FieldSet::from_json);
        Ok(Entry {
            manager: manager.into(),
            operation,
            api_version: api_version.into(),
            time: self.time,
            fields: fields.map_err(|error| format!("error decoding set: {error}"))?,
            subresource: subresource.into(),
        })
    }
}
