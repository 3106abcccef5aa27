use super::apps::{CONTAINERS, IMAGES, SELECTOR};
use super::{containers, title};
use crate::column::{AGE, NAME, boolean, integer, text};
use crate::duration::{age, human_seconds};
use crate::fields::Fields;
use crate::printer::{Printer, View};
use crate::selector;
use serde_json::Value;

pub(super) static JOB: Printer = Printer::new(
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

pub(super) static CRON_JOB: Printer = Printer::new(
    &[
        NAME,
        text("Schedule", "When jobs are started, in the notation of cron."),
        text("Timezone", "The time zone of the schedule."),
        boolean("Suspend", "Whether no new jobs are started."),
        integer("Active", "How many jobs are running."),
        text("Last Schedule", "The time since a job was last started."),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    |view| {
        let cron_job = view.object;
        let [names, images] = containers(cron_job, "spec.jobTemplate.spec.template.spec");
        let started = cron_job.has("status.lastScheduleTime");
        let last = if started { view.since("status.lastScheduleTime") } else { "<none>".into() };
        vec![
            view.name(),
            cron_job.text("spec.schedule").into(),
            cron_job.set_text_or("spec.timeZone", "<none>").into(),
            title(cron_job.flag("spec.suspend")).into(),
            cron_job.len("status.active").into(),
            last.into(),
            view.age(),
            names,
            images,
            selector::shown(cron_job.at("spec.jobTemplate.spec.selector")).into(),
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
