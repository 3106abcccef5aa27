//! The users of the cases: each may do one narrow thing.

use serde_json::{Value, json};

use super::kind::LABEL;

/// A user and all that they may do.
#[derive(Debug)]
pub(super) struct User {
    /// The name, which is the bearer token, too.
    pub(super) name: &'static str,
    /// The namespace in which the rights are given; empty for the whole cluster.
    pub(super) scope: &'static str,
    /// `VERBS RESOURCES GROUPS [NAMES]`, `VERBS PATHS`, or `role NAME` for a ClusterRole that every server has. Lists are
    /// separated by commas; the core group is called `core`.
    pub(super) rules: &'static [&'static str],
    /// A group that the rights are given to, instead of to the user.
    pub(super) group: &'static str,
}

/// Who sends no credentials.
pub(super) const ANONYMOUS: &str = "anonymous";

/// Whose credentials nobody knows.
pub(super) const STRANGER: &str = "stranger";

const fn user(name: &'static str, scope: &'static str, rules: &'static [&'static str]) -> User {
    User { name, scope, rules, group: "" }
}

/// Everybody.
pub(super) const USERS: &[User] = &[
    user(ANONYMOUS, "", &[]),
    user(STRANGER, "", &[]),
    user("nobody", "", &[]),
    user("admin", "", &["role cluster-admin"]),
    user("admin-x", "x", &["role cluster-admin"]),
    user("all-of-core-in-x", "x", &["* * core"]),
    user(
        "viewer-x",
        "x",
        &[
            "get,list,watch pods,configmaps,services,serviceaccounts,namespaces,endpoints core",
            "get,list,watch * apps,example.com",
        ],
    ),
    user("editor-x", "x", &["* pods,configmaps,services core", "* deployments,statefulsets apps"]),
    user("auditor", "", &["get,list,watch * *"]),
    User { name: "member", scope: "", rules: &["get,list pods,nodes core"], group: "readers" },
    user("getter", "", &["get * *"]),
    user("lister", "", &["list * *"]),
    user("watcher", "", &["watch * *"]),
    user("watcher-x", "x", &["watch pods,configmaps,namespaces core", "watch widgets example.com"]),
    user("creator-x", "x", &["create * *"]),
    user("updater-x", "x", &["update * *"]),
    user("patcher-x", "x", &["patch * *"]),
    user("patcher-of-one", "x", &["patch configmaps,pods core a", "patch deployments apps a"]),
    user("deleter", "", &["delete * *"]),
    user("collector-x", "x", &["deletecollection * *"]),
    user("proxy-verb", "", &["proxy * *"]),
    user("evictor-x", "x", &["create pods/eviction core"]),
    user("token-maker-x", "x", &["create serviceaccounts/token core"]),
    user("token-maker-of-one", "x", &["create serviceaccounts/token core a"]),
    user("binder-x", "x", &["create pods/binding,bindings core"]),
    user(
        "executor-x",
        "x",
        &["get,create pods/exec,pods/attach,pods/portforward,pods/proxy core", "get pods/log core"],
    ),
    user("scaler", "", &["* */scale *"]),
    user(
        "scaler-x",
        "x",
        &["get,update,patch deployments/scale apps", "get,patch widgets/scale example.com"],
    ),
    user("status-writer", "", &["get,update,patch */status *"]),
    user("parts-of-pods-x", "x", &["get,patch pods/* core"]),
    user("reader-of-one", "x", &["get,list,watch configmaps,secrets core a"]),
    user("owner-of-one", "x", &["* configmaps core a", "* widgets example.com a"]),
    user("namespace-reader", "", &["get,list,watch namespaces core"]),
    user("namespaces-by-x", "x", &["* namespaces,namespaces/status,namespaces/finalize core"]),
    user("owner-of-y", "", &["get,update,patch,delete namespaces core y"]),
    user("finalizer", "", &["update namespaces/finalize core"]),
    user("node-reader", "", &["get,list nodes,nodes/proxy core"]),
    user("approver", "", &["update,patch certificatesigningrequests/approval certificates.k8s.io"]),
    user("role-maker-x", "x", &["create,update,patch roles,rolebindings rbac.authorization.k8s.io"]),
    user("definer", "", &["* customresourcedefinitions apiextensions.k8s.io"]),
    user(
        "reviewer",
        "",
        &["create subjectaccessreviews authorization.k8s.io", "create tokenreviews authentication.k8s.io"],
    ),
    user("widgets-x", "x", &["* widgets example.com"]),
    user("widget-status-x", "x", &["get,update,patch widgets/status example.com"]),
    user("orb-reader", "", &["get,list,watch orbs example.com"]),
    user("prober", "", &["get /metrics,/logs/*,/healthz/*", "head /healthz,/version"]),
    user("every-path", "", &["* *path"]),
    user("impersonator", "", &["impersonate users core admin-x,viewer-x,scaler"]),
];

/// One rule of a [`User`], read.
#[derive(Debug, Default)]
pub(super) struct Rule {
    pub(super) verbs: Vec<&'static str>,
    pub(super) resources: Vec<&'static str>,
    pub(super) groups: Vec<&'static str>,
    pub(super) names: Vec<&'static str>,
    pub(super) paths: Vec<&'static str>,
}

impl User {
    /// The rules; those of a `role` are taken for all that there is.
    pub(super) fn read(&self) -> Vec<Rule> {
        let list = |text: &'static str| text.split(',').collect::<Vec<_>>();
        let read = |rule: &&'static str| {
            let words: Vec<&'static str> = rule.split(' ').collect();
            match words.as_slice() {
                ["role", _] => {
                    Rule { verbs: vec!["*"], resources: vec!["*"], groups: vec!["*"], ..Rule::default() }
                }
                [verbs, "*path"] => Rule { verbs: list(verbs), paths: vec!["*"], ..Rule::default() },
                [verbs, paths] => Rule { verbs: list(verbs), paths: list(paths), ..Rule::default() },
                [verbs, resources, groups, names @ ..] => Rule {
                    verbs: list(verbs),
                    resources: list(resources),
                    groups: list(groups)
                        .into_iter()
                        .map(|group| if group == "core" { "" } else { group })
                        .collect(),
                    names: names.iter().flat_map(|names| list(names)).collect(),
                    paths: Vec::new(),
                },
                _ => Rule::default(),
            }
        };
        self.rules.iter().map(read).collect()
    }

    /// The role and the binding of the user, each with the path to post it to.
    pub(super) fn rights(&self) -> Vec<(String, Value)> {
        const GROUP: &str = "rbac.authorization.k8s.io";
        if self.rules.is_empty() {
            return Vec::new();
        }
        let (root, role, binding) = match self.scope {
            "" => (format!("/apis/{GROUP}/v1/cluster"), "ClusterRole", "ClusterRoleBinding"),
            scope => (format!("/apis/{GROUP}/v1/namespaces/{scope}/"), "Role", "RoleBinding"),
        };
        let name = format!("user-{}", self.name);
        let metadata = json!({"name": name, "labels": {LABEL: "1"}});
        let subject = match self.group {
            "" => json!({"apiGroup": GROUP, "kind": "User", "name": self.name}),
            group => json!({"apiGroup": GROUP, "kind": "Group", "name": group}),
        };
        let existing = self.rules.iter().find_map(|rule| rule.strip_prefix("role "));
        let (role_kind, role_name) = existing.map_or((role, name.as_str()), |name| ("ClusterRole", name));
        let bound = json!({
            "metadata": metadata,
            "roleRef": {"apiGroup": GROUP, "kind": role_kind, "name": role_name},
            "subjects": [subject],
        });
        let mut objects = Vec::new();
        if existing.is_none() {
            let rules: Vec<Value> = self.read().iter().map(Rule::to_json).collect();
            objects
                .push((format!("{root}roles"), json!({"kind": role, "metadata": metadata, "rules": rules})));
        }
        objects.push((format!("{root}rolebindings"), bound));
        for object in &mut objects {
            object.1["apiVersion"] = format!("{GROUP}/v1").into();
        }
        if let Some((_, last)) = objects.last_mut() {
            last["kind"] = binding.into();
        }
        objects
    }
}

impl Rule {
    fn to_json(&self) -> Value {
        if !self.paths.is_empty() {
            return json!({"verbs": self.verbs, "nonResourceURLs": self.paths});
        }
        json!({
            "verbs": self.verbs,
            "resources": self.resources,
            "apiGroups": self.groups,
            "resourceNames": self.names,
        })
    }
}

/// The tokens of the users as a file that servers read: lines of `token,user,uid,"groups"`.
#[cfg(test)]
fn token_file() -> String {
    let known = USERS.iter().filter(|user| ![ANONYMOUS, STRANGER].contains(&user.name));
    known.map(|user| format!("{0},{0},{0},\"{1}\"\n", user.name, user.group)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_tokens_has_every_user() {
        assert_eq!(token_file(), include_str!("../../paths/tokens.csv"));
    }

    #[test]
    fn rules_are_read_as_they_are_written() {
        let rules = |name: &str| USERS.iter().find(|user| user.name == name).unwrap().read();
        let [rule] = &rules("token-maker-of-one")[..] else { panic!("one rule") };
        assert_eq!((&rule.verbs[..], &rule.resources[..]), (&["create"][..], &["serviceaccounts/token"][..]));
        assert_eq!((&rule.groups[..], &rule.names[..]), (&[""][..], &["a"][..]));
        assert_eq!(rules("every-path")[0].paths, ["*"]);
    }
}
