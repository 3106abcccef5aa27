//! A request in parts, before it is spelled as a path.

use serde_json::{Value, json};

use super::kind::{KINDS, Kind, LABEL, NAMESPACES, NEW};
use super::random::Random;
use super::user::{Rule, USERS, User};

/// The verbs of rules that a request for a resource can have.
pub(super) const VERBS: [&str; 8] =
    ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];

/// Names of subresources, some of which exist nowhere.
pub(super) const PARTS: [&str; 16] = [
    "status",
    "scale",
    "eviction",
    "binding",
    "token",
    "log",
    "exec",
    "proxy",
    "approval",
    "finalize",
    "ephemeralcontainers",
    "resize",
    "portforward",
    "nosuch",
    "namespaces",
    "watch",
];

/// A request for a resource, in parts that can be changed one by one.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    pub(super) user: &'static User,
    pub(super) impersonated: Option<&'static str>,
    pub(super) method: &'static str,
    pub(super) kind: &'static Kind,
    /// The segments up to the version.
    pub(super) root: Vec<String>,
    /// `watch` or `proxy`.
    pub(super) prefix: Option<&'static str>,
    pub(super) namespace: Option<String>,
    pub(super) resource: String,
    pub(super) name: Option<String>,
    pub(super) subresource: Option<String>,
    pub(super) rest: Vec<String>,
    pub(super) query: Vec<String>,
    pub(super) content_type: &'static str,
    pub(super) body: String,
}

impl Draft {
    /// A request that one of the rules of `user` is about.
    pub(super) fn aimed(random: &mut Random, user: &'static User, rule: &Rule) -> Self {
        let resource = pick(random, &rule.resources);
        let (plural, part) = resource.split_once('/').unwrap_or((resource, ""));
        let kind = any_kind(random, plural, &rule.groups, part);
        let mut verb = pick(random, &rule.verbs);
        if verb == "*" {
            verb = pick(random, &VERBS);
        }
        // What can only be created is asked for nothing else here.
        if kind.names.is_empty() && random.chance(80) {
            verb = "create";
        }
        let name = match rule.names.as_slice() {
            [] => pick_or(random, kind.names, NEW),
            names => pick(random, names),
        };
        let namespace = match user.scope {
            "" => random.pick(&NAMESPACES),
            scope => scope,
        };
        let part = match part {
            "" => None,
            "*" => Some(pick_or(random, kind.subresources, "status")),
            part => Some(part),
        };
        let mut draft = Self::new(user, kind, namespace, name, part);
        draft.set_verb(random, verb);
        if kind.namespaced && user.scope.is_empty() && matches!(verb, "list" | "watch") && random.chance(40) {
            draft.namespace = None;
        }
        if !kind.namespaced && !user.scope.is_empty() && kind.plural != "namespaces" && random.chance(50) {
            draft.namespace = Some(user.scope.to_owned());
        }
        if kind.plural == "namespaces" && !user.scope.is_empty() && draft.name.is_some() {
            draft.name = Some(user.scope.to_owned());
        }
        draft
    }

    /// Any request for something that is there.
    pub(super) fn any(random: &mut Random, user: &'static User) -> Self {
        let kind = any_kind(random, "*", &["*"], "");
        let part = random.chance(30).then(|| pick_or(random, kind.subresources, "status"));
        let name = pick_or(random, kind.names, NEW);
        let mut draft = Self::new(user, kind, random.pick(&NAMESPACES), name, part);
        let verb = pick(random, &VERBS);
        draft.set_verb(random, verb);
        draft
    }

    fn new(
        user: &'static User,
        kind: &'static Kind,
        namespace: &str,
        name: &str,
        part: Option<&'static str>,
    ) -> Self {
        Self {
            user,
            impersonated: None,
            method: "GET",
            kind,
            root: kind.root(),
            prefix: None,
            namespace: kind.namespaced.then(|| namespace.to_owned()),
            resource: kind.plural.to_owned(),
            name: Some(name.to_owned()),
            subresource: part.map(str::to_owned),
            rest: Vec::new(),
            query: Vec::new(),
            content_type: "",
            body: String::new(),
        }
    }

    /// Makes it a request with this verb: the method, whether there is a name, the prefix, and the query.
    pub(super) fn set_verb(&mut self, random: &mut Random, verb: &str) {
        self.method = match verb {
            "create" => "POST",
            "update" => "PUT",
            "patch" => "PATCH",
            "delete" | "deletecollection" => "DELETE",
            _ => "GET",
        };
        let is_collection = matches!(verb, "list" | "watch" | "create" | "deletecollection");
        if is_collection && self.subresource.is_none() && !(verb == "watch" && random.chance(25)) {
            self.name = None;
        }
        match verb {
            "watch" if self.name.is_some() || random.chance(40) => self.prefix = Some("watch"),
            "watch" => self.query.push("watch=1".to_owned()),
            "proxy" => self.prefix = Some("proxy"),
            _ => {}
        }
        if matches!(verb, "list" | "watch" | "deletecollection") && random.chance(15) {
            let name = pick_or(random, self.kind.names, "a");
            self.query.push(format!("fieldSelector=metadata.name%3D{name}"));
        }
    }

    /// Gives it the body that belongs to what it asks for.
    pub(super) fn set_body(&mut self, random: &mut Random) {
        let (name, namespace) = (self.name.as_deref(), self.namespace.as_deref());
        let part = self.subresource.as_deref().unwrap_or_default();
        let named = |kind: &str, version: &str, content: Value| {
            let mut object = json!({
                "apiVersion": version,
                "kind": kind,
                "metadata": {"name": name.unwrap_or(NEW)},
            });
            if self.kind.namespaced {
                object["metadata"]["namespace"] = namespace.unwrap_or("x").into();
            }
            if let (Some(object), Value::Object(content)) = (object.as_object_mut(), content) {
                object.extend(content);
            }
            object
        };
        self.content_type = "application/json";
        let body = match (self.method, part) {
            ("PATCH", _) => return self.set_patch(random),
            ("DELETE", _) if random.chance(70) => return,
            ("DELETE", _) => {
                json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"})
            }
            ("POST" | "PUT", "scale") => named("Scale", "autoscaling/v1", json!({"spec": {"replicas": 2}})),
            ("POST" | "PUT", "eviction") => named("Eviction", "policy/v1", json!({})),
            ("POST" | "PUT", "binding") => {
                named("Binding", "v1", json!({"target": {"kind": "Node", "name": "a"}}))
            }
            ("POST" | "PUT", "token") => {
                json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600}})
            }
            // A pod that is there.
            ("POST", _) if self.kind.plural == "bindings" => self.kind.object("a", namespace),
            // A review has no name, and is refused if it has one.
            ("POST", _) if self.kind.names.is_empty() && random.chance(80) => {
                let mut review = self.kind.object(NEW, namespace);
                review["metadata"] = json!({});
                review
            }
            ("POST", _) => self.kind.object(NEW, namespace),
            ("PUT", "finalize") => named("Namespace", "v1", json!({"spec": {"finalizers": ["kubernetes"]}})),
            ("PUT", _) => self.kind.object(name.unwrap_or(NEW), namespace),
            _ => return,
        };
        self.body = body.to_string();
    }

    fn set_patch(&mut self, random: &mut Random) {
        let is_scale = self.subresource.as_deref() == Some("scale");
        let merge = match is_scale {
            true => json!({"spec": {"replicas": 2}}),
            false => json!({"metadata": {"labels": {"touched": "1"}}}),
        };
        let (content_type, body) = match random.below(10) {
            0..=4 => ("application/merge-patch+json", merge),
            5..=6 => ("application/strategic-merge-patch+json", merge),
            7 if is_scale => {
                let replicas = json!([{"op": "replace", "path": "/spec/replicas", "value": 2}]);
                ("application/json-patch+json", replicas)
            }
            7 => {
                let label =
                    json!([{"op": "add", "path": format!("/metadata/labels/{LABEL}-more"), "value": "1"}]);
                ("application/json-patch+json", label)
            }
            _ => {
                self.query.extend(["fieldManager=paths".to_owned(), "force=true".to_owned()]);
                let name = self.name.as_deref().unwrap_or(NEW);
                let object = self.kind.object(name, self.namespace.as_deref());
                ("application/apply-patch+yaml", object)
            }
        };
        (self.content_type, self.body) = (content_type, body.to_string());
    }

    /// The segments of its path.
    pub(super) fn segments(&self) -> Vec<String> {
        let mut segments = self.root.clone();
        segments.extend(self.prefix.map(str::to_owned));
        if let Some(namespace) = &self.namespace {
            segments.extend(["namespaces".to_owned(), namespace.clone()]);
        }
        segments.push(self.resource.clone());
        let part = self.subresource.clone();
        if self.name.is_some() || part.is_some() {
            segments.push(self.name.clone().unwrap_or_default());
        }
        segments.extend(part);
        segments.extend(self.rest.iter().cloned());
        segments
    }
}

/// One of the kinds that a rule is about; some of them come more often than others, since more can go wrong with them.
fn any_kind(random: &mut Random, plural: &str, groups: &[&str], part: &str) -> &'static Kind {
    const OFTEN: [&str; 8] =
        ["pods", "configmaps", "secrets", "namespaces", "serviceaccounts", "deployments", "widgets", "nodes"];
    let fits = |kind: &&Kind| {
        (plural == "*" || kind.plural == plural)
            && (groups.contains(&"*") || groups.contains(&kind.group))
            && (matches!(part, "" | "*") || kind.subresources.contains(&part))
    };
    let all: Vec<&Kind> = KINDS.iter().filter(fits).collect();
    let often: Vec<&Kind> = all.iter().copied().filter(|kind| OFTEN.contains(&kind.plural)).collect();
    if !often.is_empty() && random.chance(60) {
        return random.pick(&often);
    }
    if all.is_empty() { &KINDS[random.below(KINDS.len())] } else { random.pick(&all) }
}

/// Somebody: the more they may do, the more often.
pub(super) fn any_user(random: &mut Random) -> &'static User {
    let weight = |user: &User| match user.rules {
        [] => 2,
        rules if rules.iter().any(|rule| rule.contains(" * ") || rule.starts_with("role ")) => 12,
        _ => 5,
    };
    let mut place = random.below(USERS.iter().map(weight).sum());
    for user in USERS {
        match place.checked_sub(weight(user)) {
            Some(rest) => place = rest,
            None => return user,
        }
    }
    &USERS[0]
}

pub(super) fn pick(random: &mut Random, choices: &[&'static str]) -> &'static str {
    choices[random.below(choices.len())]
}

pub(super) fn pick_or(
    random: &mut Random,
    choices: &[&'static str],
    otherwise: &'static str,
) -> &'static str {
    if choices.is_empty() { otherwise } else { pick(random, choices) }
}
