//! Owners of a resource and of its scale: the same people own the number of replicas.

use super::entries::{Entry, ManagedFields};
use super::{FieldPath, FieldSet};
use std::collections::{HashMap, HashSet};

/// The version of scales.
const SCALE: &str = "autoscaling/v1";

fn replicas() -> FieldPath {
    FieldPath::of(["spec", "replicas"])
}

/// The owners of the scale of a resource: those who own its number of replicas.
///
/// `path` says for each version of the resource where that number is; `None` for versions that are not known.
pub fn from_parent(parent: &ManagedFields, path: impl Fn(&str) -> Option<FieldPath>) -> ManagedFields {
    let mut scale = ManagedFields::default();
    for entry in parent.entries() {
        if path(&entry.api_version).is_some_and(|path| entry.fields.contains(&path)) {
            let fields = FieldSet::from_iter([replicas()]);
            let entry = Entry { api_version: SCALE.into(), fields, ..entry.clone() };
            scale.insert(entry.id(), entry);
        }
    }
    scale
}

/// The owners of a resource after a change to its scale: who no longer owns the scale has lost the number of replicas, who
/// newly owns it has it now.
///
/// `api_version` is the version of the resource the scale was asked for. Owners recorded in versions that are not known are
/// forgotten. As in kube-apiserver, new owners come without a time.
pub fn to_parent(
    parent: &ManagedFields,
    scale: &ManagedFields,
    api_version: &str,
    path: impl Fn(&str) -> Option<FieldPath>,
) -> ManagedFields {
    let mut owners = ManagedFields::default();
    let on_scale = scale.entries().filter(|entry| entry.fields.contains(&replicas()));
    let on_scale: HashMap<String, &Entry> = on_scale.map(|entry| (who(entry), entry)).collect();
    let mut known: HashSet<String> = HashSet::new();
    for (id, entry) in parent.with_ids() {
        let Some(path) = path(&entry.api_version) else {
            continue;
        };
        let mut entry = entry.clone();
        if entry.fields.contains(&path) {
            let who = who(&entry);
            if on_scale.contains_key(&who) {
                known.insert(who);
            } else {
                entry.fields = entry.fields.difference(&FieldSet::from_iter([path]));
            }
        }
        if !entry.fields.is_empty() {
            owners.insert(id.clone(), entry);
        }
    }
    let Some(path) = path(api_version) else {
        return owners;
    };
    for (who, entry) in on_scale {
        if known.contains(&who) {
            continue;
        }
        let mut entry = Entry { api_version: api_version.into(), time: None, ..entry.clone() };
        entry.fields = FieldSet::from_iter([path.clone()]);
        let id = entry.id();
        if let Some(other) = owners.remove(&id) {
            entry = Entry { fields: other.fields.union(entry.fields), ..other };
        }
        owners.insert(id, entry);
    }
    owners
}

/// What makes an owner another, whatever the version: that of a scale is never that of its resource.
fn who(entry: &Entry) -> String {
    Entry { api_version: String::new(), fields: FieldSet::new(), ..entry.clone() }.id()
}
