use crate::Kind;
use crate::kind::row::kind;
use crate::validate::config::{MAX_SIZE, key, sealed};
use crate::validate::field::{Errors, Field};
use watchkeeper_schema::FieldError;

pub(crate) const KIND: Kind = kind("", "v1", "ConfigMap", "configmaps", "configmap")
    .short(&["cm"])
    .validate_with(validate)
    .validate_update_first(validate_update)
    .table(table::TABLE);

fn validate(object: &Field<'_>, _: Option<&Field<'_>>, errors: &mut Errors) {
    let (data, binary) = (object.get("data"), object.get("binaryData"));
    let mut size = 0;
    for (key, value) in data.entries() {
        self::key(key, &value, errors);
        if binary.get(key).is_set() {
            errors.push(FieldError::invalid(&value.at, key, "duplicate of key present in binaryData"));
        }
        size += value.text().len();
    }
    for (key, value) in binary.entries() {
        self::key(key, &value, errors);
        size += value.text().len() / 4 * 3;
    }
    if size > MAX_SIZE {
        errors.push(FieldError::too_long(&object.at, MAX_SIZE as i64));
    }
}

fn validate_update(new: &Field<'_>, old: &Field<'_>, errors: &mut Errors) {
    sealed(new, old, &["data", "binaryData"], errors);
}

mod table {
    use watchkeeper_table::layout::{AGE, Fields, Layout, NAME, text};

    pub(super) const TABLE: Layout =
        Layout::new(&[NAME, text("Data", "How many entries there are."), AGE], |view| {
            let entries = view.object.len("data") + view.object.len("binaryData");
            vec![view.name(), entries.into(), view.age()]
        });
}
