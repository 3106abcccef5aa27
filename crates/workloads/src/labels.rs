use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

/// Whether a selector selects what has these labels. An empty one selects everything; an operator that is not known,
/// nothing.
pub(crate) fn selects(selector: &LabelSelector, labels: Option<&BTreeMap<String, String>>) -> bool {
    let value = |key: &str| labels.and_then(|labels| labels.get(key));
    let equal = selector.match_labels.iter().flatten().all(|(key, wanted)| value(key) == Some(wanted));
    equal
        && selector.match_expressions.iter().flatten().all(|requirement| {
            let is_one_of = |found: &String| requirement.values.iter().flatten().any(|one| one == found);
            match (requirement.operator.as_str(), value(&requirement.key)) {
                ("In", Some(found)) => is_one_of(found),
                ("NotIn", found) => !found.is_some_and(is_one_of),
                ("Exists", found) => found.is_some(),
                ("DoesNotExist", found) => found.is_none(),
                _ => false,
            }
        })
}

/// Whether all of the first are among the second.
pub(crate) fn contains(
    all: Option<&BTreeMap<String, String>>,
    some: Option<&BTreeMap<String, String>>,
) -> bool {
    some.into_iter().flatten().all(|(key, value)| all.and_then(|all| all.get(key)) == Some(value))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelectorRequirement;

    use super::*;

    #[test]
    fn it_selects_as_kubernetes_does() {
        let labels = BTreeMap::from([("app".to_owned(), "web".to_owned())]);
        let with = |operator: &str, key: &str, values: &[&str]| LabelSelector {
            match_expressions: Some(vec![LabelSelectorRequirement {
                key: key.into(),
                operator: operator.into(),
                values: Some(values.iter().map(|value| (*value).into()).collect()),
            }]),
            ..LabelSelector::default()
        };
        let cases = [
            (with("In", "app", &["web", "db"]), true),
            (with("In", "app", &["db"]), false),
            (with("In", "tier", &["db"]), false),
            (with("NotIn", "app", &["web"]), false),
            (with("NotIn", "tier", &["web"]), true),
            (with("Exists", "app", &[]), true),
            (with("DoesNotExist", "app", &[]), false),
            (with("Sounds", "app", &[]), false),
            (LabelSelector::default(), true),
            (LabelSelector { match_labels: Some(labels.clone()), ..LabelSelector::default() }, true),
        ];
        for (selector, expected) in cases {
            assert_eq!(selects(&selector, Some(&labels)), expected, "{selector:?}");
        }
    }
}
