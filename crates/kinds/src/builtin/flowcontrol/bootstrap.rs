//! The levels and schemas that every server has: two of each that it relies on, the others as a proposal.

use serde_json::{Value, json};

/// Name, shares, percent that may be lent, and queues.
type Level = (&'static str, u32, u32, Option<(u32, u32)>);

/// The levels that are limited: name, shares of the server, percent of them that may be lent, and the number of queues with the
/// number of them that a flow may use. A level without queues rejects.
const LIMITED: [Level; 7] = [
    ("catch-all", 5, 0, None),
    ("system", 30, 33, Some((64, 6))),
    ("node-high", 40, 25, Some((64, 6))),
    ("leader-election", 10, 0, Some((16, 4))),
    ("workload-high", 40, 50, Some((128, 6))),
    ("workload-low", 100, 90, Some((128, 6))),
    ("global-default", 20, 50, Some((128, 6))),
];

/// How many requests may wait in a queue.
const QUEUE_LENGTH: u32 = 50;

/// Everything that there is, as rules say it.
const ALL: &[&str] = &["*"];

const EVERYBODY: &[Who] = &[Who::Group("system:unauthenticated"), Who::Group("system:authenticated")];

/// Whom a schema is about.
#[derive(Clone, Copy)]
enum Who {
    User(&'static str),
    Group(&'static str),
    /// All ServiceAccounts of kube-system.
    SystemAccounts,
}

/// What a schema is about.
#[derive(Clone, Copy)]
enum What {
    Everything,
    Probes,
    Leases(&'static [&'static str]),
    Nodes,
}

/// Name, level, precedence, how flows are told apart, whom and what it is about.
type Schema = (&'static str, &'static str, u32, &'static str, &'static [Who], What);

const SCHEMAS: [Schema; 11] = [
    ("exempt", "exempt", 1, "", &[Who::Group("system:masters")], What::Everything),
    ("probes", "exempt", 2, "", EVERYBODY, What::Probes),
    (
        "system-leader-election",
        "leader-election",
        100,
        "ByUser",
        &[
            Who::User("system:kube-controller-manager"),
            Who::User("system:kube-scheduler"),
            Who::SystemAccounts,
        ],
        What::Leases(&["get", "create", "update"]),
    ),
    ("system-node-high", "node-high", 400, "ByUser", &[Who::Group("system:nodes")], What::Nodes),
    ("system-nodes", "system", 500, "ByUser", &[Who::Group("system:nodes")], What::Everything),
    (
        "kube-controller-manager",
        "workload-high",
        800,
        "ByNamespace",
        &[Who::User("system:kube-controller-manager")],
        What::Everything,
    ),
    (
        "kube-scheduler",
        "workload-high",
        800,
        "ByNamespace",
        &[Who::User("system:kube-scheduler")],
        What::Everything,
    ),
    (
        "kube-system-service-accounts",
        "workload-high",
        900,
        "ByNamespace",
        &[Who::SystemAccounts],
        What::Everything,
    ),
    (
        "service-accounts",
        "workload-low",
        9000,
        "ByUser",
        &[Who::Group("system:serviceaccounts")],
        What::Everything,
    ),
    ("global-default", "global-default", 9900, "ByUser", EVERYBODY, What::Everything),
    ("catch-all", "catch-all", 10_000, "ByUser", EVERYBODY, What::Everything),
];

/// The priority levels, complete but for what the server sets.
pub(crate) fn levels() -> Vec<Value> {
    let limited = LIMITED.iter().map(|(name, ..)| *name);
    limited.chain(["exempt"]).map(|name| object("PriorityLevelConfiguration", name, level(name))).collect()
}

/// The flow schemas, complete but for what the server sets.
pub(crate) fn schemas() -> Vec<Value> {
    SCHEMAS.iter().map(|row| object("FlowSchema", row.0, schema(row))).collect()
}

/// The spec that a level has to have.
pub(super) fn fixed_level(name: &str) -> Option<Value> {
    matches!(name, "exempt" | "catch-all").then(|| level(name))
}

/// The spec that a schema has to have.
pub(super) fn fixed_schema(name: &str) -> Option<Value> {
    let is_fixed = matches!(name, "exempt" | "catch-all");
    SCHEMAS.iter().find(|row| is_fixed && row.0 == name).map(schema)
}

fn object(kind: &str, name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": kind,
        "metadata": {"name": name, "annotations": {"apf.kubernetes.io/autoupdate-spec": "true"}},
        "spec": spec,
    })
}

fn level(name: &str) -> Value {
    let Some((_, shares, lendable, queues)) = LIMITED.iter().find(|(known, ..)| *known == name) else {
        return json!({"type": "Exempt", "exempt": {"nominalConcurrencyShares": 0, "lendablePercent": 0}});
    };
    let response = match queues {
        Some((queues, hand)) => json!({
            "type": "Queue", "queuing": {"queues": queues, "handSize": hand, "queueLengthLimit": QUEUE_LENGTH},
        }),
        None => json!({"type": "Reject"}),
    };
    json!({"type": "Limited", "limited": {
        "nominalConcurrencyShares": shares, "lendablePercent": lendable, "limitResponse": response,
    }})
}

fn schema((_, level, precedence, method, whom, what): &Schema) -> Value {
    let subjects: Vec<Value> = whom.iter().map(|who| subject(*who)).collect();
    let resources = |verbs: &[&str], group: &str, resources: &[&str], cluster: bool| {
        let mut rule =
            json!({"verbs": verbs, "apiGroups": [group], "resources": resources, "namespaces": ALL});
        if cluster {
            rule["clusterScope"] = true.into();
        }
        rule
    };
    let leases = |verbs: &[&str]| resources(verbs, "coordination.k8s.io", &["leases"], false);
    let mut rule = json!({"subjects": subjects});
    match what {
        What::Everything => {
            rule["resourceRules"] = json!([resources(ALL, "*", ALL, true)]);
            rule["nonResourceRules"] = json!([{"verbs": ALL, "nonResourceURLs": ALL}]);
        }
        What::Probes => {
            rule["nonResourceRules"] =
                json!([{"verbs": ["get"], "nonResourceURLs": ["/healthz", "/readyz", "/livez"]}]);
        }
        What::Leases(verbs) => rule["resourceRules"] = json!([leases(verbs)]),
        What::Nodes => {
            rule["resourceRules"] =
                json!([resources(ALL, "", &["nodes", "nodes/status"], true), leases(ALL)]);
        }
    }
    let mut spec = json!({
        "priorityLevelConfiguration": {"name": level}, "matchingPrecedence": precedence, "rules": [rule],
    });
    if !method.is_empty() {
        spec["distinguisherMethod"] = json!({"type": method});
    }
    spec
}

fn subject(who: Who) -> Value {
    match who {
        Who::User(name) => json!({"kind": "User", "user": {"name": name}}),
        Who::Group(name) => json!({"kind": "Group", "group": {"name": name}}),
        Who::SystemAccounts => {
            json!({"kind": "ServiceAccount", "serviceAccount": {"namespace": "kube-system", "name": "*"}})
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_every_server_has_is_valid_and_complete() {
        for mut object in levels().into_iter().chain(schemas()) {
            let name = object["kind"].as_str().unwrap().to_owned();
            let kind = crate::find_kind("flowcontrol.apiserver.k8s.io", "v1", &name).unwrap();
            let spec = object["spec"].clone();
            assert_eq!(kind.coerce(&mut object).unwrap(), Vec::<String>::new(), "{object}");
            kind.default(&mut object);
            assert_eq!(object["spec"], spec, "nothing is added");
            kind.prepare_for_create(&mut object);
            let errors = kind.validate(&object, None);
            assert!(errors.is_empty(), "{object}: {errors:?}");
        }
    }

    #[test]
    fn what_a_server_relies_on_cannot_be_changed() {
        let kind = crate::find_kind("flowcontrol.apiserver.k8s.io", "v1", "FlowSchema").unwrap();
        let mut schema =
            schemas().into_iter().find(|schema| schema["metadata"]["name"] == "catch-all").unwrap();
        schema["spec"]["matchingPrecedence"] = 9999.into();
        let errors = kind.validate(&schema, None);
        assert!(
            errors.iter().any(|error| error.to_string().contains("must equal the fixed value")),
            "{errors:?}"
        );
    }
}
