use crate::default::{child, set, text};
use crate::kind::row::{STATUS, kind};
use crate::kind::strategy::Fields;
use crate::prepare::{metadata, object, same};
use crate::validate::field::{Errors, Field};
use crate::validate::status::Counts;
use crate::validate::workloads::{
    always_restarting, amount_or_percent, deadline_not_allowed, matching, not_above_all, shown_strategy,
};
use crate::validate::{pod, selector};
use crate::{Kind, Subresource};
use serde_json::{Map, Value};
use watchkeeper_schema::FieldError;

pub(crate) const KIND: Kind = kind("apps", "v1", "DaemonSet", "daemonsets", "daemonset")
    .short(&["ds"])
    .in_all()
    .with(&[STATUS])
    .generation()
    .immutable(&["spec.selector"])
    .unify(unify)
    .type_defaults(&[("DaemonSetUpdateStrategy", default_strategy)])
    .prepare_create(prepare_create)
    .prepare_update(prepare_update)
    .validate_with(validate)
    .validate_subresources(&[(Subresource::Status, validate_status)])
    .metadata_checks(1, 0)
    .table(table::TABLE);

/// How often the template of a daemon set has changed.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";
const COUNTS: Counts = Counts {
    not_negative: &[
        "currentNumberScheduled",
        "numberMisscheduled",
        "desiredNumberScheduled",
        "numberReady",
        "observedGeneration",
        "updatedNumberScheduled",
        "numberAvailable",
        "numberUnavailable",
        "collisionCount",
    ],
    of_replicas: &[],
    ready: "readyReplicas",
};

/// A field that is gone, of which an annotation is left: how often the template of a daemon set has changed.
fn unify(fields: &mut Fields) {
    let Some(Value::Object(metadata)) = fields.get_mut("metadata") else { return };
    let annotations = metadata.entry("annotations").or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(annotations) = annotations {
        annotations.entry(TEMPLATE_GENERATION).or_insert_with(|| "0".into());
    }
}

fn default_strategy(fields: &mut Fields) {
    set(fields, "type", "RollingUpdate");
    if text(fields, "type") != "RollingUpdate" {
        return;
    }
    if let Some(rolling) = child(fields, "rollingUpdate") {
        set(rolling, "maxUnavailable", 1);
        set(rolling, "maxSurge", 0);
    }
}

fn prepare_create(fields: &mut Fields) {
    let annotations = object(object(fields, "metadata"), "annotations");
    let counted = annotations.get(TEMPLATE_GENERATION).and_then(Value::as_str);
    if counted.and_then(|count| count.parse().ok()).is_none_or(|count: i64| count < 1) {
        annotations.insert(TEMPLATE_GENERATION.into(), "1".into());
    }
}

/// A daemon set counts how often its template changed.
fn prepare_update(new: &mut Fields, old: &Fields) {
    let counted =
        metadata(old).and_then(|metadata| metadata.get("annotations")).map(|all| &all[TEMPLATE_GENERATION]);
    let mut count: i64 =
        counted.and_then(Value::as_str).and_then(|count| count.parse().ok()).unwrap_or_default();
    let template = |object: &Fields| object.get("spec").and_then(|spec| spec.get("template")).cloned();
    if !same(template(new).as_ref(), template(old).as_ref()) {
        count += 1;
    }
    if count > 0 {
        let annotations = object(object(new, "metadata"), "annotations");
        annotations.insert(TEMPLATE_GENERATION.into(), count.to_string().into());
    }
}

fn validate(object: &Field<'_>, _: Option<&Field<'_>>, errors: &mut Errors) {
    let spec = &object.get("spec");
    let selects = spec.get("selector");
    selector::selector(&selects, errors);
    if selects.is_set() && selector::is_empty(selects.value) {
        selects.invalid("empty selector is invalid for daemonset", errors);
    }
    matching(spec, errors);
    let template = spec.get("template");
    pod::template(&template, errors);
    always_restarting(&template, errors);
    deadline_not_allowed(&template, "DaemonSet", errors);
    spec.get("minReadySeconds").not_negative(errors);
    let strategy = spec.get("updateStrategy");
    if strategy.get("type").text() == "RollingUpdate" {
        rolling_update(&strategy.get("rollingUpdate"), errors);
    }
    if !matches!(strategy.get("type").text(), "RollingUpdate" | "OnDelete") {
        errors.push(shown_strategy(
            FieldError::not_supported(&strategy.at, strategy.value.clone(), ["RollingUpdate", "OnDelete"]),
            &strategy,
        ));
    }
    spec.get("revisionHistoryLimit").not_negative(errors);
}

/// Either some may be missing, or there may be some more: exactly one of the two.
fn rolling_update(rolling: &Field<'_>, errors: &mut Errors) {
    if !rolling.is_set() {
        errors.push(FieldError::required(&rolling.at, ""));
        return;
    }
    let both = [rolling.get("maxUnavailable"), rolling.get("maxSurge")];
    both.iter().for_each(|amount| amount_or_percent(amount, errors));
    both.iter().for_each(|amount| not_above_all(amount, errors));
    let is_some = |amount: &Value| match amount {
        Value::String(percent) => {
            percent.trim_end_matches('%').parse::<i64>().is_ok_and(|number| number != 0)
        }
        number => number.as_i64().is_some_and(|number| number != 0),
    };
    match (is_some(both[0].value), is_some(both[1].value)) {
        (true, true) => both[1].invalid("may not be set when maxUnavailable is non-zero", errors),
        (false, false) => {
            errors.push(FieldError::required(&both[0].at, "cannot be 0 when maxSurge is 0"));
        }
        _ => {}
    }
}

fn validate_status(object: &Field<'_>, _: &Field<'_>, errors: &mut Errors) {
    COUNTS.validate(&object.get("status"), errors);
}

mod table {
    use crate::columns::{CONTAINERS, IMAGES, SELECTOR, containers};
    use watchkeeper_table::layout::{AGE, Fields, Layout, NAME, integer, selector, text};

    pub(super) const TABLE: Layout = Layout::new(
        &[
            NAME,
            integer("Desired", "How many nodes should run a pod."),
            integer("Current", "How many of those do."),
            integer("Ready", "On how many nodes the pod is ready."),
            integer("Up-to-date", "On how many nodes the pod has the current template."),
            integer("Available", "On how many nodes the pod has been ready for long enough."),
            text("Node Selector", "The labels of the nodes that run a pod."),
            AGE,
            CONTAINERS,
            IMAGES,
            SELECTOR,
        ],
        |view| {
            let set = view.object;
            let [names, images] = containers(set, "spec.template.spec");
            vec![
                view.name(),
                set.int("status.desiredNumberScheduled").into(),
                set.int("status.currentNumberScheduled").into(),
                set.int("status.numberReady").into(),
                set.int("status.updatedNumberScheduled").into(),
                set.int("status.numberAvailable").into(),
                selector::labels(set.at("spec.template.spec.nodeSelector")).into(),
                view.age(),
                names,
                images,
                selector::shown(set.at("spec.selector")).into(),
            ]
        },
    );
}
