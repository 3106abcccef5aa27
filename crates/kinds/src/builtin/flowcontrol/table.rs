use serde_json::Value;
use watchkeeper_table::layout::{AGE, Fields, Layout, NAME, text};

pub(super) const FLOW_SCHEMA: Layout = Layout::new(
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

pub(super) const PRIORITY_LEVEL: Layout = Layout::new(
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
