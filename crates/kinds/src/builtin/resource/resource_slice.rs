use crate::Kind;
use crate::kind::row::{field, kind};
use crate::prepare::same;
use crate::validate::devices::label;
use crate::validate::field::{Errors, Field};
use crate::validate::names::driver;
use crate::validate::update::IMMUTABLE;
use std::collections::HashSet;
use watchkeeper_schema::FieldError;
use watchkeeper_schema::metadata::dns_subdomain_problems;

pub(crate) const KIND: Kind =
    kind("resource.k8s.io", "v1", "ResourceSlice", "resourceslices", "resourceslice")
        .cluster_wide()
        .generation()
        .selectable(&[field("spec.nodeName", ""), field("spec.driver", "")])
        .returns_deleted()
        .validate_with(validate)
        .unsupported_field_as(|label| {
            format!("field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: {label}")
        })
        .metadata_checks(1, 0)
        .table(table::TABLE);

const LONGEST_POOL: i64 = 253;

fn validate(object: &Field<'_>, old: Option<&Field<'_>>, errors: &mut Errors) {
    let (spec, old) = (&object.get("spec"), old.map(|old| old.get("spec")));
    driver(&spec.get("driver"), errors);
    let pool = spec.get("pool");
    let name = pool.get("name");
    if name.required(errors) {
        if name.text().len() as i64 > LONGEST_POOL {
            errors.push(FieldError::too_long(&name.at, LONGEST_POOL));
        }
        for part in name.text().split('/') {
            for problem in dns_subdomain_problems(part) {
                errors.push(FieldError::invalid(&name.at, part, problem));
            }
        }
    }
    if pool.get("resourceSliceCount").number().unwrap_or_default() <= 0 {
        let count = pool.get("resourceSliceCount");
        errors.push(FieldError::invalid(
            &count.at,
            count.number().unwrap_or_default(),
            "must be greater than zero",
        ));
    }
    pool.get("generation").not_negative(errors);
    if let Some(old) = old {
        for (new, old) in [
            (name, old.get("pool").get("name")),
            (spec.get("driver"), old.get("driver")),
            (spec.get("nodeName"), old.get("nodeName")),
        ] {
            if !same(Some(new.value), Some(old.value)) {
                new.invalid(IMMUTABLE, errors);
            }
        }
    }
    whose(spec, errors);
    let mut names = HashSet::new();
    for device in spec.get("devices").items() {
        let name = device.get("name");
        label(&name, errors);
        if !names.insert(name.text()) {
            errors.push(FieldError::duplicate(&device.at, name.text()));
        }
    }
}

/// Devices are at one node, at some, at all of them, or each says where it is.
fn whose(spec: &Field<'_>, errors: &mut Errors) {
    let node = spec.get("nodeName");
    if node.is_set() && node.is_empty() {
        node.invalid("must be either unset or set to a non-empty string", errors);
    }
    node.dns_subdomain(errors);
    for flag in ["allNodes", "perDeviceNodeSelection"].map(|name| spec.get(name)) {
        if flag.value == false {
            flag.invalid("must be either unset or set to true", errors);
        }
    }
    let set: Vec<&str> = ["nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection"]
        .into_iter()
        .filter(|name| !spec.get(name).is_empty() && spec.get(name).value != false)
        .collect();
    let rule = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";
    match set[..] {
        [] => errors.push(FieldError::required(&spec.at, rule)),
        [_] => {}
        _ => {
            let shown = set.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
            let detail = format!("{rule}, but multiple fields are set");
            errors.push(FieldError::invalid(&spec.at, format!("{{{shown}}}"), detail));
        }
    }
}

mod table {
    use watchkeeper_table::layout::{AGE, Fields, Layout, NAME, text};

    pub(super) const TABLE: Layout = Layout::new(
        &[
            NAME,
            text("Node", "The node that the devices are at."),
            text("Driver", "The driver that the devices belong to."),
            text("Pool", "The pool that the slice is a part of."),
            AGE,
        ],
        |view| {
            let spec = view.object.at("spec");
            vec![
                view.name(),
                spec.text("nodeName").into(),
                spec.text("driver").into(),
                spec.text("pool.name").into(),
                view.age(),
            ]
        },
    );
}
