//! Changing objects.
//!
//! Every change is a loop: read the object, make the next one of it, commit on the condition that nobody else was faster.
//! What the client insists on (a version, an id) is checked inside of it.

#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

mod allocate;
mod apply;
mod create;
mod delete;
mod document_order;
mod incoming;
mod patch;
mod scale;
mod update;

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;
use watchkeeper_schema::Weight;
use watchkeeper_storage::{Entry, Revision};

pub(crate) use allocate::{Allocator, Holdings, Refusal, Reservation};
pub(crate) use apply::Applying;
pub(crate) use delete::{FOREGROUND, ORPHAN};
pub(crate) use incoming::{Incoming, decode, decode_as};
pub(crate) use patch::Patch;
pub(crate) use scale::ScaleChange;
pub(crate) use watchkeeper_kinds::Write as Part;

use crate::MAX_REQUEST_BYTES;
use crate::authentication::Identity;
use crate::budget::LARGE;
use crate::definition::Definition;
use crate::failure::Failure;
use crate::meta;
use crate::request::write_options::FieldValidation;
use crate::resource::Resource;

/// How often a change is tried when others are faster. Everybody else made progress each time.
const ATTEMPTS: usize = 100;

/// An object, or the place where one will be.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) resource: Arc<Resource>,
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
}

impl Place {
    /// The place of the object under a key.
    pub(crate) fn of(resource: &Arc<Resource>, key: &str) -> Self {
        let (namespace, name) = resource.split_key(key);
        Self {
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
            resource: Arc::clone(resource),
        }
    }

    pub(crate) fn key(&self) -> String {
        self.resource.key(self.namespace.as_deref(), &self.name)
    }

    /// The key that kube-apiserver has for it: the built-in kinds have no group in theirs.
    fn shown_key(&self) -> String {
        let key = self.key();
        match self.resource.builtin_kind() {
            Some(_)
                if !self.resource.is_definitions() && self.resource.group != crate::api_services::GROUP =>
            {
                let rest = key.strip_prefix(self.resource.prefix.as_str()).unwrap_or(&key);
                let folder = match (self.resource.group.as_str(), self.resource.plural.as_str()) {
                    ("", "services") => "services/specs",
                    ("", "endpoints") => "services/endpoints",
                    ("", "nodes") => "minions",
                    ("networking.k8s.io", "ingresses") => "ingress",
                    (_, plural) => plural,
                };
                format!("/registry/{folder}/{rest}")
            }
            _ => key,
        }
    }

    pub(crate) fn not_found(&self) -> Failure {
        Failure::not_found(self.resource.subject(), &self.name)
    }
}

/// How a change is to be made.
#[derive(Clone, Debug, Default)]
pub(crate) struct Manner {
    /// Everything is done but the change itself.
    pub(crate) dry_run: bool,
    /// Who is said to manage the fields that are written.
    pub(crate) manager: String,
    /// What is done about fields that are unknown or given twice.
    pub(crate) field_validation: FieldValidation,
    /// Whether the fields that are written were worked out already.
    pub(crate) is_apply: bool,
    /// On whose behalf; `None` if it is the server itself.
    pub(crate) author: Option<Arc<Identity>>,
}

/// What a change led to.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) object: Value,
    /// The revision it was committed at; `None` if nothing was committed.
    pub(crate) revision: Option<Revision>,
    pub(crate) created: bool,
    /// What the client should be told, although it succeeded.
    pub(crate) warnings: Vec<String>,
}

/// An entry that was there when a change was decided on, and has to be there still when it is made.
struct Guard {
    key: String,
    modified: Revision,
}

/// The stored form of an object, refused if it is too large for any request to bring it back.
fn encode(resource: &Resource, object: &Value) -> Result<Bytes, Failure> {
    let bytes = resource.encode(object);
    if bytes.len() > 2 * MAX_REQUEST_BYTES {
        return Err(Failure::too_large(&format!("limit is {MAX_REQUEST_BYTES}")));
    }
    // Patches can make more of an object than any body would be.
    if bytes.len() >= LARGE {
        Weight::default().value(object).map_err(|error| Failure::too_large(&error.to_string()))?;
    }
    Ok(bytes)
}

/// What the writer of an object should know although it was accepted.
fn remarks(resource: &Resource, object: &Value, old: Option<&Value>) -> Vec<String> {
    if resource.is_definitions() {
        return Definition::read(object).map(|definition| definition.warnings()).unwrap_or_default();
    }
    if let Some(kind) = resource.builtin_kind() {
        return remark(kind.kind, object, old).map(str::to_owned).into_iter().collect();
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

/// What the writer of an object of a built-in kind should know.
fn remark(kind: &str, object: &Value, old: Option<&Value>) -> Option<&'static str> {
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

/// The version of an entry, as objects say it.
fn version(entry: &Entry) -> String {
    entry.modified.to_string()
}
