//! Warnings about objects that are accepted.

use serde_json::Value;

use super::operation::{FOREGROUND, ORPHAN};
use crate::crd::Definition;
use crate::object::meta;
use crate::resource::Resource;

/// Warnings for the author of an object, which replaces `old`.
pub(super) fn of(resource: &Resource, object: &Value, old: Option<&Value>) -> Vec<String> {
    if resource.is_crd() {
        return Definition::read(object).map(|definition| definition.warnings()).unwrap_or_default();
    }
    if let Some(kind) = resource.builtin_kind() {
        return kind.warning(object, old).map(str::to_owned).into_iter().collect();
    }
    let known = old.map(meta::finalizers).unwrap_or_default();
    let is_new = |name: &&str| {
        !known.contains(name) && !name.contains('/') && !matches!(*name, ORPHAN | FOREGROUND | "kubernetes")
    };
    let warning = |name: &str| {
        format!(
            "metadata.finalizers: {name:?}: prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers"
        )
    };
    meta::finalizers(object).into_iter().filter(is_new).map(warning).collect()
}
