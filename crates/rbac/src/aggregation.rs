use std::collections::BTreeMap;

use serde_json::{Value, json};
use watchkeeper_wire::LabelSelector;

use crate::{ClusterRole, Rule};

/// Selects roles by their labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector {
    object: Value,
    selector: LabelSelector,
}

impl Selector {
    /// Selects what has a label with this value.
    pub fn label(name: &str, value: &str) -> Self {
        Self::read(&json!({"matchLabels": {name: value}}))
    }

    /// Reads a label selector, as objects have it. One that is not valid selects nothing.
    pub fn read(selector: &Value) -> Self {
        let read = LabelSelector::from_object(Some(selector)).unwrap_or_else(|_| LabelSelector::nothing());
        Self { object: selector.clone(), selector: read }
    }

    /// The label selector, as objects have it.
    pub fn value(&self) -> Value {
        self.object.clone()
    }

    /// Whether it selects something with these labels. An empty selector selects everything.
    pub fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        self.selector.matches_pairs(|key| labels.get(key).map(String::as_str))
    }
}

/// The rules of a role that is the sum of others: those of all roles that its selectors select, selector by selector, each
/// rule once. `None` if it is a role of its own.
pub fn aggregated<'a>(
    role: &ClusterRole,
    roles: impl Iterator<Item = &'a ClusterRole> + Clone,
) -> Option<Vec<Rule>> {
    if role.sum_of.is_empty() {
        return None;
    }
    let mut rules: Vec<Rule> = Vec::new();
    for selector in &role.sum_of {
        let parts = roles.clone().filter(|part| part.name != role.name && selector.selects(&part.labels));
        for rule in parts.flat_map(|part| &part.rules) {
            if !rules.contains(rule) {
                rules.push(rule.clone());
            }
        }
    }
    Some(rules)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn role(name: &str, label: &str, verb: &str) -> ClusterRole {
        ClusterRole::read(&json!({
            "metadata": {"name": name, "labels": {label: "true"}},
            "rules": [{"verbs": [verb], "apiGroups": [""], "resources": ["pods"]}],
        }))
    }

    #[test]
    fn a_sum_has_the_rules_of_its_parts_once_and_none_of_its_own() {
        let sum = ClusterRole::read(&json!({
            "metadata": {"name": "sum", "labels": {"part": "true"}},
            "aggregationRule": {"clusterRoleSelectors": [
                {"matchLabels": {"part": "true"}},
                {"matchExpressions": [{"key": "other", "operator": "In", "values": ["true", "yes"]}]},
            ]},
            "rules": [{"verbs": ["old"], "apiGroups": [""], "resources": ["pods"]}],
        }));
        let roles = [
            role("a", "part", "get"),
            role("b", "part", "list"),
            role("c", "other", "get"),
            role("d", "else", "no"),
            sum.clone(),
        ];
        let rules = aggregated(&sum, roles.iter()).unwrap();
        let verbs: Vec<&str> = rules.iter().map(|rule| rule.verbs[0].as_str()).collect();
        assert_eq!(verbs, ["get", "list"]);
        assert_eq!(aggregated(&roles[0], roles.iter()), None);
    }

    #[test]
    fn selectors_select_as_labels_say() {
        let labels = [("a".to_owned(), "1".to_owned())].into();
        for (selector, selects) in [
            (json!({}), true),
            (json!({"matchLabels": {"a": "1"}}), true),
            (json!({"matchLabels": {"a": "2"}}), false),
            (json!({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["2"]}]}), true),
            (json!({"matchExpressions": [{"key": "b", "operator": "NotIn", "values": ["2"]}]}), true),
            (json!({"matchExpressions": [{"key": "a", "operator": "Exists"}]}), true),
            (json!({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}), false),
            (json!({"matchExpressions": [{"key": "b", "operator": "Like"}]}), false),
        ] {
            assert_eq!(Selector::read(&selector).selects(&labels), selects, "{selector}");
        }
    }
}
