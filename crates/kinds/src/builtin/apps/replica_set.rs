use crate::kind::row::{SCALE, STATUS, kind};
use crate::validate::field::{Errors, Field};
use crate::validate::status::Counts;
use crate::validate::workloads::{replicated_template, selection};
use crate::{Kind, Subresource};

pub(crate) const KIND: Kind = kind("apps", "v1", "ReplicaSet", "replicasets", "replicaset")
    .short(&["rs"])
    .in_all()
    .with(&[SCALE, STATUS])
    .scaled("spec.selector")
    .generation()
    .immutable(&["spec.selector"])
    .validate_with(validate)
    .validate_subresources(&[(Subresource::Status, validate_status)])
    .metadata_checks(1, 0)
    .table(table::TABLE);

fn validate(object: &Field<'_>, _: Option<&Field<'_>>, errors: &mut Errors) {
    let spec = &object.get("spec");
    spec.get("replicas").not_negative(errors);
    spec.get("minReadySeconds").not_negative(errors);
    selection(spec, Some("deployment"), errors);
    replicated_template(spec, errors);
}

fn validate_status(object: &Field<'_>, _: &Field<'_>, errors: &mut Errors) {
    Counts::REPLICA_SET.validate(&object.get("status"), errors);
}

mod table {
    use crate::columns::{REPLICAS, replicas};
    use watchkeeper_table::layout::{Fields, Layout, selector};

    pub(super) const TABLE: Layout =
        Layout::new(&REPLICAS, |view| replicas(view, selector::shown(view.object.at("spec.selector"))));
}
