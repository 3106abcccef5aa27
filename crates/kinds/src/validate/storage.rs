use super::field::{Errors, Field};
use crate::decimal;
use watchkeeper_schema::FieldError;

const ACCESS_MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

pub(super) fn claim(spec: &Field<'_>, errors: &mut Errors) {
    let modes = spec.get("accessModes");
    modes.required_as("at least 1 access mode is required", errors);
    access_modes(&modes, errors);
    let (resources, size) = (spec.get("resources"), spec.get("resources").get("requests").get("storage"));
    let at = resources.at.key("storage");
    if !size.is_set() {
        errors.push(FieldError::required(&at, ""));
    } else if !is_positive(size.text()) {
        errors.push(FieldError::invalid(&at, size.text(), "must be greater than zero"));
    }
    spec.get("storageClassName").dns_subdomain(errors);
    spec.get("volumeMode").one_of(&["Block", "Filesystem"], errors);
}

pub(super) fn volume(spec: &Field<'_>, errors: &mut Errors) {
    let (modes, capacity) = (spec.get("accessModes"), spec.get("capacity"));
    modes.required(errors);
    access_modes(&modes, errors);
    capacity.required(errors);
    if !capacity.get("storage").is_set() {
        errors.push(FieldError::not_supported(&capacity.at, capacity.value.clone(), ["storage"]));
    } else if !is_positive(capacity.get("storage").text()) {
        let at = capacity.at.key("storage");
        errors.push(FieldError::invalid(&at, capacity.get("storage").text(), "must be greater than zero"));
    }
    spec.get("persistentVolumeReclaimPolicy").one_of(&["Delete", "Recycle", "Retain"], errors);
    if !has_source(spec) {
        errors.push(FieldError::required(&spec.at, "must specify a volume type"));
    }
}

pub(super) fn class(object: &Field<'_>, errors: &mut Errors) {
    let provisioner = object.get("provisioner");
    provisioner.required(errors);
    object.get("reclaimPolicy").one_of(&["Delete", "Retain"], errors);
    object.get("volumeBindingMode").one_of(&["Immediate", "WaitForFirstConsumer"], errors);
}

fn access_modes(modes: &Field<'_>, errors: &mut Errors) {
    for mode in modes.items().filter(|mode| !ACCESS_MODES.contains(&mode.text())) {
        errors.push(FieldError::not_supported(&modes.at, mode.text(), ACCESS_MODES));
    }
}

/// Whether there is a field that is not about volumes in general.
fn has_source(spec: &Field<'_>) -> bool {
    const GENERAL: [&str; 9] = [
        "accessModes",
        "capacity",
        "claimRef",
        "mountOptions",
        "nodeAffinity",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "volumeAttributesClassName",
        "volumeMode",
    ];
    let mut fields = spec.value.as_object().into_iter().flatten();
    fields.any(|(name, value)| !GENERAL.contains(&name.as_str()) && value.is_object())
}

fn is_positive(amount: &str) -> bool {
    let amount = decimal::parse(amount).ok().flatten();
    amount.is_none_or(|amount| !amount.is_negative() && amount.whole() != Some(0))
}
