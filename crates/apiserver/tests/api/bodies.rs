//! Bodies that are large, and bodies that become large.

use std::time::Duration;

use http::header::CONTENT_TYPE;
use serde_json::{Value, json};
use watchkeeper_apiserver::authentication::Identity;
use watchkeeper_apiserver::front::Body;
use watchkeeper_kinds::protobuf;

use crate::harness::{Answer, Api, WIDGETS, config_map, widget};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const YAML: &str = "application/yaml";
const APPLY: &str = "application/apply-patch+yaml";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const LIMIT: &str = "limit is 67108864 bytes of memory for what is decoded from the body";

/// A list of this, so often that it has this many bytes.
fn many(item: &str, bytes: usize) -> String {
    format!("[{}{item}]", format!("{item},").repeat(bytes / (item.len() + 1)))
}

/// Three megabytes that would become 280.
fn hostile() -> String {
    many(r#"{"":0}"#, 3_000_000)
}

async fn send(api: &Api, method: &str, path: &str, content_type: &str, body: impl Into<Vec<u8>>) -> Answer {
    let request = http::Request::builder().method(method).uri(path).header(CONTENT_TYPE, content_type);
    api.answer(request.body(Body::whole(body.into())).unwrap()).await
}

#[track_caller]
fn assert_too_large(answer: &Answer, what: &str) {
    assert_eq!(answer.code, 413, "{what}: {:.300}", answer.text);
    let status = answer.json();
    assert_eq!(status["reason"], "RequestEntityTooLarge", "{what}");
    assert_eq!(status["message"], format!("Request entity too large: {LIMIT}"), "{what}");
}

/// A server with widgets whose specs may be anything, and one of everything that is needed.
async fn server() -> Api {
    let api = Api::start().await;
    api.define(json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})).await;
    api.post(WIDGETS, widget("w", json!({"replicas": 1}))).await.ok();
    api.post(MAPS, config_map("m", json!({}))).await.ok();
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i"}]}});
    api.post("/api/v1/namespaces/default/pods", pod).await.ok();
    api
}

#[tokio::test]
async fn three_megabytes_that_become_280_are_refused_wherever_json_is_read() {
    let api = server().await;
    let list = hostile();
    let fields = format!(r#"{{"apiVersion":"v1","kind":"X","spec":{list}}}"#);
    let operation = format!(r#"[{{"op":"add","path":"/x","value":{list}}}]"#);
    let (json, merge) = ("application/json", "application/merge-patch+json");
    let strategic = "application/strategic-merge-patch+json";
    let reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let account = "/api/v1/namespaces/default/serviceaccounts/default/token";
    let (map, one) = (format!("{MAPS}/m"), format!("{WIDGETS}/w"));
    let pod = "/api/v1/namespaces/default/pods/p";
    for (method, path, content_type, body) in [
        ("POST", reviews, json, &list),
        ("POST", reviews, json, &fields),
        ("POST", MAPS, json, &fields),
        ("PUT", &map, json, &fields),
        ("PATCH", &map, merge, &fields),
        ("PATCH", &map, strategic, &fields),
        ("PATCH", &map, "application/json-patch+json", &operation),
        ("PATCH", &map, APPLY, &fields),
        ("POST", MAPS, YAML, &fields),
        ("DELETE", &map, json, &fields),
        ("DELETE", MAPS, json, &fields),
        ("POST", WIDGETS, json, &fields),
        ("PUT", &format!("{one}/status"), json, &fields),
        ("PUT", &format!("{one}/scale"), json, &fields),
        ("PATCH", &format!("{one}/scale"), merge, &fields),
        ("POST", &format!("{pod}/binding"), json, &fields),
        ("POST", &format!("{pod}/eviction"), json, &fields),
        ("POST", account, json, &fields),
        ("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", json, &fields),
        // Broken at its end, after all of it would have been built.
        ("POST", MAPS, json, &fields[..fields.len() - 1].to_owned()),
    ] {
        assert_too_large(
            &send(&api, method, path, content_type, body.as_str()).await,
            &format!("{method} {path}"),
        );
    }
    api.get(&map).await.ok();
    api.get(pod).await.ok();
}

#[tokio::test]
async fn who_may_do_nothing_may_not_fill_the_memory_either() {
    let api = Api::start().await;
    let nobody = Identity::new("nobody", ["nobodies"]);
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let request = http::Request::builder().method("POST").uri(path).header(CONTENT_TYPE, "application/json");
    let request = request.body(Body::whole(hostile())).unwrap();
    let answer = crate::harness::read(
        watchkeeper_apiserver::authentication::Service::call(&api.server, request, nobody).await,
    );
    assert_too_large(&answer.await, "a review");
}

#[tokio::test]
async fn yaml_that_grows_is_refused_by_whoever_decodes_it() {
    let api = server().await;
    for (what, list) in [
        ("objects without values", many("{a}", 2_000_000)),
        ("pairs", many("a: 0", 2_000_000)),
        ("lists", many("[0]", 3_000_000)),
        ("aliases", format!("[&a {}, {}]", many("{a}", 15_000), many("*a", 3 * 20))),
    ] {
        let body = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: m}}\nspec: {list}\n");
        for (method, path, content_type) in [
            ("POST", MAPS.to_owned(), YAML),
            ("PATCH", format!("{MAPS}/m?fieldManager=me"), APPLY),
            ("PUT", format!("{MAPS}/m"), YAML),
        ] {
            let answer = send(&api, method, &path, content_type, body.as_str()).await;
            assert!(
                answer.code == 413 || answer.text.contains("excessive aliasing"),
                "{what}: {}",
                answer.code
            );
        }
    }
}

fn delimited(field: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![field << 3 | 2];
    let mut length = bytes.len();
    while length >= 0x80 {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
    out.extend_from_slice(bytes);
    out
}

fn envelope(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let type_meta = [delimited(1, api_version.as_bytes()), delimited(2, kind.as_bytes())].concat();
    [b"k8s\0".to_vec(), delimited(1, &type_meta), delimited(2, raw)].concat()
}

#[tokio::test]
async fn protobuf_that_grows_is_refused() {
    let api = server().await;
    let json = delimited(8, &delimited(1, hostile().as_bytes()));
    let version = delimited(7, &delimited(4, &delimited(1, &json)));
    let embedded = envelope("apiextensions.k8s.io/v1", "CustomResourceDefinition", &delimited(2, &version));
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_too_large(&send(&api, "POST", definitions, PROTOBUF, embedded).await, "embedded JSON");
    let owners = delimited(1, &delimited(13, b"").repeat(1_400_000));
    let owners = envelope("v1", "ConfigMap", &owners);
    let answer = send(&api, "POST", MAPS, PROTOBUF, owners).await;
    assert!(matches!(answer.code, 400 | 413), "empty owners: {} {:.300}", answer.code, answer.text);
}

#[tokio::test]
async fn large_objects_of_honest_people_are_taken_in_every_format() {
    let api = server().await;
    let text = config_map("text", json!({"file": "all work and no play\n".repeat(45_000)}));
    let keys: Value = (0..60_000).map(|key| (format!("key-{key}"), json!("value"))).collect();
    let keys = config_map("keys", keys);
    for map in [&text, &keys] {
        let path = format!("{MAPS}/{}", map["metadata"]["name"].as_str().unwrap());
        let sent = map["data"].to_string().len();
        assert!(sent > 900_000, "{sent}");
        for (content_type, body) in [
            ("application/json", map.to_string().into_bytes()),
            (YAML, watchkeeper_schema::yaml::encode(map).into_bytes()),
            (PROTOBUF, protobuf::encode(map).unwrap()),
        ] {
            send(&api, "POST", MAPS, content_type, body).await.ok();
            assert_eq!(api.get(&path).await.ok()["data"], map["data"], "{content_type}");
            api.delete(&path).await.ok();
        }
    }
    let entry = |index| json!({"name": format!("entry-{index}"), "value": "x"});
    let list: Vec<Value> = (0..30_000).map(entry).collect();
    api.post(WIDGETS, widget("dense", json!({"list": list}))).await.ok();
    let dense = format!("{WIDGETS}/dense");
    let patched = api.merge(&dense, json!({"spec": {"more": 1}})).await.ok();
    assert_eq!(patched["spec"]["list"].as_array().unwrap().len(), 30_000);
    let applied = widget("dense", json!({"list": list}));
    let path = format!("{dense}?fieldManager=me&force=true");
    send(&api, "PATCH", &path, APPLY, applied.to_string()).await.ok();
}

#[tokio::test]
async fn no_patch_makes_more_of_an_object_than_a_body_may_be() {
    let api = server().await;
    let list: Value = serde_json::from_str(&many(r#"{"":0}"#, 300_000)).unwrap();
    api.post(WIDGETS, widget("grows", json!({"l0": list}))).await.ok();
    let path = format!("{WIDGETS}/grows");
    let copy = |to: usize| json!({"op": "copy", "from": "/spec/l0", "path": format!("/spec/l{to}")});
    let patch = async |operations: Vec<Value>| {
        send(&api, "PATCH", &path, "application/json-patch+json", Value::Array(operations).to_string()).await
    };
    assert_too_large(&patch((1..9).map(copy).collect()).await, "copies at once");
    patch(vec![copy(1)]).await.ok();
    assert_too_large(&patch(vec![copy(2)]).await, "copies one by one");
    api.merge(&path, json!({"spec": {"small": true}})).await.ok();
}

/// Small patches of a large object, large bodies and a reader at once: none waits for ever, and all come to their end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_bodies_and_large_objects_do_not_wait_for_each_other_for_ever() {
    let api = std::sync::Arc::new(server().await);
    let dense =
        widget("dense", json!({"list": serde_json::from_str::<Value>(&many(r#"{"":0}"#, 500_000)).unwrap()}));
    let dense = api.post(WIDGETS, dense).await.ok();
    let path = format!("{WIDGETS}/dense");
    let mut tasks = tokio::task::JoinSet::new();
    for index in 0..6 {
        let (api, path, mut dense) = (std::sync::Arc::clone(&api), path.clone(), dense.clone());
        tasks.spawn(async move {
            dense["spec"]["who"] = index.into();
            match index % 2 {
                0 => api.put(&path, dense).await.code,
                _ => api.merge(&path, json!({"spec": {"who": index}})).await.code,
            }
        });
    }
    let codes = tokio::time::timeout(Duration::from_secs(120), tasks.join_all()).await.expect("in time");
    // On a machine that has much else to do, some are told to come again.
    assert!(codes.iter().all(|code| matches!(code, 200 | 409 | 429)), "{codes:?}");
    assert!(codes.contains(&200), "{codes:?}");
}
