//! Requests for certificates: who asks for them, who may decide on them, and who may sign them.

use serde_json::{Value, json};
use watchkeeper_rbac::{About, Request};

use crate::access::Access;
use crate::authentication::Identity;
use crate::object::meta;
use crate::resource::Resource;
use crate::status_error::StatusError;
use crate::write::Subresource;
use crate::write::admission::Attributes;

/// The group and the plural name of CertificateSigningRequests.
pub(crate) const GROUP: &str = "certificates.k8s.io";
pub(crate) const PLURAL: &str = "certificatesigningrequests";

/// Whether objects of a resource are requests for certificates.
fn is_requests(resource: &Resource) -> bool {
    resource.group == GROUP && resource.plural == PLURAL
}

/// Writes into a new request who asks. Whatever the request itself says about that is forgotten.
pub(crate) fn name_requester(resource: &Resource, object: &mut Value, author: Option<&Identity>) {
    if !is_requests(resource) {
        return;
    }
    let spec = meta::fields(meta::fields(object).entry("spec").or_insert(json!({})));
    for field in ["username", "uid", "groups", "extra"] {
        spec.remove(field);
    }
    let Some(author) = author else { return };
    for (field, value) in [("username", &author.user), ("uid", &author.uid)] {
        if !value.is_empty() {
            spec.insert(field.into(), json!(value));
        }
    }
    if !author.groups.is_empty() {
        spec.insert("groups".into(), json!(author.groups));
    }
    if !author.extra.is_empty() {
        spec.insert("extra".into(), json!(author.extra));
    }
}

/// Says of conditions when they came to be, where their writer does not.
pub(crate) fn stamp_conditions(
    resource: &Resource,
    subresource: Subresource,
    new: &mut Value,
    old: &Value,
    now: &str,
) {
    if !is_requests(resource) || !matches!(subresource, Subresource::Status | Subresource::Approval) {
        return;
    }
    let known: Vec<Value> = old["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let conditions = new.get_mut("status").and_then(|status| status.get_mut("conditions"));
    for condition in conditions.and_then(Value::as_array_mut).into_iter().flatten() {
        if condition["lastUpdateTime"].is_null() {
            condition["lastUpdateTime"] = now.into();
        }
        if condition["lastTransitionTime"].is_null() {
            let same = known.iter().find(|known| {
                ["type", "status"].into_iter().all(|field| known[field] == condition[field])
                    && !known["lastTransitionTime"].is_null()
            });
            condition["lastTransitionTime"] =
                same.map_or_else(|| now.into(), |known| known["lastTransitionTime"].clone());
        }
    }
}

/// Refuses a decision on a request, or its certificate, by a client that may not give it for the signer of the request.
pub(crate) fn check_signer(
    access: &Access,
    attributes: &Attributes<'_>,
    verb: &str,
) -> Result<(), StatusError> {
    let (Some(author), Some(old)) = (attributes.context.author.client(), attributes.old) else {
        return Ok(());
    };
    let signer = old["spec"]["signerName"].as_str().unwrap_or_default();
    let domain = signer.split('/').next().unwrap_or_default();
    let may = |name: &str| {
        let about =
            About::Resource { group: GROUP, resource: "signers", subresource: "", namespace: "", name };
        access.judge(author, &Request { verb, about }).is_allowed()
    };
    if may(signer) || may(&format!("{domain}/*")) {
        return Ok(());
    }
    let target = attributes.target;
    let why = format!("user not permitted to {verb} requests with signerName {signer:?}");
    Err(StatusError::forbidden(target.resource.subject(), &target.name, &why))
}
