//! An API server, and what is asked of it.

use serde_json::Value;
use watchkeeper::prelude::*;
use watchkeeper::runtime::Running;
use watchkeeper_testkit::TestEnv;

pub(crate) const APPS_V1: &str = "/apis/example.com/v1/namespaces/default/apps";
pub(crate) const APPS_V2: &str = "/apis/example.com/v2/namespaces/default/apps";
pub(crate) const APPS_DEFINITION: &str =
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/apps.example.com";

/// Starts a manager and waits until it is ready.
pub(crate) async fn started(manager: Manager) -> Running {
    let running = manager.start().await.unwrap();
    let ready = tokio::time::timeout(Duration::from_secs(60), running.ready()).await;
    assert!(ready.is_ok(), "not ready: {:?}", running.not_ready());
    running
}

/// The code and the object that the server answers.
pub(crate) async fn ask(env: &TestEnv, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let (code, _, value) = ask_for_warnings(env, method, path, body).await;
    (code, value)
}

/// The same with warnings.
pub(crate) async fn ask_for_warnings(
    env: &TestEnv,
    method: &str,
    path: &str,
    body: &Value,
) -> (u16, Vec<String>, Value) {
    use http_body_util::BodyExt as _;
    let content_type = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let request = http::Request::builder().method(method).uri(path).header("content-type", content_type);
    let response = env.connection().send(request.body(body).unwrap()).await.unwrap();
    let (parts, body) = response.into_parts();
    let warnings = parts.headers.get_all("warning").iter();
    let warnings = warnings.map(|warning| warning.to_str().unwrap().to_owned()).collect();
    let bytes = body.collect().await.unwrap().to_bytes();
    (parts.status.as_u16(), warnings, serde_json::from_slice(&bytes).unwrap_or_default())
}
