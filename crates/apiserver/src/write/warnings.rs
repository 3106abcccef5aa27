//! Warnings about objects that are accepted.

use serde_json::Value;

use super::admission::webhooks;
use super::operation::{FOREGROUND, ORPHAN};
use crate::crd::Definition;
use crate::object::meta;
use crate::resource::Resource;

/// Warnings for the author of an object, which replaces `old`.
pub(super) fn of(resource: &Resource, object: &Value, old: Option<&Value>) -> Vec<String> {
    if resource.is_crd() {
        return Definition::read(object).map(|definition| definition.warnings()).unwrap_or_default();
    }
    if resource.group == webhooks::GROUP && resource.plural.ends_with("webhookconfigurations") {
        return conditions_of_webhooks(object);
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

/// Warns of conditions that nobody evaluates.
fn conditions_of_webhooks(configuration: &Value) -> Vec<String> {
    let hooks = configuration["webhooks"].as_array().into_iter().flatten().enumerate();
    let with =
        hooks.filter(|(_, hook)| hook["matchConditions"].as_array().is_some_and(|all| !all.is_empty()));
    let warning = |(index, hook): (usize, &Value)| {
        let policy = hook["failurePolicy"].as_str().unwrap_or("Fail");
        format!(
            "webhooks[{index}].matchConditions: not evaluated by this server: the webhook is treated as one that failed (failurePolicy: {policy})"
        )
    };
    with.map(warning).collect()
}
