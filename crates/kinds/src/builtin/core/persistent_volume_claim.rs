use crate::Kind;
use crate::kind::row::{STATUS, kind};
use crate::kind::strategy::Fields;
use crate::prepare::{object, same};
use crate::validate::difference::{Shown, unified};
use crate::validate::field::{Errors, Field};
use crate::validate::selector;
use crate::validate::storage::{access_modes, is_positive};
use serde_json::Value;
use watchkeeper_schema::FieldError;

pub(crate) const KIND: Kind =
    kind("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", "persistentvolumeclaim")
        .short(&["pvc"])
        .with(&[STATUS])
        .returns_deleted()
        .prepare_create(prepare_create)
        .validate_with(validate)
        .validate_update_first(validate_update)
        .warn(warning)
        .table(table::TABLE);

fn prepare_create(fields: &mut Fields) {
    object(fields, "status").insert("phase".into(), "Pending".into());
}

fn warning(claim: &Value, _: Option<&Value>) -> Option<&'static str> {
    let is_old = !claim["metadata"]["annotations"]["volume.beta.kubernetes.io/storage-class"].is_null();
    is_old.then_some(
        "metadata.annotations[volume.beta.kubernetes.io/storage-class]: deprecated since v1.8; use \"storageClassName\" attribute instead",
    )
}

fn validate(object: &Field<'_>, _: Option<&Field<'_>>, errors: &mut Errors) {
    validate_spec(&object.get("spec"), errors);
}

/// The spec of a claim, or of a template of claims.
pub(crate) fn validate_spec(spec: &Field<'_>, errors: &mut Errors) {
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

/// Claims grow when they are bound, if at all, and get a volume once.
fn validate_update(new: &Field<'_>, old: &Field<'_>, errors: &mut Errors) {
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

mod table {
    use crate::columns::volumes::{ATTRIBUTES, CAPACITY, CLASS, MODES, VOLUME_MODE, access_modes};
    use crate::columns::volumes::{class, phase};
    use watchkeeper_table::layout::{AGE, Fields, Layout, NAME, canonical, text};

    pub(super) const TABLE: Layout = Layout::new(
        &[
            NAME,
            text("Status", "Whether the claim is bound."),
            text("Volume", "The volume that the claim is bound to."),
            CAPACITY,
            MODES,
            CLASS,
            ATTRIBUTES,
            AGE,
            VOLUME_MODE,
        ],
        |view| {
            let claim = view.object;
            let volume = claim.text("spec.volumeName");
            let (capacity, modes) = match volume {
                "" => (String::new(), String::new()),
                _ => (
                    canonical(claim.at("status.capacity.storage")),
                    access_modes(claim.list("status.accessModes")),
                ),
            };
            vec![
                view.name(),
                phase(view).into(),
                volume.into(),
                capacity.into(),
                modes.into(),
                class(claim).into(),
                claim.set_text_or("spec.volumeAttributesClassName", "<unset>").into(),
                view.age(),
                claim.set_text_or("spec.volumeMode", "Filesystem").into(),
            ]
        },
    );
}
