use crate::{ClusterRole, Rule};

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
    use serde_json::json;

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
}
