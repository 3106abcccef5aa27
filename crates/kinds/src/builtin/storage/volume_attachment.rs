use crate::builtin::core::persistent_volume;
use crate::kind::row::{STATUS, kind};
use crate::prepare::same;
use crate::validate::field::{Errors, Field};
use crate::validate::names::driver;
use crate::validate::update::IMMUTABLE;
use crate::{Kind, Subresource};
use serde_json::json;
use watchkeeper_schema::{FieldError, Path};

pub(crate) const KIND: Kind =
    kind("storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments", "volumeattachment")
        .cluster_wide()
        .with(&[STATUS])
        .conditional()
        .returns_deleted()
        .validate_with(validate)
        .validate_update(validate_update)
        .validate_subresources(&[(Subresource::Status, validate_status)])
        .status_keeps(&["labels", "annotations", "ownerReferences", "finalizers"])
        .resets(&[(Subresource::Status, &[&["metadata"], &["spec"]])])
        .metadata_checks(0, 1)
        .table(table::TABLE);

/// The bytes of metadata that a driver may attach, and of an error that it may report.
const MOST_METADATA: usize = 256 << 10;
const LONGEST_ERROR: usize = 1024;

fn validate(object: &Field<'_>, _: Option<&Field<'_>>, errors: &mut Errors) {
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
        (false, true) => persistent_volume::validate_spec(&inline, errors),
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
fn validate_update(new: &Field<'_>, old: &Field<'_>, errors: &mut Errors) {
    let (new, old) = (&new.get("spec"), &old.get("spec"));
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

fn validate_status(object: &Field<'_>, _: &Field<'_>, errors: &mut Errors) {
    validate(object, None, errors);
}

mod table {
    use watchkeeper_table::layout::{AGE, Fields, Layout, NAME, boolean, text};

    pub(super) const TABLE: Layout = Layout::new(
        &[
            NAME,
            text("Attacher", "The driver that attaches the volume.").of_names(),
            text("PV", "The volume."),
            text("Node", "The node that the volume is attached to."),
            boolean("Attached", "Whether the volume is attached."),
            AGE,
        ],
        |view| {
            let attachment = view.object;
            vec![
                view.name(),
                attachment.text("spec.attacher").into(),
                attachment.text("spec.source.persistentVolumeName").into(),
                attachment.text("spec.nodeName").into(),
                attachment.flag("status.attached").into(),
                view.age(),
            ]
        },
    );
}
