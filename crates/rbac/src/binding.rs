use std::fmt;

use serde_json::{Value, json};

use crate::User;
use crate::role::text;

/// Gives the rules of a role to subjects: in one namespace, or everywhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// The namespace of a RoleBinding; empty for a ClusterRoleBinding.
    pub namespace: String,
    /// The name of the binding.
    pub name: String,
    /// The role.
    pub role: RoleRef,
    /// The subjects that the role is given to.
    pub subjects: Vec<Subject>,
}

/// The role that a binding gives to its subjects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleRef {
    /// `Role` or `ClusterRole`; anything else leads nowhere.
    pub kind: String,
    /// The name of the role. A Role is in the namespace of the binding.
    pub name: String,
}

/// A subject that a role is given to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// `User`, `Group` or `ServiceAccount`; anything else is nobody.
    pub kind: String,
    /// The name of the user, the group or the account.
    pub name: String,
    /// The namespace of the account; if empty, that of the binding.
    pub namespace: String,
}

impl Binding {
    /// Reads a RoleBinding or ClusterRoleBinding object.
    pub fn read(object: &Value) -> Self {
        let metadata = &object["metadata"];
        let subjects = object["subjects"].as_array().into_iter().flatten();
        Self {
            namespace: text(&metadata["namespace"]),
            name: text(&metadata["name"]),
            role: RoleRef { kind: text(&object["roleRef"]["kind"]), name: text(&object["roleRef"]["name"]) },
            subjects: subjects.map(Subject::read).collect(),
        }
    }

    /// The RoleBinding or ClusterRoleBinding object.
    pub fn value(&self) -> Value {
        let mut object = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": if self.namespace.is_empty() { "ClusterRoleBinding" } else { "RoleBinding" },
            "metadata": {"name": self.name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": self.role.kind, "name": self.role.name},
        });
        if !self.namespace.is_empty() {
            object["metadata"]["namespace"] = self.namespace.as_str().into();
        }
        if !self.subjects.is_empty() {
            object["subjects"] = self.subjects.iter().map(Subject::value).collect();
        }
        object
    }

    /// The first of its subjects that a user is.
    pub fn subject(&self, user: &User<'_>) -> Option<&Subject> {
        self.subjects.iter().find(|subject| subject.is(user, &self.namespace))
    }
}

impl Subject {
    fn read(subject: &Value) -> Self {
        Self {
            kind: text(&subject["kind"]),
            name: text(&subject["name"]),
            namespace: text(&subject["namespace"]),
        }
    }

    /// The subject, as objects have it.
    pub fn value(&self) -> Value {
        if self.kind == "ServiceAccount" {
            return json!({"kind": self.kind, "name": self.name, "namespace": self.namespace});
        }
        json!({"apiGroup": "rbac.authorization.k8s.io", "kind": self.kind, "name": self.name})
    }

    /// The namespace of a service account in a binding of this namespace.
    pub(crate) fn namespace_in<'a>(&'a self, binding: &'a str) -> &'a str {
        if self.namespace.is_empty() { binding } else { &self.namespace }
    }

    /// Whether a user is this subject of a binding in this namespace.
    fn is(&self, user: &User<'_>, namespace: &str) -> bool {
        match self.kind.as_str() {
            "User" => self.name == user.name,
            "Group" => user.is_in(&self.name),
            "ServiceAccount" => {
                let namespace = self.namespace_in(namespace);
                let rest = user.name.strip_prefix("system:serviceaccount:");
                let name = rest.and_then(|rest| rest.strip_prefix(namespace)?.strip_prefix(':'));
                !namespace.is_empty() && name == Some(self.name.as_str())
            }
            _ => false,
        }
    }

    /// The subject, as decisions name it.
    pub(crate) fn described<'a>(&'a self, namespace: &'a str) -> impl fmt::Display + 'a {
        fmt::from_fn(move |f| match self.kind.as_str() {
            "ServiceAccount" => {
                write!(f, "{} {:?}", self.kind, format!("{}/{}", self.name, self.namespace_in(namespace)))
            }
            kind => write!(f, "{kind} {:?}", self.name),
        })
    }
}
