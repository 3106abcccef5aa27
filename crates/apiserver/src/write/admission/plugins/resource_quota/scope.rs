//! The scopes of quotas: which Pods and claims they are about.

use serde_json::Value;

/// What a scope asks for.
pub(super) struct Selector<'a> {
    pub(super) scope: &'a str,
    pub(super) operator: &'a str,
    pub(super) values: Vec<&'a str>,
}

impl<'a> Selector<'a> {
    /// All scopes of a quota.
    pub(super) fn of(quota: &'a Value) -> Vec<Self> {
        let list = |value: &'a Value| value.as_array().into_iter().flatten();
        let text = |value: &'a Value| value.as_str().unwrap_or_default();
        let spec = &quota["spec"];
        let plain = list(&spec["scopes"]).map(|scope| Self {
            scope: text(scope),
            operator: "Exists",
            values: Vec::new(),
        });
        let selectors = list(&spec["scopeSelector"]["matchExpressions"]).map(|expression| Self {
            scope: text(&expression["scopeName"]),
            operator: text(&expression["operator"]),
            values: list(&expression["values"]).map(text).collect(),
        });
        plain.chain(selectors).collect()
    }

    /// Whether a name is one that is asked for; `None` is no name.
    fn selects(&self, name: Option<&str>) -> bool {
        match self.operator {
            "In" => name.is_some_and(|name| self.values.contains(&name)),
            "NotIn" => name.is_none_or(|name| !self.values.contains(&name)),
            "Exists" => name.is_some(),
            "DoesNotExist" => name.is_none(),
            _ => false,
        }
    }
}

/// Whether a Pod ends by itself.
pub(super) fn is_terminating(pod: &Value) -> bool {
    pod["spec"]["activeDeadlineSeconds"].as_i64().is_some_and(|seconds| seconds >= 0)
}

pub(super) fn has_pod(pod: &Value, selector: &Selector<'_>) -> bool {
    let is_best_effort = || pod["status"]["qosClass"] == "BestEffort";
    match selector.scope {
        "Terminating" => is_terminating(pod),
        "NotTerminating" => !is_terminating(pod),
        "BestEffort" => is_best_effort(),
        "NotBestEffort" => !is_best_effort(),
        "PriorityClass" => {
            selector.selects(pod["spec"]["priorityClassName"].as_str().filter(|name| !name.is_empty()))
        }
        "CrossNamespacePodAffinity" => reaches_other_namespaces(pod),
        _ => false,
    }
}

/// Whether a Pod wants to be near Pods of other namespaces, or far from them.
fn reaches_other_namespaces(pod: &Value) -> bool {
    let affinities = ["podAffinity", "podAntiAffinity"].map(|kind| &pod["spec"]["affinity"][kind]);
    affinities.into_iter().any(|affinity| {
        let list = |field: &str| affinity[field].as_array().into_iter().flatten();
        let preferred = list("preferredDuringSchedulingIgnoredDuringExecution")
            .map(|weighted| &weighted["podAffinityTerm"]);
        let mut terms = list("requiredDuringSchedulingIgnoredDuringExecution").chain(preferred);
        terms.any(|term| {
            term["namespaces"].as_array().is_some_and(|names| !names.is_empty())
                || term["namespaceSelector"].is_object()
        })
    })
}

pub(super) fn has_claim(claim: &Value, selector: &Selector<'_>) -> bool {
    if selector.scope != "VolumeAttributesClass" {
        return false;
    }
    let names = [
        &claim["spec"]["volumeAttributesClassName"],
        &claim["status"]["currentVolumeAttributesClassName"],
        &claim["status"]["modifyVolumeStatus"]["targetVolumeAttributesClassName"],
    ];
    let names: Vec<&str> =
        names.into_iter().filter_map(Value::as_str).filter(|name| !name.is_empty()).collect();
    match names.is_empty() {
        true => selector.selects(None),
        false => names.into_iter().any(|name| selector.selects(Some(name))),
    }
}
