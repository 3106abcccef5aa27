use crate::Kind;
use crate::kind::row::kind;
use crate::prepare::same;
use crate::validate::field::{Errors, Field};
use crate::validate::names::qualified;
use watchkeeper_schema::FieldError;

pub(crate) const KIND: Kind =
    kind("storage.k8s.io", "v1", "VolumeAttributesClass", "volumeattributesclasses", "volumeattributesclass")
        .short(&["vac"])
        .cluster_wide()
        .returns_deleted()
        .validate_with(validate)
        .validate_update_first(validate_update)
        .table(table::TABLE);

fn validate(object: &Field<'_>, _: Option<&Field<'_>>, errors: &mut Errors) {
    qualified(&object.get("driverName"), errors);
    let parameters = object.get("parameters");
    if parameters.entries().any(|(key, _)| key.is_empty()) {
        errors.push(FieldError::invalid(&parameters.at, "", "field can not be empty."));
    }
    parameters.required_as("must contain at least one key/value pair", errors);
}

fn validate_update(new: &Field<'_>, old: &Field<'_>, errors: &mut Errors) {
    for field in ["driverName", "parameters"] {
        if !same(Some(new.get(field).value), Some(old.get(field).value)) {
            let detail = format!("updates to {field} are forbidden.");
            errors.push(FieldError::forbidden(&new.get(field).at, detail));
        }
    }
}

mod table {
    use watchkeeper_table::layout::{AGE, Fields, Layout, NAME, text};

    pub(super) const TABLE: Layout =
        Layout::new(&[NAME, text("DriverName", "The driver that the attributes are for."), AGE], |view| {
            vec![view.name(), view.object.text("driverName").into(), view.age()]
        });
}
