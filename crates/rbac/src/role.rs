use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::{Rule, Selector};

/// A Role: rules in a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role {
    /// The namespace of the role, in which its rules apply.
    pub namespace: String,
    /// The name of the role.
    pub name: String,
    /// The rules.
    pub rules: Vec<Rule>,
}

/// A ClusterRole: rules in all namespaces, and for resources without one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterRole {
    /// The name of the role.
    pub name: String,
    /// The rules. If the role aggregates others, their rules at the time of the last aggregation.
    pub rules: Vec<Rule>,
    /// The labels, by which other roles may aggregate this one.
    pub labels: BTreeMap<String, String>,
    /// The selectors of the roles that this one aggregates; empty if it aggregates none.
    pub sum_of: Vec<Selector>,
}

impl Role {
    /// Reads a Role object.
    pub fn read(object: &Value) -> Self {
        let metadata = &object["metadata"];
        Self {
            namespace: text(&metadata["namespace"]),
            name: text(&metadata["name"]),
            rules: Rule::read_all(&object["rules"]),
        }
    }

    /// The Role object.
    pub fn value(&self) -> Value {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": {"name": self.name, "namespace": self.namespace},
            "rules": self.rules.iter().map(Rule::value).collect::<Vec<_>>(),
        })
    }
}

impl ClusterRole {
    /// Reads a ClusterRole object.
    pub fn read(object: &Value) -> Self {
        let metadata = &object["metadata"];
        let labels = metadata["labels"].as_object().into_iter().flatten();
        let selectors = object["aggregationRule"]["clusterRoleSelectors"].as_array();
        Self {
            name: text(&metadata["name"]),
            rules: Rule::read_all(&object["rules"]),
            labels: labels.map(|(name, value)| (name.clone(), text(value))).collect(),
            sum_of: selectors.into_iter().flatten().map(Selector::read).collect(),
        }
    }

    /// The ClusterRole object.
    pub fn value(&self) -> Value {
        let mut object = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": self.name, "labels": self.labels},
            "rules": self.rules.iter().map(Rule::value).collect::<Vec<_>>(),
        });
        if !self.sum_of.is_empty() {
            let selectors: Vec<Value> = self.sum_of.iter().map(Selector::value).collect();
            object["aggregationRule"] = json!({"clusterRoleSelectors": selectors});
        }
        object
    }
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
