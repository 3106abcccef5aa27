use super::field::{Errors, Field};
use super::{names, selector, update};
use crate::decimal;
use watchkeeper_schema::FieldError;
use watchkeeper_schema::metadata::label_key_problems;

const ACCESS_MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

pub(super) fn claim(spec: &Field<'_>, errors: &mut Errors) {
    selector::selector(&spec.get("selector"), errors);
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
    spec.get("volumeAttributesClassName").dns_subdomain(errors);
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
    let sources: Vec<Field<'_>> =
        update::SOURCES.iter().map(|(_, name)| spec.get(name)).filter(Field::is_set).collect();
    match sources.first() {
        None => errors.push(FieldError::required(&spec.at, "must specify a volume type")),
        Some(first) if first.at == spec.get("hostPath").at => host_path(first, errors),
        Some(_) => {}
    }
    for other in sources.iter().skip(1) {
        errors.push(FieldError::forbidden(&other.at, "may not specify more than 1 volume type"));
    }
    spec.get("storageClassName").dns_subdomain(errors);
    spec.get("volumeMode").one_of(&["Block", "Filesystem"], errors);
}

pub(super) fn class(object: &Field<'_>, errors: &mut Errors) {
    names::qualified(&object.get("provisioner"), errors);
    for (key, _) in object.get("parameters").entries().filter(|(key, _)| key.is_empty()) {
        let at = object.get("parameters").at;
        errors.push(FieldError::invalid(&at, key, "field can not be empty."));
    }
    object.get("reclaimPolicy").one_of(&["Delete", "Retain"], errors);
    object.get("volumeBindingMode").one_of(&["Immediate", "WaitForFirstConsumer"], errors);
    for topology in object.get("allowedTopologies").items() {
        for requirement in topology.get("matchLabelExpressions").items() {
            let (key, values) = (requirement.get("key"), requirement.get("values"));
            values.required(errors);
            for problem in label_key_problems(key.text()) {
                errors.push(FieldError::invalid(&key.at, key.text(), problem));
            }
        }
    }
}

fn access_modes(modes: &Field<'_>, errors: &mut Errors) {
    for mode in modes.items().filter(|mode| !ACCESS_MODES.contains(&mode.text())) {
        errors.push(FieldError::not_supported(&modes.at, mode.text(), ACCESS_MODES));
    }
    let has_alone = modes.items().any(|mode| mode.text() == "ReadWriteOncePod");
    if has_alone && modes.items().any(|mode| mode.text() != "ReadWriteOncePod") {
        let detail = "may not use ReadWriteOncePod with other access modes";
        errors.push(FieldError::forbidden(&modes.at, detail));
    }
}

/// A path on the node, which does not lead out of where it begins.
pub(super) fn host_path(source: &Field<'_>, errors: &mut Errors) {
    const KINDS: [&str; 8] =
        ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];
    let path = source.get("path");
    if path.required(errors) && path.text().split('/').any(|part| part == "..") {
        path.invalid("must not contain '..'", errors);
    }
    source.get("type").one_of(&KINDS, errors);
}

fn is_positive(amount: &str) -> bool {
    let amount = decimal::parse(amount).ok().flatten();
    amount.is_none_or(|amount| !amount.is_negative() && amount.whole() != Some(0))
}
