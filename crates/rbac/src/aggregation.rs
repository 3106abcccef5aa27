use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::role::text;
use crate::{ClusterRole, Rule};

/// Selects roles by their labels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    /// Labels that have to be there with these values.
    pub labels: BTreeMap<String, String>,
    expressions: Vec<Expression>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Expression {
    key: String,
    operator: String,
    values: Vec<String>,
}

impl Selector {
    /// Selects what has a label with this value.
    pub fn label(name: &str, value: &str) -> Self {
        Self { labels: [(name.to_owned(), value.to_owned())].into(), expressions: Vec::new() }
    }

    /// Reads a label selector, as objects have it.
    pub fn read(selector: &Value) -> Self {
        let labels = selector["matchLabels"].as_object().into_iter().flatten();
        let expressions = selector["matchExpressions"].as_array().into_iter().flatten();
        Self {
            labels: labels.map(|(name, value)| (name.clone(), text(value))).collect(),
            expressions: expressions.map(Expression::read).collect(),
        }
    }

    /// The label selector, as objects have it.
    pub fn value(&self) -> Value {
        let mut object = json!({});
        if !self.labels.is_empty() {
            object["matchLabels"] = json!(self.labels);
        }
        if !self.expressions.is_empty() {
            object["matchExpressions"] = self.expressions.iter().map(Expression::value).collect();
        }
        object
    }

    /// Whether it selects something with these labels. An empty selector selects everything.
    pub fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        self.labels.iter().all(|(name, value)| labels.get(name) == Some(value))
            && self.expressions.iter().all(|expression| expression.holds(labels))
    }
}

impl Expression {
    fn read(expression: &Value) -> Self {
        let values = expression["values"].as_array().into_iter().flatten();
        Self {
            key: text(&expression["key"]),
            operator: text(&expression["operator"]),
            values: values.map(text).collect(),
        }
    }

    fn value(&self) -> Value {
        let mut object = json!({"key": self.key, "operator": self.operator});
        if !self.values.is_empty() {
            object["values"] = json!(self.values);
        }
        object
    }

    fn holds(&self, labels: &BTreeMap<String, String>) -> bool {
        let value = labels.get(&self.key);
        let is_one_of = value.is_some_and(|value| self.values.contains(value));
        match self.operator.as_str() {
            "In" => is_one_of,
            "NotIn" => !is_one_of,
            "Exists" => value.is_some(),
            "DoesNotExist" => value.is_none(),
            _ => false,
        }
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
