//! ResourceQuotas: they hold at once, they are never exceeded, and what is deleted is given back.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::StreamExt;
use serde_json::{Value, json};
use watchkeeper_apiserver::Options;
use watchkeeper_storage::{Memory, Range, Storage, Update};

use crate::harness::{Api, WIDGETS};

const QUOTAS: &str = "/api/v1/namespaces/default/resourcequotas";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const PODS: &str = "/api/v1/namespaces/default/pods";

fn quota(name: &str, hard: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": name}, "spec": {"hard": hard}})
}

fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
}

async fn used(api: &Api, name: &str) -> Value {
    api.get(&format!("{QUOTAS}/{name}")).await.ok()["status"]["used"].clone()
}

#[tokio::test]
async fn a_quota_holds_when_its_writer_hears_of_it_and_counts_what_is_there() {
    let api = Api::start().await;
    for name in ["a", "b"] {
        api.post(MAPS, map(name)).await.ok();
    }
    let made = api.post(QUOTAS, quota("q", json!({"configmaps": "3", "count/configmaps": "9"}))).await.ok();
    assert_eq!(made.get("status"), Some(&json!({})), "the answer is what was written");
    assert_eq!(used(&api, "q").await, json!({"configmaps": "2", "count/configmaps": "2"}));
    api.post(MAPS, map("c")).await.ok();
    assert_eq!(used(&api, "q").await["configmaps"], "3");
    let refused = api.post(MAPS, map("d")).await.failed(403);
    assert_eq!(
        refused["message"],
        "configmaps \"d\" is forbidden: exceeded quota: q, requested: configmaps=1, used: configmaps=3, limited: configmaps=3"
    );
    api.delete(&format!("{MAPS}/a")).await.ok();
    assert_eq!(used(&api, "q").await, json!({"configmaps": "2", "count/configmaps": "2"}));
    api.post(MAPS, map("d")).await.ok();
    api.merge(&format!("{QUOTAS}/q"), json!({"spec": {"hard": {"configmaps": "4"}}})).await.ok();
    api.post(MAPS, map("e")).await.ok();
    api.post(MAPS, map("f")).await.failed(403);
    let owned = api.get(&format!("{QUOTAS}/q")).await.ok()["metadata"]["managedFields"].to_string();
    assert!(owned.contains("\"kube-apiserver\"") && owned.contains("\"subresource\":\"status\""), "{owned}");
}

#[tokio::test]
async fn objects_and_what_is_used_change_at_the_same_revision() {
    let api = Api::start().await;
    api.post(QUOTAS, quota("q", json!({"configmaps": "5"}))).await.ok();
    let made = api.post(MAPS, map("a")).await.ok();
    let quota = api.get(&format!("{QUOTAS}/q")).await.ok();
    assert_eq!(made["metadata"]["resourceVersion"], quota["metadata"]["resourceVersion"]);
}

#[tokio::test]
async fn custom_resources_are_counted() {
    let api = Api::start().await;
    api.define(json!({"type": "object"})).await;
    api.post(QUOTAS, quota("q", json!({"count/widgets.example.com": "1"}))).await.ok();
    let widget = |name: &str| json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": {}});
    api.post(WIDGETS, widget("a")).await.ok();
    let refused = api.post(WIDGETS, widget("b")).await.failed(403);
    assert!(
        refused["message"]
            .as_str()
            .unwrap()
            .contains("exceeded quota: q, requested: count/widgets.example.com=1"),
        "{refused}"
    );
    api.delete(&format!("{WIDGETS}/a")).await.ok();
    api.post(WIDGETS, widget("b")).await.ok();
}

#[tokio::test]
async fn pods_give_back_what_they_asked_for_when_they_end() {
    let api = Api::start().await;
    api.post(QUOTAS, quota("q", json!({"requests.cpu": "1", "pods": "1"}))).await.ok();
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [
        {"name": "c", "image": "i", "resources": {"requests": {"cpu": "750m"}}},
    ]}});
    api.post(PODS, pod.clone()).await.ok();
    assert_eq!(used(&api, "q").await, json!({"requests.cpu": "750m", "pods": "1"}));
    let mut other = pod.clone();
    other["metadata"]["name"] = "o".into();
    api.post(PODS, other.clone()).await.failed(403);
    api.merge(&format!("{PODS}/p/status"), json!({"status": {"phase": "Succeeded"}})).await.ok();
    assert_eq!(used(&api, "q").await, json!({"requests.cpu": "0", "pods": "0"}));
    api.post(PODS, other).await.ok();
    api.send("DELETE", &format!("{PODS}/p"), "application/json", r#"{"gracePeriodSeconds": 0}"#).await.ok();
    assert_eq!(used(&api, "q").await, json!({"requests.cpu": "750m", "pods": "1"}));
}

#[tokio::test]
async fn a_collection_that_is_deleted_and_a_namespace_that_ends_leave_nothing_behind() {
    let api = Api::start().await;
    api.post(QUOTAS, quota("q", json!({"configmaps": "40"}))).await.ok();
    for number in 0..40 {
        api.post(MAPS, map(&format!("m{number}"))).await.ok();
    }
    api.delete(MAPS).await.ok();
    assert_eq!(used(&api, "q").await, json!({"configmaps": "0"}));
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}});
    api.post("/api/v1/namespaces", namespace).await.ok();
    api.post("/api/v1/namespaces/n/resourcequotas", quota("q", json!({"configmaps": "40"}))).await.ok();
    for number in 0..20 {
        api.post("/api/v1/namespaces/n/configmaps", map(&format!("m{number}"))).await.ok();
    }
    api.delete("/api/v1/namespaces/n").await.ok();
    api.eventually("/api/v1/namespaces/n", |answer| answer.code == 404).await;
}

#[tokio::test]
async fn nothing_is_given_back_where_that_is_left_to_kube_controller_manager() {
    let mut options = Options::default();
    options.resource_quotas = false;
    let api = Api::with(Arc::new(Memory::new(watchkeeper_storage::Options::default())), options).await;
    api.post(QUOTAS, quota("q", json!({"configmaps": "1"}))).await.ok();
    api.post(MAPS, map("early")).await.ok();
    let status = json!({"status": {"hard": {"configmaps": "2"}, "used": {"configmaps": "1"}}});
    api.merge(&format!("{QUOTAS}/q/status"), status).await.ok();
    api.post(MAPS, map("a")).await.ok();
    api.delete(&format!("{MAPS}/a")).await.ok();
    assert_eq!(used(&api, "q").await["configmaps"], "2");
    api.post(MAPS, map("b")).await.failed(403);
}

/// Numbers that look random, and are the same every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

const LIMIT: usize = 9;
const WRITERS: u64 = 16;

/// Creates and deletes maps at random. Gives how many were refused.
async fn write(api: &Api, seed: u64, steps: usize) -> usize {
    let mut dice = Dice(seed);
    let mut refused = 0;
    for _ in 0..steps {
        let name = format!("m{}", dice.roll(24));
        let answer = match dice.roll(3) {
            0 => api.delete(&format!("{MAPS}/{name}")).await,
            1 => api.put(&format!("{MAPS}/{name}"), map(&name)).await,
            _ => api.post(MAPS, map(&name)).await,
        };
        match answer.code {
            200 | 201 | 404 | 409 => {}
            403 => refused += 1,
            code => panic!("{code}: {}", answer.text),
        }
        if dice.roll(4) == 0 {
            tokio::task::yield_now().await;
        }
    }
    refused
}

/// Looks at every revision: there are never more maps than the quota allows, and the quota always says how many there are.
async fn check_history(storage: &Arc<dyn Storage>, since: u64) {
    let now = storage.range(Range::prefix("/registry/")).await.unwrap().revision;
    let (maps, quotas) = ("/registry/core/configmaps/default/", "/registry/core/resourcequotas/default/");
    let before = storage.range(Range::prefix(maps).at(since)).await.unwrap();
    let mut live: BTreeMap<String, ()> =
        before.entries.iter().map(|entry| (entry.key.to_string(), ())).collect();
    let mut watch = storage.watch("/registry/core/", since).await.unwrap();
    let (mut revision, mut said) = (since, None::<usize>);
    while revision < now {
        let Some(Ok(update)) = watch.next().await else { panic!("the watch ended") };
        let Update::Event(event) = update else { continue };
        if event.revision != revision {
            if let Some(said) = said.take() {
                assert_eq!(live.len(), said, "at revision {revision}");
            }
            assert!(live.len() <= LIMIT, "{} at revision {revision}", live.len());
            revision = event.revision;
        }
        if event.key().starts_with(maps) {
            match event.entry() {
                Some(_) => drop(live.insert(event.key().to_owned(), ())),
                None => drop(live.remove(event.key())),
            }
        }
        if event.key().starts_with(quotas)
            && let Some(entry) = event.entry()
        {
            let text = String::from_utf8_lossy(&entry.value).into_owned();
            let (_, rest) = text.rsplit_once("\"used\":{\"configmaps\":\"").expect("what is used");
            said = rest.split('"').next().and_then(|number| number.parse().ok());
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixteen_writers_never_get_more_than_there_is() {
    let rounds =
        std::env::var("WATCHKEEPER_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(4_u64);
    for round in 0..rounds.min(200) {
        let storage: Arc<dyn Storage> = Arc::new(Memory::new(watchkeeper_storage::Options::default()));
        // Two servers over one storage, as over etcd: what one knows the other does not know yet.
        let apis =
            [Api::over(Arc::clone(&storage)).await, Api::over(Arc::clone(&storage)).await].map(Arc::new);
        apis[0].post(QUOTAS, quota("q", json!({"configmaps": LIMIT.to_string()}))).await.ok();
        let since = storage.range(Range::prefix("/registry/")).await.unwrap().revision;
        let writers = (0..WRITERS).map(|writer| {
            let api = Arc::clone(&apis[usize::from(writer % 2 == 1)]);
            tokio::spawn(async move { write(&api, round * 1000 + writer, 40).await })
        });
        let mut refused = 0;
        for writer in writers.collect::<Vec<_>>() {
            refused += writer.await.unwrap();
        }
        assert!(refused > 0, "the limit was never reached in round {round}");
        check_history(&storage, since).await;
        let left = apis[0].get(MAPS).await.ok()["items"].as_array().unwrap().len();
        assert_eq!(used(&apis[0], "q").await["configmaps"], left.to_string());
    }
}
