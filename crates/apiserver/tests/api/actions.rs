//! What is authorized is what is done: paths and methods that once were judged as one thing and served as another.

use serde_json::{Value, json};
use watchkeeper_apiserver::authentication::Identity;

use crate::harness::{Api, config_map};
use crate::rights::RBAC;

fn mallory() -> Identity {
    Identity::new("mallory", ["people"])
}

/// Gives mallory a ClusterRole, in a namespace or everywhere.
async fn bind(api: &Api, namespace: Option<&str>, role: &str) {
    let (path, kind) = match namespace {
        Some(namespace) => (format!("namespaces/{namespace}/rolebindings"), "RoleBinding"),
        None => ("clusterrolebindings".to_owned(), "ClusterRoleBinding"),
    };
    let binding = json!({
        "kind": kind, "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "mallory"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "User", "name": "mallory", "apiGroup": "rbac.authorization.k8s.io"}],
    });
    api.post(&format!("{RBAC}/{path}"), binding).await.ok();
}

async fn role(api: &Api, name: &str, verbs: &[&str], resource: &str) {
    let rules = json!([{"verbs": verbs, "apiGroups": ["*"], "resources": [resource]}]);
    api.post(&format!("{RBAC}/clusterroles"), json!({"metadata": {"name": name}, "rules": rules})).await.ok();
}

/// A server with a namespace `x` that mallory has a role in, or that everybody is in, and a namespace `y` of others.
async fn start() -> Api {
    let api = Api::start().await;
    for name in ["x", "y"] {
        api.post("/api/v1/namespaces", json!({"metadata": {"name": name}})).await.ok();
    }
    api.post("/api/v1/namespaces/x/configmaps", config_map("kept", json!({"a": "b"}))).await.ok();
    api.post("/api/v1/namespaces/x/pods", pod("p")).await.ok();
    api
}

fn pod(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
}

#[tokio::test]
async fn a_path_that_says_watch_writes_nothing() {
    let api = start().await;
    bind(&api, Some("x"), "view").await;
    let pods = "/api/v1/watch/namespaces/x/pods";
    let patch = json!({"status": {"phase": "Failed"}});
    for (method, path, body, code) in [
        ("POST", pods.to_owned(), pod("made"), 405),
        ("DELETE", "/api/v1/watch/namespaces/x/configmaps".to_owned(), Value::Null, 405),
        ("DELETE", format!("{pods}/p"), Value::Null, 405),
        ("PUT", format!("{pods}/p"), pod("p"), 405),
        ("PATCH", format!("{pods}/p/status"), patch, 404),
    ] {
        let answer = api.send_as(&mallory(), method, &path, body).await;
        assert_eq!(answer.code, code, "{method} {path}: {}", answer.text);
    }
    assert_eq!(api.get("/api/v1/namespaces/x/pods/made").await.code, 404);
    assert_eq!(api.get("/api/v1/namespaces/x/configmaps/kept").await.code, 200);
    let pod = api.get("/api/v1/namespaces/x/pods/p").await.ok();
    assert_eq!(
        (&pod["status"]["phase"], &pod["metadata"]["deletionTimestamp"]),
        (&"Pending".into(), &Value::Null)
    );
}

#[tokio::test]
async fn who_may_read_everything_gets_no_token_by_watching_for_one() {
    let api = start().await;
    role(&api, "auditor", &["get", "list", "watch"], "*").await;
    bind(&api, None, "auditor").await;
    api.post("/api/v1/namespaces/kube-system/serviceaccounts", json!({"metadata": {"name": "operator"}}))
        .await
        .ok();
    let path = "/api/v1/watch/namespaces/kube-system/serviceaccounts/operator/token";
    let answer = api.send_as(&mallory(), "POST", path, json!({"spec": {"audiences": ["a"]}})).await;
    assert_eq!(answer.code, 404, "{}", answer.text);
    assert!(!answer.text.contains("token"), "{}", answer.text);
    // The same for whoever may do everything: there is nothing behind such a path.
    assert_eq!(api.post(path, json!({"spec": {}})).await.code, 404);
}

#[tokio::test]
async fn rights_in_one_namespace_reach_no_other_by_a_path_that_puts_it_inside() {
    let api = start().await;
    bind(&api, Some("x"), "cluster-admin").await;
    let own = api.send_as(&mallory(), "GET", "/api/v1/namespaces/x", Value::Null).await;
    assert_eq!(own.code, 200, "{}", own.text);
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "y"}, "spec": {"finalizers": []}});
    for (method, path) in [
        ("GET", "/api/v1/namespaces/x/namespaces"),
        ("GET", "/api/v1/namespaces/x/namespaces/y"),
        ("GET", "/api/v1/namespaces/x/namespaces/x"),
        ("GET", "/api/v1/watch/namespaces/x/namespaces/y"),
        ("DELETE", "/api/v1/namespaces/x/namespaces/y"),
        ("DELETE", "/api/v1/namespaces/x/namespaces"),
        ("PUT", "/api/v1/namespaces/x/namespaces/y"),
        ("PATCH", "/api/v1/namespaces/x/namespaces/y"),
        ("PUT", "/api/v1/namespaces/x/namespaces/y/finalize"),
        ("PUT", "/api/v1/namespaces/x/namespaces/y/status"),
        ("POST", "/api/v1/namespaces/x/namespaces"),
        ("GET", "/api/v1/namespaces/x/nodes"),
        ("DELETE", "/api/v1/namespaces/x/nodes/n"),
    ] {
        let answer = api.send_as(&mallory(), method, path, namespace.clone()).await;
        assert_eq!(answer.code, 404, "{method} {path}: {}", answer.text);
    }
    let other = api.get("/api/v1/namespaces/y").await.ok();
    assert_eq!(other["status"]["phase"], "Active");
}

#[tokio::test]
async fn a_right_to_a_subresource_is_none_to_the_collection_when_the_name_is_empty() {
    let api = start().await;
    role(&api, "evict", &["create"], "pods/eviction").await;
    role(&api, "token", &["create"], "serviceaccounts/token").await;
    role(&api, "scale", &["*"], "*/scale").await;
    let rules = json!([
        {"verbs": ["create"], "apiGroups": [""], "resources": ["pods/eviction", "serviceaccounts/token"]},
        {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*/scale", "*/status"]},
    ]);
    api.post(&format!("{RBAC}/clusterroles"), json!({"metadata": {"name": "parts"}, "rules": rules}))
        .await
        .ok();
    bind(&api, None, "parts").await;
    let account = json!({"metadata": {"name": "made"}});
    for (method, path, body, code) in [
        ("POST", "/api/v1/namespaces/x/pods//eviction", pod("made"), 400),
        ("POST", "/api/v1/namespaces/x/serviceaccounts//token", account, 400),
        ("GET", "/api/v1/secrets//scale", Value::Null, 404),
        ("GET", "/api/v1/namespaces/x/secrets//scale", Value::Null, 404),
        ("GET", "/api/v1/namespaces/x/pods//status", Value::Null, 400),
        ("DELETE", "/api/v1/namespaces/x/pods//status", Value::Null, 405),
        ("GET", "/apis/apps/v1/namespaces/x/deployments//scale", Value::Null, 400),
        ("DELETE", "/apis/apps/v1/namespaces/x/deployments//scale", Value::Null, 405),
        ("GET", "/api/v1/namespaces//status", Value::Null, 400),
    ] {
        let answer = api.send_as(&mallory(), method, path, body).await;
        assert_eq!(answer.code, code, "{method} {path}: {}", answer.text);
    }
    assert_eq!(api.get("/api/v1/namespaces/x/pods/made").await.code, 404);
    assert_eq!(api.get("/api/v1/namespaces/x/serviceaccounts/made").await.code, 404);
    assert_eq!(api.get("/api/v1/namespaces/x/pods/p").await.code, 200);
}

#[tokio::test]
async fn a_list_that_is_allowed_for_one_name_shows_no_other() {
    let api = start().await;
    api.post("/api/v1/namespaces/x/configmaps", config_map("other", json!({}))).await.ok();
    let rules = json!([{"verbs": ["list", "watch"], "apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["kept"]}]);
    api.post(&format!("{RBAC}/clusterroles"), json!({"metadata": {"name": "one"}, "rules": rules}))
        .await
        .ok();
    bind(&api, Some("x"), "one").await;
    let maps = "/api/v1/namespaces/x/configmaps";
    let list = async |selector: &str| {
        api.send_as(&mallory(), "GET", &format!("{maps}?fieldSelector={selector}"), Value::Null).await
    };
    let listed = list("metadata.name%3Dkept").await.ok();
    let names: Vec<_> =
        listed["items"].as_array().unwrap().iter().map(|item| &item["metadata"]["name"]).collect();
    assert_eq!(names, ["kept"]);
    for selector in ["metadata.name%3Dother", "metadata.name!%3Dother", "metadata.namespace%3Dx", ""] {
        assert_eq!(list(selector).await.code, 403, "{selector}");
    }
    let empty = list("metadata.name%3Dkept,metadata.name%3Dother").await;
    assert!(
        empty.code == 403 || empty.json()["items"].as_array().is_some_and(Vec::is_empty),
        "{}",
        empty.text
    );
}
