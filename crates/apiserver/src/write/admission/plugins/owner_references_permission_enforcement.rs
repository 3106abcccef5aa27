//! Owners are set by those who may delete the object, and block the deletion of an owner only if its finalizers may be set.
//! Off unless it is switched on.

use std::sync::Arc;

use serde_json::Value;
use watchkeeper_rbac::{About, Request};

use super::{Admitted, Attributes, Make, Plugin, Scope, Verb, done};
use crate::access::Access;
use crate::authentication::Identity;
use crate::object::meta;
use crate::registry::Registrar;
use crate::status_error::StatusError;

pub(in crate::write::admission) const PLUGIN: (&str, Make) =
    ("OwnerReferencesPermissionEnforcement", |handles| {
        Box::new(OwnerReferencesPermissionEnforcement {
            access: Arc::clone(&handles.access),
            registrar: Arc::clone(&handles.registrar),
        })
    });

struct OwnerReferencesPermissionEnforcement {
    access: Arc<Access>,
    registrar: Arc<Registrar>,
}

impl Plugin for OwnerReferencesPermissionEnforcement {
    fn handles(&self, scope: &Scope<'_>) -> bool {
        matches!(scope.verb, Verb::Create | Verb::Update)
            // The status of a Pod cannot change its owners.
            && !(scope.subresource == "status" && scope.is_below("", "pods"))
    }

    fn validate<'a>(
        &'a self,
        attributes: &'a Attributes<'a>,
        object: &'a Value,
        _: &'a mut Vec<String>,
    ) -> Admitted<'a> {
        done(match attributes.context.author.client() {
            Some(author) => self.check(attributes, object, author),
            None => Ok(()),
        })
    }
}

impl OwnerReferencesPermissionEnforcement {
    fn check(
        &self,
        attributes: &Attributes<'_>,
        object: &Value,
        author: &Identity,
    ) -> Result<(), StatusError> {
        let old = attributes.old.unwrap_or(&Value::Null);
        if owners(object) == owners(old) {
            return Ok(());
        }
        let target = attributes.target;
        if attributes.verb != Verb::Create {
            let about = About::Resource {
                group: &target.resource.group,
                resource: &target.resource.plural,
                subresource: attributes.subresource,
                namespace: attributes.namespace_name(),
                name: &target.name,
            };
            let verdict = self.access.judge(author, &Request { verb: "delete", about });
            if !verdict.is_allowed() {
                return Err(attributes.forbidden(&format!(
                    "cannot set an ownerRef on a resource you can't delete: {}, <nil>",
                    verdict.reason()
                )));
            }
        }
        let blocking = newly_blocking(object, old);
        if blocking.is_empty() || self.may_finalize(author, "*", "*", "", "*") {
            return Ok(());
        }
        blocking.into_iter().try_for_each(|owner| self.check_blocking(attributes, owner, author))
    }

    /// Refuses an owner that would have to wait and whose finalizers the author may not set.
    fn check_blocking(
        &self,
        attributes: &Attributes<'_>,
        owner: &Value,
        author: &Identity,
    ) -> Result<(), StatusError> {
        let text = |field: &str| owner[field].as_str().unwrap_or_default();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let Some(resource) = self.registrar.current().find_kind(group, version, kind) else {
            return Err(attributes.forbidden(&format!(
                "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion {api_version} Kind {kind}: no matches for kind {kind:?} in version {api_version:?}"
            )));
        };
        let namespace = if resource.namespaced { attributes.namespace_name() } else { "" };
        if self.may_finalize(author, &resource.group, &resource.plural, namespace, text("name")) {
            return Ok(());
        }
        Err(attributes.forbidden(
            "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: , <nil>",
        ))
    }

    fn may_finalize(
        &self,
        author: &Identity,
        group: &str,
        resource: &str,
        namespace: &str,
        name: &str,
    ) -> bool {
        let about = About::Resource { group, resource, subresource: "finalizers", namespace, name };
        self.access.judge(author, &Request { verb: "update", about }).is_allowed()
    }
}

fn owners(object: &Value) -> &[Value] {
    meta::get(object, "ownerReferences").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// The owners that have to wait for an object and did not before.
fn newly_blocking<'a>(object: &'a Value, old: &Value) -> Vec<&'a Value> {
    let blocks = |owner: &Value| owner["blockOwnerDeletion"] == true;
    let before = owners(old);
    let did = |owner: &Value| before.iter().any(|known| known["uid"] == owner["uid"] && blocks(known));
    owners(object).iter().filter(|owner| blocks(owner) && !did(owner)).collect()
}
