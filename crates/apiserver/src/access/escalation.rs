//! Nobody gives away rights that they do not have, neither in a role nor by binding one.

use serde_json::Value;
use watchkeeper_rbac::{About, Binding, Request, Rule, describe_missing, missing};

use super::{Access, GROUP, is_master, user};
use crate::authentication::Identity;
use crate::object::meta;
use crate::resource::ObjectRef;
use crate::status_error::StatusError;

impl Access {
    /// Refuses a role or a binding by which its writer would give away rights that they do not have.
    pub(crate) fn check_escalation(
        &self,
        place: &ObjectRef,
        new: &Value,
        old: Option<&Value>,
        author: Option<&Identity>,
    ) -> Result<(), StatusError> {
        let Some(author) = author else { return Ok(()) };
        if place.resource.group != GROUP
            || is_master(author)
            || self.authorization != super::Authorization::Rbac
            || old.is_some_and(|old| only_owners_change(new, old))
        {
            return Ok(());
        }
        let namespace = place.namespace.as_deref().unwrap_or_default();
        let name = meta::name(new);
        match place.resource.plural.as_str() {
            "roles" | "clusterroles" => {
                if self.may(author, "escalate", &place.resource.plural, namespace, &place.name) {
                    return Ok(());
                }
                self.check_held(place, author, namespace, name, &Rule::read_all(&new["rules"]))?;
                let is_sum = |object: &Value| {
                    object["aggregationRule"]["clusterRoleSelectors"]
                        .as_array()
                        .is_some_and(|selectors| !selectors.is_empty())
                };
                if (is_sum(new) || old.is_some_and(is_sum)) && !self.holds_everything(author) {
                    let why = "must have cluster-admin privileges to use the aggregationRule";
                    return Err(StatusError::forbidden(place.resource.subject(), name, why));
                }
                Ok(())
            }
            "rolebindings" | "clusterrolebindings" => {
                let mut binding = Binding::read(new);
                binding.namespace = namespace.to_owned();
                let bound = match binding.role.kind.as_str() {
                    "Role" => "roles",
                    _ => "clusterroles",
                };
                if self.may(author, "bind", bound, namespace, &binding.role.name) {
                    return Ok(());
                }
                let rules = self.policy.read().rules_in(&binding).map(<[Rule]>::to_vec);
                let rules = rules.map_err(|why| missing_role(place, &binding, why))?;
                self.check_held(place, author, namespace, name, &rules)
            }
            _ => Ok(()),
        }
    }

    fn may(&self, author: &Identity, verb: &str, resource: &str, namespace: &str, name: &str) -> bool {
        let about = About::Resource { group: GROUP, resource, subresource: "", namespace, name };
        self.judge(author, &Request { verb, about }).is_allowed()
    }

    fn check_held(
        &self,
        place: &ObjectRef,
        author: &Identity,
        namespace: &str,
        name: &str,
        wanted: &[Rule],
    ) -> Result<(), StatusError> {
        let held = self.policy.read().rules_of(&user(author), namespace);
        let missing = missing(&held.rules, wanted);
        if missing.is_empty() {
            return Ok(());
        }
        let why = describe_missing(&user(author), missing, &held.failures);
        Err(StatusError::forbidden(place.resource.subject(), name, &why))
    }

    /// Whether somebody may do everything: who sums up roles gathers whatever others put into them.
    fn holds_everything(&self, author: &Identity) -> bool {
        let all = || vec!["*".to_owned()];
        let everything = [
            Rule { verbs: all(), api_groups: all(), resources: all(), ..Rule::default() },
            Rule { verbs: all(), non_resource_urls: all(), ..Rule::default() },
        ];
        let held = self.policy.read().rules_of(&user(author), "");
        missing(&held.rules, &everything).is_empty()
    }
}

/// The answer to binding a role that is not there; it names the wrong resource, as in kube-apiserver.
fn missing_role(place: &ObjectRef, binding: &Binding, why: String) -> StatusError {
    match binding.role.kind.as_str() {
        "Role" | "ClusterRole" => StatusError::not_found(place.resource.subject(), &binding.role.name),
        _ => StatusError::untyped(why),
    }
}

/// Whether nothing differs but what the garbage collector has to change: owners and finalizers.
fn only_owners_change(new: &Value, old: &Value) -> bool {
    let stripped = |object: &Value| {
        let mut object = object.clone();
        for field in ["ownerReferences", "finalizers", "managedFields", "resourceVersion"] {
            meta::remove(&mut object, field);
        }
        object
    };
    stripped(new) == stripped(old)
}
