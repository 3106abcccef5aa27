//! Requests by users with narrow rights that the path makes look like something they may do.

use http::Method;
use serde_json::{Value, json};
use watchkeeper_bench_target::{Ask, OpenFiles, Program, Result};

use crate::report::Finding;
use crate::site::Site;

/// Who asks for what.
struct Attempt {
    who: &'static str,
    method: Method,
    path: &'static str,
    body: Value,
    content_type: &'static str,
}

/// Makes every request, and gives what was answered. Those that delete come last.
pub(crate) async fn check(name: &str, program: &Program) -> Result<Vec<Finding>> {
    let mut site = Site::bare(program, OpenFiles::AsHere).await?;
    prepare(&mut site).await?;
    let mut findings = Vec::new();
    for attempt in attempts() {
        let mut connection = site.connection(attempt.who).await?;
        let body = attempt.body.to_string();
        let ask = Ask {
            method: &attempt.method,
            body: if attempt.body.is_null() { "" } else { &body },
            content_type: attempt.content_type,
            ..Ask::get(attempt.path)
        };
        let (status, _) = connection.answer(ask).await?;
        findings.push(Finding {
            what: format!("`{} {}`", attempt.method, attempt.path),
            who: attempt.who.into(),
            server: name.into(),
            answer: status.as_u16().to_string(),
            // All of them have the right that the path seems to ask for: to be refused for want of it would show nothing.
            good: matches!(status.as_u16(), 400 | 404 | 405),
        });
    }
    Ok(findings)
}

async fn prepare(site: &mut Site) -> Result<()> {
    for namespace in ["x", "yy", "users"] {
        site.namespace(namespace).await?;
    }
    site.post("/api/v1/namespaces/x/configmaps", &json!({"metadata": {"name": "one"}})).await?;
    site.post("/api/v1/namespaces/x/pods", &pod("p1")).await?;
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": pod("x")["spec"]});
    let deployment = json!({"metadata": {"name": "d1"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}});
    site.post("/apis/apps/v1/namespaces/x/deployments", &deployment).await?;
    site.account("kube-system", "operator").await?;
    site.bind_all("kube-system", "operator", "cluster-admin").await?;

    let read = ["get", "list", "watch"];
    let resources = [
        "pods",
        "configmaps",
        "deployments",
        "namespaces",
        "namespaces/status",
        "pods/status",
        "deployments/scale",
    ];
    site.grant("x", "reader-of-x", &json!([{"apiGroups": ["*"], "resources": resources, "verbs": read}]))
        .await?;
    site.grant("x", "admin-of-x", &json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}])).await?;
    site.grant_all("users", "auditor", &json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": read}]))
        .await?;
    for (name, resource) in [("evicter", "pods/eviction"), ("issuer", "serviceaccounts/token")] {
        let rules = json!([{"apiGroups": [""], "resources": [resource], "verbs": ["create"]}]);
        site.grant_all("users", name, &rules).await?;
    }
    let rules = json!([{"apiGroups": ["*"], "resources": ["*/scale"], "verbs": ["*"]}]);
    site.grant_all("users", "scaler", &rules).await?;
    // Each is seen to have their right, which nobody needs for what is attempted.
    site.until_allowed("reader-of-x", "/api/v1/namespaces/x/pods").await?;
    site.until_allowed("admin-of-x", "/api/v1/namespaces/x/pods").await?;
    site.until_allowed("auditor", "/api/v1/secrets").await?;
    site.until_allowed("scaler", "/apis/apps/v1/namespaces/x/deployments/d1/scale").await?;
    let eviction =
        json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p1", "namespace": "x"}});
    let path = "/api/v1/namespaces/x/pods/p1/eviction?dryRun=All";
    site.until_allowed_to("evicter", Ask::post(path, &eviction.to_string())).await?;
    let path = "/api/v1/namespaces/users/serviceaccounts/issuer/token";
    site.until_allowed_to("issuer", Ask::post(path, &token().to_string())).await
}

fn pod(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "i"}]}})
}

fn token() -> Value {
    json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})
}

fn attempts() -> Vec<Attempt> {
    let json = "application/json";
    let attempt = |who, method, path, body| Attempt { who, method, path, body, content_type: json };
    let patch = |who, path, body| {
        let content_type = "application/merge-patch+json";
        Attempt { who, method: Method::PATCH, path, body, content_type }
    };
    let (get, post, put, delete) = (Method::GET, Method::POST, Method::PUT, Method::DELETE);
    let namespace = |name: &str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "new"}});
    let (reader, admin) = ("reader-of-x", "admin-of-x");
    vec![
        // The prefix `watch` with a method that is not a read.
        attempt(reader, post.clone(), "/api/v1/watch/namespaces/x/pods", pod("new")),
        patch(
            reader,
            "/apis/apps/v1/watch/namespaces/x/deployments/d1/scale",
            json!({"spec": {"replicas": 7}}),
        ),
        patch(reader, "/api/v1/watch/namespaces/x/pods/p1/status", json!({"status": {"phase": "Failed"}})),
        attempt(reader, put.clone(), "/api/v1/watch/namespaces/x/status", namespace("x")),
        attempt(
            "auditor",
            post.clone(),
            "/api/v1/watch/namespaces/kube-system/serviceaccounts/operator/token",
            token(),
        ),
        attempt(reader, delete.clone(), "/api/v1/watch/namespaces/x/configmaps", Value::Null),
        // An empty name before a subresource.
        attempt("evicter", post.clone(), "/api/v1/namespaces/x/pods//eviction", pod("evicted")),
        attempt("issuer", post.clone(), "/api/v1/namespaces/x/serviceaccounts//token", account),
        attempt("scaler", get.clone(), "/api/v1/secrets//scale", Value::Null),
        // A namespace in a namespace.
        attempt(reader, get.clone(), "/api/v1/namespaces/x/namespaces/yy", Value::Null),
        attempt(admin, get, "/api/v1/namespaces/x/namespaces/yy", Value::Null),
        attempt(admin, post, "/api/v1/namespaces/x/namespaces", namespace("zz")),
        attempt(admin, put, "/api/v1/namespaces/x/namespaces/yy/finalize", namespace("yy")),
        attempt(admin, delete, "/api/v1/namespaces/x/namespaces/yy", Value::Null),
    ]
}
