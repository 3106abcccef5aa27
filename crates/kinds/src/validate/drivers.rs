//! Storage drivers, what they have on a node, and what they attach.

use super::field::{Errors, Field};
use super::names::{driver, qualified};
use super::{containers, selector};
use crate::prepare::same;
use serde_json::{Value, json};
use std::collections::HashSet;
use watchkeeper_schema::metadata::label_key_problems;
use watchkeeper_schema::{FieldError, Path};

const IMMUTABLE: &str = "field is immutable";

/// The bytes of metadata that a driver may attach, and of an error that it may report.
const MOST_METADATA: usize = 256 << 10;
const LONGEST_ERROR: usize = 1024;

pub(super) fn csi_driver(spec: &Field<'_>, errors: &mut Errors) {
    spec.get("fsGroupPolicy").one_of(&["File", "None", "ReadWriteOnceWithFSType"], errors);
    let requests = spec.get("tokenRequests");
    let mut audiences = HashSet::new();
    for request in requests.items() {
        let (audience, seconds) = (request.get("audience"), request.get("expirationSeconds"));
        if !audiences.insert(audience.text()) {
            errors.push(FieldError::duplicate(&audience.at, audience.text()));
        } else if seconds.number().is_some_and(|seconds| seconds < 600) {
            seconds.invalid("may not specify a duration less than 10 minutes", errors);
        } else if seconds.number().is_some_and(|seconds| seconds > 1 << 32) {
            seconds.invalid("may not specify a duration larger than 2^32 seconds", errors);
        }
    }
    let modes = spec.get("volumeLifecycleModes");
    for mode in modes.items().filter(|mode| !matches!(mode.text(), "Persistent" | "Ephemeral")) {
        errors.push(FieldError::not_supported(&modes.at, mode.text(), ["Persistent", "Ephemeral"]));
    }
    let period = spec.get("nodeAllocatableUpdatePeriodSeconds");
    if period.number().is_some_and(|seconds| seconds < 10) {
        period.invalid("must be greater than or equal to 10 seconds", errors);
    }
    let in_secrets = spec.get("serviceAccountTokenInSecrets");
    if in_secrets.is_set() && requests.is_empty() {
        let detail = "serviceAccountTokenInSecrets is set but no tokenRequests are specified";
        in_secrets.invalid(detail, errors);
    }
}

/// What of a driver may not change. The first field is called by another name.
pub(super) fn csi_driver_update(new: &Field<'_>, old: &Field<'_>, errors: &mut Errors) {
    for (field, called) in
        [("attachRequired", "attachedRequired"), ("volumeLifecycleModes", "volumeLifecycleModes")]
    {
        let value = new.get(field).value;
        if !same(Some(value), Some(old.get(field).value)) {
            errors.push(FieldError::invalid(&new.at.child(called), value.clone(), IMMUTABLE));
        }
    }
}

pub(super) fn csi_node(spec: &Field<'_>, errors: &mut Errors) {
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
pub(super) fn csi_node_update(new: &Field<'_>, old: &Field<'_>, errors: &mut Errors) {
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

pub(super) fn capacity(object: &Field<'_>, errors: &mut Errors) {
    selector::selector(&object.get("nodeTopology"), errors);
    let class = object.get("storageClassName");
    for problem in watchkeeper_schema::metadata::dns_subdomain_problems(class.text()) {
        class.invalid(problem, errors);
    }
    containers::not_negative(&object.get("capacity"), errors);
}

pub(super) fn attachment(object: &Field<'_>, errors: &mut Errors) {
    let spec = object.get("spec");
    driver(&spec.get("attacher"), errors);
    let source = spec.get("source");
    let (volume, inline) = (source.get("persistentVolumeName"), source.get("inlineVolumeSpec"));
    let one = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
    match (volume.is_set(), inline.is_set()) {
        (false, false) => errors.push(FieldError::required(&source.at, one)),
        (true, true) => errors.push(FieldError::forbidden(&source.at, one)),
        (true, false) => {
            volume.required_as("must specify non empty persistentVolumeName", errors);
        }
        (false, true) => super::storage::volume(&inline, errors),
    }
    let node = spec.get("nodeName");
    for problem in watchkeeper_schema::metadata::dns_subdomain_problems(node.text()) {
        node.invalid(problem, errors);
    }
    attachment_status(&object.get("status"), errors);
    if volume.is_set() {
        let at = Path::root().child("spec").child("source").child("persistentVolumeName");
        for problem in watchkeeper_schema::metadata::dns_subdomain_problems(volume.text()) {
            errors.push(FieldError::invalid(&at, volume.text(), problem));
        }
    }
}

fn attachment_status(status: &Field<'_>, errors: &mut Errors) {
    let metadata = status.get("attachmentMetadata");
    let size: usize = metadata.entries().map(|(key, value)| key.len() + value.text().len()).sum();
    if size > MOST_METADATA {
        errors.push(FieldError::too_long(&metadata.at, MOST_METADATA as i64));
    }
    for error in [status.get("attachError"), status.get("detachError")] {
        let (message, code) = (error.get("message"), error.get("errorCode"));
        if message.text().len() > LONGEST_ERROR {
            errors.push(FieldError::too_long(&message.at, MOST_METADATA as i64));
        }
        if code.number().is_some_and(|code| code < 0) {
            code.invalid("must be between 0 and 2147483647, inclusive", errors);
        }
    }
}

/// What is attached where stays so.
pub(super) fn attachment_update(new: &Field<'_>, old: &Field<'_>, errors: &mut Errors) {
    if same(Some(new.value), Some(old.value)) {
        return;
    }
    let text = |field: &Field<'_>| json!(field.text()).to_string();
    let source = new.get("source");
    let mut error = FieldError::invalid(&new.at, new.value.clone(), IMMUTABLE);
    if !source.get("inlineVolumeSpec").is_set() {
        error.shown = Some(format!(
            r#"{{"Attacher":{},"Source":{{"PersistentVolumeName":{},"InlineVolumeSpec":null}},"NodeName":{}}}"#,
            text(&new.get("attacher")),
            source.get("persistentVolumeName").value,
            text(&new.get("nodeName"))
        ));
    }
    errors.push(error);
}

pub(super) fn attributes_class(object: &Field<'_>, errors: &mut Errors) {
    qualified(&object.get("driverName"), errors);
    let parameters = object.get("parameters");
    if parameters.entries().any(|(key, _)| key.is_empty()) {
        errors.push(FieldError::invalid(&parameters.at, "", "field can not be empty."));
    }
    parameters.required_as("must contain at least one key/value pair", errors);
}

pub(super) fn attributes_class_update(new: &Field<'_>, old: &Field<'_>, errors: &mut Errors) {
    for field in ["driverName", "parameters"] {
        if !same(Some(new.get(field).value), Some(old.get(field).value)) {
            let detail = format!("updates to {field} are forbidden.");
            errors.push(FieldError::forbidden(&new.get(field).at, detail));
        }
    }
}
