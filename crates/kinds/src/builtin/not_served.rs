//! Tables of kinds that are not served, or only as a subresource.

use serde_json::Value;
use watchkeeper_table::layout::{AGE, Fields, Layout, NAME, integer, text};

const SCALE: Layout = Layout::new(
    &[
        text("Name", "The name of the scaled object."),
        integer("Desired", "How many replicas there should be."),
        integer("Available", "How many replicas there are."),
        AGE,
    ],
    |view| {
        let scale = view.object;
        vec![view.name(), scale.int("spec.replicas").into(), scale.int("status.replicas").into(), view.age()]
    },
);

const COMPONENT_STATUS: Layout = Layout::new(
    &[
        NAME,
        text("Status", "Whether the component is healthy."),
        text("Message", "What the component says."),
        text("Error", "What went wrong."),
    ],
    |view| {
        let conditions = view.object.list("conditions").iter();
        let healthy = conditions.into_iter().find(|condition| condition.text("type") == "Healthy");
        let status = match healthy.map(|condition| condition.text("status")) {
            None => "Unknown",
            Some("True") => "Healthy",
            Some(_) => "Unhealthy",
        };
        let say = |name| healthy.map_or("", |condition| condition.text(name));
        vec![view.name(), status.into(), say("message").into(), say("error").into()]
    },
);

const LEASE_CANDIDATE: Layout = Layout::new(
    &[
        NAME,
        text("LeaseName", "The lease that is wanted."),
        text("BinaryVersion", "The version of the candidate."),
        text("EmulationVersion", "The version that the candidate behaves as."),
        AGE,
    ],
    |view| {
        let spec = view.object.at("spec");
        vec![
            view.name(),
            spec.text("leaseName").into(),
            spec.text("binaryVersion").into(),
            spec.text("emulationVersion").into(),
            view.age(),
        ]
    },
);

const FLOW_SCHEMA: Layout = Layout::new(
    &[
        NAME,
        text("PriorityLevel", "The priority level of matching requests."),
        text(
            "MatchingPrecedence",
            "Which schema a request goes to if several match: the one with the lowest.",
        ),
        text("DistinguisherMethod", "How requests are told apart as flows."),
        AGE,
        text("MissingPL", "Whether the priority level does not exist."),
    ],
    |view| {
        let schema = view.object;
        let conditions = schema.list("status.conditions").iter();
        let dangling = conditions.into_iter().find(|condition| condition.text("type") == "Dangling");
        vec![
            view.name(),
            schema.text("spec.priorityLevelConfiguration.name").into(),
            schema.at("spec.matchingPrecedence").as_i64().unwrap_or(1000).into(),
            match schema.at("spec.distinguisherMethod") {
                Value::Null => "<none>".into(),
                method => method.text("type").into(),
            },
            view.age(),
            dangling.map_or("?", |condition| condition.text("status")).into(),
        ]
    },
);

const PRIORITY_LEVEL: Layout = Layout::new(
    &[
        NAME,
        text("Type", "Whether requests of this level are limited."),
        text("NominalConcurrencyShares", "The share of the server that the level may use."),
        text("Queues", "How many queues there are."),
        text("HandSize", "How many queues a flow may use."),
        text("QueueLengthLimit", "How many requests may wait in a queue."),
        AGE,
    ],
    |view| {
        let level = view.object;
        let limited = level.has("spec.limited");
        let queuing = level.has("spec.limited.limitResponse.queuing");
        let number = |there: bool, path: &str, default: i64| match there {
            false => Value::from("<none>"),
            true => level.at(path).as_i64().unwrap_or(default).into(),
        };
        let queue = |name: &str, default| {
            number(queuing, &format!("spec.limited.limitResponse.queuing.{name}"), default)
        };
        vec![
            view.name(),
            level.text("spec.type").into(),
            number(limited, "spec.limited.nominalConcurrencyShares", 30),
            queue("queues", 64),
            queue("handSize", 8),
            queue("queueLengthLimit", 50),
            view.age(),
        ]
    },
);

/// The tables by group and kind.
pub(crate) const TABLES: [(&str, &str, Layout); 5] = [
    ("", "ComponentStatus", COMPONENT_STATUS),
    ("autoscaling", "Scale", SCALE),
    ("coordination.k8s.io", "LeaseCandidate", LEASE_CANDIDATE),
    ("flowcontrol.apiserver.k8s.io", "FlowSchema", FLOW_SCHEMA),
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration", PRIORITY_LEVEL),
];
