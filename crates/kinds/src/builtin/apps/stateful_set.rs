use crate::builtin::core::persistent_volume_claim;
use crate::default::{child, objects, set, text};
use crate::kind::row::{SCALE, STATUS, kind};
use crate::kind::strategy::Fields;
use crate::prepare::same;
use crate::validate::field::{Errors, Field};
use crate::validate::pod;
use crate::validate::status::Counts;
use crate::validate::workloads::{
    always_restarting, deadline_not_allowed, selection, shown_strategy, template_labels,
};
use crate::{Kind, NameRule, Subresource};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use watchkeeper_schema::FieldError;

pub(crate) const KIND: Kind = kind("apps", "v1", "StatefulSet", "statefulsets", "statefulset")
    .named(NameRule::DnsLabel)
    .short(&["sts"])
    .in_all()
    .with(&[SCALE, STATUS])
    .scaled("spec.selector")
    .generation()
    .type_defaults(&[("StatefulSetUpdateStrategy", default_strategy), ("StatefulSetSpec", default_spec)])
    .validate_with(validate)
    .validate_update(validate_update)
    .validate_subresources(&[(Subresource::Status, validate_status)])
    .metadata_checks(1, 0)
    .table(table::TABLE);

/// The fields of a spec that can change.
const MUTABLE: [&str; 7] = [
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
];

const COUNTS: Counts = Counts {
    not_negative: &[
        "replicas",
        "readyReplicas",
        "currentReplicas",
        "updatedReplicas",
        "availableReplicas",
        "observedGeneration",
        "collisionCount",
    ],
    of_replicas: &["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"],
    ready: "status.readyReplicas",
};

fn default_strategy(fields: &mut Fields) {
    if text(fields, "type").is_empty() {
        fields.insert("type".into(), "RollingUpdate".into());
        child(fields, "rollingUpdate");
    }
    if text(fields, "type") == "RollingUpdate"
        && fields.contains_key("rollingUpdate")
        && let Some(rolling) = child(fields, "rollingUpdate")
    {
        set(rolling, "partition", 0);
    }
}

/// The claims in a template say what they are.
fn default_spec(fields: &mut Fields) {
    for claim in objects(fields, "volumeClaimTemplates") {
        set(claim, "apiVersion", "v1");
        set(claim, "kind", "PersistentVolumeClaim");
    }
}

/// A new set, or one that replaces `old`. What cannot change is not judged again, and neither is a template that replaces
/// a bad one.
fn validate(object: &Field<'_>, old: Option<&Field<'_>>, errors: &mut Errors) {
    let was_bad = |old: &Field<'_>| {
        let mut errors = Errors::new();
        spec(&old.get("spec"), false, true, &mut errors);
        !errors.is_empty()
    };
    let skips_template = old.is_some_and(was_bad);
    spec(&object.get("spec"), old.is_none(), !skips_template, errors);
}

fn spec(spec: &Field<'_>, is_new: bool, judges_template: bool, errors: &mut Errors) {
    let policy = spec.get("podManagementPolicy");
    match policy.text() {
        "OrderedReady" | "Parallel" => {}
        "" => errors.push(FieldError::required(&policy.at, "")),
        _ => policy.invalid("must be 'OrderedReady' or 'Parallel'", errors),
    }
    strategy(&spec.get("updateStrategy"), errors);
    let retention = spec.get("persistentVolumeClaimRetentionPolicy");
    for name in ["whenDeleted", "whenScaled"] {
        retention.get(name).one_of(&["Retain", "Delete"], errors);
    }
    if is_new {
        spec.get("volumeClaimTemplates")
            .items()
            .for_each(|claim| persistent_volume_claim::validate_spec(&claim.get("spec"), errors));
    }
    spec.get("replicas").not_negative(errors);
    spec.get("minReadySeconds").not_negative(errors);
    let start = spec.get("ordinals").get("start");
    Field { at: spec.at.child("ordinals.start"), ..start }.not_negative(errors);
    if is_new {
        spec.get("serviceName").dns_label(errors);
    }
    selection(spec, Some("statefulset"), errors);
    let template = spec.get("template");
    if judges_template {
        let made = with_claims(spec);
        pod::template(&Field { value: &made, at: template.at.clone() }, errors);
    }
    // They are looked at once more for this kind.
    let labels = template.get("metadata").get("labels");
    Field { at: template_labels(&template.at), ..labels }.labels(errors);
    always_restarting(&template, errors);
    deadline_not_allowed(&template, "StatefulSet", errors);
}

fn strategy(strategy: &Field<'_>, errors: &mut Errors) {
    let rolling = strategy.get("rollingUpdate");
    match strategy.get("type").text() {
        "RollingUpdate" => rolling.get("partition").not_negative(errors),
        "OnDelete" if rolling.is_set() => {
            let detail = "only allowed for updateStrategy 'RollingUpdate'";
            errors.push(FieldError::invalid(&rolling.at, rolling.value.clone(), detail).structure(&[
                ("Partition", rolling.get("partition").value.clone()),
                ("MaxUnavailable", rolling.get("maxUnavailable").value.clone()),
            ]));
        }
        "OnDelete" => {}
        "" => errors.push(FieldError::required(&strategy.at, "")),
        _ => {
            let detail = "must be 'RollingUpdate' or 'OnDelete'";
            let error = FieldError::invalid(&strategy.at, strategy.value.clone(), detail);
            errors.push(shown_strategy(error, strategy));
        }
    }
}

/// The template with what the controller will put into pods: a volume for each claim, which hides one of the same name,
/// and a host name in place of the one that is there.
fn with_claims(spec: &Field<'_>) -> Value {
    let mut template = spec.get("template").value.clone();
    let Some(pod) = template.get_mut("spec").and_then(Value::as_object_mut) else { return template };
    pod.remove("hostname");
    pod.remove("subdomain");
    let claims: BTreeMap<&str, Value> = spec
        .get("volumeClaimTemplates")
        .items()
        .map(|claim| claim.get("metadata").get("name").text())
        .map(|name| (name, json!({"name": name, "persistentVolumeClaim": {"claimName": name}})))
        .collect();
    if claims.is_empty() {
        return template;
    }
    let own = spec.get("template").get("spec").get("volumes");
    let own = own.items().filter(|volume| !claims.contains_key(volume.get("name").text()));
    let volumes: Vec<Value> =
        claims.values().cloned().chain(own.map(|volume| volume.value.clone())).collect();
    pod.insert("volumes".into(), volumes.into());
    template
}

fn validate_update(new: &Field<'_>, old: &Field<'_>, errors: &mut Errors) {
    let detail = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";
    let without = |spec: Field<'_>| {
        let mut spec = spec.value.clone();
        if let Value::Object(fields) = &mut spec {
            fields.retain(|name, _| !MUTABLE.contains(&name.as_str()));
        }
        spec
    };
    if !same(Some(&without(new.get("spec"))), Some(&without(old.get("spec")))) {
        errors.push(FieldError::forbidden(&new.get("spec").at, detail));
    }
}

fn validate_status(object: &Field<'_>, _: &Field<'_>, errors: &mut Errors) {
    COUNTS.validate(&object.get("status"), errors);
}

mod table {
    use crate::columns::{CONTAINERS, IMAGES, containers, ready_of_desired};
    use watchkeeper_table::layout::{AGE, Layout, NAME, text};

    pub(super) const TABLE: Layout = Layout::new(
        &[NAME, text("Ready", "How many pods are ready, of how many."), AGE, CONTAINERS, IMAGES],
        |view| {
            let [names, images] = containers(view.object, "spec.template.spec");
            vec![view.name(), ready_of_desired(view.object), view.age(), names, images]
        },
    );
}
