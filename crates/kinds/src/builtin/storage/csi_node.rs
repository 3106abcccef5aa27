use crate::Kind;
use crate::kind::row::kind;
use crate::prepare::same;
use crate::validate::field::{Errors, Field};
use crate::validate::names::driver;
use crate::validate::update::IMMUTABLE;
use serde_json::Value;
use std::collections::HashSet;
use watchkeeper_schema::FieldError;
use watchkeeper_schema::metadata::label_key_problems;

pub(crate) const KIND: Kind = kind("storage.k8s.io", "v1", "CSINode", "csinodes", "csinode")
    .cluster_wide()
    .conditional()
    .returns_deleted()
    .validate_with(validate)
    .validate_update(validate_update)
    .metadata_checks(0, 1)
    .table(table::TABLE);

fn validate(object: &Field<'_>, _: Option<&Field<'_>>, errors: &mut Errors) {
    let spec = &object.get("spec");
    let mut names = HashSet::new();
    for entry in spec.get("drivers").items() {
        let (name, id) = (entry.get("name"), entry.get("nodeID"));
        driver(&name, errors);
        id.required(errors);
        if id.text().len() > 256 {
            id.invalid("must be 256 characters or less", errors);
        }
        entry.get("allocatable").get("count").not_negative(errors);
        if !names.insert(name.text()) {
            errors.push(FieldError::duplicate(&name.at, name.text()));
        }
        let mut keys = HashSet::new();
        for key in entry.get("topologyKeys").items().map(|key| key.text()) {
            if key.is_empty() {
                errors.push(FieldError::required(&entry.at, key));
            }
            if !keys.insert(key) {
                errors.push(FieldError::duplicate(&entry.at, key));
            }
            for problem in label_key_problems(key) {
                errors.push(FieldError::invalid(&entry.at, key, problem));
            }
        }
    }
}

/// A driver that stays stays as it is, but for how much it can take.
fn validate_update(new: &Field<'_>, old: &Field<'_>, errors: &mut Errors) {
    let (new, old) = (&new.get("spec"), &old.get("spec"));
    let drivers = new.get("drivers");
    for before in old.get("drivers").items() {
        for after in drivers.items().filter(|after| after.get("name").text() == before.get("name").text()) {
            let is_same = |field: &str| same(Some(after.get(field).value), Some(before.get(field).value));
            if !["nodeID", "topologyKeys"].into_iter().all(is_same) {
                let get = |field: &str| after.get(field).value.clone();
                let error = FieldError::invalid(&drivers.at, after.value.clone(), IMMUTABLE);
                errors.push(error.structure(&[
                    ("Name", get("name")),
                    ("NodeID", get("nodeID")),
                    ("TopologyKeys", get("topologyKeys")),
                    ("Allocatable", Value::Null),
                ]));
            }
        }
    }
}

mod table {
    use watchkeeper_table::layout::{AGE, Fields, Layout, NAME, integer};

    pub(super) const TABLE: Layout =
        Layout::new(&[NAME, integer("Drivers", "How many storage drivers the node has."), AGE], |view| {
            vec![view.name(), view.object.len("spec.drivers").into(), view.age()]
        });
}
