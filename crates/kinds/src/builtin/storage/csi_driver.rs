use crate::Kind;
use crate::kind::row::kind;
use crate::kind::strategy::Fields;
use crate::prepare::{keep, metadata, object, same};
use crate::validate::field::{Errors, Field};
use crate::validate::update::IMMUTABLE;
use serde_json::{Value, json};
use std::collections::HashSet;
use watchkeeper_schema::FieldError;

pub(crate) const KIND: Kind = kind("storage.k8s.io", "v1", "CSIDriver", "csidrivers", "csidriver")
    .cluster_wide()
    .conditional()
    .returns_deleted()
    .prepare_update(prepare_update)
    .validate_with(validate)
    .validate_update(validate_update)
    .warn(warning)
    .metadata_checks(1, 0)
    .table(table::TABLE);

/// The generation of a driver is that of its changes: a new one has none.
fn prepare_update(new: &mut Fields, old: &Fields) {
    keep(object(new, "metadata"), metadata(old), "generation");
    if !same(new.get("spec"), old.get("spec")) {
        let before = metadata(old).and_then(|metadata| metadata.get("generation")).and_then(Value::as_i64);
        object(new, "metadata").insert("generation".into(), json!(before.unwrap_or_default() + 1));
    }
}

fn validate(object: &Field<'_>, _: Option<&Field<'_>>, errors: &mut Errors) {
    let spec = &object.get("spec");
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
fn validate_update(new: &Field<'_>, old: &Field<'_>, errors: &mut Errors) {
    let (new, old) = (&new.get("spec"), &old.get("spec"));
    for (field, called) in
        [("attachRequired", "attachedRequired"), ("volumeLifecycleModes", "volumeLifecycleModes")]
    {
        let value = new.get(field).value;
        if !same(Some(value), Some(old.get(field).value)) {
            errors.push(FieldError::invalid(&new.at.child(called), value.clone(), IMMUTABLE));
        }
    }
}

fn warning(driver: &Value, old: Option<&Value>) -> Option<&'static str> {
    let spec = &driver["spec"];
    let asks = spec["tokenRequests"].as_array().is_some_and(|requests| !requests.is_empty());
    let is_new = old.is_none_or(|old| old["spec"]["tokenRequests"] != spec["tokenRequests"]);
    (asks && is_new && spec["serviceAccountTokenInSecrets"].is_null()).then_some(
        "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible logging of tokens in volume attributes",
    )
}

mod table {
    use crate::columns::joined;
    use serde_json::Value;
    use watchkeeper_table::layout::{AGE, Fields, Layout, NAME, boolean, text};

    pub(super) const TABLE: Layout = Layout::new(
        &[
            NAME,
            boolean("AttachRequired", "Whether volumes are attached before they are mounted."),
            boolean("PodInfoOnMount", "Whether the driver is told of the pod when it mounts."),
            boolean("StorageCapacity", "Whether the driver reports how much room is left."),
            text("TokenRequests", "For whom the driver is given tokens of the pod."),
            boolean("RequiresRepublish", "Whether mounted volumes are published again and again."),
            text("Modes", "Which kinds of volumes there are."),
            AGE,
        ],
        |view| {
            let driver = view.object;
            let tokens = match driver.at("spec.tokenRequests") {
                Value::Array(requests) => joined(requests, "audience"),
                _ => "<unset>".into(),
            };
            let modes: Vec<&str> =
                driver.list("spec.volumeLifecycleModes").iter().filter_map(Value::as_str).collect();
            let modes = if modes.is_empty() { "Persistent".into() } else { modes.join(",") };
            vec![
                view.name(),
                driver.at("spec.attachRequired").as_bool().unwrap_or(true).into(),
                driver.flag("spec.podInfoOnMount").into(),
                driver.flag("spec.storageCapacity").into(),
                tokens.into(),
                driver.flag("spec.requiresRepublish").into(),
                modes.into(),
                view.age(),
            ]
        },
    );
}
