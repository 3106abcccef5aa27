//! Custom resources in versions that a webhook converts.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use watchkeeper_storage::{Commit, Storage};
use watchkeeper_testkit::eventually;

use crate::harness::{Api, DEFINITIONS};
use crate::hooks::Hooks;

pub(crate) const V1: &str = "/apis/example.com/v1/namespaces/default/things";
pub(crate) const V2: &str = "/apis/example.com/v2/namespaces/default/things";
const DEFINITION: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.example.com";
const KEY: &str = "/registry/example.com/things/default/";

/// Things with a size in v1, which is stored, and an amount in v2.
pub(crate) async fn define(api: &Api, client: Value) {
    let version = |name: &str, field: &str| {
        json!({
            "name": name, "served": true, "storage": name == "v1", "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "spec": {"type": "object", "properties": {field: {"type": "integer"}, "note": {"type": "string"}}},
                "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            }}},
        })
    };
    let webhook = json!({"clientConfig": client, "conversionReviewVersions": ["v1"]});
    let definition = json!({
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
            "versions": [version("v1", "size"), version("v2", "amount")],
            "conversion": {"strategy": "Webhook", "webhook": webhook},
        },
    });
    let written = api.post(DEFINITIONS, definition).await;
    written.ok();
    assert!(written.warnings().is_empty(), "{:?}", written.warnings());
}

pub(crate) fn at(hooks: &Hooks, path: &str) -> Value {
    json!({"url": format!("{}{path}", hooks.url), "caBundle": hooks.bundle})
}

pub(crate) fn thing(version: &str, name: &str, spec: Value) -> Value {
    let api_version = format!("example.com/{version}");
    json!({"apiVersion": api_version, "kind": "Thing", "metadata": {"name": name}, "spec": spec})
}

async fn start() -> (Arc<Api>, Hooks) {
    let (api, hooks) = (Api::start().await, Hooks::start().await);
    hooks.convert("/convert", |_| ());
    define(&api, at(&hooks, "/convert")).await;
    (Arc::new(api), hooks)
}

/// The version in which an object is stored.
async fn stored_version(api: &Api, name: &str) -> String {
    let entry = api.storage.get(&format!("{KEY}{name}"), None).await.unwrap().entry.unwrap();
    let text = String::from_utf8_lossy(&entry.value).into_owned();
    let begin = text.find("example.com/").unwrap();
    text[begin..].split('"').next().unwrap().to_owned()
}

async fn store(api: &Api, version: &str) {
    let mut definition = api.get(DEFINITION).await.ok();
    for known in definition["spec"]["versions"].as_array_mut().unwrap() {
        known["storage"] = (known["name"] == version).into();
    }
    api.put(DEFINITION, definition).await.ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn every_version_can_be_written_and_is_seen_in_every_other() {
    let (api, _hooks) = start().await;
    let mut watch = api.watch(&format!("{V2}?watch=1")).await;
    let created = api.post(V2, thing("v2", "a", json!({"amount": 1}))).await.ok();
    assert_eq!((&created["apiVersion"], &created["spec"]), (&json!("example.com/v2"), &json!({"amount": 1})));
    assert_eq!(stored_version(&api, "a").await, "example.com/v1");
    assert_eq!(api.get(&format!("{V1}/a")).await.ok()["spec"], json!({"size": 1}));
    api.post(V1, thing("v1", "b", json!({"size": 2}))).await.ok();
    api.merge(&format!("{V1}/a"), json!({"spec": {"size": 5}})).await.ok();
    let status = api.merge(&format!("{V2}/b/status"), json!({"status": {"ok": true}})).await.ok();
    assert_eq!((&status["spec"], &status["status"]), (&json!({"amount": 2}), &json!({"ok": true})));
    let applied = thing("v2", "b", json!({"amount": 9}));
    let apply = format!("{V2}/b?fieldManager=me&force=true");
    api.send("PATCH", &apply, "application/apply-patch+yaml", &applied.to_string()).await.ok();
    api.delete(&format!("{V1}/a")).await.ok();
    let listed = api.get(V2).await.ok();
    let items = listed["items"].as_array().unwrap();
    assert_eq!(items.len(), 1);
    assert_eq!((&items[0]["apiVersion"], &items[0]["spec"]["amount"]), (&json!("example.com/v2"), &json!(9)));

    let mut told = Vec::new();
    for _ in 0..6 {
        let event = watch.next().await.unwrap();
        assert_eq!(event["object"]["apiVersion"], "example.com/v2");
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        told.push((
            text(&event["type"]),
            text(&event["object"]["metadata"]["name"]),
            event["object"]["spec"]["amount"].as_i64().unwrap(),
        ));
    }
    let told: Vec<_> =
        told.iter().map(|(kind, name, number)| (kind.as_str(), name.as_str(), *number)).collect();
    assert_eq!(
        told,
        [
            ("ADDED", "a", 1),
            ("ADDED", "b", 2),
            ("MODIFIED", "a", 5),
            ("MODIFIED", "b", 2),
            ("MODIFIED", "b", 9),
            ("DELETED", "a", 5),
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_ten_thousand_in_another_version_costs_twenty_calls_and_none_the_next_time() {
    let (api, hooks) = start().await;
    api.post(V1, thing("v1", "t-00000", json!({"size": 1}))).await.ok();
    let first = api.storage.get(&format!("{KEY}t-00000"), None).await.unwrap().entry.unwrap();
    let place = first.value.windows(7).position(|bytes| bytes == b"t-00000").unwrap();
    for start in (1..10_000).step_by(500) {
        let mut commit = Commit::new();
        for number in start..(start + 500).min(10_000) {
            let (name, mut value) = (format!("t-{number:05}"), first.value.to_vec());
            value[place..place + 7].copy_from_slice(name.as_bytes());
            commit = commit.put(format!("{KEY}{name}"), value);
        }
        api.storage.commit(commit).await.unwrap();
    }
    let count = async |path: &str| api.get(path).await.ok()["items"].as_array().unwrap().len();
    assert_eq!(count(V2).await, 10_000);
    let cold = hooks.paths().len();
    assert!(cold <= 20, "{cold} calls");
    assert_eq!(count(V2).await, 10_000);
    assert_eq!(count(&format!("{V2}?limit=700")).await, 700);
    api.get(&format!("{V2}/t-04711")).await.ok();
    let mut watch = api.watch(&format!("{V2}?watch=1")).await;
    for _ in 0..100 {
        assert_eq!(watch.next().await.unwrap()["object"]["spec"]["amount"], 1);
    }
    assert_eq!(hooks.paths().len(), 0, "all of it is kept");

    // A change costs one call, however many ask for it.
    api.merge(&format!("{V1}/t-00007"), json!({"spec": {"size": 8}})).await.ok();
    let path = &format!("{V2}/t-00007");
    for answer in join_all((0..20).map(|_| api.get(path))).await {
        assert_eq!(answer.ok()["spec"]["amount"], 8);
    }
    assert_eq!(hooks.paths().len(), 1);
    assert_eq!(count(V2).await, 10_000);
    assert_eq!(hooks.paths().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_converted_once_for_all_who_watch() {
    let (api, hooks) = start().await;
    let mut watches = Vec::new();
    for _ in 0..30 {
        watches.push(api.watch(&format!("{V2}?watch=1")).await);
    }
    for number in 0..5 {
        api.post(V1, thing("v1", &format!("t{number}"), json!({"size": number}))).await.ok();
        for watch in &mut watches {
            assert_eq!(watch.next().await.unwrap()["object"]["spec"]["amount"], number);
        }
    }
    assert_eq!(hooks.paths().len(), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_changes_nothing_brings_an_object_to_the_version_that_is_stored_now() {
    let (api, _hooks) = start().await;
    api.post(V1, thing("v1", "a", json!({"size": 1}))).await.ok();
    store(&api, "v2").await;
    assert_eq!(api.get(DEFINITION).await.ok()["status"]["storedVersions"], json!(["v1", "v2"]));
    assert_eq!(stored_version(&api, "a").await, "example.com/v1");
    let before = api.get(&format!("{V1}/a")).await.ok();
    let after = api.put(&format!("{V1}/a"), before.clone()).await.ok();
    assert_eq!(stored_version(&api, "a").await, "example.com/v2");
    assert_ne!(after["metadata"]["resourceVersion"], before["metadata"]["resourceVersion"]);
    assert_eq!(after["metadata"]["generation"], before["metadata"]["generation"]);
    // Once is enough.
    let again = api.put(&format!("{V1}/a"), after.clone()).await.ok();
    assert_eq!(again["metadata"]["resourceVersion"], after["metadata"]["resourceVersion"]);

    // The old version can go then, and not before it is said to be stored nowhere.
    let dropped = |mut definition: Value| {
        definition["spec"]["versions"].as_array_mut().unwrap().retain(|version| version["name"] == "v2");
        definition
    };
    api.put(DEFINITION, dropped(api.get(DEFINITION).await.ok())).await.failed(422);
    let path = format!("{DEFINITION}/status");
    api.merge(&path, json!({"status": {"storedVersions": ["v2"]}})).await.ok();
    api.put(DEFINITION, dropped(api.get(DEFINITION).await.ok())).await.ok();
    assert_eq!(api.get(&format!("{V2}/a")).await.ok()["spec"], json!({"amount": 1}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_that_fails_is_not_asked_again_by_itself_and_ends_watches_with_its_words() {
    let (api, hooks) = start().await;
    hooks.script("/convert", |_| (500, "oops".to_owned()));
    let mut watch = api.watch(&format!("{V2}?watch=1")).await;
    api.post(V1, thing("v1", "a", json!({"size": 1}))).await.ok();
    let event = watch.next().await.unwrap();
    assert_eq!(event["type"], "ERROR");
    let expected = "conversion webhook for example.com/v1, Kind=Thing failed: an error on the server (\"oops\") has prevented the request from succeeding";
    assert_eq!((&event["object"]["message"], &event["object"]["code"]), (&json!(expected), &json!(500)));
    assert!(watch.next().await.is_none(), "it is over");
    let failed = api.get(V2).await.failed(500);
    assert_eq!(failed["message"], expected);
    api.get(&format!("{V1}/a")).await.ok();
    let asked = hooks.paths().len();
    assert_eq!(asked, 2, "once for the watch, once for the list");
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(hooks.paths().len(), 0, "nobody asks on");
    // It is as before when the webhook is.
    hooks.convert("/convert", |_| ());
    assert_eq!(api.get(V2).await.ok()["items"][0]["spec"]["amount"], 1);
    let metrics = api.get("/metrics").await.text;
    let counted = "apiserver_conversion_webhook_request_total{result=\"failure\",failure_type=\"conversion_webhook_call_failure\"} 2";
    assert!(metrics.contains(counted), "{metrics}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_that_hangs_holds_up_nobody_but_those_who_need_it() {
    let (api, hooks) = (Arc::new(Api::start().await), Hooks::start().await);
    define(&api, at(&hooks, "/hang")).await;
    api.post(V1, thing("v1", "a", json!({"size": 1}))).await.ok();
    let waiting: Vec<_> = (0..100)
        .map(|number| {
            let api = Arc::clone(&api);
            let write = thing("v2", &format!("t{number}"), json!({"amount": 1}));
            tokio::spawn(async move {
                match number % 2 {
                    0 => api.get(&format!("{V2}/a")).await.code,
                    _ => api.post(V2, write).await.code,
                }
            })
        })
        .collect();
    eventually(|| async {
        // The reads share a call.
        let asked = hooks.asked.lock().len();
        if asked >= 51 { Ok(()) } else { Err(format!("{asked} calls")) }
    })
    .await;
    for number in 0..50 {
        let maps = "/api/v1/namespaces/default/configmaps";
        api.post(maps, json!({"metadata": {"name": format!("m{number}")}})).await.ok();
        api.post(V1, thing("v1", &format!("other{number}"), json!({"size": 1}))).await.ok();
    }
    assert_eq!(api.get(V1).await.ok()["items"].as_array().unwrap().len(), 51);
    assert!(waiting.iter().all(|request| !request.is_finished()), "they still wait");
    waiting.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_converted_is_collected_and_deleted_and_nothing_else_is() {
    let (api, hooks) = start().await;
    api.post("/api/v1/namespaces", json!({"metadata": {"name": "doomed"}})).await.ok();
    let doomed = "/apis/example.com/v1/namespaces/doomed/things";
    let owner = api.post(V1, thing("v1", "owner", json!({"size": 1}))).await.ok();
    let owned_by = |owner: &Value, kind: &str, api_version: &str| json!([{"apiVersion": api_version, "kind": kind, "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}]);
    // v2 is the preferred version, and nothing is stored in it.
    let maps = "/api/v1/namespaces/default/configmaps";
    let root = api.post(maps, json!({"metadata": {"name": "root"}})).await.ok();
    let mut dependent = thing("v1", "dependent", json!({"size": 2}));
    dependent["metadata"]["ownerReferences"] = owned_by(&root, "ConfigMap", "v1");
    let mut held = thing("v1", "held", json!({"size": 3}));
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    api.post(V1, dependent).await.ok();
    api.post(doomed, held).await.ok();
    api.post(doomed, thing("v1", "gone", json!({"size": 4}))).await.ok();
    let kept =
        json!({"metadata": {"name": "kept", "ownerReferences": owned_by(&owner, "Thing", "example.com/v2")}});
    api.post(maps, kept).await.ok();
    hooks.script("/convert", |_| (500, "oops".to_owned()));

    // A dependent that cannot be converted goes with its owner.
    api.delete(&format!("{maps}/root")).await.ok();
    api.eventually(&format!("{V1}/dependent"), |answer| answer.code == 404).await;
    // An owner that cannot be converted is still there.
    api.get(&format!("{V2}/owner")).await.failed(500);
    api.delete("/api/v1/namespaces/doomed").await.ok();
    api.eventually(&format!("{doomed}/gone"), |answer| answer.code == 404).await;
    let namespace = api
        .eventually("/api/v1/namespaces/doomed", |answer| {
            answer.text.contains("example.com/hold in 1 resource")
        })
        .await;
    assert!(namespace.text.contains("things.example.com has 1 resource instances"), "{}", namespace.text);
    let released = json!({"metadata": {"finalizers": null}});
    api.merge(&format!("{doomed}/held"), released).await.ok();
    api.eventually("/api/v1/namespaces/doomed", |answer| answer.code == 404).await;
    assert!(api.get(&format!("{maps}/kept")).await.code == 200, "its owner is there, whoever can read it");

    // Objects in two versions, none of which can be converted, go with their definition.
    store(&api, "v2").await;
    api.post(V2, thing("v2", "new", json!({"amount": 1}))).await.ok();
    assert_eq!(stored_version(&api, "new").await, "example.com/v2");
    assert_eq!(stored_version(&api, "owner").await, "example.com/v1");
    api.delete(DEFINITION).await.ok();
    api.eventually(DEFINITION, |answer| answer.code == 404).await;
    assert!(api.storage.get(&format!("{KEY}owner"), None).await.unwrap().entry.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_that_judges_one_version_is_shown_objects_of_the_other_in_it() {
    let (api, hooks) = start().await;
    hooks.patch("/judge", |_| json!([{"op": "add", "path": "/spec/size", "value": 70}]));
    let mut hook = hooks.hook("judge.m.io", "/judge");
    hook["rules"] = json!([{"operations": ["*"], "apiGroups": ["example.com"], "apiVersions": ["v1"], "resources": ["things"]}]);
    crate::webhooks::install(&api, "mutating", "m", json!([hook])).await;
    let created = api.post(V2, thing("v2", "a", json!({"amount": 1}))).await.ok();
    assert_eq!(created["spec"]["amount"], 70);
    let asked = hooks.asked();
    let (_, judged) = asked.iter().find(|(path, _)| path == "/judge").unwrap();
    assert_eq!(judged["object"]["spec"], json!({"size": 1}));
    assert_eq!(judged["requestKind"]["version"], "v2");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_in_a_batch_of_somebody_else_that_failed_is_asked_for_together() {
    let (api, hooks) = start().await;
    for number in 0..100 {
        api.post(V1, thing("v1", &format!("a{number:03}"), json!({"size": 1}))).await.ok();
    }
    api.post(V1, thing("v1", "poisoned", json!({"size": 1}))).await.ok();
    // Whoever asks for the poisoned one fails, and not before somebody else waits for the same batch.
    let (release, released) = std::sync::mpsc::channel::<()>();
    let released = parking_lot::Mutex::new(released);
    hooks.script("/convert", move |request| {
        let mut objects = request["objects"].as_array().cloned().unwrap_or_default();
        if objects.iter().any(|object| object["metadata"]["name"] == "poisoned") {
            let _ = released.lock().recv_timeout(Duration::from_secs(20));
            return (500, "poisoned".to_owned());
        }
        for object in &mut objects {
            object["apiVersion"] = request["desiredAPIVersion"].clone();
            object["spec"] = json!({"amount": 1});
        }
        (200, crate::hooks::converted(request, &objects.into()).to_string())
    });
    hooks.asked();
    let all = {
        let api = Arc::clone(&api);
        tokio::spawn(async move { api.get(V2).await.code })
    };
    eventually(|| async { !hooks.asked.lock().is_empty() }).await;
    let page = format!("{V2}?limit=50");
    let mut others = Box::pin(api.get(&page));
    // It goes as far as it gets, which is until it waits for the batch of the other one.
    for _ in 0..100 {
        assert!(futures_util::poll!(&mut others).is_pending());
        tokio::task::yield_now().await;
    }
    release.send(()).unwrap();
    assert_eq!(all.await.unwrap(), 500);
    assert_eq!(others.await.ok()["items"].as_array().unwrap().len(), 50);
    let calls = hooks.asked().len();
    assert!(calls <= 3, "{calls} calls");
    api.get(&page).await.ok();
    assert_eq!(hooks.asked().len(), 0, "what was converted is kept");
}
