//! What containers mount of the volumes of their pod: as file systems, or as devices.

use super::field::{Errors, Field};
use std::collections::{HashMap, HashSet};
use watchkeeper_schema::FieldError;

/// The names of the volumes of a pod, and whether each is a claim: only those can be devices.
pub(crate) type Volumes<'a> = HashMap<&'a str, bool>;

/// `volumeMounts` of a container.
pub(crate) fn mounts(container: &Field<'_>, volumes: &Volumes<'_>, errors: &mut Errors) {
    let (mounts, devices) = (container.get("volumeMounts"), container.get("volumeDevices"));
    let mut paths = HashSet::new();
    for mount in mounts.items() {
        let (name, path) = (mount.get("name"), mount.get("mountPath"));
        name.required(errors);
        if !volumes.contains_key(name.text()) {
            errors.push(FieldError::not_found(&name.at, name.text()));
        }
        path.required(errors);
        if !paths.insert(path.text()) {
            path.invalid("must be unique", errors);
        }
        if has(&devices, "name", &name) {
            name.invalid("must not already exist in volumeDevices", errors);
        }
        if has(&devices, "devicePath", &path) {
            path.invalid("must not already exist as a path in volumeDevices", errors);
        }
        // kube-apiserver names these fields without the index of the mount.
        let [inside, expression] = ["subPath", "subPathExpr"].map(|part| mount.get(part));
        descending(&inside, &mounts.at.child("subPath"), errors);
        if !inside.is_empty() && !expression.is_empty() {
            expression.invalid("subPathExpr and subPath are mutually exclusive", errors);
        }
        descending(&expression, &mounts.at.child("subPathExpr"), errors);
        let propagation = Field { at: mounts.at.child("mountPropagation"), ..mount.get("mountPropagation") };
        propagation.one_of(&["Bidirectional", "HostToContainer", "None"], errors);
        let is_privileged = container.get("securityContext").get("privileged").value == true;
        if propagation.text() == "Bidirectional" && !is_privileged {
            let detail = "Bidirectional mount propagation is available only to privileged containers";
            errors.push(FieldError::forbidden(&propagation.at, detail));
        }
    }
}

/// `volumeDevices` of a container.
pub(crate) fn devices(container: &Field<'_>, volumes: &Volumes<'_>, errors: &mut Errors) {
    let mounts = container.get("volumeMounts");
    let (mut names, mut paths) = (HashSet::new(), HashSet::new());
    for device in container.get("volumeDevices").items() {
        let (name, path) = (device.get("name"), device.get("devicePath"));
        let named = name.required(errors);
        if named && !names.insert(name.text()) {
            name.invalid("must be unique", errors);
        }
        match volumes.get(name.text()) {
            Some(true) => {}
            Some(false) => {
                let detail =
                    "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
                name.invalid(detail, errors);
            }
            None => errors.push(FieldError::not_found(&name.at, name.text())),
        }
        path.required(errors);
        if paths.contains(path.text()) {
            path.invalid("must be unique", errors);
        }
        if goes_up(path.text()) {
            path.invalid("can not contain backsteps ('..')", errors);
        } else {
            paths.insert(path.text());
        }
        if has(&mounts, "name", &name) {
            name.invalid("must not already exist in volumeMounts", errors);
        }
        if has(&mounts, "mountPath", &path) {
            path.invalid("must not already exist as a path in volumeMounts", errors);
        }
    }
}

/// Whether one of the items has this value in a field.
fn has(items: &Field<'_>, field: &str, wanted: &Field<'_>) -> bool {
    items.items().any(|item| item.get(field).text() == wanted.text())
}

fn goes_up(path: &str) -> bool {
    path.split('/').any(|part| part == "..")
}

/// A path, if there is one, stays within the volume.
fn descending(path: &Field<'_>, at: &watchkeeper_schema::Path, errors: &mut Errors) {
    let path = Field { at: at.clone(), value: path.value };
    if path.text().starts_with('/') {
        path.invalid("must be a relative path", errors);
    }
    if goes_up(path.text()) {
        path.invalid("must not contain '..'", errors);
    }
}
