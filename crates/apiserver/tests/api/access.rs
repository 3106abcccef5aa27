//! Who may see what, and what anybody is told.

use crate::harness::{Api, read};
use serde_json::{Value, json};
use watchkeeper_apiserver::MAX_REQUEST_BYTES;
use watchkeeper_apiserver::authentication::{Identity, Service};
use watchkeeper_apiserver::front::Body;

async fn anonymously(api: &Api, method: &str, path: &str) -> crate::harness::Answer {
    let request = http::Request::builder().method(method).uri(path).body(Body::whole("{}")).unwrap();
    read(api.server.call(request, Identity::anonymous()).await).await
}

#[tokio::test]
async fn nobody_without_credentials_sees_more_than_health_and_version() {
    let api = Api::start().await;
    for path in ["/healthz", "/livez", "/readyz", "/readyz?verbose", "/version"] {
        assert_eq!(anonymously(&api, "GET", path).await.code, 200, "{path}");
    }
    for path in [
        "/",
        "/api",
        "/apis",
        "/api/v1",
        "/apis/apps",
        "/openapi/v2",
        "/openapi/v3",
        "/metrics",
        "/versions",
        "/healthzz",
        "/livez/ping",
        "/api/v1/namespaces",
        "/api/v1/namespaces/default/secrets",
        "/api/v1/namespaces/default/secrets/x",
        "/apis/none/v1/x",
        "/anything",
        "/version/../api",
        "//healthz",
    ] {
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"] {
            let answer = anonymously(&api, method, path).await;
            assert_eq!(answer.code, 403, "{method} {path}: {}", answer.text);
        }
    }
    let refused = anonymously(&api, "GET", "/api/v1/namespaces/default/secrets").await.failed(403);
    assert_eq!(
        refused["message"],
        r#"secrets is forbidden: User "system:anonymous" cannot list resource "secrets" in API group "" in the namespace "default""#
    );
    let refused = anonymously(&api, "GET", "/metrics").await.failed(403);
    assert_eq!(refused["message"], r#"forbidden: User "system:anonymous" cannot get path "/metrics""#);
}

#[tokio::test]
async fn bodies_that_are_too_large_or_not_json_are_refused_with_a_reason() {
    let api = Api::start().await;
    let path = "/api/v1/namespaces/default/configmaps";
    let large = format!(r#"{{"data":{{"k":"{}"}}}}"#, "x".repeat(MAX_REQUEST_BYTES));
    let refused = api.send("POST", path, "application/json", &large).await.failed(413);
    assert_eq!(refused["reason"], "RequestEntityTooLarge");
    let deep = "[".repeat(100_000);
    for body in ["", "{", "nonsense", "NaN", r#"{"a": NaN}"#, "[]", "7", &deep, r#"{"a":1}{"b":2}"#] {
        let refused = api.send("POST", path, "application/json", body).await.failed(400);
        assert_eq!(refused["reason"], "BadRequest");
        assert!(!refused["message"].as_str().unwrap().is_empty());
    }
    let mut request = http::Request::builder()
        .method("POST")
        .uri(path)
        .body(Body::whole(&b"{\"a\":\"\xff\"}"[..]))
        .unwrap();
    request.headers_mut().insert("content-type", http::HeaderValue::from_static("application/json"));
    api.answer(request).await.failed(400);
    let twice = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"1","k":"2"}}"#;
    let refused = api
        .send("POST", &format!("{path}?fieldValidation=Strict"), "application/json", twice)
        .await
        .failed(400);
    assert_eq!(
        refused["message"],
        r#"ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: duplicate field "data.k""#
    );
}

#[tokio::test]
async fn what_is_not_served_is_a_text_and_what_is_not_there_is_a_status() {
    let api = Api::start().await;
    for path in ["/apis/nothing.example.com/v1/things", "/apis/nothing.example.com", "/nothing"] {
        let answer = api.get(path).await;
        assert_eq!((answer.code, answer.text.as_str()), (404, "404 page not found\n"), "{path}");
        assert_eq!(answer.headers["content-type"], "text/plain; charset=utf-8");
    }
    for path in ["/api/v1/namespaces/nothing", "/api/v1/things", "/api/v2", "/apis/apps/v7"] {
        assert_eq!(api.get(path).await.failed(404)["kind"], "Status");
    }
    let refused = api.send("PUT", "/api/v1/namespaces", "application/json", "{}").await.failed(405);
    assert_eq!(refused["reason"], "MethodNotAllowed");
}

#[tokio::test]
async fn discovery_comes_in_pieces_and_in_one() {
    let api = Api::start().await;
    assert_eq!(api.get("/api").await.ok()["versions"], json!(["v1"]));
    let core = api.get("/api/v1").await.ok();
    let resources = core["resources"].as_array().unwrap();
    let named =
        |name: &str| resources.iter().find(|resource| resource["name"] == name).cloned().unwrap_or_default();
    assert_eq!(named("pods")["shortNames"], json!(["po"]));
    assert_eq!(named("pods")["categories"], json!(["all"]));
    assert_eq!(named("pods/status")["kind"], "Pod");
    assert_eq!(named("replicationcontrollers/scale")["group"], "autoscaling");

    let accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
    let whole = api.get_as("/apis", accept).await;
    assert_eq!(
        whole.headers["content-type"],
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    );
    let tag = whole.headers["etag"].clone();
    assert_eq!(whole.ok()["kind"], "APIGroupDiscoveryList");
    let request = http::Request::builder().uri("/apis").header("accept", accept).header("if-none-match", tag);
    assert_eq!(api.answer(request.body(Body::empty()).unwrap()).await.code, 304);
    let apps: Value = api.get("/apis/apps").await.ok();
    assert_eq!(apps["preferredVersion"]["groupVersion"], "apps/v1");
}

#[tokio::test]
async fn everybody_can_ask_who_they_are() {
    let api = Api::start().await;
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let answer = api.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", review).await.ok();
    assert_eq!(answer["status"]["userInfo"]["username"], "admin");
    assert_eq!(answer["status"]["userInfo"]["groups"], json!(["system:masters", "system:authenticated"]));
}

#[tokio::test]
async fn requests_and_storage_are_counted() {
    let api = Api::start().await;
    api.get("/api").await.ok();
    let metrics = api.get("/metrics").await;
    assert_eq!(metrics.code, 200);
    assert!(metrics.text.contains(r#"apiserver_request_total{verb="GET",code="200"} 1"#), "{}", metrics.text);
    assert!(metrics.text.contains("watchkeeper_storage_objects "), "{}", metrics.text);
}

#[tokio::test]
async fn what_only_a_node_could_do_is_refused_with_a_reason() {
    let api = Api::start().await;
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]},
    });
    api.post("/api/v1/namespaces/default/pods", pod).await.ok();
    let no_node = "no node runs anything here";
    // A Pod without an address is refused for that, as by kube-apiserver, before it matters that there is no node.
    let no_address = "address not allowed";
    for (part, why) in [
        ("log", no_node),
        ("exec", no_node),
        ("attach", no_node),
        ("portforward", no_node),
        ("proxy", no_address),
        ("proxy/index.html", no_address),
    ] {
        let refused = api.get(&format!("/api/v1/namespaces/default/pods/p/{part}")).await.failed(400);
        let message = refused["message"].as_str().unwrap();
        assert!(message.contains(why), "{part}: {message}");
        api.get(&format!("/api/v1/namespaces/default/pods/missing/{part}")).await.failed(404);
    }
    api.get("/api/v1/namespaces/default/services/kubernetes/proxy/").await.failed(404);
}
