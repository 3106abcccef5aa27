use k8s_openapi::api::core::v1::{Node, Pod};
use serde_json::json;
use watchkeeper_testkit::eventually;
use watchkeeper_workloads::{NODE, Timing};

use crate::place::Place;

fn pod(name: &str, more: serde_json::Value) -> serde_json::Value {
    let mut pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [{"name": "main", "image": "nginx"}]},
    });
    for (key, value) in more.as_object().unwrap() {
        for (inner, value) in value.as_object().unwrap() {
            pod[key][inner] = value.clone();
        }
    }
    pod
}

fn condition(pod: &Pod, kind: &str) -> Option<String> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|condition| condition.type_ == kind).map(|condition| condition.status.clone())
}

fn waits_for(pod: &Pod) -> Option<String> {
    let containers = pod.status.as_ref()?.container_statuses.as_ref()?;
    containers.iter().find_map(|container| container.state.as_ref()?.waiting.as_ref()?.reason.clone())
}

#[tokio::test(start_paused = true)]
async fn a_pod_becomes_ready_on_a_node_that_is() {
    let place = Place::new(Timing::default()).await;
    place.create::<Pod>(pod("one", json!({}))).await;
    place
        .create::<Pod>(pod(
            "two",
            json!({"spec": {"initContainers": [{"name": "first", "image": "busybox"}]}}),
        ))
        .await;
    for name in ["one", "two"] {
        let seen = eventually(|| async {
            let pod = place.get::<Pod>(name).await?;
            (condition(&pod, "Ready").as_deref() == Some("True")).then_some(pod)
        })
        .await;
        assert_eq!(seen.spec.as_ref().unwrap().node_name.as_deref(), Some(NODE));
        let status = seen.status.as_ref().unwrap();
        assert_eq!(status.phase.as_deref(), Some("Running"));
        assert_eq!(status.qos_class.as_deref(), Some("BestEffort"));
        assert!(status.start_time.is_some() && status.host_ip.is_some());
        for kind in ["PodScheduled", "Initialized", "ContainersReady", "PodReadyToStartContainers"] {
            assert_eq!(condition(&seen, kind).as_deref(), Some("True"), "{kind}");
        }
        assert!(status.container_statuses.as_ref().unwrap()[0].ready);
    }
    let address = |pod: &Pod| pod.status.as_ref().unwrap().pod_ip.clone().unwrap();
    let all = place.pods().await;
    assert_ne!(address(&all[0]), address(&all[1]));
    let node = place.get::<Node>(NODE).await.unwrap();
    let ready =
        node.status.as_ref().unwrap().conditions.as_ref().unwrap().iter().find(|one| one.type_ == "Ready");
    assert_eq!(ready.unwrap().status, "True");
}

#[tokio::test(start_paused = true)]
async fn images_that_do_not_exist_are_not_pulled_until_they_are_changed() {
    let place = Place::new(Timing::default()).await;
    let missing = json!({"spec": {"containers": [{"name": "a", "image": "nginx"}, {"name": "b", "image": "web:does-not-exist"}]}});
    place.create::<Pod>(pod("missing", missing)).await;
    let invalid = json!({"spec": {"containers": [{"name": "a", "image": "NGINX"}]}});
    place.create::<Pod>(pod("invalid", invalid)).await;
    for (name, end) in [("missing", "ImagePullBackOff"), ("invalid", "InvalidImageName")] {
        eventually(|| {
            let pod = place.get::<Pod>(name);
            async move {
                let pod = pod.await?;
                let all = pod.status.as_ref()?.container_statuses.clone()?;
                let all = all.iter().filter_map(|one| one.state.as_ref()?.waiting.as_ref()?.reason.clone());
                Some(all.collect::<Vec<_>>()).filter(|all| all.iter().any(|reason| reason == end))
            }
        })
        .await;
    }
    place.settled().await;
    place
        .modify::<Pod>("missing", |pod| pod.spec.as_mut().unwrap().containers[1].image = Some("web:1".into()))
        .await;
    eventually(|| async { waits_for(&place.get::<Pod>("missing").await.unwrap()).is_none() }).await;
}

#[tokio::test(start_paused = true)]
async fn annotations_shape_what_becomes_of_a_pod() {
    let place = Place::new(Timing::instant()).await;
    let with = |name: &str, value: &str| json!({"metadata": {"annotations": {format!("simulate.watchkeeper.dev/{name}"): value}}});
    place.create::<Pod>(pod("never", with("ready-after", "never"))).await;
    place.create::<Pod>(pod("late", with("ready-after", "30s"))).await;
    place.create::<Pod>(pod("crashing", with("fails", "true"))).await;
    let mut failing = with("fails", "true");
    failing["spec"] = json!({"restartPolicy": "Never"});
    place.create::<Pod>(pod("failing", failing)).await;
    let mut ending = with("runs-for", "20s");
    ending["spec"] = json!({"restartPolicy": "Never"});
    place.create::<Pod>(pod("ending", ending)).await;

    let began = tokio::time::Instant::now();
    eventually(|| async {
        condition(&*place.get::<Pod>("late").await?, "Ready").filter(|status| status == "True")
    })
    .within(std::time::Duration::from_secs(60))
    .await;
    assert!(began.elapsed() > std::time::Duration::from_secs(28), "{:?}", began.elapsed());
    assert_eq!(condition(&place.get::<Pod>("never").await.unwrap(), "Ready").as_deref(), Some("False"));
    let phase = |pod: &Pod| pod.status.as_ref().unwrap().phase.clone().unwrap();
    assert_eq!(phase(&place.get::<Pod>("failing").await.unwrap()), "Failed");
    assert_eq!(phase(&place.get::<Pod>("ending").await.unwrap()), "Succeeded");
    let crashing = place.get::<Pod>("crashing").await.unwrap();
    assert_eq!(waits_for(&crashing).as_deref(), Some("CrashLoopBackOff"));
    // The first restart is after 10 s, the second 20 s later, the third 40 s later.
    let restarts = crashing.status.as_ref().unwrap().container_statuses.as_ref().unwrap()[0].restart_count;
    assert!((1..=2).contains(&restarts), "{restarts}");
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_not_always_restarted_completes_as_one_of_a_job_does() {
    let place = Place::new(Timing::default()).await;
    let phase = |name: &'static str| {
        let pod = place.get::<Pod>(name);
        async move { pod.await?.status.as_ref()?.phase.clone() }
    };
    let with = |policy: &str| json!({"spec": {"restartPolicy": policy}});
    place.create::<Pod>(pod("always", json!({}))).await;
    place.create::<Pod>(pod("never", with("Never"))).await;
    place.create::<Pod>(pod("on-failure", with("OnFailure"))).await;
    let mut lasting = with("Never");
    lasting["metadata"] = json!({"annotations": {"simulate.watchkeeper.dev/runs-for": "forever"}});
    place.create::<Pod>(pod("lasting", lasting)).await;
    eventually(|| async { phase("never").await.filter(|phase| phase == "Running") }).await;
    for name in ["never", "on-failure"] {
        eventually(|| async { phase(name).await.filter(|phase| phase == "Succeeded") }).await;
    }
    tokio::time::sleep(Timing::default().run * 10).await;
    for name in ["always", "lasting"] {
        assert_eq!(phase(name).await.as_deref(), Some("Running"), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_deleted_goes_after_a_while_and_its_address_is_free() {
    let place = Place::new(Timing::default()).await;
    place.create::<Pod>(pod("one", json!({}))).await;
    eventually(|| async {
        condition(&*place.get::<Pod>("one").await?, "Ready").filter(|status| status == "True")
    })
    .await;
    place.delete::<Pod>("one").await;
    let going = place.get::<Pod>("one").await.unwrap();
    assert_eq!(going.metadata.deletion_grace_period_seconds, Some(30));
    let asked = tokio::time::Instant::now();
    eventually(|| async { place.get::<Pod>("one").await.is_none() }).await;
    let took = asked.elapsed();
    assert!(took >= Timing::default().stop && took < Timing::default().stop * 4, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn pods_of_other_schedulers_and_nodes_are_left_alone() {
    let place = Place::new(Timing::instant()).await;
    place.create::<Pod>(pod("other", json!({"spec": {"schedulerName": "mine"}}))).await;
    place.create::<Pod>(pod("elsewhere", json!({"spec": {"nodeName": "real"}}))).await;
    place
        .create::<Pod>(pod("gated", json!({"spec": {"schedulingGates": [{"name": "example.com/wait"}]}})))
        .await;
    place.settled().await;
    for pod in place.pods().await {
        let status = pod.status.as_ref();
        assert_eq!(
            status.and_then(|status| status.phase.as_deref()),
            Some("Pending"),
            "{:?}",
            pod.metadata.name
        );
        assert!(status.is_none_or(|status| status.container_statuses.is_none()));
    }
}
