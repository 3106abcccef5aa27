use crate::default::{child, set};
use crate::kind::row::{SCALE, STATUS, field, kind};
use crate::kind::strategy::Fields;
use crate::validate::field::{Errors, Field};
use crate::validate::pod;
use crate::validate::status::Counts;
use crate::validate::workloads::{always_restarting, deadline_not_allowed};
use crate::{Kind, Subresource};
use serde_json::Value;

pub(crate) const KIND: Kind =
    kind("", "v1", "ReplicationController", "replicationcontrollers", "replicationcontroller")
        .short(&["rc"])
        .in_all()
        .with(&[SCALE, STATUS])
        .scaled("spec.selector")
        .generation()
        .selectable(&[field("status.replicas", "0")])
        .default_with(default)
        .validate_with(validate)
        .validate_subresources(&[(Subresource::Status, validate_status)])
        .orphans_by_default()
        .metadata_checks(1, 0)
        .table(table::TABLE);

/// Selector and labels are those of the template.
fn default(fields: &mut Fields) {
    let labels = fields.get("spec").map(|spec| spec["template"]["metadata"]["labels"].clone());
    let Some(labels) = labels.filter(Value::is_object) else { return };
    if let Some(spec) = child(fields, "spec") {
        set(spec, "selector", labels.clone());
    }
    if let Some(metadata) = child(fields, "metadata") {
        set(metadata, "labels", labels);
    }
}

fn validate(object: &Field<'_>, _: Option<&Field<'_>>, errors: &mut Errors) {
    let spec = &object.get("spec");
    spec.get("minReadySeconds").not_negative(errors);
    spec.get("selector").required(errors);
    spec.get("replicas").not_negative(errors);
    let template = spec.get("template");
    if !template.required(errors) {
        return;
    }
    let labels = template.get("metadata").get("labels");
    let selected = spec.get("selector");
    let all_match = selected.entries().all(|(key, value)| labels.get(key).value == value.value);
    if !selected.is_empty() && !all_match {
        labels.invalid("`selector` does not match template `labels`", errors);
    }
    pod::template(&template, errors);
    always_restarting(&template, errors);
    deadline_not_allowed(&template, "ReplicationController", errors);
}

fn validate_status(object: &Field<'_>, _: &Field<'_>, errors: &mut Errors) {
    Counts::REPLICA_SET.validate(&object.get("status"), errors);
}

mod table {
    use crate::columns::{REPLICAS, replicas};
    use watchkeeper_table::layout::{Fields, Layout, selector};

    pub(super) const TABLE: Layout = Layout::new(&REPLICAS, |view| {
        let own = view.object.at("spec.selector");
        let labels = if own.is_null() { view.object.at("spec.template.metadata.labels") } else { own };
        replicas(view, selector::labels(labels))
    });
}
