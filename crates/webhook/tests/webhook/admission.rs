use serde_json::{Value, json};
use watchkeeper::prelude::*;
use watchkeeper::webhooks::Answer;
use watchkeeper_testkit::{TestEnv, eventually};

use crate::kinds::v1::App;
use crate::world::{APPS_V1, ask, ask_for_warnings, started};

fn app(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "App", "metadata": {"name": name}, "spec": spec})
}

fn default(app: &mut App, request: &AdmissionRequest) {
    if app.spec.env.contains_key("panic") {
        panic!("as asked");
    }
    app.spec.size.get_or_insert(3);
    app.metadata.labels.get_or_insert_default().insert("by".into(), request.operation.to_string());
}

fn validate(new: &App, old: Option<&App>, _: &AdmissionRequest) -> Verdict {
    let mut verdict = Verdict::allow();
    let size = new.spec.size.unwrap_or_default();
    if size > 10 {
        verdict.invalid("spec.size", size, "must be at most 10");
    }
    if old.is_some_and(|old| old.spec.address != new.spec.address) {
        verdict.forbidden("spec.address", "cannot be changed");
    }
    if size == 1 {
        verdict.warn("spec.size: 1 is very small");
    }
    verdict
}

fn manager(env: &TestEnv) -> Manager {
    Manager::new("apps", env.connection()).install::<App>().webhook(
        Webhook::of::<App>().default(default).validate(validate).validate_delete(
            |app: &App, _: &AdmissionRequest| match app.spec.env.contains_key("keep") {
                true => Err("it is kept"),
                false => Ok(()),
            },
        ),
    )
}

#[tokio::test]
async fn functions_default_and_judge_what_is_written() {
    let env = TestEnv::start().await;
    let running = started(manager(&env)).await;

    let (code, created) = ask(&env, "POST", APPS_V1, &app("a", json!({}))).await;
    assert_eq!(
        (code, &created["spec"]["size"], &created["metadata"]["labels"]["by"]),
        (201, &json!(3), &json!("CREATE"))
    );

    let (code, refused) = ask(&env, "POST", APPS_V1, &app("b", json!({"size": 11}))).await;
    assert_eq!(code, 422);
    assert_eq!(
        refused["message"],
        "admission webhook \"validate.apps.example.com\" denied the request: App.example.com \"b\" is invalid: spec.size: Invalid value: 11: must be at most 10"
    );
    assert_eq!(refused["details"]["causes"][0]["field"], "spec.size");

    let (code, warnings, _) = ask_for_warnings(&env, "POST", APPS_V1, &app("c", json!({"size": 1}))).await;
    assert_eq!((code, warnings.len()), (201, 1));
    assert!(warnings[0].contains("spec.size: 1 is very small"), "{warnings:?}");

    // Everything that is wrong is said at once, and the old state is at hand.
    let change = json!({"spec": {"size": 12, "address": "a:1"}});
    let (code, refused) = ask(&env, "PATCH", &format!("{APPS_V1}/a"), &change).await;
    assert_eq!((code, refused["details"]["causes"].as_array().unwrap().len()), (422, 2), "{refused}");

    // The status is not their concern.
    let status = json!({"status": {"ready": 99}});
    let (code, answer) = ask(&env, "PATCH", &format!("{APPS_V1}/a/status"), &status).await;
    assert_eq!(code, 200, "{answer}");

    let (code, _) = ask(&env, "POST", APPS_V1, &app("kept", json!({"env": {"keep": "1"}}))).await;
    assert_eq!(code, 201);
    let (code, refused) = ask(&env, "DELETE", &format!("{APPS_V1}/kept"), &Value::Null).await;
    assert_eq!(code, 403);
    assert!(refused["message"].as_str().unwrap().ends_with("denied the request: it is kept"), "{refused}");
    let (code, _) = ask(&env, "DELETE", &format!("{APPS_V1}/a"), &Value::Null).await;
    assert_eq!(code, 200);

    let metrics = running.metrics();
    for line in [
        "controller_runtime_webhook_requests_total{webhook=\"validate.apps.example.com\",code=\"200\"}",
        "controller_runtime_webhook_requests_in_flight{webhook=\"mutate.apps.example.com\"} 0",
        "watchkeeper_webhook_verdicts_total{webhook=\"validate.apps.example.com\",code=\"422\"} 2",
    ] {
        assert!(metrics.contains(line), "{line} is not in {metrics}");
    }
    running.stop().await;
}

#[tokio::test]
async fn a_function_that_panics_is_answered_for_and_disturbs_nobody() {
    let env = TestEnv::start().await;
    let running = started(manager(&env)).await;
    let (code, failed) = ask(&env, "POST", APPS_V1, &app("a", json!({"env": {"panic": "1"}}))).await;
    assert_eq!(code, 500);
    let message = failed["message"].as_str().unwrap();
    assert!(
        message.ends_with("the webhook mutate.apps.example.com panicked; its log says where"),
        "{message}"
    );
    let (code, _) = ask(&env, "POST", APPS_V1, &app("b", json!({}))).await;
    assert_eq!(code, 201);
    assert!(running.metrics().contains("controller_runtime_webhook_panics_total 1"));
    running.stop().await;
}

#[tokio::test]
async fn a_function_that_takes_too_long_is_answered_for_in_time() {
    let env = TestEnv::start().await;
    let slow = Webhook::of::<App>()
        .validate_async(|app: Arc<App>, _, _| async move {
            if app.spec.size == Some(7) {
                std::future::pending::<()>().await;
            }
            Verdict::allow()
        })
        .timeout(Duration::from_secs(1));
    let running = started(Manager::new("apps", env.connection()).install::<App>().webhook(slow)).await;
    let (code, failed) = ask(&env, "POST", APPS_V1, &app("a", json!({"size": 7}))).await;
    assert_eq!(code, 504, "{failed}");
    let message = failed["message"].as_str().unwrap();
    assert!(message.contains("has not decided within"), "{message}");
    let (code, _) = ask(&env, "POST", APPS_V1, &app("b", json!({"size": 1}))).await;
    assert_eq!(code, 201);
    running.stop().await;
}

#[tokio::test]
async fn fields_that_the_type_does_not_know_survive_defaulting() {
    let env = TestEnv::start().await;
    // The definition of a later version: it has a field more.
    let mut definition = serde_json::to_value(App::crd()).unwrap();
    let spec = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
    definition.pointer_mut(spec).unwrap()["later"] =
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    env.install_yaml(&definition.to_string()).await;
    let webhook = Webhook::of::<App>().default(default);
    let running = started(Manager::new("apps", env.connection()).webhook(webhook)).await;
    let (code, created) =
        ask(&env, "POST", APPS_V1, &app("a", json!({"later": {"x": [1, {"y": null}]}}))).await;
    assert_eq!(code, 201, "{created}");
    assert_eq!(created["spec"], json!({"later": {"x": [1, {"y": null}]}, "size": 3}));
    running.stop().await;
}

#[tokio::test]
async fn who_serves_alone_takes_its_configurations_along_and_brings_them_back() {
    let env = TestEnv::start().await;
    let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/apps";
    let running = started(manager(&env)).await;
    let (code, configuration) = ask(&env, "GET", path, &Value::Null).await;
    assert_eq!(code, 200);
    let url = configuration["webhooks"][0]["clientConfig"]["url"].as_str().unwrap();
    let address = running.webhook_address().unwrap();
    assert_eq!(url, format!("https://{address}/validate-example-com-v1-app"));
    assert!(address.ip().is_loopback());

    // Whoever deletes it finds it again.
    assert_eq!(ask(&env, "DELETE", path, &Value::Null).await.0, 200);
    eventually(|| async { ask(&env, "GET", path, &Value::Null).await.1["webhooks"][0].is_object() }).await;

    running.stop().await;
    assert_eq!(ask(&env, "GET", path, &Value::Null).await.0, 404);
    let (code, _) = ask(&env, "POST", APPS_V1, &app("a", json!({"size": 11}))).await;
    assert_eq!(code, 201, "nobody is there to judge it");
}

#[tokio::test]
async fn raw_reviews_are_answered_at_any_path() {
    let env = TestEnv::start().await;
    let raw = Webhook::raw("/my/path", |request: Arc<AdmissionRequest>| async move {
        let mut verdict = Verdict::allow();
        verdict.warn(format!("{} by {}", request.operation, request.user.username));
        Answer::from(verdict).patched([json!({"op": "add", "path": "/x", "value": 1})])
    });
    let running = started(Manager::new("apps", env.connection()).webhook(raw)).await;
    let address = running.webhook_address().unwrap();
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {"uid": "1", "operation": "CONNECT", "userInfo": {"username": "jane"}},
    });
    let (code, answer) =
        crate::hostile::post(address, "/my/path", "application/json", review.to_string()).await;
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!((code, &answer["response"]["warnings"][0]), (200, &json!("CONNECT by jane")));
    assert_eq!(answer["response"]["patchType"], "JSONPatch");
    running.stop().await;
}
