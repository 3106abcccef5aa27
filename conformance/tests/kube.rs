//! kube-client, the Rust client that others wrote: typed and dynamic objects, watches, pages, patches, errors.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::path::Path;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt};
use json_patch::{Patch as JsonPatch, PatchOperation, ReplaceOperation, jsonptr::PointerBuf};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod, Secret};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_client::config::{KubeConfigOptions, Kubeconfig};
use kube_client::{Api, Client, Config, Discovery, Error, discovery};
use kube_core::params::{DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchParams};
use kube_core::{ApiResource, DynamicObject, GroupVersionKind, ResourceExt, WatchEvent};
use serde_json::json;
use watchkeeper_conformance::Server;

/// A client of the server that the tests of this file share, and a new namespace. The server ends with the last one.
struct Place {
    client: Client,
    namespace: String,
    _server: Arc<Server>,
}

fn server() -> Arc<Server> {
    static SHARED: Mutex<Weak<Server>> = Mutex::new(Weak::new());
    let mut shared = SHARED.lock().unwrap();
    shared.upgrade().unwrap_or_else(|| {
        let scratch = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kube");
        let server = Arc::new(Server::start(&scratch).unwrap());
        *shared = Arc::downgrade(&server);
        server
    })
}

async fn place(name: &str) -> Place {
    let server = server();
    let kubeconfig = Kubeconfig::read_from(server.kubeconfig()).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    let client = Client::try_from(config).unwrap();
    let namespace = format!("kube-{name}-{:x}", std::process::id());
    let object = serde_json::from_value(json!({"metadata": {"name": namespace}})).unwrap();
    Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &object).await.unwrap();
    Place { client, namespace, _server: server }
}

fn config_map(name: &str, data: serde_json::Value) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name, "labels": {"mine": "yes"}}, "data": data}))
        .unwrap()
}

fn status(error: Error) -> kube_core::Status {
    match error {
        Error::Api(status) => *status,
        other => panic!("not an answer of the server: {other:?}"),
    }
}

#[tokio::test]
async fn typed_objects_are_created_read_replaced_and_deleted() {
    let Place { client, namespace, _server } = place("typed").await;
    let maps: Api<ConfigMap> = Api::namespaced(client, &namespace);
    let created = maps.create(&PostParams::default(), &config_map("a", json!({"k": "1"}))).await.unwrap();
    assert_eq!(maps.get("a").await.unwrap(), created);
    let mut changed = created.clone();
    changed.data.as_mut().unwrap().insert("k".to_owned(), "2".to_owned());
    let replaced = maps.replace("a", &PostParams::default(), &changed).await.unwrap();
    assert_eq!(replaced.uid(), created.uid());
    assert_ne!(replaced.resource_version(), created.resource_version());

    let stale = status(maps.replace("a", &PostParams::default(), &changed).await.unwrap_err());
    assert_eq!((stale.code, stale.reason.as_str()), (409, "Conflict"));
    let again = status(maps.create(&PostParams::default(), &config_map("a", json!({}))).await.unwrap_err());
    assert_eq!((again.code, again.reason.as_str()), (409, "AlreadyExists"));

    let answer = maps.delete("a", &DeleteParams::default()).await.unwrap();
    assert!(answer.right().is_some_and(|status| status.is_success()));
    assert_eq!(maps.get_opt("a").await.unwrap(), None);
    let gone = status(maps.get("a").await.unwrap_err());
    assert_eq!((gone.code, gone.message.as_str()), (404, "configmaps \"a\" not found"));
}

#[tokio::test]
async fn patches_change_what_they_name() {
    let Place { client, namespace, _server } = place("patches").await;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace);
    maps.create(&PostParams::default(), &config_map("a", json!({"x": "1", "y": "1"}))).await.unwrap();
    let params = PatchParams::default();

    let merged =
        maps.patch("a", &params, &Patch::Merge(json!({"data": {"x": null, "z": "2"}}))).await.unwrap();
    assert_eq!(serde_json::to_value(&merged.data).unwrap(), json!({"y": "1", "z": "2"}));
    let unchanged = maps.patch("a", &params, &Patch::Merge(json!({"data": {"z": "2"}}))).await.unwrap();
    assert_eq!(unchanged.resource_version(), merged.resource_version());

    let replace = |path: &str| {
        let path = PointerBuf::parse(path.to_owned()).unwrap();
        Patch::<()>::Json(JsonPatch(vec![PatchOperation::Replace(ReplaceOperation {
            path,
            value: json!("3"),
        })]))
    };
    let patched = maps.patch("a", &params, &replace("/data/y")).await.unwrap();
    assert_eq!(patched.data.unwrap()["y"], "3");
    let refused = status(maps.patch("a", &params, &replace("/none/y")).await.unwrap_err());
    assert_eq!((refused.code, refused.reason.as_str()), (422, "Invalid"));

    let deployments: Api<Deployment> = Api::namespaced(client, &namespace);
    let deployment = json!({"metadata": {"name": "d"}, "spec": {
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "one", "image": "x"}]}},
    }});
    deployments.create(&PostParams::default(), &serde_json::from_value(deployment).unwrap()).await.unwrap();
    let second = json!({"spec": {"template": {"spec": {"containers": [{"name": "two", "image": "y"}]}}}});
    let patched = deployments.patch("d", &params, &Patch::Strategic(second)).await.unwrap();
    assert_eq!(patched.spec.template.spec.unwrap().containers.len(), 2);
    let scaled =
        deployments.patch_scale("d", &params, &Patch::Merge(json!({"spec": {"replicas": 4}}))).await.unwrap();
    assert_eq!(scaled.spec.unwrap().replicas, Some(4));
}

#[tokio::test]
async fn pages_hold_everything_once() {
    let Place { client, namespace, _server } = place("pages").await;
    let secrets: Api<Secret> = Api::namespaced(client, &namespace);
    for number in 0..7 {
        let secret =
            json!({"metadata": {"name": format!("s{number}"), "labels": {"odd": (number % 2).to_string()}}});
        secrets.create(&PostParams::default(), &serde_json::from_value(secret).unwrap()).await.unwrap();
    }
    let mut names = Vec::new();
    let mut params = ListParams::default().limit(3);
    loop {
        let page = secrets.list(&params).await.unwrap();
        names.extend(page.items.iter().map(ResourceExt::name_any));
        match page.metadata.continue_ {
            Some(token) if !token.is_empty() => params = params.continue_token(&token),
            _ => break,
        }
    }
    assert_eq!(names, ["s0", "s1", "s2", "s3", "s4", "s5", "s6"]);
    let odd = secrets.list(&ListParams::default().labels("odd=1")).await.unwrap();
    assert_eq!(odd.items.len(), 3);
    let one = secrets.list(&ListParams::default().fields("metadata.name=s4")).await.unwrap();
    assert_eq!(one.items.len(), 1);
    let metadata = secrets.list_metadata(&ListParams::default()).await.unwrap();
    assert_eq!(metadata.items.len(), 7);
    let wrong = status(secrets.list(&ListParams::default().labels("a in (")).await.unwrap_err());
    assert_eq!((wrong.code, wrong.reason.as_str()), (400, "BadRequest"));
    secrets
        .delete_collection(&DeleteParams::default(), &ListParams::default().labels("odd=1"))
        .await
        .unwrap();
    assert_eq!(secrets.list(&ListParams::default()).await.unwrap().items.len(), 4);
}

#[tokio::test]
async fn a_watch_sees_every_change_in_order() {
    let Place { client, namespace, _server } = place("watch").await;
    let maps: Api<ConfigMap> = Api::namespaced(client, &namespace);
    let version = maps.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    let params = WatchParams::default().labels("mine=yes").timeout(20);
    let mut events = maps.watch(&params, &version).await.unwrap().boxed();
    maps.create(&PostParams::default(), &config_map("a", json!({"k": "1"}))).await.unwrap();
    maps.patch("a", &PatchParams::default(), &Patch::Merge(json!({"data": {"k": "2"}}))).await.unwrap();
    maps.delete("a", &DeleteParams::default()).await.unwrap();
    let mut seen = Vec::new();
    while seen.len() < 3 {
        let event = tokio::time::timeout(Duration::from_secs(20), events.try_next()).await.unwrap().unwrap();
        match event.expect("the watch ended early") {
            WatchEvent::Added(map) => seen.push(format!("added {}", map.data.unwrap()["k"])),
            WatchEvent::Modified(map) => seen.push(format!("modified {}", map.data.unwrap()["k"])),
            WatchEvent::Deleted(map) => seen.push(format!("deleted {}", map.data.unwrap()["k"])),
            WatchEvent::Bookmark(_) => {}
            WatchEvent::Error(error) => panic!("{error:?}"),
        }
    }
    assert_eq!(seen, ["added 1", "modified 2", "deleted 2"]);
}

#[tokio::test]
async fn defined_kinds_are_found_and_used_dynamically() {
    let Place { client, namespace, _server } = place("dynamic").await;
    let group = format!("{namespace}.example.com");
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let name = format!("widgets.{group}");
    let definition = json!({"metadata": {"name": name}, "spec": {
        "group": group, "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "spec": {"type": "object", "properties": {"size": {"type": "integer", "minimum": 1, "default": 2}}},
                "status": {"type": "object", "properties": {"state": {"type": "string"}}},
            }}}}],
    }});
    definitions.create(&PostParams::default(), &serde_json::from_value(definition).unwrap()).await.unwrap();
    established(&definitions, &name).await;

    let kind = GroupVersionKind::gvk(&group, "v1", "Widget");
    let (resource, capabilities) = discovery::pinned_kind(&client, &kind).await.unwrap();
    assert_eq!(resource, ApiResource::from_gvk_with_plural(&kind, "widgets"));
    assert!(capabilities.supports_operation("watch"));
    let widgets: Api<DynamicObject> = Api::namespaced_with(client.clone(), &namespace, &resource);
    let widget = |size: i64| DynamicObject::new("w", &resource).data(json!({"spec": {"size": size}}));
    let invalid = status(widgets.create(&PostParams::default(), &widget(0)).await.unwrap_err());
    assert_eq!((invalid.code, invalid.reason.as_str()), (422, "Invalid"));
    let created = widgets.create(&PostParams::default(), &widget(5)).await.unwrap();
    assert_eq!(created.data["spec"]["size"], 5);
    let patch = Patch::Merge(json!({"status": {"state": "ready"}, "spec": {"size": 9}}));
    let reported = widgets.patch_status("w", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(
        (&reported.data["status"]["state"], &reported.data["spec"]["size"]),
        (&json!("ready"), &json!(5))
    );
    assert_eq!(reported.metadata.generation, Some(1));
    assert_eq!(widgets.list(&ListParams::default()).await.unwrap().items.len(), 1);
    definitions.delete(&name, &DeleteParams::default()).await.unwrap();
}

async fn established(definitions: &Api<CustomResourceDefinition>, name: &str) {
    let params = WatchParams::default().fields(&format!("metadata.name={name}")).timeout(30);
    let mut events = definitions.watch(&params, "0").await.unwrap().boxed();
    while let Some(event) = events.try_next().await.unwrap() {
        let (WatchEvent::Added(definition) | WatchEvent::Modified(definition)) = event else { continue };
        let conditions = definition.status.and_then(|status| status.conditions).unwrap_or_default();
        if conditions.iter().any(|condition| condition.type_ == "Established" && condition.status == "True") {
            return;
        }
    }
    panic!("{name} was not established");
}

#[tokio::test]
async fn discovery_finds_the_kinds_of_kubernetes() {
    let Place { client, _server, .. } = place("discovery").await;
    let version = client.apiserver_version().await.unwrap();
    assert_eq!(version.major, "1");
    let found = Discovery::new(client).filter(&["", "apps", "apiextensions.k8s.io"]).run().await.unwrap();
    for (group, kind) in [("", "Pod"), ("", "ConfigMap"), ("apps", "Deployment")] {
        assert!(found.resolve_gvk(&GroupVersionKind::gvk(group, "v1", kind)).is_some(), "{group}/{kind}");
    }
}

#[tokio::test]
async fn finalizers_and_preconditions_hold_a_deletion_back() {
    let Place { client, namespace, _server } = place("held").await;
    let pods: Api<Pod> = Api::namespaced(client, &namespace);
    let pod = json!({"metadata": {"name": "p", "finalizers": ["example.com/hold"]},
        "spec": {"containers": [{"name": "c", "image": "registry.example.com/c:1"}]}});
    let created = pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
    assert_eq!(created.status.unwrap().phase.as_deref(), Some("Pending"));
    let other = kube_core::params::Preconditions { uid: Some("other".to_owned()), ..Default::default() };
    let params = DeleteParams { preconditions: Some(other), ..DeleteParams::default() };
    let refused = status(pods.delete("p", &params).await.unwrap_err());
    assert_eq!((refused.code, refused.reason.as_str()), (409, "Conflict"));
    let answer = pods.delete("p", &DeleteParams::default().grace_period(0)).await.unwrap();
    assert!(answer.left().is_some_and(|pod| pod.metadata.deletion_timestamp.is_some()));
    let release = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    pods.patch("p", &PatchParams::default(), &release).await.unwrap();
    assert_eq!(pods.get_opt("p").await.unwrap(), None);
}
