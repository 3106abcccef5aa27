use super::pointer::{Container, Pointer};
use crate::json::{self, MAX_DEPTH, nests_within};
use crate::{Error, Weight};
use serde_json::{Map, Value};
use watchkeeper_go as go;

/// The maximum number of operations of a patch.
pub const MAX_OPERATIONS: usize = 10_000;

/// The maximum size of all copies of a patch, in bytes of JSON.
pub const MAX_COPIED: usize = 3 << 20;

/// How many values may be looked at to find out how deep moved ones are. A patch that moves large things deeper over and
/// over again is refused.
const MAX_MEASURED: usize = 1_000_000;

/// A JSON patch (RFC 6902).
///
/// Behaves as the library kube-apiserver uses, where that is laxer than the RFC: `replace` adds a missing field to an
/// object, negative indices count from the end, and a missing field passes a `test` for null. A patch applies as a whole
/// or not at all.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonPatch {
    operations: Vec<Map<String, Value>>,
    strict_errors: Vec<String>,
}

impl JsonPatch {
    /// Reads a patch from the body of a request.
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let decoded = json::decode(bytes).map_err(|error| Error::NotAPatch(error.to_string()))?;
        let not_a = |found: &Value, wanted: &str| {
            let found = match found {
                Value::Null => "null",
                Value::Bool(_) => "bool",
                Value::Number(_) => "number",
                Value::String(_) => "string",
                Value::Array(_) => "array",
                Value::Object(_) => "object",
            };
            Error::NotAPatch(format!("json: cannot unmarshal {found} into Go value of type {wanted}"))
        };
        let Value::Array(items) = decoded.value else {
            return Err(not_a(&decoded.value, "[]handlers.jsonPatchOp"));
        };
        if items.len() > MAX_OPERATIONS {
            return Err(Error::TooManyOperations { operations: items.len() });
        }
        let mut strict_errors: Vec<String> =
            decoded.strict_errors.iter().map(|error| format!("json patch {error}")).collect();
        let mut operations = Vec::with_capacity(items.len());
        for (index, item) in items.into_iter().enumerate() {
            let Value::Object(operation) = item else {
                return Err(not_a(&item, "handlers.jsonPatchOp"));
            };
            for name in operation.keys() {
                if !matches!(name.as_str(), "op" | "path" | "from" | "value") {
                    let place = go::quote(&format!("[{index}].{name}"));
                    strict_errors.push(format!("json patch unknown field {place}"));
                }
            }
            operations.push(operation);
        }
        Ok(Self { operations, strict_errors })
    }

    /// Strict decoding errors: fields given twice, fields no operation has.
    pub fn strict_errors(&self) -> &[String] {
        &self.strict_errors
    }

    /// The number of operations.
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// Makes the next object.
    pub fn apply(&self, object: &Value) -> Result<Value, Error> {
        let mut patching = Patching {
            object: object.clone(),
            copied: 0,
            weight: Weight::default(),
            measurable: MAX_MEASURED,
        };
        for operation in &self.operations {
            patching.apply(operation)?;
        }
        Ok(patching.object)
    }
}

struct Patching {
    object: Value,
    /// What copies add up to, as JSON and in memory.
    copied: usize,
    weight: Weight,
    measurable: usize,
}

impl Patching {
    fn apply(&mut self, operation: &Map<String, Value>) -> Result<(), Error> {
        match text(operation, "op").unwrap_or("unknown") {
            "add" => self.add(operation),
            "remove" => self.remove(operation),
            "replace" => self.replace(operation),
            "move" => self.r#move(operation),
            "test" => self.test(operation),
            "copy" => self.copy(operation),
            other => fail(format!("Unexpected kind: {other}")),
        }
    }

    fn add(&mut self, operation: &Map<String, Value>) -> Result<(), Error> {
        let Some(path) = text(operation, "path") else {
            return fail("add operation failed to decode path: missing value");
        };
        let missing = || {
            format!("add operation does not apply: doc is missing path: {}: missing value", go::quote(path))
        };
        let pointer = Pointer::new(path).ok_or_else(|| Error::PatchDoesNotApply(missing()))?;
        let value = value(operation);
        admit(&value, pointer.depth())?;
        let Some(mut container) = pointer.container(&mut self.object) else {
            return fail(missing());
        };
        container
            .add(pointer.key(), value)
            .or_else(|error| fail(format!("error in add for path: '{path}': {error}")))
    }

    fn remove(&mut self, operation: &Map<String, Value>) -> Result<(), Error> {
        let Some(path) = text(operation, "path") else {
            return fail("remove operation failed to decode path: missing value");
        };
        let Some(mut found) = self.find(path) else {
            let path = go::quote(path);
            return fail(format!(
                "remove operation does not apply: doc is missing path: {path}: missing value"
            ));
        };
        let removed = found.container.remove(&found.key);
        removed.map(drop).or_else(|error| fail(format!("error in remove for path: '{path}': {error}")))
    }

    fn replace(&mut self, operation: &Map<String, Value>) -> Result<(), Error> {
        let Some(path) = text(operation, "path") else {
            return fail(
                "replace operation failed to decode path: operation missing path field: missing value",
            );
        };
        let value = value(operation);
        if path.is_empty() {
            if !value.is_object() && !value.is_array() {
                return fail("replace operation value must be object or array");
            }
            admit(&value, 0)?;
            self.object = value;
            return Ok(());
        }
        let missing =
            |what| format!("replace operation does not apply: doc is missing {what}: {path}: missing value");
        let pointer = Pointer::new(path).ok_or_else(|| Error::PatchDoesNotApply(missing("path")))?;
        admit(&value, pointer.depth())?;
        let Some(mut container) = pointer.container(&mut self.object) else {
            return fail(missing("path"));
        };
        if container.get(pointer.key()).is_err() {
            return fail(missing("key"));
        }
        container
            .set(pointer.key(), value)
            .or_else(|error| fail(format!("error in remove for path: '{path}': {error}")))
    }

    fn r#move(&mut self, operation: &Map<String, Value>) -> Result<(), Error> {
        let Some(from) = text(operation, "from") else {
            return fail(
                "move operation failed to decode from: operation, missing from field: missing value",
            );
        };
        let Some(mut found) = self.find(from) else {
            return fail(format!(
                "move operation does not apply: doc is missing from path: {from}: missing value"
            ));
        };
        let (key, depth) = (found.key.clone(), from.matches('/').count());
        let removed = found.container.remove(&key);
        let value = removed.or_else(|error| fail(format!("error in move for path: '{key}': {error}")))?;
        let Some(path) = text(operation, "path") else {
            return fail("move operation failed to decode path: operation missing path field: missing value");
        };
        let missing = || {
            format!("move operation does not apply: doc is missing destination path: {path}: missing value")
        };
        let pointer = Pointer::new(path).ok_or_else(|| Error::PatchDoesNotApply(missing()))?;
        self.admit_moved(&value, depth, pointer.depth())?;
        let Some(mut container) = pointer.container(&mut self.object) else {
            return fail(missing());
        };
        container
            .add(pointer.key(), value)
            .or_else(|error| fail(format!("error in move for path: '{path}': {error}")))
    }

    fn test(&mut self, operation: &Map<String, Value>) -> Result<(), Error> {
        let Some(path) = text(operation, "path") else {
            return fail("test operation failed to decode path: operation missing path field: missing value");
        };
        let expected = operation.get("value").unwrap_or(&Value::Null);
        let same = if path.is_empty() {
            self.object == *expected
        } else {
            let Some(found) = self.find(path) else {
                return fail(format!(
                    "test operation does not apply: is missing path: {path}: missing value"
                ));
            };
            match found.container.get(&found.key) {
                Ok(value) => value.unwrap_or(&Value::Null) == expected,
                Err(error) => return fail(format!("error in test for path: '{path}': {error}")),
            }
        };
        if same { Ok(()) } else { Err(Error::TestFailed { path: path.into() }) }
    }

    fn copy(&mut self, operation: &Map<String, Value>) -> Result<(), Error> {
        let Some(from) = text(operation, "from") else {
            return fail(
                "copy operation failed to decode from: operation, missing from field: missing value",
            );
        };
        let Some(found) = self.find(from) else {
            return fail(format!(
                "copy operation does not apply: doc is missing from path: {from}: missing value"
            ));
        };
        let value = match found.container.get(&found.key) {
            Ok(value) => value.cloned().unwrap_or_default(),
            Err(error) => return fail(format!("error in copy for from: '{from}': {error}")),
        };
        let Some(path) = text(operation, "path") else {
            return fail("copy operation failed to decode path: missing value");
        };
        let missing = || {
            format!("copy operation does not apply: doc is missing destination path: {path}: missing value")
        };
        let pointer = Pointer::new(path).ok_or_else(|| Error::PatchDoesNotApply(missing()))?;
        self.copied += size(&value);
        if self.copied > MAX_COPIED {
            return fail(format!(
                "Unable to complete the copy, the accumulated size increase of copy is {}, exceeding the limit {MAX_COPIED}",
                self.copied
            ));
        }
        self.weight.value(&value)?;
        admit(&value, pointer.depth())?;
        let Some(mut container) = pointer.container(&mut self.object) else {
            return fail(missing());
        };
        container
            .add(pointer.key(), value)
            .or_else(|error| fail(format!("error while adding value during copy: {error}")))
    }

    fn find(&mut self, path: &str) -> Option<Found<'_>> {
        let pointer = Pointer::new(path)?;
        let key = pointer.key().to_owned();
        let container = pointer.container(&mut self.object)?;
        Some(Found { container, key })
    }

    /// Lets a moved value in, unless it would make the object too deep to be walked.
    fn admit_moved(&mut self, value: &Value, from: usize, to: usize) -> Result<(), Error> {
        let room = MAX_DEPTH.checked_sub(to).ok_or(Error::TooDeep)?;
        if to <= from || nests_within(value, room, &mut self.measurable) {
            Ok(())
        } else {
            Err(Error::TooDeep)
        }
    }
}

struct Found<'v> {
    container: Container<'v>,
    key: String,
}

/// Lets a new value in at a depth, unless it would make the object too deep to be walked.
fn admit(value: &Value, place: usize) -> Result<(), Error> {
    let room = MAX_DEPTH.checked_sub(place).ok_or(Error::TooDeep)?;
    let mut all = usize::MAX;
    if nests_within(value, room, &mut all) { Ok(()) } else { Err(Error::TooDeep) }
}

fn text<'a>(operation: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    operation.get(name).and_then(Value::as_str)
}

fn value(operation: &Map<String, Value>) -> Value {
    operation.get("value").cloned().unwrap_or_default()
}

/// The length of a value's JSON, without writing it down.
fn size(value: &Value) -> usize {
    struct Counter(usize);
    impl std::io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    // Counting cannot fail.
    let _ = serde_json::to_writer(&mut counter, value);
    counter.0
}

fn fail<T>(reason: impl Into<String>) -> Result<T, Error> {
    Err(Error::PatchDoesNotApply(reason.into()))
}

#[cfg(test)]
mod tests;
