//! The status of a definition.

use super::names;
use super::spec::Spec;
use crate::crd::field::{deep, get, texts};
use serde_json::{Value, json};
use watchkeeper_schema::{FieldError, Path};

/// What is wrong with the accepted names.
pub(super) fn check(definition: &Value, errors: &mut Vec<FieldError>) {
    if let Some(accepted) = deep(definition, &["status", "acceptedNames"]) {
        names::check(accepted, &Path::root().child("status").child("acceptedNames"), errors);
    }
}

/// A version that objects may be stored in stays in the spec.
pub(super) fn stored_versions(definition: &Value, spec: &Spec<'_>, errors: &mut Vec<FieldError>) {
    let at = Path::root().child("status").child("storedVersions");
    let status = get(definition, "status").unwrap_or(&Value::Null);
    let stored = texts(status, "storedVersions");
    if stored.is_empty() {
        let shown = get(status, "storedVersions").cloned().unwrap_or_default();
        errors.push(FieldError::invalid(&at, shown, "must have at least one stored version"));
        return;
    }
    let mut left: Vec<(usize, &String)> = stored.iter().enumerate().collect();
    for version in spec.versions() {
        let before = left.len();
        left.retain(|(_, name)| *name != version.name);
        // A name that stands twice in the spec is found once.
        if version.storage && left.len() == before {
            let detail = format!("must have the storage version {}", version.name);
            errors.push(FieldError::invalid(&at, json!(stored), detail));
        }
    }
    for (index, name) in &left {
        if left.iter().any(|(later, other)| later > index && other == name) {
            continue;
        }
        let detail = format!(
            "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions \
             until a storage migration ensures no data remains persisted in {name} and removes {name} from \
             status.storedVersions"
        );
        errors.push(FieldError::invalid(&at.index(*index), name.as_str(), detail));
    }
}
