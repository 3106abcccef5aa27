//! Requests for certificates: who asks for them, who may decide on them, and who may sign them.

use serde_json::{Value, json};
use watchkeeper_rbac::{About, Request};

use crate::authentication::{Identity, MASTERS};
use crate::failure::Failure;
use crate::meta;
use crate::resource::Resource;
use crate::server::Server;
use crate::write::{Manner, Part, Place};

const GROUP: &str = "certificates.k8s.io";
/// Who signs certificates of users.
const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";

/// Whether objects of a resource are requests for certificates.
fn is_requests(resource: &Resource) -> bool {
    resource.group == GROUP && resource.plural == "certificatesigningrequests"
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
pub(crate) fn stamp_conditions(resource: &Resource, part: Part, new: &mut Value, old: &Value, now: &str) {
    if !is_requests(resource) || !matches!(part, Part::Status | Part::Approval) {
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

/// Refuses a new request for a certificate that would make its owner a master of the cluster.
pub(crate) fn check_request(place: &Place, object: &Value) -> Result<(), Failure> {
    let is_dangerous = is_requests(&place.resource)
        && object["spec"]["signerName"] == CLIENT_SIGNER
        && watchkeeper_kinds::requested_organizations(object).iter().any(|group| group == MASTERS);
    if is_dangerous {
        let why = format!("use of {CLIENT_SIGNER} signer with {MASTERS} group is not allowed");
        return Err(Failure::forbidden(place.resource.subject(), &place.name, &why));
    }
    Ok(())
}

impl Server {
    /// Refuses a decision on a request, or its certificate, by one who may not give it for the signer of the request.
    pub(crate) fn check_signer(
        &self,
        place: &Place,
        part: Part,
        new: &Value,
        old: &Value,
        manner: &Manner,
    ) -> Result<(), Failure> {
        let Some(author) = manner.author.as_ref().filter(|_| is_requests(&place.resource)) else {
            return Ok(());
        };
        let verb = match part {
            Part::Approval => "approve",
            Part::Status if new["status"] != old["status"] => "sign",
            _ => return Ok(()),
        };
        let signer = old["spec"]["signerName"].as_str().unwrap_or_default();
        let domain = signer.split('/').next().unwrap_or_default();
        let may = |name: &str| {
            let about =
                About::Resource { group: GROUP, resource: "signers", subresource: "", namespace: "", name };
            self.judge(author, &Request { verb, about }).is_allowed()
        };
        if may(signer) || may(&format!("{domain}/*")) {
            return Ok(());
        }
        let why = format!("user not permitted to {verb} requests with signerName {signer:?}");
        Err(Failure::forbidden(place.resource.subject(), &place.name, &why))
    }
}
