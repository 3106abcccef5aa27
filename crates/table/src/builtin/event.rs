use crate::column::{Column, NAME, text, wide};
use crate::fields::Fields;
use crate::printer::{Printer, View};
use serde_json::Value;

const COLUMNS: [Column; 10] = [
    text("Last Seen", "The time since the event was last seen."),
    text("Type", "Whether the event is normal or a warning."),
    text("Reason", "Why it came to the event, in a word."),
    text("Object", "What the event is about."),
    wide("Subobject", "Which part of the object the event is about."),
    wide("Source", "Who reported the event."),
    text("Message", "What happened."),
    wide("First Seen", "The time since the event was first seen."),
    wide("Count", "How often the event was seen."),
    Column { priority: 1, ..NAME },
];

/// `Event` of the core group.
pub(super) static EVENT: Printer = Printer::new(&COLUMNS, |view| event(view, &CORE));

/// `Event` of `events.k8s.io`: the same objects with other field names.
pub(super) static EVENTS_EVENT: Printer = Printer::new(&COLUMNS, |view| event(view, &EVENTS));

/// What the fields of an event are called in one of the two groups.
struct Names {
    object: &'static str,
    message: &'static str,
    source: &'static str,
    controller: &'static str,
    first: &'static str,
    last: &'static str,
    count: &'static str,
}

const CORE: Names = Names {
    object: "involvedObject",
    message: "message",
    source: "source",
    controller: "reportingComponent",
    first: "firstTimestamp",
    last: "lastTimestamp",
    count: "count",
};

const EVENTS: Names = Names {
    object: "regarding",
    message: "note",
    source: "deprecatedSource",
    controller: "reportingController",
    first: "deprecatedFirstTimestamp",
    last: "deprecatedLastTimestamp",
    count: "deprecatedCount",
};

fn event(view: &View<'_>, names: &Names) -> Vec<Value> {
    let event = view.object;
    let object = event.at(names.object);
    let first = if event.time(names.first).is_some() { names.first } else { "eventTime" };
    let (last, count) = match event.at("series") {
        Value::Null if event.time(names.last).is_some() => (names.last, event.int(names.count).max(1)),
        Value::Null => (first, event.int(names.count).max(1)),
        series => ("series.lastObservedTime", series.int("count")),
    };
    let kind = object.text("kind").to_lowercase();
    let target = match object.text("name") {
        "" => kind,
        name => format!("{kind}/{name}"),
    };
    vec![
        view.since(last).into(),
        event.text("type").into(),
        event.text("reason").into(),
        target.into(),
        object.text("fieldPath").into(),
        source(event, names).into(),
        event.text(names.message).trim().into(),
        view.since(first).into(),
        count.into(),
        view.name(),
    ]
}

/// The component that reported the event and where it runs.
fn source(event: &Value, names: &Names) -> String {
    let source = event.at(names.source);
    let component = source.text_or("component", event.text(names.controller));
    match source.text_or("host", event.text("reportingInstance")) {
        "" => component.into(),
        instance => format!("{component}, {instance}"),
    }
}
