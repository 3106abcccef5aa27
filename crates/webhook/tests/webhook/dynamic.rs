//! Webhooks of a kind that is known at run time only.

use serde_json::{Value, json};
use watchkeeper::prelude::*;
use watchkeeper_testkit::TestEnv;

use crate::kinds::v1::App;
use crate::world::{APPS_V1, ask, started};

fn default(app: &mut DynamicObject, _: &AdmissionRequest) {
    let spec = app.fields.entry("spec").or_insert_with(|| json!({}));
    if spec["size"].is_null() {
        spec["size"] = 3.into();
    }
}

fn validate(new: &DynamicObject, _: Option<&DynamicObject>, _: &AdmissionRequest) -> Verdict {
    let mut verdict = Verdict::allow();
    let size = new.get("/spec/size").and_then(Value::as_i64).unwrap_or_default();
    if size > 10 {
        verdict.invalid("spec.size", size, "must be at most 10");
    }
    verdict
}

#[tokio::test]
async fn a_kind_without_a_type_is_defaulted_and_validated() {
    let env = TestEnv::start().await;
    let apps = DynamicKind::namespaced("example.com", "v1", "App", "apps");
    let webhook = Webhook::dynamic(&apps).default(default).validate(validate);
    let manager = Manager::new("apps", env.connection()).install::<App>().webhook(webhook);
    let running = started(manager).await;
    let app = |spec: Value| json!({"apiVersion": "example.com/v1", "kind": "App", "metadata": {"name": "a"}, "spec": spec});

    let (code, refused) = ask(&env, "POST", APPS_V1, &app(json!({"size": 11}))).await;
    assert_eq!((code, &refused["details"]["causes"][0]["field"]), (422, &json!("spec.size")), "{refused}");
    let (code, created) = ask(&env, "POST", APPS_V1, &app(json!({}))).await;
    assert_eq!((code, &created["spec"]["size"]), (201, &json!(3)), "{created}");
    running.stop().await;
}
