use crate::Kind;
use crate::default::{child, set};
use crate::kind::row::{STATUS, field_at, kind};
use crate::kind::strategy::Fields;
use crate::prepare::object;
use crate::validate::field::{Errors, Field};
use crate::validate::job_spec::job_spec;
use serde_json::{Value, json};

pub(crate) const KIND: Kind = kind("batch", "v1", "Job", "jobs", "job")
    .in_all()
    .with(&[STATUS])
    .generation()
    .selectable(&[field_at("status.successful", "status.succeeded", "0")])
    .immutable(&["spec.completions", "spec.selector", "spec.template.spec", "spec.completionMode"])
    .default_with(default)
    .prepare_create(prepare_create)
    .validate_with(validate)
    .unsupported_field_as(|label| format!("field label {label:?} not supported for Job"))
    .orphans_by_default()
    .table(table::TABLE);

/// What jobs get; the job in the template of a CronJob is left as it is.
fn default(fields: &mut Fields) {
    let Some(spec) = child(fields, "spec") else { return };
    if !spec.contains_key("completions") && !spec.contains_key("parallelism") {
        spec.insert("completions".into(), json!(1));
    }
    set(spec, "parallelism", 1);
    let backoff_limit = if spec.contains_key("backoffLimitPerIndex") { i32::MAX } else { 6 };
    set(spec, "backoffLimit", backoff_limit);
    set(spec, "completionMode", "NonIndexed");
    set(spec, "suspend", false);
    set(spec, "manualSelector", false);
    let replacement = if spec.contains_key("podFailurePolicy") { "Failed" } else { "TerminatingOrFailed" };
    set(spec, "podReplacementPolicy", replacement);
    let labels = spec.get("template").map(|template| template["metadata"]["labels"].clone());
    if let (Some(labels), Some(metadata)) =
        (labels.filter(|labels| labels.is_object()), child(fields, "metadata"))
    {
        set(metadata, "labels", labels);
    }
}

/// Unless the user takes care of it, the pods of a job are found by its uid.
fn prepare_create(fields: &mut Fields) {
    let metadata = object(fields, "metadata");
    let [name, uid] = ["name", "uid"].map(|field| metadata.get(field).cloned().unwrap_or_else(|| "".into()));
    let spec = object(fields, "spec");
    if spec.get("manualSelector") == Some(&Value::Bool(true)) {
        return;
    }
    let labels = object(object(object(spec, "template"), "metadata"), "labels");
    let before = Value::Object(labels.clone());
    for (label, value) in [
        ("job-name", &name),
        ("batch.kubernetes.io/job-name", &name),
        ("controller-uid", &uid),
        ("batch.kubernetes.io/controller-uid", &uid),
    ] {
        labels.entry(label).or_insert_with(|| value.clone());
    }
    let labels = Value::Object(labels.clone());
    let selected = object(object(spec, "selector"), "matchLabels");
    selected.entry("batch.kubernetes.io/controller-uid").or_insert(uid);
    // Labels that were taken over from the template are one with it, so they get these too.
    let metadata = object(fields, "metadata");
    if metadata.get("labels").is_none_or(|own| *own == before) {
        metadata.insert("labels".into(), labels);
    }
}

fn validate(object: &Field<'_>, _: Option<&Field<'_>>, errors: &mut Errors) {
    let spec = object.get("spec");
    job_spec(&spec, true, errors);
    // The pods of a job are found by its uid, unless its writer takes care of that.
    let (uid, selects) = (object.get("metadata").get("uid"), spec.get("selector"));
    let made = json!({"matchLabels": {"batch.kubernetes.io/controller-uid": uid.value}});
    let legacy = json!({"matchLabels": {"controller-uid": uid.value}});
    if spec.get("manualSelector").value != true
        && selects.is_set()
        && !uid.is_empty()
        && ![made, legacy].contains(selects.value)
    {
        selects.invalid("`selector` not auto-generated", errors);
    }
}

mod table {
    use crate::columns::{CONTAINERS, IMAGES, SELECTOR, containers};
    use serde_json::Value;
    use watchkeeper_table::layout::{AGE, Fields, Layout, NAME, View, age, human_seconds, selector, text};

    pub(super) const TABLE: Layout = Layout::new(
        &[
            NAME,
            text("Status", "Whether the job runs, is suspended, or how it ended."),
            text("Completions", "How many pods have succeeded, of how many."),
            text("Duration", "How long the job has been running, or ran."),
            AGE,
            CONTAINERS,
            IMAGES,
            SELECTOR,
        ],
        |view| {
            let job = view.object;
            let [names, images] = containers(job, "spec.template.spec");
            vec![
                view.name(),
                status(view).into(),
                completions(job).into(),
                run_time(view).into(),
                view.age(),
                names,
                images,
                selector::shown(job.at("spec.selector")).into(),
            ]
        },
    );

    fn status(view: &View<'_>) -> &'static str {
        let is = |kind| view.object.condition("status.conditions", kind);
        match () {
            () if is("Complete") => "Complete",
            () if is("Failed") => "Failed",
            () if view.is_terminating() => "Terminating",
            () if is("Suspended") => "Suspended",
            () if is("FailureTarget") => "FailureTarget",
            () if is("SuccessCriteriaMet") => "SuccessCriteriaMet",
            () => "Running",
        }
    }

    fn completions(job: &Value) -> String {
        let succeeded = job.int("status.succeeded");
        let parallelism = job.at("spec.parallelism").as_i64();
        match (job.at("spec.completions").as_i64(), parallelism) {
            (Some(completions), _) => format!("{succeeded}/{completions}"),
            (None, Some(parallelism)) if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
            (None, _) => format!("{succeeded}/1"),
        }
    }

    fn run_time(view: &View<'_>) -> String {
        match (view.object.time("status.startTime"), view.object.time("status.completionTime")) {
            (None, _) => String::new(),
            (Some(start), None) => age(start, view.now),
            (Some(start), Some(end)) => human_seconds(end.seconds_since(start)),
        }
    }
}
