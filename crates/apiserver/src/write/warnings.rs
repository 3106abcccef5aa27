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
        return of_builtin(kind.kind, object, old).map(str::to_owned).into_iter().collect();
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

/// A warning about an object of a built-in kind.
fn of_builtin(kind: &str, object: &Value, old: Option<&Value>) -> Option<&'static str> {
    let spec = &object["spec"];
    match kind {
        "EndpointSlice" if object["addressType"] == "FQDN" => {
            Some("spec.addressType: FQDN endpoints are deprecated")
        }
        "Service" => {
            let has_external = spec["externalIPs"].as_array().is_some_and(|addresses| !addresses.is_empty());
            (has_external && spec["clusterIP"] != "None" && spec["type"] != "ExternalName")
                .then_some("spec.externalIPs is deprecated and may no longer be implemented in some clusters")
        }
        "CSIDriver" => {
            let asks = spec["tokenRequests"].as_array().is_some_and(|requests| !requests.is_empty());
            let is_new = old.is_none_or(|old| old["spec"]["tokenRequests"] != spec["tokenRequests"]);
            (asks && is_new && spec["serviceAccountTokenInSecrets"].is_null()).then_some(
                "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible logging of tokens in volume attributes",
            )
        }
        "ValidatingAdmissionPolicyBinding" | "MutatingAdmissionPolicyBinding" => {
            Some("admission policies are kept, but not evaluated")
        }
        _ => None,
    }
}
