use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use serde_json::json;
use watchkeeper_testkit::eventually;
use watchkeeper_workloads::Timing;

use crate::place::{Place, deployment, set_image};

const REVISION: &str = "deployment.kubernetes.io/revision";

fn conditions(deployment: &Deployment) -> BTreeMap<String, (String, String)> {
    let all = deployment.status.as_ref().unwrap().conditions.clone().unwrap_or_default();
    all.into_iter().map(|one| (one.type_.unwrap(), (one.status.unwrap(), one.reason.unwrap()))).collect()
}

fn expected(all: &[(&str, &str, &str)]) -> BTreeMap<String, (String, String)> {
    all.iter().map(|(kind, status, reason)| ((*kind).into(), ((*status).into(), (*reason).into()))).collect()
}

#[tokio::test(start_paused = true)]
async fn a_deployment_becomes_available_and_then_nothing_is_sent() {
    let place = Place::new(Timing::default()).await;
    place.create::<Deployment>(deployment(3, "web:1")).await;
    let web = place.rolled_out("web").await;
    assert_eq!(web.metadata.annotations.as_ref().unwrap()[REVISION], "1");
    assert_eq!(web.metadata.generation, Some(1), "nobody changed what is wanted");
    assert_eq!(
        conditions(&web),
        expected(&[
            ("Available", "True", "MinimumReplicasAvailable"),
            ("Progressing", "True", "NewReplicaSetAvailable")
        ])
    );
    let sets = place.sets().await;
    assert_eq!(sets.len(), 1);
    let (name, labels) = (sets[0].metadata.name.clone().unwrap(), sets[0].metadata.labels.clone().unwrap());
    assert_eq!(name, format!("web-{}", labels["pod-template-hash"]));
    let annotations = sets[0].metadata.annotations.clone().unwrap();
    assert_eq!(annotations["deployment.kubernetes.io/desired-replicas"], "3");
    assert_eq!(annotations["deployment.kubernetes.io/max-replicas"], "4");
    let pods = place.pods().await;
    assert_eq!(pods.len(), 3);
    assert!(pods.iter().all(|pod| pod.metadata.name.as_ref().unwrap().starts_with(&format!("{name}-"))));

    place.settled().await;
    let before = place.writes();
    tokio::time::sleep(std::time::Duration::from_secs(3600)).await;
    assert_eq!(place.writes(), before);
}

#[tokio::test(start_paused = true)]
async fn it_can_be_scaled_and_loses_pods_that_come_back() {
    let place = Place::new(Timing::default()).await;
    place.create::<Deployment>(deployment(2, "web:1")).await;
    place.rolled_out("web").await;
    for size in [7, 1, 0, 4] {
        place.modify::<Deployment>("web", |web| web.spec.replicas = Some(size)).await;
        place.rolled_out("web").await;
        eventually(|| async { place.pods().await.len() == usize::try_from(size).unwrap() }).await;
    }
    let victim = place.pods().await[0].metadata.name.clone().unwrap();
    place.delete::<k8s_openapi::api::core::v1::Pod>(&victim).await;
    eventually(|| async {
        let pods = place.pods().await;
        pods.len() == 4 && pods.iter().all(|pod| pod.metadata.name.as_ref() != Some(&victim))
    })
    .await;
    assert_eq!(place.sets().await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn it_rolls_out_and_back_and_keeps_its_history() {
    let place = Place::new(Timing::default()).await;
    let mut value = deployment(3, "web:1");
    value["spec"]["revisionHistoryLimit"] = json!(2);
    place.create::<Deployment>(value).await;
    place.rolled_out("web").await;
    for (image, revision) in [("web:2", "2"), ("web:1", "3"), ("web:3", "4"), ("web:4", "5"), ("web:5", "6")]
    {
        place.modify::<Deployment>("web", |web| set_image(web, image)).await;
        let web = place.rolled_out("web").await;
        assert_eq!(web.metadata.annotations.as_ref().unwrap()[REVISION], revision);
        let pods = place.pods().await;
        let image_of =
            |pod: &k8s_openapi::api::core::v1::Pod| pod.spec.as_ref().unwrap().containers[0].image.clone();
        assert!(
            pods.iter()
                .filter(|pod| pod.metadata.deletion_timestamp.is_none())
                .all(|pod| image_of(pod).as_deref() == Some(image))
        );
        if image == "web:1" {
            let back = place.sets().await.into_iter().find(|set| set.spec.replicas == Some(3)).unwrap();
            assert_eq!(
                back.metadata.annotations.as_ref().unwrap()["deployment.kubernetes.io/revision-history"],
                "1"
            );
        }
    }
    eventually(|| async { place.sets().await.len() == 3 }).await;
    let revision = |set: &ReplicaSet| set.metadata.annotations.as_ref().unwrap()[REVISION].clone();
    let mut kept: Vec<_> = place.sets().await.iter().map(|set| revision(set)).collect();
    kept.sort();
    assert_eq!(kept, ["4", "5", "6"]);
}

#[tokio::test(start_paused = true)]
async fn recreate_has_no_old_pods_when_new_ones_come() {
    let place = Place::new(Timing::default()).await;
    let mut value = deployment(3, "web:1");
    value["spec"]["strategy"] = json!({"type": "Recreate"});
    place.create::<Deployment>(value).await;
    place.rolled_out("web").await;
    place.modify::<Deployment>("web", |web| set_image(web, "web:2")).await;
    eventually(|| async {
        let pods = place.pods().await;
        let images: Vec<_> =
            pods.iter().filter_map(|pod| pod.spec.as_ref()?.containers[0].image.clone()).collect();
        let (old, new) =
            (images.iter().any(|image| image == "web:1"), images.iter().any(|image| image == "web:2"));
        assert!(!(old && new), "{images:?}");
        new && images.len() == 3
    })
    .await;
    place.rolled_out("web").await;
}

#[tokio::test(start_paused = true)]
async fn a_paused_deployment_scales_but_does_not_roll_out() {
    let place = Place::new(Timing::default()).await;
    place.create::<Deployment>(deployment(2, "web:1")).await;
    place.rolled_out("web").await;
    place.modify::<Deployment>("web", |web| web.spec.paused = Some(true)).await;
    place.modify::<Deployment>("web", |web| set_image(web, "web:2")).await;
    place.modify::<Deployment>("web", |web| web.spec.replicas = Some(4)).await;
    place.settled().await;
    let web = place.get::<Deployment>("web").await.unwrap();
    assert_eq!(conditions(&web)["Progressing"], ("Unknown".into(), "DeploymentPaused".into()));
    assert_eq!((place.sets().await.len(), place.pods().await.len()), (1, 4));
    place.modify::<Deployment>("web", |web| web.spec.paused = None).await;
    let web = place.rolled_out("web").await;
    assert_eq!(conditions(&web)["Progressing"], ("True".into(), "NewReplicaSetAvailable".into()));
    assert_eq!(place.sets().await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_rollout_that_gets_nowhere_is_reported_and_leaves_the_old_pods() {
    let place = Place::new(Timing::default()).await;
    let mut value = deployment(4, "web:1");
    value["spec"]["progressDeadlineSeconds"] = json!(60);
    place.create::<Deployment>(value).await;
    place.rolled_out("web").await;
    place.modify::<Deployment>("web", |web| set_image(web, "web:does-not-exist")).await;
    let web = eventually(|| async {
        let web = place.get::<Deployment>("web").await?;
        (conditions(&web)["Progressing"].1 == "ProgressDeadlineExceeded").then_some(web)
    })
    .within(std::time::Duration::from_secs(90))
    .await;
    assert_eq!(conditions(&web)["Progressing"].0, "False");
    let status = web.status.as_ref().unwrap();
    assert_eq!((status.available_replicas, status.unavailable_replicas), (Some(3), Some(2)));
    assert_eq!(conditions(&web)["Available"].0, "True");
    place.modify::<Deployment>("web", |web| set_image(web, "web:1")).await;
    let web = place.rolled_out("web").await;
    assert_eq!(conditions(&web)["Progressing"], ("True".into(), "NewReplicaSetAvailable".into()));
}

#[tokio::test(start_paused = true)]
async fn what_is_ready_is_available_only_after_its_time() {
    let place = Place::new(Timing::instant()).await;
    let mut value = deployment(2, "web:1");
    value["spec"]["minReadySeconds"] = json!(30);
    let began = tokio::time::Instant::now();
    place.create::<Deployment>(value).await;
    eventually(|| async {
        let web = place.get::<Deployment>("web").await?;
        web.status.as_ref()?.ready_replicas.filter(|ready| *ready == 2)
    })
    .await;
    assert!(began.elapsed() < std::time::Duration::from_secs(5));
    place.rolled_out("web").await;
    assert!(began.elapsed() > std::time::Duration::from_secs(28), "{:?}", began.elapsed());
}
