use super::entries::{Entry, ManagedFields, Operation, clear, is_reset};
use super::ownership::Refusal;
use super::{FieldPath, FieldSet, Request};
use crate::Error;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

/// How many managers may own fields by updates. Beyond that the oldest become one.
const MAX_UPDATERS: usize = 10;
const OLD_UPDATES: &str = "ancient-changes";
/// The id of the manager while its changes are being worked out, so that they are told from what it owned before.
const CURRENT: &str = "current-operation";

/// Fields that are never owned.
static UNOWNED: LazyLock<FieldSet> = LazyLock::new(|| {
    let own = ["apiVersion", "kind", "metadata"].map(|name| FieldPath::of([name]));
    let metadata = [
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "clusterName",
        "generation",
        "managedFields",
        "resourceVersion",
    ];
    own.into_iter().chain(metadata.map(|name| FieldPath::of(["metadata", name]))).collect()
});

/// Writes the owners into an object that is about to be stored by a create, an update or a patch.
///
/// `live` is what is stored now; for a create, an object of the kind with nothing in it but what every object of the kind
/// has (`apiVersion` and `kind` at least). `new` is what is to be stored, as the client left its `managedFields`: these are
/// taken over if they make sense, are ignored if they are missing, and forgotten if they are an empty list. Through a
/// subresource they are always ignored.
///
/// An object that exists and has no owners gets none before somebody applies to it.
pub fn update(request: &Request<'_>, live: &Value, mut new: Value) -> Result<Value, Error> {
    write_owners(request, live, &mut new)?;
    Ok(new)
}

/// [`update`], as kube-apiserver calls it: if the owners cannot be worked out, there are none.
pub fn update_or_clear(request: &Request<'_>, live: &Value, mut new: Value) -> Value {
    // The error has left the object without owners, and that is all there is to do about it.
    let _ = write_owners(request, live, &mut new);
    new
}

/// Writes the owners into `new`, which has none if it fails.
fn write_owners(request: &Request<'_>, live: &Value, new: &mut Value) -> Result<(), Error> {
    let mut managed = known_owners(request, live, new);
    clear(new);
    let exists = live.pointer("/metadata/uid").and_then(Value::as_str).is_some_and(|uid| !uid.is_empty());
    if managed.is_empty() && exists {
        return Ok(());
    }
    let live = match live.pointer("/metadata/managedFields") {
        Some(_) => Cow::Owned(without_owners(live)),
        None => Cow::Borrowed(live),
    };
    record(request, &live, new, &mut managed, request.manager)?;
    managed.fit()?;
    managed.write(new);
    Ok(())
}

fn known_owners(request: &Request<'_>, live: &Value, new: &Value) -> ManagedFields {
    if request.subresource.is_empty() {
        if is_reset(new) {
            return ManagedFields::default();
        }
        if let Ok(managed) = ManagedFields::read(new)
            && !managed.is_empty()
        {
            return managed;
        }
    }
    ManagedFields::read(live).unwrap_or_default()
}

/// A copy without the owners, which are often most of an object.
pub(super) fn without_owners(object: &Value) -> Value {
    let Value::Object(fields) = object else { return object.clone() };
    let copy = |(name, value): (&String, &Value)| match (name.as_str(), value) {
        ("metadata", Value::Object(metadata)) => {
            let others = metadata.iter().filter(|(name, _)| *name != "managedFields");
            (name.clone(), Value::Object(others.map(|(name, value)| (name.clone(), value.clone())).collect()))
        }
        _ => (name.clone(), value.clone()),
    };
    Value::Object(fields.iter().map(copy).collect())
}

/// Records the difference between two objects as changes by a manager.
pub(super) fn record(
    request: &Request<'_>,
    live: &Value,
    new: &Value,
    managed: &mut ManagedFields,
    manager: &str,
) -> Result<(), Error> {
    let typed = request.typed()?;
    for (what, object) in [("new", new), ("live", live)] {
        typed.validate(object, true).map_err(|error| {
            let described = describe(object);
            Error::Apply(format!("failed to convert {what} object ({described}) to smd typed: {error}"))
        })?;
    }
    let failed =
        |error: Error| Error::Apply(format!("failed to update ManagedFields ({}): {error}", describe(new)));
    request.reconcile(live, managed).map_err(failed)?;
    let changes = request.transfer(live, new, managed, CURRENT, true).map_err(|refusal| match refusal {
        Refusal::Error(error) => failed(error),
        // Cannot be: it is forced.
        Refusal::Conflicts(_) => Error::Apply("unexpected conflict".into()),
    })?;
    let fields = changes.modified.union(changes.added).difference(&UNOWNED);
    if !fields.is_empty() {
        let mut entry = entry(request, manager, Operation::Update);
        let id = entry.id();
        let before = managed.remove(&id).map(|entry| entry.fields).unwrap_or_default();
        entry.fields = fields.union(before);
        entry.time = Some(request.now.into());
        managed.insert(id, entry);
    }
    cap(managed);
    Ok(())
}

/// An entry for a manager, without fields.
pub(super) fn entry(request: &Request<'_>, manager: &str, operation: Operation) -> Entry {
    Entry {
        manager: if manager.is_empty() { "unknown" } else { manager }.into(),
        operation,
        api_version: request.api_version.into(),
        time: None,
        fields: FieldSet::new(),
        subresource: request.subresource.into(),
    }
}

/// Takes away what is never owned. Returns whether anything is left.
pub(super) fn strip(entry: &mut Entry) -> bool {
    entry.fields = std::mem::take(&mut entry.fields).difference(&UNOWNED);
    !entry.fields.is_empty()
}

/// Namespace, name and kind of an object, for messages.
pub(super) fn describe(object: &Value) -> String {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    format!("{}/{}; {}", text("/metadata/namespace"), text("/metadata/name"), kind_of(object))
}

pub(super) fn kind_of(object: &Value) -> String {
    let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
    let version = text("apiVersion");
    let group = if version.contains('/') { "" } else { "/" };
    format!("{group}{version}, Kind={}", text("kind"))
}

/// Makes one entry per version of the oldest updates, until there are few enough.
fn cap(managed: &mut ManagedFields) {
    let mut updaters: Vec<(String, String)> = managed
        .with_ids()
        .filter(|(_, entry)| entry.operation == Operation::Update)
        .map(|(id, entry)| (entry.time.clone().unwrap_or_else(|| "1970-01-01T00:00:00Z".into()), id.clone()))
        .collect();
    let mut count = updaters.len();
    if count <= MAX_UPDATERS {
        return;
    }
    updaters.sort();
    let mut first_of: HashMap<String, String> = HashMap::new();
    for (_, id) in updaters {
        if count <= MAX_UPDATERS {
            return;
        }
        let Some(entry) = managed.get(&id).cloned() else { continue };
        let Some(first) = first_of.get(&entry.api_version) else {
            first_of.insert(entry.api_version, id);
            continue;
        };
        let bucket = Entry {
            manager: OLD_UPDATES.into(),
            subresource: String::new(),
            fields: FieldSet::new(),
            ..entry.clone()
        };
        let bucket_id = bucket.id();
        if managed.get(&bucket_id).is_none() {
            let fields = managed.remove(first).map(|entry| entry.fields).unwrap_or_default();
            managed.insert(bucket_id.clone(), Entry { fields, ..bucket });
        }
        managed.remove(&id);
        if let Some(bucket) = managed.get_mut(&bucket_id) {
            bucket.fields = std::mem::take(&mut bucket.fields).union(entry.fields);
            bucket.time = entry.time;
        }
        count -= 1;
    }
}
