use crate::builtin::core::event;
use crate::kind::row::{field, kind};
use crate::kind::strategy::Conversion;
use crate::validate::field::{Errors, Field};
use crate::{Kind, SelectableField};
use serde_json::Value;
use watchkeeper_schema::FieldError;

pub(crate) const KIND: Kind = kind("events.k8s.io", "v1", "Event", "events", "event")
    .short(&["ev"])
    .created_on_update()
    .stored_as("", "v1", Conversion { to_stored: to_core, from_stored: to_new })
    .selectable(SELECTABLE)
    .validate_with(validate)
    .metadata_checks(0, 0)
    .table(table::TABLE);

const SELECTABLE: &[SelectableField] = &[
    field("reason", ""),
    field("regarding.kind", ""),
    field("regarding.namespace", ""),
    field("regarding.name", ""),
    field("regarding.uid", ""),
    field("regarding.apiVersion", ""),
    field("regarding.resourceVersion", ""),
    field("regarding.fieldPath", ""),
    field("reportingController", ""),
    field("type", ""),
];

/// What a field of a core event is called in the other group.
const RENAMED: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

fn validate(object: &Field<'_>, _: Option<&Field<'_>>, errors: &mut Errors) {
    event::rules(object, true, errors);
    let series = object.get("series");
    if series.is_set() && series.get("count").number().unwrap_or_default() < 2 {
        errors.push(FieldError::invalid(&series.get("count").at, "", "should be at least 2"));
    }
    if !object.get("eventTime").is_set() {
        errors.push(FieldError::required(&object.get("eventTime").at, ""));
    }
    let kind = object.get("type");
    if !matches!(kind.text(), "Normal" | "Warning") {
        errors.push(FieldError::invalid(&kind.at, "", format!("has invalid value: {}", kind.text())));
    }
}

/// An event of the core group with the names of the other group.
fn to_new(core: Value) -> Value {
    rename(core, |name| RENAMED.iter().find(|(old, _)| *old == name).map(|(_, new)| *new))
}

/// An event of the other group with the names of the core group.
fn to_core(new: Value) -> Value {
    rename(new, |name| RENAMED.iter().find(|(_, new)| *new == name).map(|(old, _)| *old))
}

fn rename(event: Value, renamed: impl Fn(&str) -> Option<&'static str>) -> Value {
    let Value::Object(fields) = event else { return event };
    fields.into_iter().map(|(name, value)| (renamed(&name).map_or(name, str::to_owned), value)).collect()
}

mod table {
    use crate::builtin::core::event::table::{COLUMNS, Names, event};
    use watchkeeper_table::layout::Layout;

    /// The same objects with other field names.
    pub(super) const TABLE: Layout = Layout::new(&COLUMNS, |view| event(view, &EVENTS));

    const EVENTS: Names = Names {
        object: "regarding",
        message: "note",
        source: "deprecatedSource",
        controller: "reportingController",
        first: "deprecatedFirstTimestamp",
        last: "deprecatedLastTimestamp",
        count: "deprecatedCount",
    };
}
