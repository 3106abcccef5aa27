//! What an update may not change.

use super::difference::{Shown, unified};
use super::field::{Errors, Field};
use super::{addresses, certificate, drivers};
use crate::prepare::{Write, same};
use serde_json::{Value, json};
use watchkeeper_schema::FieldError;

const IMMUTABLE: &str = "field is immutable";
const SEALED: &str = "field is immutable when `immutable` is set";

/// Fields that stay as they are, by kind.
const FIXED: [(&str, &[&str]); 12] = [
    ("Deployment", &["spec.selector"]),
    ("ReplicaSet", &["spec.selector"]),
    ("DaemonSet", &["spec.selector"]),
    ("Job", &["spec.completions", "spec.selector", "spec.template.spec", "spec.completionMode"]),
    ("StorageClass", &["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"]),
    ("EndpointSlice", &["addressType"]),
    ("ControllerRevision", &["data"]),
    ("IngressClass", &["spec.controller"]),
    ("CSIStorageCapacity", &["nodeTopology", "storageClassName"]),
    ("ResourceClaim", &["spec"]),
    ("ResourceClaimTemplate", &["spec"]),
    ("RuntimeClass", &["handler"]),
];

pub(super) fn update(kind: &str, new: &Field<'_>, old: &Field<'_>, errors: &mut Errors) {
    for path in FIXED.iter().find(|(of, _)| *of == kind).map_or(&[][..], |(_, paths)| paths) {
        let (new, old) = (at(new, path), at(old, path));
        if !same(Some(new.value), Some(old.value)) {
            new.invalid(IMMUTABLE, errors);
        }
    }
    match kind {
        "ConfigMap" => sealed(new, old, &["data", "binaryData"], errors),
        "Secret" => secret(new, old, errors),
        "RoleBinding" | "ClusterRoleBinding" => {
            let role = new.get("roleRef");
            if role.value != old.get("roleRef").value {
                let [group, kind, name] = ["apiGroup", "kind", "name"].map(|name| role.get(name).value);
                // Theirs is the Go struct.
                let shown = json!({"APIGroup": group, "Kind": kind, "Name": name});
                errors.push(FieldError::invalid(&role.at, shown, "cannot change roleRef"));
            }
        }
        "PriorityClass" if new.get("value").value != old.get("value").value => {
            errors.push(FieldError::forbidden(&new.get("value").at, "may not be changed in an update."));
        }
        "StatefulSet" => only_these_change(
            &new.get("spec"),
            &old.get("spec"),
            &[
                "replicas",
                "ordinals",
                "template",
                "updateStrategy",
                "revisionHistoryLimit",
                "persistentVolumeClaimRetentionPolicy",
                "minReadySeconds",
            ],
            "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
            errors,
        ),
        "PersistentVolumeClaim" => claim(new, old, errors),
        "PersistentVolume" => volume(&new.get("spec"), &old.get("spec"), errors),
        "Service" => service(&new.get("spec"), &old.get("spec"), errors),
        "Pod" => pod(&new.get("spec"), &old.get("spec"), errors),
        "CertificateSigningRequest" => certificate::update(Write::Main, new, old, errors),
        "IPAddress" => addresses::address_update(&new.get("spec"), &old.get("spec"), errors),
        "ServiceCIDR" => addresses::blocks_update(&new.get("spec"), &old.get("spec"), errors),
        "CSIDriver" => drivers::csi_driver_update(&new.get("spec"), &old.get("spec"), errors),
        "CSINode" => drivers::csi_node_update(&new.get("spec"), &old.get("spec"), errors),
        "VolumeAttachment" => drivers::attachment_update(&new.get("spec"), &old.get("spec"), errors),
        "VolumeAttributesClass" => drivers::attributes_class_update(new, old, errors),
        _ => {}
    }
}

fn at<'a>(object: &Field<'a>, path: &str) -> Field<'a> {
    path.split('.').fold(object.clone(), |field, name| field.get(name))
}

fn sealed(new: &Field<'_>, old: &Field<'_>, fields: &[&str], errors: &mut Errors) {
    if old.get("immutable").value != true {
        return;
    }
    if new.get("immutable").value != true {
        errors.push(FieldError::forbidden(&new.get("immutable").at, SEALED));
    }
    for field in fields {
        if !same(Some(new.get(field).value), Some(old.get(field).value)) {
            errors.push(FieldError::forbidden(&new.get(field).at, SEALED));
        }
    }
}

fn secret(new: &Field<'_>, old: &Field<'_>, errors: &mut Errors) {
    if new.get("type").value != old.get("type").value {
        new.get("type").invalid(IMMUTABLE, errors);
    }
    sealed(new, old, &["data"], errors);
}

fn only_these_change(new: &Field<'_>, old: &Field<'_>, may: &[&str], detail: &str, errors: &mut Errors) {
    let without = |spec: &Value| {
        let mut spec = spec.clone();
        if let Value::Object(fields) = &mut spec {
            fields.retain(|name, _| !may.contains(&name.as_str()));
        }
        spec
    };
    if !same(Some(&without(new.value)), Some(&without(old.value))) {
        errors.push(FieldError::forbidden(&new.at, detail));
    }
}

/// Claims grow when they are bound, if at all, and get a volume once.
fn claim(new: &Field<'_>, old: &Field<'_>, errors: &mut Errors) {
    let is_bound = old.get("status").get("phase").text() == "Bound";
    let (mut next, mut before) = (new.get("spec").value.clone(), old.get("spec").value.clone());
    if before["volumeName"].as_str().unwrap_or_default().is_empty() {
        before["volumeName"] = next["volumeName"].clone();
    }
    if is_bound {
        next["resources"]["requests"]["storage"] = before["resources"]["requests"]["storage"].clone();
        next["volumeAttributesClassName"] = before["volumeAttributesClassName"].clone();
    }
    if same(Some(&next), Some(&before)) {
        return;
    }
    let shown = |spec: &Value| {
        const FIELDS: [(&str, &str); 9] = [
            ("AccessModes", "accessModes"),
            ("Selector", "selector"),
            ("Resources", "resources"),
            ("VolumeName", "volumeName"),
            ("StorageClassName", "storageClassName"),
            ("VolumeMode", "volumeMode"),
            ("DataSource", "dataSource"),
            ("DataSourceRef", "dataSourceRef"),
            ("VolumeAttributesClassName", "volumeAttributesClassName"),
        ];
        Shown::of(spec, &FIELDS, |name, value| match name {
            "resources" => Shown::of(value, &[("Limits", "limits"), ("Requests", "requests")], plain),
            "volumeName" => Shown::Plain(value.as_str().unwrap_or_default().into()),
            _ => plain(name, value),
        })
    };
    let detail = format!(
        "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n{}",
        unified(&shown(&before), &shown(&next))
    );
    errors.push(FieldError::forbidden(&new.get("spec").at, detail));
}

fn plain(_: &str, value: &Value) -> Shown {
    Shown::Plain(value.clone())
}

/// The kinds of volumes there are, in Go and in JSON.
pub(super) const SOURCES: [(&str, &str); 22] = [
    ("GCEPersistentDisk", "gcePersistentDisk"),
    ("AWSElasticBlockStore", "awsElasticBlockStore"),
    ("HostPath", "hostPath"),
    ("Glusterfs", "glusterfs"),
    ("NFS", "nfs"),
    ("RBD", "rbd"),
    ("Quobyte", "quobyte"),
    ("ISCSI", "iscsi"),
    ("FlexVolume", "flexVolume"),
    ("Cinder", "cinder"),
    ("CephFS", "cephfs"),
    ("FC", "fc"),
    ("Flocker", "flocker"),
    ("AzureFile", "azureFile"),
    ("VsphereVolume", "vsphereVolume"),
    ("AzureDisk", "azureDisk"),
    ("PhotonPersistentDisk", "photonPersistentDisk"),
    ("PortworxVolume", "portworxVolume"),
    ("ScaleIO", "scaleIO"),
    ("Local", "local"),
    ("StorageOS", "storageos"),
    ("CSI", "csi"),
];

/// A volume stays where it is.
fn volume(new: &Field<'_>, old: &Field<'_>, errors: &mut Errors) {
    let is_same = |(_, name): &(&str, &str)| same(new.value.get(*name), old.value.get(*name));
    if SOURCES.iter().all(is_same) {
        return;
    }
    let shown = |spec: &Value| Shown::of(spec, &SOURCES, source);
    let detail = format!(
        "spec.persistentvolumesource is immutable after creation\n{}",
        unified(&shown(old.value), &shown(new.value))
    );
    errors.push(FieldError::forbidden(&new.at.child("persistentvolumesource"), detail));
}

/// The common kinds of volumes as kube-apiserver shows them.
fn source(name: &str, value: &Value) -> Shown {
    let flag = |name: &str, value: &Value| match name {
        "readOnly" => Shown::Plain(value.as_bool().unwrap_or_default().into()),
        name => plain(name, value),
    };
    match name {
        _ if !value.is_object() => plain(name, &Value::Null),
        "hostPath" => Shown::of(value, &[("Path", "path"), ("Type", "type")], plain),
        "local" => Shown::of(value, &[("Path", "path"), ("FSType", "fsType")], plain),
        "nfs" => Shown::of(value, &[("Server", "server"), ("Path", "path"), ("ReadOnly", "readOnly")], flag),
        _ => plain(name, value),
    }
}

/// An address once given is kept.
fn service(new: &Field<'_>, old: &Field<'_>, errors: &mut Errors) {
    let is_gone = |spec: &Field<'_>| spec.get("type").text() == "ExternalName";
    let (address, before) = (new.get("clusterIPs"), old.get("clusterIPs"));
    let has_first = before.value.get(0).is_some_and(|first| first != "");
    if !is_gone(new) && !is_gone(old) && has_first && address.value.get(0) != before.value.get(0) {
        errors.push(FieldError::invalid(
            &address.at.index(0),
            address.value.clone(),
            "may not change once set",
        ));
    }
}

/// Of a pod only images, its deadline and more tolerations can be changed.
fn pod(new: &Field<'_>, old: &Field<'_>, errors: &mut Errors) {
    for list in ["containers", "initContainers"] {
        let count = |spec: &Field<'_>| spec.get(list).items().count();
        if count(new) != count(old) {
            let detail = "pod updates may not add or remove containers";
            errors.push(FieldError::forbidden(&new.get(list).at, detail));
            return;
        }
    }
    let gates: Vec<&str> = old.get("schedulingGates").items().map(|gate| gate.get("name").text()).collect();
    for gate in new.get("schedulingGates").items().map(|gate| gate.get("name")) {
        if !gates.contains(&gate.text()) {
            let detail = format!("only deletion is allowed, but found new scheduling gate '{}'", gate.text());
            errors.push(FieldError::forbidden(&gate.at, detail));
        }
    }
    let mut as_before = new.value.clone();
    for list in ["containers", "initContainers"] {
        let containers = as_before.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
        for (container, before) in containers.zip(old.get(list).items()) {
            if let Some(image) = container.get_mut("image") {
                *image = before.get("image").value.clone();
            }
        }
    }
    // Scheduling binds a pod to a node; everything else of a pod that waits at a gate may still be narrowed.
    for field in ["activeDeadlineSeconds", "tolerations", "schedulingGates"] {
        if let Value::Object(fields) = &mut as_before {
            fields.insert(field.into(), old.get(field).value.clone());
        }
    }
    if !same(Some(&as_before), Some(old.value)) {
        let detail = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
        errors.push(FieldError::forbidden(&new.at, detail));
    }
}
