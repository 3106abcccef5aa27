//! Which provider serves a call, with which key, and for whom.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use http::Request;
use serde_json::{Value, json};
use watchkeeper_core::Key;
use watchkeeper_front::Body;
use watchkeeper_gateway::Options;
use watchkeeper_gateway::ai::records::{self, Destinations};
use watchkeeper_gateway::kinds::API_VERSION;
use watchkeeper_gateway::mock::Mock;
use watchkeeper_gateway::object::{InputKind, ObjectId};

use crate::ai::{Ai, chat, mock, sha256};
use crate::support::{Bench, object, send, within};

#[tokio::test]
async fn the_same_user_always_gets_the_same_variant() {
    let ai = Ai::start().await;
    let keys: Vec<Value> = (0..20)
        .map(|number| json!({"name": format!("k{number}"), "sha256": sha256(&format!("s{number}"))}))
        .collect();
    ai.policy(json!({"keys": keys})).await;
    let targets = json!([
        {"provider": "openai", "model": "echo,words=1", "weight": 50},
        {"provider": "gemini", "model": "echo,words=2", "weight": 50},
    ]);
    let ask = async |key: &str, user: Option<&str>| {
        let mut request = Ai::request("/v1/chat/completions", &chat("m", "hi"), Some(key));
        if let Some(user) = user {
            request.headers_mut().insert("x-user", user.parse().unwrap());
        }
        let told = send(ai.bench.address, request).await;
        told.json()["choices"][0]["message"]["content"]
            .as_str()
            .unwrap_or_else(|| panic!("{}", told.text()))
            .to_owned()
    };
    for split in [json!({"by": "Header", "header": "x-user"}), json!({"by": "Key"})] {
        ai.bench
            .put("ModelContextMapping", "m", json!({"model": "m", "targets": targets, "split": split}))
            .await;
        let mut variants = BTreeSet::new();
        for number in 0..20 {
            let (key, user) = match split["by"] == "Key" {
                true => (format!("s{number}"), None),
                false => ("s1".to_owned(), Some(format!("user-{number}"))),
            };
            let first = ask(&key, user.as_deref()).await;
            for _ in 0..3 {
                assert_eq!(ask(&key, user.as_deref()).await, first, "{split} {key}");
            }
            variants.insert(first);
        }
        assert_eq!(variants.len(), 2, "{split}");
    }
}

#[tokio::test]
async fn a_key_in_a_file_is_read_again_when_it_changes() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("key");
    std::fs::write(&file, "old-key\n").unwrap();
    let mock = Mock::start(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), Some("new-key".to_owned())).unwrap();
    let provider = json!([{"name": "openai", "dialect": "OpenAI", "url": format!("http://{}", mock.address()), "key": {"file": file}}]);
    let settings = json!({"providers": provider, "retry": {"attempts": 0}, "health": {"failures": 1000}});
    let ai = Ai::over(Bench::start().await, mock, settings).await;
    ai.model("m", &[("openai", "echo")]).await;
    let told = ai.chat("m").await;
    assert!(told.status == 502 && !told.text().contains("old-key"), "{}", told.text());
    // As editors and volumes of Secrets do it.
    std::fs::write(directory.path().join("next"), "new-key").unwrap();
    std::fs::rename(directory.path().join("next"), &file).unwrap();
    within("the new key", async {
        while ai.chat("m").await.status != 200 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}

/// Puts an object into a namespace, and waits until it is served.
async fn put(bench: &Bench, namespace: &str, kind: &str, name: &str, spec: Value) {
    let mut object = object(kind, name, spec);
    object["metadata"]["namespace"] = namespace.into();
    bench.objects.put(&Key::new(Some(&format!("{namespace}-{kind}")), name), &object).unwrap();
    let id =
        ObjectId { kind: InputKind::of(API_VERSION, kind).unwrap(), key: Key::new(Some(namespace), name) };
    let mut handle = bench.handle.clone();
    within("a report", async {
        while handle.report(&id).is_none() {
            handle.changed().await;
        }
    })
    .await;
}

#[tokio::test]
async fn tenants_know_nothing_of_each_other() {
    let (bench, mock) = (Bench::start().await, mock());
    let provider =
        json!([{"name": "openai", "dialect": "OpenAI", "url": format!("http://{}", mock.address())}]);
    for namespace in ["a", "b"] {
        let config = json!({"prefix": format!("/{namespace}"), "providers": provider});
        put(&bench, namespace, "AIGatewayConfig", "main", config).await;
        let model = json!({"model": format!("model-of-{namespace}"), "targets": [{"provider": "openai", "model": "echo"}]});
        put(&bench, namespace, "ModelContextMapping", "m", model).await;
        let keys = json!({"keys": [{"name": "jane", "sha256": sha256(&format!("key-of-{namespace}"))}]});
        put(&bench, namespace, "LLMGatewayPolicy", "keys", keys).await;
    }
    put(&bench, "a", "Tenant", "a", json!({"limits": [{"per": "Month", "requests": 1}]})).await;
    let ask = async |namespace: &str, key: &str, model: &str| {
        let path = format!("/{namespace}/v1/chat/completions");
        send(bench.address, Ai::request(&path, &chat(model, "hi"), Some(key))).await.status.as_u16()
    };
    assert_eq!(ask("a", "key-of-b", "model-of-a").await, 401);
    assert_eq!(ask("b", "key-of-b", "model-of-a").await, 404);
    assert_eq!(
        (ask("a", "key-of-a", "model-of-a").await, ask("a", "key-of-a", "model-of-a").await),
        (200, 429)
    );
    for _ in 0..3 {
        assert_eq!(ask("b", "key-of-b", "model-of-b").await, 200, "the limit of one is nothing to the other");
    }
    let request = Request::get("/b/v1/models").header("host", "h").header("x-api-key", "key-of-b");
    let told = send(bench.address, request.body(Body::empty()).unwrap()).await;
    assert!(told.text().contains("model-of-b") && !told.text().contains("model-of-a"), "{}", told.text());
}

#[tokio::test]
async fn tenants_with_the_same_paths_on_hosts_of_their_own_do_not_mix() {
    let directory = tempfile::tempdir().unwrap();
    let destinations = Destinations { directory: Some(directory.path().to_owned()), table: None };
    let bench =
        Bench::start_with(json!({"port": 0}), Options { records: destinations, ..Options::default() }).await;
    let mocks = [mock(), mock()];
    let tenants = ["a", "b"];
    // The same names of everything, and the same name of a key.
    for (namespace, mock) in tenants.iter().zip(&mocks) {
        let provider =
            json!([{"name": "openai", "dialect": "OpenAI", "url": format!("http://{}", mock.address())}]);
        let config = json!({"hosts": [format!("{namespace}.test")], "providers": provider});
        put(&bench, namespace, "AIGatewayConfig", "main", config).await;
        let model =
            json!({"model": "m", "targets": [{"provider": "openai", "model": format!("echo-{namespace}")}]});
        put(&bench, namespace, "ModelContextMapping", "m", model).await;
        let keys = json!({
            "keys": [{"name": "jane", "sha256": sha256(&format!("key-of-{namespace}"))}], "cache": {"ttl": "1h"},
            "limits": [{"per": "Month", "requests": 4}],
        });
        put(&bench, namespace, "LLMGatewayPolicy", "keys", keys).await;
        let prompt = json!({"gateway": "main", "prompt": "who", "model": "m", "template": format!("I am {namespace}")});
        put(&bench, namespace, "PromptTemplate", "who", prompt).await;
    }
    let ask = async |host: &str, path: &str, key: &str, body: Value| {
        let mut request = Ai::request(path, &body, Some(&format!("key-of-{key}")));
        request.headers_mut().insert("host", format!("{host}.test").parse().unwrap());
        send(bench.address, request).await
    };
    let path = "/v1/chat/completions";
    for (tenant, other) in [("a", "b"), ("b", "a")] {
        let told = ask(tenant, path, other, chat("m", "hi")).await;
        assert_eq!(told.status, 401, "the key of {other} for {tenant}: {}", told.text());
        let told = ask(tenant, path, tenant, chat("m", "hi")).await;
        assert_eq!((told.status.as_u16(), told.header("x-cache")), (200, None), "{}", told.text());
        let told = ask(tenant, "/v1/prompts/who", tenant, json!({})).await;
        assert_eq!(told.json()["output"], format!("You said: I am {tenant}"), "{}", told.text());
    }
    assert_eq!(ask("c", path, "a", chat("m", "hi")).await.status, 404, "a host of nobody");
    for (namespace, mock) in tenants.iter().zip(&mocks) {
        assert_eq!(mock.requests(), 2);
        let sent: Value = serde_json::from_slice(&mock.last().unwrap().1).unwrap();
        assert_eq!(sent["model"], format!("echo-{namespace}"));
    }
    for _ in 0..2 {
        assert_eq!(ask("a", path, "a", chat("m", "again")).await.status, 200);
    }
    assert_eq!(ask("a", path, "a", chat("m", "again")).await.status, 429);
    assert_eq!(ask("b", path, "b", chat("m", "again")).await.status, 200, "the limit of the other one");
    bench.gateway.stop(Duration::from_secs(5)).await;
    let mut counts = BTreeMap::new();
    records::read(directory.path(), |record| {
        let told = ["namespace", "gateway", "policy", "key", "status"].map(|name| record[name].to_string());
        *counts.entry(told.join(" ")).or_insert(0) += 1;
    })
    .unwrap();
    let expected = [
        ("\"a\" \"main\" \"keys\" \"jane\" 200", 4),
        ("\"a\" \"main\" \"keys\" \"jane\" 429", 1),
        ("\"b\" \"main\" \"keys\" \"jane\" 200", 3),
    ];
    assert_eq!(counts, expected.map(|(told, count)| (told.to_owned(), count)).into());
}
