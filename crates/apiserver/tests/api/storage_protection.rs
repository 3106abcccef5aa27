//! Claims, volumes and attribute classes stay while they are used, and go afterwards.

use std::sync::Arc;

use serde_json::{Value, json};
use watchkeeper_apiserver::Options;
use watchkeeper_storage::Memory;

use crate::harness::{Answer, Api};

pub(crate) const VOLUMES: &str = "/api/v1/persistentvolumes";
pub(crate) const ATTRIBUTES_CLASSES: &str = "/apis/storage.k8s.io/v1/volumeattributesclasses";
const CLAIMS: &str = "/api/v1/namespaces/default/persistentvolumeclaims";
const PODS: &str = "/api/v1/namespaces/default/pods";

pub(crate) fn claim(name: &str) -> Value {
    let resources = json!({"requests": {"storage": "1Gi"}});
    json!({"metadata": {"name": name}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": resources}})
}

pub(crate) fn volume(name: &str) -> Value {
    let spec = json!({
        "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/data"},
    });
    json!({"metadata": {"name": name}, "spec": spec})
}

pub(crate) fn attributes_class(name: &str) -> Value {
    json!({"metadata": {"name": name}, "driverName": "example.com", "parameters": {"iops": "100"}})
}

/// A pod that names a claim, on a node if there is one.
fn pod(name: &str, node: &str, claim: &str) -> Value {
    let mut pod = json!({"metadata": {"name": name}, "spec": {
        "containers": [{"name": "c", "image": "i"}], "terminationGracePeriodSeconds": 0,
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}],
    }});
    if !node.is_empty() {
        pod["spec"]["nodeName"] = node.into();
    }
    pod
}

async fn gone(api: &Api, path: &str) {
    api.eventually(path, |answer| answer.code == 404).await;
}

/// Deletes something, and something else of the same resource that nobody uses. When the second is gone, the first has been
/// looked at.
async fn stays(api: &Api, path: &str, other: Value) {
    let (collection, _) = path.rsplit_once('/').unwrap();
    let other = format!(
        "{collection}/{}",
        api.post(collection, other).await.ok()["metadata"]["name"].as_str().unwrap()
    );
    api.delete(path).await.ok();
    api.delete(&other).await.ok();
    gone(api, &other).await;
    let left = api.get(path).await.ok();
    assert!(left["metadata"]["deletionTimestamp"].is_string(), "{left}");
}

#[tokio::test]
async fn a_claim_goes_with_the_last_pod_on_a_node_that_names_it() {
    let api = Api::start().await;
    let path = format!("{CLAIMS}/data");
    let made = api.post(CLAIMS, claim("data")).await.ok();
    assert_eq!(made["metadata"]["finalizers"], json!(["kubernetes.io/pvc-protection"]));
    for (name, node) in [("first", "n"), ("second", "n"), ("waiting", "")] {
        api.post(PODS, pod(name, node, "data")).await.ok();
    }
    stays(&api, &path, claim("unused")).await;
    api.delete(&format!("{PODS}/first")).await.ok();
    stays(&api, &path, claim("unused")).await;
    api.delete(&format!("{PODS}/second")).await.ok();
    gone(&api, &path).await;
    assert_eq!(api.get(&format!("{PODS}/waiting")).await.code, 200);
}

#[tokio::test]
async fn a_claim_with_a_finalizer_of_somebody_else_loses_only_its_own() {
    let api = Api::start().await;
    let mut held = claim("held");
    held["metadata"]["finalizers"] = json!(["example.com/held"]);
    api.post(CLAIMS, held).await.ok();
    api.delete(&format!("{CLAIMS}/held")).await.ok();
    let is_released =
        |answer: &Answer| answer.json()["metadata"]["finalizers"] == json!(["example.com/held"]);
    api.eventually(&format!("{CLAIMS}/held"), is_released).await;
}

#[tokio::test]
async fn a_volume_goes_when_it_is_not_bound_any_more() {
    let api = Api::start().await;
    let path = format!("{VOLUMES}/disk");
    api.post(VOLUMES, volume("disk")).await.ok();
    let phase = |phase: &str| json!({"status": {"phase": phase}});
    api.merge(&format!("{path}/status"), phase("Bound")).await.ok();
    stays(&api, &path, volume("unused")).await;
    api.merge(&format!("{path}/status"), phase("Released")).await.ok();
    gone(&api, &path).await;
}

#[tokio::test]
async fn an_attribute_class_goes_with_the_last_claim_and_volume_of_it() {
    let api = Api::start().await;
    let path = format!("{ATTRIBUTES_CLASSES}/gold");
    api.post(ATTRIBUTES_CLASSES, attributes_class("gold")).await.ok();
    let (mut claim, mut volume) = (claim("data"), volume("disk"));
    for user in [&mut claim, &mut volume] {
        user["spec"]["volumeAttributesClassName"] = "gold".into();
    }
    volume["spec"]["csi"] = json!({"driver": "example.com", "volumeHandle": "1"});
    volume["spec"].as_object_mut().unwrap().remove("hostPath");
    api.post(CLAIMS, claim).await.ok();
    api.post(VOLUMES, volume).await.ok();
    stays(&api, &path, attributes_class("unused")).await;
    api.delete(&format!("{CLAIMS}/data")).await.ok();
    gone(&api, &format!("{CLAIMS}/data")).await;
    stays(&api, &path, attributes_class("unused")).await;
    api.delete(&format!("{VOLUMES}/disk")).await.ok();
    gone(&api, &path).await;
}

#[tokio::test]
async fn what_waits_when_a_server_starts_goes_too() {
    let storage = Arc::new(Memory::new(watchkeeper_storage::Options::default()));
    let mut without = Options::default();
    without.claim_protection = false;
    without.volume_protection = false;
    without.volume_attributes_class_protection = false;
    let objects = [
        (CLAIMS, claim("unused")),
        (VOLUMES, volume("unused")),
        (ATTRIBUTES_CLASSES, attributes_class("unused")),
    ];
    let api = Api::with(storage.clone(), without).await;
    for (path, object) in &objects {
        api.post(path, object.clone()).await.ok();
        api.delete(&format!("{path}/unused")).await.ok();
    }
    // The namespaces task works on; these objects stay, as beside kube-apiserver alone.
    api.post("/api/v1/namespaces", json!({"metadata": {"name": "other"}})).await.ok();
    api.delete("/api/v1/namespaces/other").await.ok();
    gone(&api, "/api/v1/namespaces/other").await;
    for (path, _) in &objects {
        assert_eq!(api.get(&format!("{path}/unused")).await.code, 200, "{path}");
    }
    api.server.stop().await;
    let api = Api::over(storage).await;
    for (path, _) in &objects {
        gone(&api, &format!("{path}/unused")).await;
    }
}

#[tokio::test]
async fn a_namespace_goes_with_its_claims() {
    let api = Api::start().await;
    api.post("/api/v1/namespaces", json!({"metadata": {"name": "other"}})).await.ok();
    for number in 0..20 {
        let (claims, pods) =
            ("/api/v1/namespaces/other/persistentvolumeclaims", "/api/v1/namespaces/other/pods");
        let name = format!("data-{number}");
        api.post(claims, claim(&name)).await.ok();
        api.post(pods, pod(&name, "n", &name)).await.ok();
    }
    api.delete("/api/v1/namespaces/other").await.ok();
    gone(&api, "/api/v1/namespaces/other").await;
}
