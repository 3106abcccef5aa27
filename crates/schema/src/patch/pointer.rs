use serde_json::{Map, Value};
use watchkeeper_go as go;

/// A JSON pointer (RFC 6901), split into the keys that lead to a container and the last one.
pub(super) struct Pointer {
    parents: Vec<String>,
    last: String,
}

impl Pointer {
    /// `None` for a text without a slash, which points to no container.
    pub(super) fn new(text: &str) -> Option<Self> {
        let mut keys = text.split('/').skip(1).map(decode);
        let mut parents: Vec<String> = keys.by_ref().collect();
        let last = parents.pop()?;
        Some(Self { parents, last })
    }

    /// How deep what is pointed to stands.
    pub(super) fn depth(&self) -> usize {
        self.parents.len() + 1
    }

    /// The container that has or will have what is pointed to.
    pub(super) fn container<'v>(&self, root: &'v mut Value) -> Option<Container<'v>> {
        let mut value = root;
        for key in &self.parents {
            value = Container::of(value)?.into_entry(key)?;
        }
        Container::of(value)
    }

    pub(super) fn key(&self) -> &str {
        &self.last
    }
}

fn decode(key: &str) -> String {
    key.replace("~1", "/").replace("~0", "~")
}

/// An object or an array that is being changed.
pub(super) enum Container<'v> {
    Object(&'v mut Map<String, Value>),
    Array(&'v mut Vec<Value>),
}

impl<'v> Container<'v> {
    fn of(value: &'v mut Value) -> Option<Self> {
        match value {
            Value::Object(fields) => Some(Self::Object(fields)),
            Value::Array(items) => Some(Self::Array(items)),
            _ => None,
        }
    }

    fn into_entry(self, key: &str) -> Option<&'v mut Value> {
        match self {
            Self::Object(fields) => fields.get_mut(key),
            Self::Array(items) => {
                let index = existing(key, items.len()).ok()?;
                items.get_mut(index)
            }
        }
    }

    /// What stands at a key; a field that is not there is `None`, an index that is not there an error.
    pub(super) fn get(&self, key: &str) -> Result<Option<&Value>, String> {
        match self {
            Self::Object(fields) => Ok(fields.get(key)),
            Self::Array(items) => existing(key, items.len()).map(|index| items.get(index)),
        }
    }

    pub(super) fn add(&mut self, key: &str, value: Value) -> Result<(), String> {
        match self {
            Self::Object(fields) => {
                fields.insert(key.into(), value);
            }
            Self::Array(items) if key == "-" => items.push(value),
            Self::Array(items) => {
                let index = number(key)
                    .map_err(|error| format!("value was not a proper array index: '{key}': {error}"))?;
                let index = within(index, items.len() + 1)?;
                items.insert(index, value);
            }
        }
        Ok(())
    }

    /// Puts a value where one stands; into an object also where none stands, as kube-apiserver does.
    pub(super) fn set(&mut self, key: &str, value: Value) -> Result<(), String> {
        match self {
            Self::Object(fields) => {
                fields.insert(key.into(), value);
            }
            Self::Array(items) => {
                let index = existing(key, items.len())?;
                items[index] = value;
            }
        }
        Ok(())
    }

    pub(super) fn remove(&mut self, key: &str) -> Result<Value, String> {
        match self {
            Self::Object(fields) => fields
                .remove(key)
                .ok_or_else(|| format!("Unable to remove nonexistent key: {key}: missing value")),
            Self::Array(items) => {
                let index = existing(key, items.len())?;
                Ok(items.remove(index))
            }
        }
    }
}

/// The place of an element that is there. Negative indices count from the end.
fn existing(key: &str, length: usize) -> Result<usize, String> {
    within(number(key)?, length)
}

fn number(key: &str) -> Result<i64, String> {
    key.parse().map_err(|_| format!("strconv.Atoi: parsing {}: invalid syntax", go::quote(key)))
}

fn within(index: i64, length: usize) -> Result<usize, String> {
    let size = i64::try_from(length).unwrap_or(i64::MAX);
    let place = if index < 0 { index.saturating_add(size) } else { index };
    usize::try_from(place)
        .ok()
        .filter(|place| *place < length)
        .ok_or_else(|| format!("Unable to access invalid index: {index}: invalid index referenced"))
}
