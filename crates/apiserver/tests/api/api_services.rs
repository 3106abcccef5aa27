//! Which groups and versions are served, and by whom.

use std::sync::Arc;

use serde_json::{Value, json};
use watchkeeper_storage::{Memory, Storage};

use crate::harness::{Answer, Api, DEFINITIONS};

const ALL: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
const AUTOMANAGED: &str = "kube-aggregator.kubernetes.io/automanaged";

fn named(name: &str) -> String {
    format!("{ALL}/{name}")
}

fn remote(version: &str) -> Value {
    json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": format!("{version}.metrics.example.com")},
        "spec": {
            "group": "metrics.example.com", "version": version, "groupPriorityMinimum": 100, "versionPriority": 100,
            "service": {"namespace": "default", "name": "metrics"}, "insecureSkipTLSVerify": true,
        },
    })
}

fn reason(answer: &Answer) -> String {
    let conditions = &answer.json()["status"]["conditions"];
    assert!(conditions.as_array().is_none_or(|all| all.len() == 1), "{conditions}");
    conditions[0]["reason"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn every_built_in_version_is_registered_when_the_server_is_ready() {
    let api = Api::start().await;
    let list = api.get(ALL).await.ok();
    let items = list["items"].as_array().unwrap();
    assert_eq!(list["kind"], "APIServiceList");
    assert_eq!(items.len(), 21);
    for item in items {
        assert_eq!(item["metadata"]["labels"][AUTOMANAGED], "onstart", "{item}");
        let condition = &item["status"]["conditions"][0];
        assert_eq!(
            (&condition["type"], &condition["status"], &condition["reason"]),
            (&json!("Available"), &json!("True"), &json!("Local"))
        );
    }
    let first = &items[0]["metadata"]["resourceVersion"];
    let is_first = |item: &Value| item["metadata"]["resourceVersion"] == *first;
    assert!(items.iter().all(is_first), "they are made by one commit");
    let row = api.get_as(&named("v1.apps"), "application/json;as=Table;v=v1;g=meta.k8s.io").await.ok();
    assert_eq!(row["rows"][0]["cells"].as_array().unwrap()[..3], ["v1.apps", "Local", "True"]);
    let group = api.get("/apis/apiregistration.k8s.io").await.ok();
    assert_eq!(group["preferredVersion"]["groupVersion"], "apiregistration.k8s.io/v1");
    let document = api.get("/openapi/v3/apis/apiregistration.k8s.io/v1").await.ok();
    let kind = "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.APIService";
    assert!(document["components"]["schemas"][kind].is_object());
}

#[tokio::test]
async fn a_second_start_writes_only_what_is_missing_or_different() {
    let storage: Arc<dyn Storage> = Arc::new(Memory::new(watchkeeper_storage::Options::default()));
    let first = Api::over(Arc::clone(&storage)).await;
    let kept = first.get(&named("v1.batch")).await.ok();
    first.delete(&named("v1.apps")).await.ok();
    first.merge(&named("v1.policy"), json!({"spec": {"versionPriority": 7}})).await.ok();
    // Of a version that an older server had.
    let old = json!({
        "metadata": {"name": "v0.old", "labels": {AUTOMANAGED: "onstart"}},
        "spec": {"group": "old", "version": "v0", "groupPriorityMinimum": 1, "versionPriority": 1},
    });
    first.post(ALL, old).await.ok();
    first.server.stop().await;
    let second = Api::over(storage).await;
    assert_eq!(second.get(&named("v1.batch")).await.ok(), kept);
    assert_eq!(second.get(&named("v1.apps")).await.code, 200);
    let is_back = |answer: &Answer| answer.json()["spec"]["versionPriority"] == 15;
    second.eventually(&named("v1.policy"), is_back).await;
    second.eventually(&named("v0.old"), |answer| answer.code == 404).await;
}

#[tokio::test]
async fn versions_of_definitions_come_and_go_and_are_kept() {
    let api = Api::start().await;
    api.define(json!({"type": "object"})).await;
    let path = named("v1.example.com");
    let made = api.eventually(&path, |answer| answer.code == 200).await.ok();
    assert_eq!(made["metadata"]["labels"][AUTOMANAGED], "true");
    let spec = json!({"group": "example.com", "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 100});
    assert_eq!(made["spec"], spec);
    assert_eq!(made["metadata"]["managedFields"][0]["manager"], "kube-apiserver");
    api.merge(&path, json!({"spec": {"versionPriority": 1}})).await.ok();
    api.eventually(&path, |answer| answer.json()["spec"] == spec).await;
    api.delete(&path).await.ok();
    let is_another =
        |answer: &Answer| answer.code == 200 && answer.json()["metadata"]["uid"] != made["metadata"]["uid"];
    api.eventually(&path, is_another).await;
    api.delete(&format!("{DEFINITIONS}/widgets.example.com")).await.ok();
    api.eventually(&path, |answer| answer.code == 404).await;
}

#[tokio::test]
async fn a_version_that_another_server_serves_says_what_is_missing() {
    let api = Api::start().await;
    let made = api.post(ALL, remote("v1")).await.ok();
    assert_eq!(made["spec"]["service"]["port"], 443);
    assert_eq!(made["status"], json!({}));
    let path = named("v1.metrics.example.com");
    api.eventually(&path, |answer| reason(answer) == "ServiceNotFound").await;
    let services = "/api/v1/namespaces/default/services";
    let service =
        json!({"metadata": {"name": "metrics"}, "spec": {"ports": [{"name": "https", "port": 8443}]}});
    api.post(services, service).await.ok();
    api.eventually(&path, |answer| reason(answer) == "ServicePortError").await;
    let ports = json!({"spec": {"ports": [{"name": "https", "port": 443}]}});
    api.merge(&format!("{services}/metrics"), ports).await.ok();
    api.eventually(&path, |answer| reason(answer) == "EndpointsNotFound").await;
    let slice = json!({
        "metadata": {"name": "metrics", "labels": {"kubernetes.io/service-name": "metrics"}},
        "addressType": "IPv4", "endpoints": [{"addresses": ["192.0.2.1"]}], "ports": [{"name": "https", "port": 443}],
    });
    api.post("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", slice).await.ok();
    let said = api.eventually(&path, |answer| reason(answer) == "FailedDiscoveryCheck").await.ok();
    assert_eq!(said["status"]["conditions"][0]["status"], "False");
    let owners = said["metadata"]["managedFields"].as_array().unwrap();
    let own = owners.iter().find(|owner| owner["manager"] == "kube-apiserver").unwrap();
    assert_eq!(own["subresource"], "status");
    let row = api.get_as(&path, "application/json;as=Table;v=v1;g=meta.k8s.io").await.ok();
    let cells = &row["rows"][0]["cells"].as_array().unwrap()[..3];
    assert_eq!(cells, ["v1.metrics.example.com", "default/metrics", "False (FailedDiscoveryCheck)"]);
    // It is announced, and nobody answers.
    api.eventually("/apis/metrics.example.com", |answer| answer.code == 200).await;
    assert_eq!(api.get("/apis/metrics.example.com/v1").await.code, 503);
    api.delete(&path).await.ok();
    assert_eq!(api.get(&path).await.code, 404);
}

#[tokio::test]
async fn apiservices_are_watched_as_everything_is() {
    let api = Api::start().await;
    let version = api.get(ALL).await.ok()["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    let mut watch = api.watch(&format!("{ALL}?watch=1&resourceVersion={version}")).await;
    api.post(ALL, remote("v1")).await.ok();
    assert_eq!(watch.told().await, ("ADDED".into(), "v1.metrics.example.com".into()));
    let modified = watch.next().await.unwrap();
    assert_eq!(modified["type"], "MODIFIED");
    assert_eq!(modified["object"]["status"]["conditions"][0]["status"], "False");
}
