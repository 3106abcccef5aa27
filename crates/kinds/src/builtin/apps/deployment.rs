use crate::default::{child, set, text};
use crate::kind::row::{SCALE, STATUS, kind};
use crate::kind::strategy::Fields;
use crate::prepare::{metadata_differs, spec_differs};
use crate::validate::field::{Errors, Field};
use crate::validate::status::Counts;
use crate::validate::workloads::{
    amount_or_percent, not_above_all, replicated_template, selection, shown_strategy,
};
use crate::{Kind, Subresource};
use serde_json::Value;
use watchkeeper_schema::FieldError;

pub(crate) const KIND: Kind = kind("apps", "v1", "Deployment", "deployments", "deployment")
    .short(&["deploy"])
    .in_all()
    .with(&[SCALE, STATUS])
    .scaled("spec.selector")
    .immutable(&["spec.selector"])
    .type_defaults(&[("DeploymentStrategy", default_strategy)])
    .generation_counts(|new, old| spec_differs(new, old) || metadata_differs("annotations", new, old))
    .status_keeps(&["labels"])
    .validate_with(validate)
    .validate_subresources(&[(Subresource::Status, validate_status)])
    .metadata_checks(1, 0)
    .table(table::TABLE);

const COUNTS: Counts = Counts {
    not_negative: &[
        "observedGeneration",
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
        "unavailableReplicas",
        "terminatingReplicas",
        "collisionCount",
    ],
    of_replicas: &["updatedReplicas", "readyReplicas", "availableReplicas"],
    ready: "readyReplicas",
};

fn default_strategy(fields: &mut Fields) {
    set(fields, "type", "RollingUpdate");
    if text(fields, "type") != "RollingUpdate" {
        return;
    }
    if let Some(rolling) = child(fields, "rollingUpdate") {
        set(rolling, "maxUnavailable", "25%");
        set(rolling, "maxSurge", "25%");
    }
}

fn validate(object: &Field<'_>, _: Option<&Field<'_>>, errors: &mut Errors) {
    let spec = &object.get("spec");
    spec.get("replicas").not_negative(errors);
    selection(spec, Some("deployment"), errors);
    replicated_template(spec, errors);
    let strategy = spec.get("strategy");
    let rolling = strategy.get("rollingUpdate");
    match strategy.get("type").text() {
        "Recreate" => {
            rolling.forbidden_if_set("may not be specified when strategy `type` is 'Recreate'", errors);
        }
        "RollingUpdate" => rolling_update(&rolling, errors),
        _ => errors.push(shown_strategy(
            FieldError::not_supported(&strategy.at, strategy.value.clone(), ["Recreate", "RollingUpdate"]),
            &strategy,
        )),
    }
    let (ready, deadline) = (spec.get("minReadySeconds"), spec.get("progressDeadlineSeconds"));
    ready.not_negative(errors);
    spec.get("revisionHistoryLimit").not_negative(errors);
    deadline.not_negative(errors);
    if deadline.number().is_some_and(|deadline| deadline <= ready.number().unwrap_or_default()) {
        deadline.invalid("must be greater than minReadySeconds", errors);
    }
}

fn rolling_update(rolling: &Field<'_>, errors: &mut Errors) {
    if !rolling.is_set() {
        errors.push(FieldError::required(&rolling.at, "this should be defaulted and never be nil"));
        return;
    }
    let (unavailable, surge) = (rolling.get("maxUnavailable"), rolling.get("maxSurge"));
    amount_or_percent(&unavailable, errors);
    amount_or_percent(&surge, errors);
    let is_nothing = |value: &Value| value == 0 || value == "0%";
    if is_nothing(unavailable.value) && is_nothing(surge.value) {
        errors.push(FieldError::invalid(
            &unavailable.at,
            unavailable.value.clone(),
            "may not be 0 when `maxSurge` is 0",
        ));
    }
    not_above_all(&unavailable, errors);
}

fn validate_status(object: &Field<'_>, _: &Field<'_>, errors: &mut Errors) {
    COUNTS.validate(&object.get("status"), errors);
}

mod table {
    use crate::columns::{CONTAINERS, IMAGES, SELECTOR, containers, ready_of_desired};
    use watchkeeper_table::layout::{AGE, Fields, Layout, NAME, selector, text};

    pub(super) const TABLE: Layout = Layout::new(
        &[
            NAME,
            text("Ready", "How many pods are ready, of how many."),
            text("Up-to-date", "How many pods have the current template."),
            text("Available", "How many pods have been ready for long enough."),
            AGE,
            CONTAINERS,
            IMAGES,
            SELECTOR,
        ],
        |view| {
            let deployment = view.object;
            let [names, images] = containers(deployment, "spec.template.spec");
            let selector = selector::text(deployment.at("spec.selector"));
            vec![
                view.name(),
                ready_of_desired(deployment),
                deployment.int("status.updatedReplicas").into(),
                deployment.int("status.availableReplicas").into(),
                view.age(),
                names,
                images,
                selector.unwrap_or_else(|| "<invalid>".into()).into(),
            ]
        },
    );
}
