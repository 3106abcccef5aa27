use crate::Kind;
use crate::kind::row::{STATUS, kind};
use crate::validate::cron;
use crate::validate::field::{Errors, Field};
use crate::validate::job_spec::job_spec;
use watchkeeper_schema::FieldError;

pub(crate) const KIND: Kind = kind("batch", "v1", "CronJob", "cronjobs", "cronjob")
    .short(&["cj"])
    .in_all()
    .with(&[STATUS])
    .generation()
    .validate_with(validate)
    .metadata_checks(1, 0)
    .no_metadata_checks_of_subresources()
    .table(table::TABLE);

fn validate(object: &Field<'_>, _: Option<&Field<'_>>, errors: &mut Errors) {
    let spec = object.get("spec");
    let (schedule, zone) = (spec.get("schedule"), spec.get("timeZone"));
    if schedule.required(errors) {
        if schedule.text().contains("TZ") {
            schedule.invalid("cannot use TZ or CRON_TZ in schedule, use timeZone field instead", errors);
        } else if let Err(problem) = cron::check(schedule.text()) {
            schedule.invalid(problem, errors);
        }
    }
    if zone.is_set() && zone.text().is_empty() {
        zone.invalid("timeZone must be nil or non-empty string", errors);
    }
    spec.get("startingDeadlineSeconds").not_negative(errors);
    spec.get("concurrencyPolicy").one_of(&["Allow", "Forbid", "Replace"], errors);
    let job = spec.get("jobTemplate").get("spec");
    job_spec(&job, false, errors);
    // The jobs that are made get selectors of their own.
    if job.get("selector").is_set() {
        job.get("selector").invalid("`selector` will be auto-generated", errors);
    }
    if job.get("manualSelector").value == true {
        let (at, supported) = (job.get("manualSelector").at, ["nil", "false"]);
        errors.push(FieldError::not_supported(&at, true, supported));
    }
    spec.get("successfulJobsHistoryLimit").not_negative(errors);
    spec.get("failedJobsHistoryLimit").not_negative(errors);
    // The name of a job is that of the cron job and eleven characters.
    let name = object.get("metadata").get("name");
    if name.text().len() > 52 {
        name.invalid("must be no more than 52 characters", errors);
    }
}

mod table {
    use crate::columns::{CONTAINERS, IMAGES, SELECTOR, containers, title};
    use watchkeeper_table::layout::{AGE, Fields, Layout, NAME, boolean, integer, selector, text};

    pub(super) const TABLE: Layout = Layout::new(
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
}
