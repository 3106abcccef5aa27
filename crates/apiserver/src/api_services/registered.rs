use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::registry::Registry;

/// Says that an APIService is written by the server itself, and when.
const AUTOMANAGED: &str = "kube-aggregator.kubernetes.io/automanaged";

/// The built-in groups with their versions and priorities, as kube-apiserver has them. What is not listed is not registered:
/// APIServices themselves among it.
const PRIORITIES: [(&str, &str, i32, i32); 21] = [
    ("", "v1", 18_000, 1),
    ("apps", "v1", 17_800, 15),
    ("events.k8s.io", "v1", 17_750, 15),
    ("authentication.k8s.io", "v1", 17_700, 15),
    ("authorization.k8s.io", "v1", 17_600, 15),
    ("autoscaling", "v2", 17_500, 30),
    ("autoscaling", "v1", 17_500, 15),
    ("batch", "v1", 17_400, 15),
    ("certificates.k8s.io", "v1", 17_300, 15),
    ("networking.k8s.io", "v1", 17_200, 15),
    ("policy", "v1", 17_100, 15),
    ("rbac.authorization.k8s.io", "v1", 17_000, 15),
    ("storage.k8s.io", "v1", 16_800, 15),
    ("apiextensions.k8s.io", "v1", 16_700, 15),
    ("admissionregistration.k8s.io", "v1", 16_700, 15),
    ("scheduling.k8s.io", "v1", 16_600, 15),
    ("coordination.k8s.io", "v1", 16_500, 15),
    ("node.k8s.io", "v1", 16_300, 15),
    ("discovery.k8s.io", "v1", 16_200, 15),
    ("resource.k8s.io", "v1", 16_200, 21),
    ("flowcontrol.apiserver.k8s.io", "v1", 16_100, 21),
];

/// The priorities of every group and version that definitions define.
const CUSTOM: (i32, i32) = (1000, 100);

/// A group and version that this server serves, as it registers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Registered {
    group: String,
    version: String,
    group_priority: i32,
    version_priority: i32,
    /// Whether it is kept as it is at all times, and not only put right at the start.
    pub(crate) always: bool,
}

impl Registered {
    pub(crate) fn name(&self) -> String {
        format!("{}.{}", self.version, self.group)
    }

    /// The APIService, as it is made.
    pub(crate) fn object(&self) -> Value {
        json!({
            "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
            "metadata": {
                "name": self.name(),
                "labels": {AUTOMANAGED: if self.always { "true" } else { "onstart" }},
            },
            "spec": self.spec(),
        })
    }

    pub(crate) fn spec(&self) -> Value {
        let mut spec = json!({
            "version": self.version,
            "groupPriorityMinimum": self.group_priority,
            "versionPriority": self.version_priority,
        });
        if !self.group.is_empty() {
            spec["group"] = self.group.as_str().into();
        }
        spec
    }

    /// Whether the server may change an APIService: at the start all that it made, later those that it keeps.
    pub(crate) fn is_managed(object: &Value, is_start: bool) -> bool {
        match object["metadata"]["labels"][AUTOMANAGED].as_str() {
            Some("true") => true,
            Some("onstart") => is_start,
            _ => false,
        }
    }
}

/// The built-in groups and versions.
pub(crate) fn builtin() -> impl Iterator<Item = Registered> {
    PRIORITIES.iter().map(|(group, version, group_priority, version_priority)| Registered {
        group: (*group).into(),
        version: (*version).into(),
        group_priority: *group_priority,
        version_priority: *version_priority,
        always: false,
    })
}

/// How important a group is that this server serves itself. That of APIServices, which is not registered, comes first.
pub(crate) fn group_priority(group: &str) -> i32 {
    match PRIORITIES.iter().find(|(name, ..)| *name == group) {
        Some((_, _, priority, _)) => *priority,
        None if group == super::GROUP => i32::MAX,
        None => CUSTOM.0,
    }
}

/// The groups and versions that definitions define, by the names of their APIServices.
pub(crate) fn custom(registry: &Registry) -> BTreeMap<String, Registered> {
    let mut found = BTreeMap::new();
    for group in registry.groups.iter().filter(|group| !group.is_builtin()) {
        for version in &group.versions {
            let registered = Registered {
                group: group.name.clone(),
                version: version.version.clone(),
                group_priority: CUSTOM.0,
                version_priority: CUSTOM.1,
                always: true,
            };
            found.insert(registered.name(), registered);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_version_but_that_of_apiservices_has_a_priority() {
        let known: Vec<(&str, &str)> =
            PRIORITIES.iter().map(|(group, version, ..)| (*group, *version)).collect();
        for kind in watchkeeper_kinds::all() {
            let listed = known.contains(&(kind.group, kind.version));
            assert_eq!(listed, kind.group != "apiregistration.k8s.io", "{}/{}", kind.group, kind.version);
        }
    }
}
