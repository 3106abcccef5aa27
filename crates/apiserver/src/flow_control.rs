//! Which FlowSchema and which priority level a request belongs to. Clients see it in two headers of every answer; how many
//! requests run is limited elsewhere (`in_flight`).

use std::sync::Arc;

use http::HeaderValue;
use parking_lot::RwLock;
use serde_json::{Value, json};
use watchkeeper_rbac::{About, Request};

use crate::authentication::Identity;
use crate::object::meta;

/// The group of schemas and levels.
pub(crate) const GROUP: &str = "flowcontrol.apiserver.k8s.io";

/// Who is said to have made the schemas and levels that every server has.
pub(crate) const PRODUCER: &str = "api-priority-and-fairness-config-producer-v1";

/// Who is said to have written the status of a schema.
pub(crate) const CONSUMER: &str = "api-priority-and-fairness-config-consumer-v1";

/// The schemas in force, in the order in which they are asked.
#[derive(Default)]
pub(crate) struct FlowControl(RwLock<Arc<Vec<Schema>>>);

/// What a request belongs to, as its answer says: the uids of a schema and of a priority level.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    pub(crate) schema: HeaderValue,
    pub(crate) level: HeaderValue,
}

/// A FlowSchema, read.
pub(crate) struct Schema {
    name: String,
    precedence: i64,
    rules: Vec<Rule>,
    flow: Flow,
}

struct Rule {
    subjects: Vec<Subject>,
    resources: Vec<ResourceRule>,
    paths: Vec<PathRule>,
}

enum Subject {
    User(String),
    Group(String),
    Account { namespace: String, name: String },
}

struct ResourceRule {
    verbs: Vec<String>,
    groups: Vec<String>,
    resources: Vec<String>,
    is_cluster_wide: bool,
    namespaces: Vec<String>,
}

struct PathRule {
    verbs: Vec<String>,
    paths: Vec<String>,
}

impl FlowControl {
    /// Puts these schemas in force.
    pub(crate) fn replace(&self, mut schemas: Vec<Schema>) {
        schemas.sort_by(|a, b| (a.precedence, &a.name).cmp(&(b.precedence, &b.name)));
        *self.0.write() = Arc::new(schemas);
    }

    /// What a request of somebody belongs to; `None` as long as nothing is in force. Nothing is allocated.
    pub(crate) fn classify(&self, identity: &Identity, request: &Request<'_>) -> Option<Flow> {
        let schemas = self.0.read();
        let matching = |schema: &&Schema| schema.rules.iter().any(|rule| rule.matches(identity, request));
        // The last one matches everything, unless somebody removed it a moment ago.
        let found = schemas.iter().find(matching).or(schemas.last());
        found.map(|schema| schema.flow.clone())
    }
}

/// The condition that says whether the level of a schema exists.
pub(crate) fn condition(schema: &Value, levels: &[Value]) -> Value {
    let level = level_name(schema);
    let (status, reason, says) = match levels.iter().any(|known| meta::name(known) == level) {
        true => ("False", "Found", "and it exists"),
        false => ("True", "NotFound", "but there is no such object"),
    };
    let message =
        format!("This FlowSchema references the PriorityLevelConfiguration object named {level:?} {says}");
    json!({"type": "Dangling", "status": status, "reason": reason, "message": message})
}

fn level_name(schema: &Value) -> &str {
    schema["spec"]["priorityLevelConfiguration"]["name"].as_str().unwrap_or_default()
}

impl Schema {
    /// Reads a schema; `None` if its level does not exist, in which case it is not in force.
    pub(crate) fn read(schema: &Value, levels: &[Value]) -> Option<Self> {
        let level = levels.iter().find(|level| meta::name(level) == level_name(schema))?;
        let uid = |object: &Value| HeaderValue::from_str(meta::uid(object)).ok();
        let rules = schema["spec"]["rules"].as_array().into_iter().flatten();
        Some(Self {
            name: meta::name(schema).to_owned(),
            precedence: schema["spec"]["matchingPrecedence"].as_i64().unwrap_or(i64::MAX),
            rules: rules.map(Rule::read).collect(),
            flow: Flow { schema: uid(schema)?, level: uid(level)? },
        })
    }
}

fn list<T>(value: &Value, read: impl Fn(&Value) -> T) -> Vec<T> {
    value.as_array().into_iter().flatten().map(read).collect()
}

fn texts(value: &Value) -> Vec<String> {
    list(value, |text| text.as_str().unwrap_or_default().to_owned())
}

impl Rule {
    fn read(rule: &Value) -> Self {
        Self {
            subjects: rule["subjects"].as_array().into_iter().flatten().filter_map(Subject::read).collect(),
            resources: list(&rule["resourceRules"], |rule| ResourceRule {
                verbs: texts(&rule["verbs"]),
                groups: texts(&rule["apiGroups"]),
                resources: texts(&rule["resources"]),
                is_cluster_wide: rule["clusterScope"] == true,
                namespaces: texts(&rule["namespaces"]),
            }),
            paths: list(&rule["nonResourceRules"], |rule| PathRule {
                verbs: texts(&rule["verbs"]),
                paths: texts(&rule["nonResourceURLs"]),
            }),
        }
    }

    fn matches(&self, identity: &Identity, request: &Request<'_>) -> bool {
        self.subjects.iter().any(|subject| subject.matches(identity))
            && match request.about {
                About::Path(path) => self.paths.iter().any(|rule| rule.matches(request.verb, path)),
                About::Resource { .. } => self.resources.iter().any(|rule| rule.matches(request)),
            }
    }
}

impl Subject {
    fn read(subject: &Value) -> Option<Self> {
        let text = |of: &str, field: &str| subject[of][field].as_str().unwrap_or_default().to_owned();
        Some(match subject["kind"].as_str()? {
            "User" => Self::User(text("user", "name")),
            "Group" => Self::Group(text("group", "name")),
            "ServiceAccount" => Self::Account {
                namespace: text("serviceAccount", "namespace"),
                name: text("serviceAccount", "name"),
            },
            _ => return None,
        })
    }

    fn matches(&self, identity: &Identity) -> bool {
        match self {
            Self::User(name) => name == "*" || *name == identity.user,
            Self::Group(name) => name == "*" || identity.groups.contains(name),
            Self::Account { namespace, name } => {
                let account = identity.user.strip_prefix("system:serviceaccount:");
                let account = account.and_then(|account| account.split_once(':'));
                account.is_some_and(|(of, account)| of == namespace && (name == "*" || name == account))
            }
        }
    }
}

/// Whether a word is in a list, which may also be of everything.
fn has(list: &[String], is_it: impl Fn(&str) -> bool) -> bool {
    matches!(list, [all] if all == "*") || list.iter().any(|word| is_it(word))
}

impl ResourceRule {
    fn matches(&self, request: &Request<'_>) -> bool {
        let About::Resource { group, resource, subresource, namespace, .. } = request.about else {
            return false;
        };
        let is_resource = |word: &str| match subresource {
            "" => word == resource,
            subresource => word.split_once('/') == Some((resource, subresource)),
        };
        has(&self.verbs, |verb| verb == request.verb)
            && has(&self.resources, is_resource)
            && has(&self.groups, |known| known == group)
            && match namespace {
                "" => self.is_cluster_wide,
                namespace => has(&self.namespaces, |known| known == namespace),
            }
    }
}

impl PathRule {
    fn matches(&self, verb: &str, path: &str) -> bool {
        let is_below = |rule: &str| {
            let folder = rule.strip_suffix('*').unwrap_or(rule);
            let folder = folder.strip_suffix('/').unwrap_or(folder);
            rule == path || path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
        };
        has(&self.verbs, |known| known == verb) && has(&self.paths, is_below)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_uids(objects: Vec<Value>) -> Vec<Value> {
        let named = |mut object: Value| {
            object["metadata"]["uid"] = meta::name(&object).to_owned().into();
            object
        };
        objects.into_iter().map(named).collect()
    }

    fn put(control: &FlowControl, schemas: Vec<Value>, levels: Vec<Value>) {
        let (schemas, levels) = (with_uids(schemas), with_uids(levels));
        control.replace(schemas.iter().filter_map(|schema| Schema::read(schema, &levels)).collect());
    }

    fn of(identity: &Identity, request: &Request<'_>) -> (String, String) {
        let control = FlowControl::default();
        let (levels, schemas) = watchkeeper_kinds::flow_control_objects();
        put(&control, schemas, levels);
        let flow = control.classify(identity, request).unwrap();
        let text = |value: &HeaderValue| value.to_str().unwrap().to_owned();
        (text(&flow.schema), text(&flow.level))
    }

    fn resource<'a>(verb: &'a str, group: &'a str, resource: &'a str, namespace: &'a str) -> Request<'a> {
        Request { verb, about: About::Resource { group, resource, subresource: "", namespace, name: "" } }
    }

    #[test]
    fn requests_belong_to_the_schemas_that_every_server_has() {
        let jane = Identity::new("jane", ["writers"]);
        let pods = resource("list", "", "pods", "default");
        let path = |path| Request { verb: "get", about: About::Path(path) };
        let lease = resource("update", "coordination.k8s.io", "leases", "kube-system");
        let account = |namespace: &str| {
            let groups = ["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")];
            Identity::new(format!("system:serviceaccount:{namespace}:a"), groups)
        };
        let manager = Identity::new("system:kube-controller-manager", ["x"]);
        for (who, what, schema, level) in [
            (&Identity::admin(), &pods, "exempt", "exempt"),
            (&jane, &pods, "global-default", "global-default"),
            (&Identity::anonymous(), &path("/livez/ping"), "probes", "exempt"),
            (&Identity::anonymous(), &path("/livezz"), "global-default", "global-default"),
            (&account("default"), &pods, "service-accounts", "workload-low"),
            (&account("kube-system"), &pods, "kube-system-service-accounts", "workload-high"),
            (&account("kube-system"), &lease, "system-leader-election", "leader-election"),
            (&manager, &lease, "system-leader-election", "leader-election"),
            (&manager, &pods, "kube-controller-manager", "workload-high"),
            (&Identity::new("system:node:a", ["system:nodes"]), &pods, "system-nodes", "system"),
        ] {
            assert_eq!(of(who, what), (schema.to_owned(), level.to_owned()), "{} {what:?}", who.user);
        }
    }

    #[test]
    fn a_schema_without_its_level_is_not_asked_and_says_so() {
        let (levels, mut schemas) = watchkeeper_kinds::flow_control_objects();
        schemas.retain(|schema| meta::name(schema) == "exempt");
        schemas[0]["spec"]["priorityLevelConfiguration"]["name"] = "nothing".into();
        let control = FlowControl::default();
        put(&control, schemas.clone(), levels.clone());
        let request = resource("get", "", "pods", "a");
        assert!(control.classify(&Identity::admin(), &request).is_none());
        let said = condition(&schemas[0], &levels);
        assert_eq!((&said["status"], &said["reason"]), (&json!("True"), &json!("NotFound")));
    }
}
