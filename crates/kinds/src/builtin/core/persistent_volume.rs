use crate::Kind;
use crate::kind::row::{STATUS, kind};
use crate::kind::strategy::Fields;
use crate::prepare::{object, same};
use crate::validate::difference::{Shown, unified};
use crate::validate::field::{Errors, Field};
use crate::validate::storage::{access_modes, host_path, is_positive};
use serde_json::Value;
use watchkeeper_schema::FieldError;

pub(crate) const KIND: Kind = kind("", "v1", "PersistentVolume", "persistentvolumes", "persistentvolume")
    .short(&["pv"])
    .cluster_wide()
    .with(&[STATUS])
    .returns_deleted()
    .prepare_create(prepare_create)
    .validate_with(validate)
    .validate_update(validate_update)
    .metadata_checks(0, 2)
    .table(table::TABLE);

/// The kinds of volumes there are, in Go and in JSON.
const SOURCES: [(&str, &str); 22] = [
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

fn prepare_create(fields: &mut Fields) {
    let created = fields.get("metadata").and_then(|metadata| metadata.get("creationTimestamp")).cloned();
    let status = object(fields, "status");
    status.insert("phase".into(), "Pending".into());
    if let Some(created) = created {
        status.insert("lastPhaseTransitionTime".into(), created);
    }
}

fn validate(object: &Field<'_>, _: Option<&Field<'_>>, errors: &mut Errors) {
    validate_spec(&object.get("spec"), errors);
}

/// The spec of a volume, also of one that is part of an attachment.
pub(crate) fn validate_spec(spec: &Field<'_>, errors: &mut Errors) {
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
        SOURCES.iter().map(|(_, name)| spec.get(name)).filter(Field::is_set).collect();
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

/// A volume stays where it is.
fn validate_update(new: &Field<'_>, old: &Field<'_>, errors: &mut Errors) {
    let (new, old) = (&new.get("spec"), &old.get("spec"));
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

fn plain(_: &str, value: &Value) -> Shown {
    Shown::Plain(value.clone())
}

mod table {
    use crate::columns::volumes::{ATTRIBUTES, CAPACITY, CLASS, MODES, VOLUME_MODE, access_modes};
    use crate::columns::volumes::{class, phase};
    use serde_json::Value;
    use watchkeeper_table::layout::{AGE, Fields, Layout, NAME, canonical, text};

    pub(super) const TABLE: Layout = Layout::new(
        &[
            NAME,
            CAPACITY,
            MODES,
            text("Reclaim Policy", "What becomes of the volume when its claim is gone."),
            text("Status", "Whether the volume is free, bound, released or failed."),
            text("Claim", "The claim that the volume is bound to."),
            CLASS,
            ATTRIBUTES,
            text("Reason", "Why the volume is in its status."),
            AGE,
            VOLUME_MODE,
        ],
        |view| {
            let volume = view.object;
            let claim = match volume.at("spec.claimRef") {
                Value::Null => String::new(),
                claim => format!("{}/{}", claim.text("namespace"), claim.text("name")),
            };
            vec![
                view.name(),
                canonical(volume.at("spec.capacity.storage")).into(),
                access_modes(volume.list("spec.accessModes")).into(),
                volume.text_or("spec.persistentVolumeReclaimPolicy", "Retain").into(),
                phase(view).into(),
                claim.into(),
                class(volume).into(),
                volume.set_text_or("spec.volumeAttributesClassName", "<unset>").into(),
                volume.text("status.reason").into(),
                view.age(),
                volume.set_text_or("spec.volumeMode", "Filesystem").into(),
            ]
        },
    );
}
