//! What the server says about a definition in its status.

use super::approval::{self, Approval};
use super::bundle;
use super::canonical::canonical;
use super::field::{deep, fields_mut, flag, get, list, list_mut, object_mut, text};
use super::names::Names;
use serde_json::{Value, json};
use std::collections::HashSet;
use watchkeeper_schema::{FieldError, Path, Schema};

/// One entry of `status.conditions`, without its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Condition {
    /// `NamesAccepted`, `Established`, ...
    pub(crate) kind: &'static str,
    /// `True`, `False` or `Unknown`.
    pub(crate) status: &'static str,
    /// One word for programs.
    pub(crate) reason: &'static str,
    /// A sentence for people.
    pub(crate) message: String,
}

impl Condition {
    pub(super) fn new(
        kind: &'static str,
        status: &'static str,
        reason: &'static str,
        message: impl Into<String>,
    ) -> Self {
        Self { kind, status, reason, message: message.into() }
    }
}

/// Brings `status.acceptedNames` and `status.conditions` to where the controllers of kube-apiserver would end up, all at
/// once. Returns whether anything changed.
///
/// `others` are the names granted to the other resources of the group; the definition's own may be among them. `now` is
/// an RFC 3339 time. A condition that keeps its status keeps its time.
///
/// Call it after every write of a definition, and for the definitions of the same group after one of them gave up names:
/// it was deleted, or its accepted names changed.
///
/// As in kube-apiserver, names are not looked at again when those asked for are the accepted ones. So `NamesAccepted`
/// stays false after a conflict that was resolved by going back to the names accepted before.
pub(crate) fn conditions<'a>(
    definition: &mut Value,
    others: impl IntoIterator<Item = &'a Names>,
    now: &str,
) -> bool {
    let before = get(definition, "status").cloned();
    let requested = Names::requested(definition);
    let accepted = Names::accepted(definition);
    if requested != accepted {
        let (names, condition) = accept_names(&requested, &accepted, others);
        fields_mut(object_mut(definition, "status")).insert("acceptedNames".into(), names.write());
        set(definition, &condition, now);
        if find(definition, "Established").is_none() {
            set(
                definition,
                &Condition::new("Established", "False", "NotAccepted", "not all names are accepted"),
                now,
            );
        }
    }
    if is_true(definition, "NamesAccepted") && !is_true(definition, "Established") {
        let condition = established(definition);
        set(definition, &condition, now);
    }
    if let Some(condition) = api_approved(definition) {
        set(definition, &condition, now);
    }
    match non_structural(definition) {
        Some(condition) => set(definition, &condition, now),
        None => remove(definition, "NonStructuralSchema"),
    }
    before.as_ref() != get(definition, "status")
}

/// The names a definition is granted, and the condition `NamesAccepted`.
///
/// A name is granted if it is granted already or nobody has it. One that is not leaves the one granted before. Categories
/// are always granted. If several names are taken, the condition tells of the last: list kind, kind, short names,
/// singular, plural.
pub(crate) fn accept_names<'a>(
    requested: &Names,
    accepted: &Names,
    others: impl IntoIterator<Item = &'a Names>,
) -> (Names, Condition) {
    let mut resources: HashSet<&str> = accepted.resources().collect();
    let mut kinds: HashSet<&str> = accepted.kinds().into();
    for other in others {
        resources.extend(other.resources());
        kinds.extend(other.kinds());
    }
    let mut granted = Names { categories: requested.categories.clone(), ..accepted.clone() };
    let mut condition = Condition::new("NamesAccepted", "True", "NoConflicts", "no conflicts found");
    let mut refuse = |reason, message: String| {
        condition = Condition::new("NamesAccepted", "False", reason, message);
    };

    for (name, before, taken, granted, reason) in [
        (&requested.plural, &accepted.plural, &resources, &mut granted.plural, "PluralConflict"),
        (&requested.singular, &accepted.singular, &resources, &mut granted.singular, "SingularConflict"),
    ] {
        grant(name, before, taken, granted).unwrap_or_else(|message| refuse(reason, message));
    }
    let fresh = requested.short_names.iter().filter(|name| !accepted.short_names.contains(name));
    let mut conflicts: Vec<String> = Vec::new();
    for name in fresh.filter(|name| !name.is_empty() && resources.contains(name.as_str())) {
        let conflict = in_use(name);
        if !conflicts.contains(&conflict) {
            conflicts.push(conflict);
        }
    }
    match conflicts.as_slice() {
        [] => granted.short_names = requested.short_names.clone(),
        [conflict] => refuse("ShortNamesConflict", conflict.clone()),
        conflicts => refuse("ShortNamesConflict", format!("[{}]", conflicts.join(", "))),
    }
    for (name, before, taken, granted, reason) in [
        (&requested.kind, &accepted.kind, &kinds, &mut granted.kind, "KindConflict"),
        (&requested.list_kind, &accepted.list_kind, &kinds, &mut granted.list_kind, "ListKindConflict"),
    ] {
        grant(name, before, taken, granted).unwrap_or_else(|message| refuse(reason, message));
    }
    (granted, condition)
}

fn grant(name: &str, before: &str, taken: &HashSet<&str>, granted: &mut String) -> Result<(), String> {
    if name != before && taken.contains(name) {
        return Err(in_use(name));
    }
    *granted = name.into();
    Ok(())
}

fn in_use(name: &str) -> String {
    format!("{} is already in use", watchkeeper_go::quote(name))
}

/// The condition `Established` once all names are accepted.
fn established(definition: &Value) -> Condition {
    let config = deep(definition, &["spec", "conversion", "webhook", "clientConfig"]);
    let problem = config.and_then(|config| get(config, "caBundle")).and_then(bundle::problem);
    match problem {
        Some(_) => Condition::new(
            "Established",
            "False",
            "InvalidCABundle",
            "The conversion webhook CABundle is invalid",
        ),
        None => Condition::new(
            "Established",
            "True",
            "InitialNamesAccepted",
            "the initial names have been accepted",
        ),
    }
}

/// The condition `KubernetesAPIApprovalPolicyConformant`; only for groups that belong to Kubernetes.
fn api_approved(definition: &Value) -> Option<Condition> {
    let (approval, message) = approval::of(definition)?;
    let (status, reason) = match approval {
        Approval::Approved => ("True", "ApprovedAnnotation"),
        Approval::Bypassed => ("False", "UnapprovedAnnotation"),
        Approval::Missing => ("False", "MissingAnnotation"),
        Approval::Invalid => ("False", "InvalidAnnotation"),
    };
    Some(Condition::new("KubernetesAPIApprovalPolicyConformant", status, reason, message))
}

/// The condition `NonStructuralSchema`; none if all schemas are structural.
fn non_structural(definition: &Value) -> Option<Condition> {
    const KIND: &str = "NonStructuralSchema";
    let spec = get(definition, "spec")?;
    let mut errors = Vec::new();
    if flag(spec, "preserveUnknownFields") {
        let at = Path::root().child("spec").child("preserveUnknownFields");
        errors.push(FieldError::invalid(&at, true, "must be false"));
    }
    for (index, version) in list(spec, "versions").iter().enumerate() {
        let Some(openapi) = deep(version, &["schema", "openAPIV3Schema"]) else {
            continue;
        };
        let at = Path::root()
            .child("spec")
            .child("versions")
            .index(index)
            .child("schema")
            .child("openAPIV3Schema");
        match Schema::read(&canonical(openapi)) {
            Ok(schema) => errors.extend(schema.check(&at, false)),
            Err(error) => {
                let name = text(version, "name");
                let message = format!("failed to check validation schema for version {name}: {error}");
                return Some(Condition::new(KIND, "Unknown", "StructuralError", message));
            }
        }
    }
    let mut texts: Vec<String> = Vec::new();
    for text in errors.iter().map(FieldError::to_string) {
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    let message = match texts.as_slice() {
        [] => return None,
        [text] => text.clone(),
        texts => format!("[{}]", texts.join(", ")),
    };
    Some(Condition::new(KIND, "True", "Violations", message))
}

fn find<'a>(definition: &'a Value, kind: &str) -> Option<&'a Value> {
    let conditions = list(get(definition, "status")?, "conditions");
    conditions.iter().find(|condition| text(condition, "type") == kind)
}

/// Whether a condition is there and true.
pub(super) fn is_true(definition: &Value, kind: &str) -> bool {
    find(definition, kind).is_some_and(|condition| text(condition, "status") == "True")
}

/// Sets a condition. Its time becomes `now` if it is new or its status changes.
pub(super) fn set(definition: &mut Value, condition: &Condition, now: &str) {
    let conditions = list_mut(object_mut(definition, "status"), "conditions");
    let existing = conditions.iter_mut().find(|existing| text(existing, "type") == condition.kind);
    let Some(existing) = existing else {
        conditions.push(json!({
            "type": condition.kind,
            "status": condition.status,
            "lastTransitionTime": now,
            "reason": condition.reason,
            "message": condition.message,
        }));
        return;
    };
    if text(existing, "status") != condition.status || text(existing, "lastTransitionTime").is_empty() {
        existing["lastTransitionTime"] = json!(now);
    }
    existing["status"] = json!(condition.status);
    existing["reason"] = json!(condition.reason);
    existing["message"] = json!(condition.message);
}

fn remove(definition: &mut Value, kind: &str) {
    if find(definition, kind).is_some()
        && let Some(conditions) = definition["status"]["conditions"].as_array_mut()
    {
        conditions.retain(|condition| text(condition, "type") != kind);
    }
}
