use k8s_openapi::api::batch::v1::{Job, JobStatus};
use serde_json::{Value, json};
use watchkeeper_testkit::eventually;
use watchkeeper_workloads::{Timing, annotation};

use crate::place::Place;

fn job(more: Value) -> Value {
    let mut job = json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "sum", "namespace": "default"},
        "spec": {"template": {
            "metadata": {"annotations": {}},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "sum:1"}]},
        }},
    });
    for (key, value) in more.as_object().unwrap() {
        match key.as_str() {
            "annotations" => job["spec"]["template"]["metadata"]["annotations"] = value.clone(),
            "restartPolicy" => job["spec"]["template"]["spec"]["restartPolicy"] = value.clone(),
            _ => job["spec"][key] = value.clone(),
        }
    }
    job
}

fn conditions(status: &JobStatus) -> Vec<(String, String)> {
    let all = status.conditions.iter().flatten().filter(|one| one.status == "True");
    all.map(|one| (one.type_.clone(), one.reason.clone().unwrap())).collect()
}

async fn ended(place: &Place) -> JobStatus {
    eventually(|| async {
        let status = place.get::<Job>("sum").await?.status.clone()?;
        conditions(&status).iter().any(|(kind, _)| kind == "Complete" || kind == "Failed").then_some(status)
    })
    .within(std::time::Duration::from_secs(900))
    .await
}

#[tokio::test(start_paused = true)]
async fn a_job_is_complete_when_enough_pods_have_succeeded() {
    let place = Place::new(Timing::default()).await;
    place.create::<Job>(job(json!({"completions": 5, "parallelism": 2}))).await;
    eventually(|| async {
        let active = place
            .pods()
            .await
            .iter()
            .filter(|pod| pod.status.as_ref().unwrap().phase.as_deref() != Some("Succeeded"))
            .count();
        assert!(active <= 2, "{active} at once");
        place.get::<Job>("sum").await?.status.as_ref()?.completion_time.clone()
    })
    .within(std::time::Duration::from_secs(60))
    .await;
    let status = ended(&place).await;
    assert_eq!(
        (status.succeeded, status.failed, status.active, status.ready),
        (Some(5), None, None, Some(0))
    );
    let reason = "CompletionsReached".to_owned();
    assert_eq!(
        conditions(&status),
        [("SuccessCriteriaMet".into(), reason.clone()), ("Complete".into(), reason)]
    );
    assert!(status.start_time.is_some() && status.completion_time.is_some());
    let before = place.writes();
    tokio::time::sleep(std::time::Duration::from_secs(3600)).await;
    assert_eq!(place.writes(), before);
}

#[tokio::test(start_paused = true)]
async fn a_job_whose_pods_fail_is_given_up_later_and_later() {
    let place = Place::new(Timing::default()).await;
    let began = tokio::time::Instant::now();
    place.create::<Job>(job(json!({"backoffLimit": 2, "annotations": {annotation::FAILS: "true"}}))).await;
    let status = ended(&place).await;
    assert_eq!((status.succeeded, status.failed, &status.completion_time), (None, Some(3), &None));
    let reason = "BackoffLimitExceeded".to_owned();
    assert_eq!(conditions(&status), [("FailureTarget".into(), reason.clone()), ("Failed".into(), reason)]);
    // 10 s after the first failure and 20 s after the second.
    assert!(began.elapsed() > std::time::Duration::from_secs(30), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn containers_that_are_restarted_count_too() {
    let place = Place::new(Timing::default()).await;
    let more =
        json!({"backoffLimit": 2, "restartPolicy": "OnFailure", "annotations": {annotation::FAILS: "true"}});
    place.create::<Job>(job(more)).await;
    let status = ended(&place).await;
    assert_eq!(conditions(&status)[1], ("Failed".into(), "BackoffLimitExceeded".into()));
    assert_eq!(place.pods().await.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn indexed_pods_have_their_numbers() {
    let place = Place::new(Timing::default()).await;
    place.create::<Job>(job(json!({"completions": 4, "parallelism": 3, "completionMode": "Indexed"}))).await;
    let status = ended(&place).await;
    assert_eq!(status.completed_indexes.as_deref(), Some("0-3"));
    let mut names: Vec<_> =
        place.pods().await.iter().map(|pod| pod.metadata.generate_name.clone().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["sum-0-", "sum-1-", "sum-2-", "sum-3-"]);
}

#[tokio::test(start_paused = true)]
async fn a_job_can_be_suspended_be_late_and_expire() {
    let place = Place::new(Timing::default()).await;
    let more = json!({
        "suspend": true,
        "activeDeadlineSeconds": 30,
        "ttlSecondsAfterFinished": 60,
        "annotations": {annotation::RUNS_FOR: "1h"},
    });
    place.create::<Job>(job(more)).await;
    place.settled().await;
    let status = place.get::<Job>("sum").await.unwrap().status.clone().unwrap();
    assert_eq!(conditions(&status), [("Suspended".into(), "JobSuspended".into())]);
    assert_eq!((place.pods().await.len(), status.start_time), (0, None));
    place.modify::<Job>("sum", |job| job.spec.as_mut().unwrap().suspend = Some(false)).await;
    eventually(|| async { place.pods().await.len() == 1 }).await;
    let began = tokio::time::Instant::now();
    let status = ended(&place).await;
    assert_eq!(conditions(&status)[1], ("Failed".into(), "DeadlineExceeded".into()));
    assert!(began.elapsed() > std::time::Duration::from_secs(28), "{:?}", began.elapsed());
    eventually(|| async { place.get::<Job>("sum").await.is_none() })
        .within(std::time::Duration::from_secs(90))
        .await;
}
