use serde_json::{Value, json};
use watchkeeper::prelude::*;
use watchkeeper_testkit::TestEnv;

use crate::kinds::{v1, v2};
use crate::world::{APPS_DEFINITION, APPS_V1, APPS_V2, ask, started};

fn manager(env: &TestEnv, stored: Option<&str>) -> Manager {
    let webhook =
        Webhook::of::<v2::App>().convert::<v1::App>().default(|app: &mut v2::App, _: &AdmissionRequest| {
            app.spec.replicas.get_or_insert(2);
        });
    let webhook = match stored {
        Some(version) => webhook.stored_as(version),
        None => webhook,
    };
    Manager::new("apps", env.connection()).install::<v2::App>().webhook(webhook)
}

#[tokio::test]
async fn objects_are_read_and_written_in_any_version() {
    let env = TestEnv::start().await;
    let running = started(manager(&env, None)).await;
    let old = json!({
        "apiVersion": "example.com/v1", "kind": "App",
        "metadata": {"name": "a", "labels": {"team": "shop"}},
        "spec": {"size": 4, "address": "web:80"},
    });
    let (code, created) = ask(&env, "POST", APPS_V1, &old).await;
    assert_eq!(code, 201, "{created}");
    assert_eq!(created["spec"], old["spec"]);

    let (code, new) = ask(&env, "GET", &format!("{APPS_V2}/a"), &Value::Null).await;
    assert_eq!(code, 200, "{new}");
    assert_eq!(new["spec"], json!({"replicas": 4, "address": {"host": "web", "port": 80}}));
    for field in ["uid", "creationTimestamp", "resourceVersion", "labels"] {
        assert_eq!(new["metadata"][field], created["metadata"][field], "{field}");
    }

    // A write in the old version is judged in that of the hub.
    let bare = json!({"apiVersion": "example.com/v1", "kind": "App", "metadata": {"name": "b"}, "spec": {}});
    let (code, created) = ask(&env, "POST", APPS_V1, &bare).await;
    assert_eq!((code, &created["spec"]["size"]), (201, &json!(2)), "{created}");

    let (_, list) = ask(&env, "GET", APPS_V1, &Value::Null).await;
    assert_eq!(list["items"].as_array().unwrap().len(), 2);
    let (_, definition) = ask(&env, "GET", APPS_DEFINITION, &Value::Null).await;
    assert_eq!(definition["status"]["storedVersions"], json!(["v2"]));
    running.stop().await;
}

#[tokio::test]
async fn one_version_becomes_two_and_what_was_stored_is_still_there() {
    let env = TestEnv::start().await;
    // Release 1 knows v1 only.
    let running = started(Manager::new("apps", env.connection()).install::<v1::App>()).await;
    let old = json!({"apiVersion": "example.com/v1", "kind": "App", "metadata": {"name": "a"}, "spec": {"size": 4}});
    assert_eq!(ask(&env, "POST", APPS_V1, &old).await.0, 201);
    running.stop().await;

    // Release 2 serves both, and stores what release 1 understands.
    let running = started(manager(&env, Some("v1"))).await;
    let (_, new) = ask(&env, "GET", &format!("{APPS_V2}/a"), &Value::Null).await;
    assert_eq!(new["spec"]["replicas"], 4);
    let (_, definition) = ask(&env, "GET", APPS_DEFINITION, &Value::Null).await;
    assert_eq!(definition["status"]["storedVersions"], json!(["v1"]));
    running.stop().await;

    // Release 3 stores the new version.
    let running = started(manager(&env, None)).await;
    let (_, definition) = ask(&env, "GET", APPS_DEFINITION, &Value::Null).await;
    assert_eq!(definition["status"]["storedVersions"], json!(["v1", "v2"]));
    let (_, old) = ask(&env, "GET", &format!("{APPS_V1}/a"), &Value::Null).await;
    assert_eq!(old["spec"]["size"], 4);
    running.stop().await;
}

#[tokio::test]
async fn a_conversion_that_fails_says_why() {
    let env = TestEnv::start().await;
    let running = started(manager(&env, None)).await;
    let address = running.webhook_address().unwrap();
    let review = |objects: Value, to: &str| {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
            "request": {"uid": "u", "desiredAPIVersion": to, "objects": objects},
        })
    };
    let app = |version: &str, spec: Value| json!([{"apiVersion": version, "kind": "App", "metadata": {"name": "a"}, "spec": spec}]);
    for (objects, to, why) in [
        (app("example.com/v9", json!({})), "example.com/v1", "App is not known in \"example.com/v9\""),
        (app("example.com/v1", json!({})), "example.com/v9", "App is not known in \"example.com/v9\""),
        (app("other.com/v1", json!({})), "other.com/v2", "is not converted here"),
        (
            app("example.com/v1", json!({"size": "many"})),
            "example.com/v2",
            "App \"a\" cannot be read as example.com/v1: spec.size",
        ),
    ] {
        let body = review(objects, to).to_string();
        let (code, answer) = crate::hostile::post(address, "/convert", "application/json", body).await;
        let answer: Value = serde_json::from_str(&answer).unwrap();
        let result = &answer["response"]["result"];
        assert_eq!((code, &result["status"]), (200, &json!("Failure")), "{answer}");
        assert!(result["message"].as_str().unwrap().contains(why), "{answer}");
    }
    running.stop().await;
}
