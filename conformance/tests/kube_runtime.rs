//! kube-runtime, the controllers that others wrote in Rust: streaming lists, owned objects, finalizers.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt, future, pin_mut};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube_client::config::{KubeConfigOptions, Kubeconfig};
use kube_client::{Api, Client, Config};
use kube_core::params::{DeleteParams, Patch, PatchParams, PostParams};
use kube_core::{Resource, ResourceExt};
use kube_runtime::controller::Action;
use kube_runtime::finalizer::{self, Event, finalizer};
use kube_runtime::watcher;
use kube_runtime::{Controller, WatchStreamExt};
use serde_json::json;
use watchkeeper_conformance::Server;
use watchkeeper_testkit::eventually;

const FINALIZER: &str = "conformance.watchkeeper.dev/farewell";
const TIMEOUT: Duration = Duration::from_secs(60);

/// A client of a server, and a namespace there. The server ends with it.
struct Place {
    client: Client,
    namespace: String,
    _server: Server,
}

impl Place {
    async fn new(name: &str) -> Self {
        let scratch = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("kube-runtime-{name}"));
        let server = Server::start(&scratch).unwrap();
        let kubeconfig = Kubeconfig::read_from(server.kubeconfig()).unwrap();
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
        let client = Client::try_from(config).unwrap();
        let namespace = format!("kube-runtime-{name}-{:x}", std::process::id());
        let object = serde_json::from_value(json!({"metadata": {"name": namespace}})).unwrap();
        Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &object).await.unwrap();
        Self { client, namespace, _server: server }
    }

    fn maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }
}

fn config_map(name: &str, text: &str) -> ConfigMap {
    let labels = json!({"mine": "yes"});
    serde_json::from_value(json!({"metadata": {"name": name, "labels": labels}, "data": {"text": text}}))
        .unwrap()
}

/// The Secret that a ConfigMap becomes.
fn copy_of(map: &ConfigMap) -> Secret {
    Secret {
        metadata: serde_json::from_value(json!({
            "name": map.name_any(), "ownerReferences": [map.controller_owner_ref(&()).unwrap()],
        }))
        .unwrap(),
        string_data: map.data.clone(),
        ..Secret::default()
    }
}

async fn reconcile(
    map: Arc<ConfigMap>,
    client: Arc<Client>,
) -> Result<Action, finalizer::Error<kube_client::Error>> {
    let namespace = map.namespace().unwrap();
    let maps: Api<ConfigMap> = Api::namespaced((*client).clone(), &namespace);
    let secrets: Api<Secret> = Api::namespaced((*client).clone(), &namespace);
    finalizer(&maps.clone(), FINALIZER, map, |event| async move {
        match event {
            Event::Apply(map) => {
                let params = PatchParams::apply("copier").force();
                secrets.patch(&map.name_any(), &params, &Patch::Apply(copy_of(&map))).await?;
            }
            Event::Cleanup(map) => {
                let farewell =
                    ConfigMap { data: None, ..config_map(&format!("farewell-{}", map.name_any()), "") };
                let farewell = ConfigMap { metadata: unlabelled(farewell.metadata), ..farewell };
                maps.create(&PostParams::default(), &farewell).await?;
            }
        }
        Ok(Action::await_change())
    })
    .await
}

fn unlabelled<M: serde::Serialize + serde::de::DeserializeOwned>(metadata: M) -> M {
    let mut metadata = serde_json::to_value(metadata).unwrap();
    metadata.as_object_mut().unwrap().remove("labels");
    serde_json::from_value(metadata).unwrap()
}

#[tokio::test]
async fn a_controller_keeps_what_it_owns_and_cleans_up() {
    let place = Place::new("controller").await;
    let (maps, secrets) = (place.maps(), place.secrets());
    let controller =
        Controller::new(maps.clone(), watcher::Config::default().labels("mine=yes").streaming_lists())
            .owns(secrets.clone(), watcher::Config::default().streaming_lists())
            .run(
                reconcile,
                |_, _, _| Action::requeue(Duration::from_millis(100)),
                Arc::new(place.client.clone()),
            );
    let controller = tokio::spawn(controller.for_each(|_| future::ready(())));

    let says = |text: &'static str| {
        let secrets = secrets.clone();
        async move {
            let secret = secrets.get_opt("hello").await.unwrap();
            let data: BTreeMap<_, _> = secret.and_then(|secret| secret.data).unwrap_or_default();
            data.get("text").is_some_and(|value| value.0 == text.as_bytes())
        }
    };
    let created = maps.create(&PostParams::default(), &config_map("hello", "hello")).await.unwrap();
    eventually(|| says("hello")).within(TIMEOUT).await;
    let copied = secrets.get("hello").await.unwrap();
    assert_eq!(copied.owner_references()[0].uid, created.uid().unwrap());
    assert_eq!(maps.get("hello").await.unwrap().finalizers(), [FINALIZER]);

    secrets.delete("hello", &DeleteParams::default()).await.unwrap();
    eventually(|| says("hello")).within(TIMEOUT).await;
    let changed = Patch::Merge(json!({"data": {"text": "goodbye"}}));
    maps.patch("hello", &PatchParams::default(), &changed).await.unwrap();
    eventually(|| says("goodbye")).within(TIMEOUT).await;

    maps.delete("hello", &DeleteParams::default()).await.unwrap();
    eventually(|| async { maps.get_opt("hello").await.unwrap().is_none() }).within(TIMEOUT).await;
    maps.get("farewell-hello").await.unwrap();
    assert!(!controller.is_finished(), "the controller goes on");
    controller.abort();
}

#[tokio::test]
async fn a_watcher_with_streaming_lists_sees_what_was_there_and_what_comes() {
    let place = Place::new("watcher").await;
    let maps = place.maps();
    for name in ["a", "b"] {
        maps.create(&PostParams::default(), &config_map(name, name)).await.unwrap();
    }
    let watched = watcher(maps.clone(), watcher::Config::default().labels("mine=yes").streaming_lists());
    pin_mut!(watched);
    let mut first = Vec::new();
    loop {
        match watched.try_next().await.unwrap().unwrap() {
            watcher::Event::Init => {}
            watcher::Event::InitApply(map) => first.push(map.name_any()),
            watcher::Event::InitDone => break,
            other => panic!("too early: {other:?}"),
        }
    }
    assert_eq!(first, ["a", "b"]);
    maps.create(&PostParams::default(), &config_map("c", "c")).await.unwrap();
    maps.delete("a", &DeleteParams::default()).await.unwrap();
    let touched = watched.touched_objects().take(2).map_ok(|map| map.name_any());
    assert_eq!(touched.try_collect::<Vec<_>>().await.unwrap(), ["c", "a"]);
}
