use crate::kind::row::{field, field_or, kind};
use crate::validate::field::{Errors, Field};
use crate::{Kind, SelectableField};
use watchkeeper_schema::metadata::label_key_problems;
use watchkeeper_schema::{FieldError, Path};

pub(crate) const KIND: Kind = kind("", "v1", "Event", "events", "event")
    .short(&["ev"])
    .created_on_update()
    .selectable(SELECTABLE)
    .validate_with(validate)
    .metadata_checks(0, 0)
    .table(table::TABLE);

const SELECTABLE: &[SelectableField] = &[
    field("involvedObject.kind", ""),
    field("involvedObject.namespace", ""),
    field("involvedObject.name", ""),
    field("involvedObject.uid", ""),
    field("involvedObject.apiVersion", ""),
    field("involvedObject.resourceVersion", ""),
    field("involvedObject.fieldPath", ""),
    field("reason", ""),
    field("reportingComponent", ""),
    field_or("source", "source.component", "reportingComponent"),
    field("type", ""),
];

fn validate(object: &Field<'_>, _: Option<&Field<'_>>, errors: &mut Errors) {
    rules(object, false, errors);
}

/// An event is in the namespace of what it is about; one that says when it happened says who saw it. `is_new`
/// is whether its fields have the names of `events.k8s.io`.
pub(crate) fn rules(object: &Field<'_>, is_new: bool, errors: &mut Errors) {
    let own = object.get("metadata").get("namespace");
    let about = object.get(if is_new { "regarding" } else { "involvedObject" }).get("namespace");
    let at = Path::root().child("involvedObject").child("namespace");
    let elsewhere = FieldError::invalid(&at, about.text(), "does not match event.namespace");
    let has_time = object.get("eventTime").is_set();
    let is_elsewhere = match (about.is_empty(), has_time) {
        (true, false) => own.text() != "default",
        (true, true) => !matches!(own.text(), "default" | "kube-system"),
        (false, false) => about.text() != own.text(),
        (false, true) => false,
    };
    if is_elsewhere {
        errors.push(elsewhere);
    }
    if has_time {
        let reporter = object.get(if is_new { "reportingController" } else { "reportingComponent" });
        reporter.required(errors);
        for problem in label_key_problems(reporter.text()) {
            errors.push(FieldError::invalid(&reporter.at, reporter.text(), problem));
        }
        for name in ["reportingInstance", "action", "reason"] {
            object.get(name).required(errors);
            if object.get(name).text().len() > 128 {
                errors.push(FieldError::invalid(&object.get(name).at, "", "can have at most 128 characters"));
            }
        }
    }
}

pub(crate) mod table {
    use serde_json::Value;
    use watchkeeper_table::layout::{Column, Fields, Layout, NAME, View, text, wide};

    pub(crate) const COLUMNS: [Column; 10] = [
        text("Last Seen", "The time since the event was last seen."),
        text("Type", "Whether the event is normal or a warning."),
        text("Reason", "Why it came to the event, in a word."),
        text("Object", "What the event is about."),
        wide("Subobject", "Which part of the object the event is about."),
        wide("Source", "Who reported the event."),
        text("Message", "What happened."),
        wide("First Seen", "The time since the event was first seen."),
        wide("Count", "How often the event was seen."),
        NAME.wide(),
    ];

    /// `Event` of the core group.
    pub(super) const TABLE: Layout = Layout::new(&COLUMNS, |view| event(view, &CORE));

    /// What the fields of an event are called in one of the two groups.
    pub(crate) struct Names {
        pub(crate) object: &'static str,
        pub(crate) message: &'static str,
        pub(crate) source: &'static str,
        pub(crate) controller: &'static str,
        pub(crate) first: &'static str,
        pub(crate) last: &'static str,
        pub(crate) count: &'static str,
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

    pub(crate) fn event(view: &View<'_>, names: &Names) -> Vec<Value> {
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
}
