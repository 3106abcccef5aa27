use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::{Namespaces, Right, Rights, Verbs, When};

/// Verbs that cannot be limited to names: what they are about has none, or has many.
const UNNAMED: [Verbs; 4] = [Verbs::LIST, Verbs::WATCH, Verbs::CREATE, Verbs::DELETE_COLLECTION];
/// Those of them that cannot be limited even if they select objects by their names.
const NEVER_NAMED: [Verbs; 2] = [Verbs::CREATE, Verbs::DELETE_COLLECTION];

/// Rights as rules of RBAC: those of a ClusterRole, and those of a Role in each namespace.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Roles {
    /// The rules of the ClusterRole.
    pub cluster: Vec<Value>,
    /// The rules of the Role in the namespace that the program runs in.
    pub own: Vec<Value>,
    /// The rules of the Roles in other namespaces, by the names of the namespaces.
    pub namespaces: BTreeMap<String, Vec<Value>>,
}

/// The rules that allow these rights and nothing else; only those that are needed when `when` says so.
///
/// Verbs that RBAC cannot limit to names are allowed for all of them.
pub fn roles(rights: &Rights, when: impl Fn(When) -> bool) -> Roles {
    let mut roles = Roles::default();
    let mut cluster = Rules::default();
    let mut own = Rules::default();
    let mut namespaces: BTreeMap<String, Rules> = BTreeMap::new();
    for right in rights.iter().filter(|right| when(right.when)) {
        match &right.namespaces {
            Namespaces::All => cluster.add(right),
            Namespaces::Own => own.add(right),
            Namespaces::These(names) => {
                for name in names {
                    namespaces.entry(name.clone()).or_default().add(right);
                }
            }
        }
    }
    roles.cluster = cluster.into_values();
    roles.own = own.into_values();
    roles.namespaces = namespaces.into_iter().map(|(name, rules)| (name, rules.into_values())).collect();
    roles
}

/// Rules that are being collected: what has the same group, names and verbs is one rule.
#[derive(Default)]
struct Rules(BTreeMap<(String, Vec<String>, Verbs), Vec<String>>);

impl Rules {
    fn add(&mut self, right: &Right) {
        let unnamed: &[Verbs] = if right.selects_names { &NEVER_NAMED } else { &UNNAMED };
        let unnamed = unnamed.iter().fold(Verbs::NONE, |all, verb| all | *verb);
        let parts = if right.names.is_empty() {
            vec![(right.verbs, Vec::new())]
        } else {
            let free = right.verbs.without(right.verbs.without(unnamed));
            vec![(free, Vec::new()), (right.verbs.without(unnamed), right.names.clone())]
        };
        for (verbs, names) in parts {
            if !verbs.is_empty() {
                let resources = self.0.entry((right.resource.group.clone(), names, verbs)).or_default();
                if !resources.contains(&right.target()) {
                    resources.push(right.target());
                }
            }
        }
    }

    fn into_values(self) -> Vec<Value> {
        let rules = self.0.into_iter().map(|((group, names, verbs), resources)| {
            let mut rule = json!({
                "apiGroups": [group],
                "resources": resources,
                "verbs": verbs.names().collect::<Vec<_>>(),
            });
            if !names.is_empty() {
                rule["resourceNames"] = json!(names);
            }
            rule
        });
        rules.collect()
    }
}

impl Roles {
    /// The rules as YAML, as they are pasted into roles; a comment says into which.
    pub fn yaml(&self) -> String {
        let mut text = String::new();
        let mut add = |place: &str, rules: &[Value]| {
            if rules.is_empty() {
                return;
            }
            text.push_str(&format!("# {place}\n"));
            for rule in rules {
                let mut lead = "- ";
                for field in ["apiGroups", "resources", "resourceNames", "verbs"] {
                    if let Some(value) = rule.get(field) {
                        text.push_str(&format!("{lead}{field}: {value}\n"));
                        lead = "  ";
                    }
                }
            }
        };
        add("ClusterRole", &self.cluster);
        add("Role in the namespace of the program", &self.own);
        for (name, rules) in &self.namespaces {
            add(&format!("Role in namespace {name}"), rules);
        }
        text
    }

    /// The objects that give a service account these rights: ClusterRole and Roles of its name, and their bindings. The service
    /// account itself is not among them. `labels` are put on each.
    pub fn objects(&self, name: &str, namespace: &str, labels: &Value) -> Vec<Value> {
        const API: &str = "rbac.authorization.k8s.io";
        let subjects = json!([{"kind": "ServiceAccount", "name": name, "namespace": namespace}]);
        let mut objects = Vec::new();
        let mut add = |kind: &str, place: Option<&str>, rules: &[Value]| {
            if rules.is_empty() {
                return;
            }
            let mut metadata = json!({"name": name});
            if let Some(place) = place {
                metadata["namespace"] = json!(place);
            }
            if labels.as_object().is_some_and(|labels| !labels.is_empty()) {
                metadata["labels"] = labels.clone();
            }
            let api_version = format!("{API}/v1");
            objects
                .push(json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "rules": rules}));
            objects.push(json!({
                "apiVersion": api_version,
                "kind": format!("{kind}Binding"),
                "metadata": metadata,
                "roleRef": {"apiGroup": API, "kind": kind, "name": name},
                "subjects": subjects,
            }));
        };
        add("ClusterRole", None, &self.cluster);
        let mut places = self.namespaces.clone();
        places.entry(namespace.to_owned()).or_default().extend(self.own.iter().cloned());
        for (place, rules) in &places {
            add("Role", Some(place), rules);
        }
        objects
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Requested, Resource};

    fn resource(group: &str, kind: &str, plural: &str) -> Resource {
        Resource {
            group: group.into(),
            version: "v1".into(),
            kind: kind.into(),
            plural: plural.into(),
            namespaced: true,
        }
    }

    fn rights() -> Rights {
        let mut rights = Rights::default();
        let maps = resource("", "ConfigMap", "configmaps");
        rights.add(Right::of(maps.clone(), Verbs::READ, "it watches them"));
        rights.add(Right::of(maps, Verbs::APPLY, "it owns them"));
        rights.add(Right::of(resource("", "Secret", "secrets"), Verbs::READ, "a cache"));
        rights.add(Right::of(resource("demo.dev", "Page", "pages"), Verbs::PATCH, "status").on("status"));
        rights.limit("", "secrets", &["shop".into()]);
        rights.add(Right {
            names: vec!["demo".into()],
            namespaces: Namespaces::Own,
            when: When::ElectingLeader,
            ..Right::of(
                resource("coordination.k8s.io", "Lease", "leases"),
                Verbs::GET | Verbs::CREATE | Verbs::UPDATE,
                "the election",
            )
        });
        rights
    }

    #[test]
    fn rights_become_the_rules_that_allow_them() {
        let roles = roles(&rights(), |_| true);
        assert_eq!(
            json!(roles.cluster),
            json!([
                {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch", "create", "patch"]},
                {"apiGroups": ["demo.dev"], "resources": ["pages/status"], "verbs": ["patch"]},
            ])
        );
        assert_eq!(
            json!(roles.namespaces),
            json!({"shop": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list", "watch"]}]})
        );
        assert_eq!(
            json!(roles.own),
            json!([
                {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create"]},
                {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "update"],
                 "resourceNames": ["demo"]},
            ])
        );
        let objects = roles.objects("demo", "demo-system", &json!({"app": "demo"}));
        let kinds: Vec<String> = objects
            .iter()
            .map(|object| {
                let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
                format!("{}/{namespace}", object["kind"].as_str().unwrap_or_default())
            })
            .collect();
        assert_eq!(
            kinds,
            [
                "ClusterRole/",
                "ClusterRoleBinding/",
                "Role/demo-system",
                "RoleBinding/demo-system",
                "Role/shop",
                "RoleBinding/shop"
            ]
        );
        assert!(super::roles(&rights(), |when| when == When::Always).own.is_empty());
    }

    #[test]
    fn what_was_not_declared_is_refused_with_the_line_to_add() {
        let rights = rights();
        let check =
            |method, path| rights.check(&Requested::read(method, path)).map_err(|error| error.to_string());
        for (method, path) in [
            ("GET", "/api/v1/configmaps?watch=true"),
            ("PATCH", "/api/v1/namespaces/a/configmaps/b"),
            ("GET", "/api/v1/namespaces/shop/secrets"),
            ("PATCH", "/apis/demo.dev/v1/namespaces/a/pages/b/status"),
            ("PUT", "/apis/coordination.k8s.io/v1/namespaces/a/leases/demo"),
            ("GET", "/apis/demo.dev/v1"),
            ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"),
        ] {
            assert_eq!(check(method, path), Ok(()), "{method} {path}");
        }
        for (method, path, line) in [
            ("DELETE", "/api/v1/namespaces/a/configmaps/b", ".writes::<ConfigMap>(Verbs::DELETE)"),
            ("PUT", "/apis/demo.dev/v1/namespaces/a/pages/b", ".writes::<Page>(Verbs::UPDATE)"),
            ("PATCH", "/api/v1/namespaces/a/configmaps/b/status", ".writes_status::<ConfigMap>()"),
            ("GET", "/api/v1/namespaces/a/pods/b", ".reads_live::<K>()"),
            ("GET", "/api/v1/namespaces/bank/secrets", "in other namespaces"),
            ("GET", "/api/v1/secrets", "in other namespaces"),
            ("GET", "/apis/coordination.k8s.io/v1/leases/demo", "in other namespaces"),
            ("PUT", "/apis/coordination.k8s.io/v1/namespaces/a/leases/other", "of other names"),
        ] {
            let error = check(method, path).unwrap_err();
            assert!(error.contains(line), "{method} {path}: {error}");
        }
        let mut open = rights.clone();
        open.set_incomplete();
        assert_eq!(open.check(&Requested::read("GET", "/api/v1/pods")), Ok(()));
    }

    #[test]
    fn rights_that_nobody_used_are_told() {
        let requests =
            ["/api/v1/configmaps", "/api/v1/configmaps?watch=true", "/api/v1/namespaces/shop/secrets"];
        let unused = rights().unused(requests.iter().map(|path| Requested::read("GET", path)));
        let unused: Vec<String> =
            unused.iter().map(|right| format!("{} {}", right.target(), right.verbs)).collect();
        assert_eq!(
            unused,
            [
                "configmaps get, create, patch",
                "secrets get, watch",
                "leases get, create, update",
                "pages/status patch"
            ]
        );
    }
}
