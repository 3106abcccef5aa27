//! Objects: made, read, replaced, changed and deleted.

use crate::harness::{Api, WIDGETS, config_map, definition, spec, widget};
use serde_json::{Value, json};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::test]
async fn an_object_is_made_read_replaced_and_deleted() {
    let api = Api::start().await;
    let made = api.post(CONFIG_MAPS, config_map("a", json!({"k": "1"}))).await;
    assert_eq!(made.code, 201);
    let made = made.ok();
    assert_eq!(made["metadata"]["namespace"], "default");
    assert!(made["metadata"]["creationTimestamp"].as_str().unwrap().ends_with('Z'));
    assert_eq!(made["metadata"]["uid"].as_str().unwrap().len(), 36);

    let path = &format!("{CONFIG_MAPS}/a");
    assert_eq!(api.get(path).await.ok(), made);
    let mut next = made.clone();
    next["data"]["k"] = json!("2");
    let replaced = api.put(path, next.clone()).await.ok();
    assert_ne!(replaced["metadata"]["resourceVersion"], made["metadata"]["resourceVersion"]);
    assert_eq!(replaced["data"]["k"], "2");

    let stale = api.put(path, next).await.failed(409);
    assert_eq!(stale["reason"], "Conflict");
    assert_eq!(
        stale["message"],
        r#"Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to the latest version and try again"#
    );

    let deleted = api.delete(path).await.ok();
    assert_eq!(deleted["status"], "Success");
    assert_eq!(deleted["details"]["uid"], made["metadata"]["uid"]);
    let missing = api.get(path).await.failed(404);
    assert_eq!(missing["message"], r#"configmaps "a" not found"#);
    assert_eq!(missing["details"], json!({"name": "a", "kind": "configmaps"}));
}

#[tokio::test]
async fn an_object_exists_once() {
    let api = Api::start().await;
    api.post(CONFIG_MAPS, config_map("a", json!({}))).await.ok();
    let again = api.post(CONFIG_MAPS, config_map("a", json!({}))).await.failed(409);
    assert_eq!(again["reason"], "AlreadyExists");
    assert_eq!(again["message"], r#"configmaps "a" already exists"#);
}

#[tokio::test]
async fn a_write_that_changes_nothing_is_no_change() {
    let api = Api::start().await;
    let made = api.post(CONFIG_MAPS, config_map("a", json!({"k": "1"}))).await.ok();
    let path = &format!("{CONFIG_MAPS}/a");
    let same = api.merge(path, json!({"data": {"k": "1"}})).await.ok();
    assert_eq!(same["metadata"]["resourceVersion"], made["metadata"]["resourceVersion"]);
    let same = api.put(path, made.clone()).await.ok();
    assert_eq!(same["metadata"]["resourceVersion"], made["metadata"]["resourceVersion"]);
}

#[tokio::test]
async fn a_dry_run_does_everything_but_the_change() {
    let api = Api::start().await;
    let before = api.storage.stats().revision;
    let made = api.post(&format!("{CONFIG_MAPS}?dryRun=All"), config_map("a", json!({"k": "1"}))).await;
    assert_eq!(made.code, 201);
    assert!(made.ok()["metadata"]["uid"].is_string());
    api.get(&format!("{CONFIG_MAPS}/a")).await.failed(404);
    assert_eq!(api.storage.stats().revision, before);

    api.post(CONFIG_MAPS, config_map("a", json!({"k": "1"}))).await.ok();
    let path = &format!("{CONFIG_MAPS}/a?dryRun=All");
    assert_eq!(api.merge(path, json!({"data": {"k": "2"}})).await.ok()["data"]["k"], "2");
    api.delete(path).await.ok();
    assert_eq!(api.get(&format!("{CONFIG_MAPS}/a")).await.ok()["data"]["k"], "1");
    api.post(&format!("{CONFIG_MAPS}?dryRun=All"), config_map("a", json!({}))).await.failed(409);
}

#[tokio::test]
async fn names_can_be_made_up() {
    let api = Api::start().await;
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "made-"}});
    let one = api.post(CONFIG_MAPS, object.clone()).await.ok();
    let two = api.post(CONFIG_MAPS, object).await.ok();
    let name = one["metadata"]["name"].as_str().unwrap();
    assert!(name.starts_with("made-") && name.len() == 10, "{name}");
    assert_ne!(one["metadata"]["name"], two["metadata"]["name"]);
}

#[tokio::test]
async fn an_object_that_something_holds_waits_to_be_deleted() {
    let api = Api::start().await;
    let mut object = config_map("a", json!({}));
    object["metadata"]["finalizers"] = json!(["example.com/hold"]);
    api.post(CONFIG_MAPS, object).await.ok();
    let path = &format!("{CONFIG_MAPS}/a");
    let marked = api.delete(path).await.ok();
    assert_eq!(marked["kind"], "ConfigMap");
    assert_eq!(marked["metadata"]["deletionGracePeriodSeconds"], 0);
    assert!(marked["metadata"]["deletionTimestamp"].is_string());

    let more = json!({"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}});
    let refused = api.merge(path, more).await.failed(422);
    assert!(refused["message"].as_str().unwrap().contains(
        r#"metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"example.com/more"}"#
    ), "{refused}");

    let last = api.merge(path, json!({"metadata": {"finalizers": null}})).await.ok();
    assert_eq!(last["metadata"]["name"], "a");
    api.get(path).await.failed(404);
}

#[tokio::test]
async fn an_object_is_deleted_only_if_it_is_the_one_that_is_meant() {
    let api = Api::start().await;
    let made = api.post(CONFIG_MAPS, config_map("a", json!({}))).await.ok();
    let path = &format!("{CONFIG_MAPS}/a");
    let options = |preconditions| {
        json!({"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": preconditions}).to_string()
    };
    let other = options(json!({"uid": "another"}));
    let refused = api.send("DELETE", path, "application/json", &other).await.failed(409);
    assert_eq!(refused["details"]["kind"], "ConfigMap");
    assert!(
        refused["message"]
            .as_str()
            .unwrap()
            .contains("the UID in the precondition (another) does not match the UID in record")
    );
    let stale = options(json!({"resourceVersion": "1"}));
    api.send("DELETE", path, "application/json", &stale).await.failed(409);
    let right = options(
        json!({"uid": made["metadata"]["uid"], "resourceVersion": made["metadata"]["resourceVersion"]}),
    );
    api.send("DELETE", path, "application/json", &right).await.ok();
}

#[tokio::test]
async fn custom_objects_are_pruned_defaulted_and_validated() {
    let api = Api::start().await;
    api.define(spec()).await;
    let made = api.post(WIDGETS, widget("a", json!({"size": 3, "zip": 1}))).await;
    assert_eq!(made.code, 201);
    assert_eq!(made.warnings(), [r#"299 - "unknown field \"spec.zip\"""#]);
    let made = made.ok();
    assert_eq!(made["spec"], json!({"size": 3, "color": "red"}));
    assert_eq!(made["metadata"]["generation"], 1);

    let refused = api.post(WIDGETS, widget("b", json!({"size": 11}))).await.failed(422);
    assert_eq!(refused["reason"], "Invalid");
    assert_eq!(
        refused["message"],
        r#"Widget.example.com "b" is invalid: spec.size: Invalid value: 11: spec.size in body should be less than or equal to 10"#
    );
    assert_eq!(
        refused["details"],
        json!({
            "name": "b", "group": "example.com", "kind": "Widget",
            "causes": [{"reason": "FieldValueInvalid", "field": "spec.size",
                        "message": "Invalid value: 11: spec.size in body should be less than or equal to 10"}],
        })
    );
    let strict = api
        .post(&format!("{WIDGETS}?fieldValidation=Strict"), widget("b", json!({"size": 1, "zip": 1})))
        .await;
    assert_eq!(
        strict.failed(400)["message"],
        r#"Widget in version "v1" cannot be handled as a Widget: strict decoding error: unknown field "spec.zip""#
    );
    let ignored = api
        .post(&format!("{WIDGETS}?fieldValidation=Ignore"), widget("b", json!({"size": 1, "zip": 1})))
        .await;
    assert!(ignored.warnings().is_empty());
    ignored.ok();
}

#[tokio::test]
async fn the_generation_counts_what_is_asked_for_and_the_status_is_written_apart() {
    let api = Api::start().await;
    api.define(spec()).await;
    let mut object = widget("a", json!({"size": 3}));
    object["status"] = json!({"ready": true});
    let made = api.post(WIDGETS, object).await.ok();
    assert!(made.get("status").is_none(), "{made}");

    let path = &format!("{WIDGETS}/a");
    let both = json!({"spec": {"size": 4}, "status": {"ready": true}});
    let changed = api.merge(path, both.clone()).await.ok();
    assert_eq!(changed["metadata"]["generation"], 2);
    assert!(changed.get("status").is_none());

    let status = api
        .merge(&format!("{path}/status"), json!({"spec": {"size": 9}, "status": {"ready": true}}))
        .await
        .ok();
    assert_eq!(status["spec"]["size"], 4);
    assert_eq!(status["status"], json!({"ready": true}));
    assert_eq!(status["metadata"]["generation"], 2);
    let labelled = api.merge(path, json!({"metadata": {"labels": {"a": "b"}}})).await.ok();
    assert_eq!(labelled["metadata"]["generation"], 2);
}

#[tokio::test]
async fn custom_objects_say_which_version_they_replace() {
    let api = Api::start().await;
    api.define(spec()).await;
    let mut made = api.post(WIDGETS, widget("a", json!({"size": 3}))).await.ok();
    made["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    let refused = api.put(&format!("{WIDGETS}/a"), made).await.failed(422);
    assert_eq!(
        refused["message"],
        r#"widgets.example.com "a" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update"#
    );
}

#[tokio::test]
async fn replicas_are_scaled_without_knowing_the_kind() {
    let api = Api::start().await;
    api.define(spec()).await;
    api.post(WIDGETS, widget("a", json!({"size": 3, "replicas": 2}))).await.ok();
    let path = &format!("{WIDGETS}/a/scale");
    let scale = api.get(path).await.ok();
    assert_eq!(scale["kind"], "Scale");
    assert_eq!(scale["spec"]["replicas"], 2);
    let scaled = api.merge(path, json!({"spec": {"replicas": 5}})).await.ok();
    assert_eq!(scaled["spec"]["replicas"], 5);
    assert_eq!(api.get(&format!("{WIDGETS}/a")).await.ok()["spec"]["replicas"], 5);
    let mut stale = scale;
    stale["spec"]["replicas"] = json!(7);
    api.put(path, stale).await.failed(409);
}

#[tokio::test]
async fn json_patches_test_before_they_change() {
    let api = Api::start().await;
    api.post(CONFIG_MAPS, config_map("a", json!({"k": "1"}))).await.ok();
    let path = &format!("{CONFIG_MAPS}/a");
    let patch = |value: &str| {
        json!([{"op": "test", "path": "/data/k", "value": value}, {"op": "replace", "path": "/data/k", "value": "2"}]).to_string()
    };
    let patched = api.send("PATCH", path, "application/json-patch+json", &patch("1")).await.ok();
    assert_eq!(patched["data"]["k"], "2");
    let refused = api.send("PATCH", path, "application/json-patch+json", &patch("1")).await.failed(422);
    assert_eq!(refused["message"], "the server rejected our request due to an error in our request");
    let unknown = api.send("PATCH", path, "application/x-patch", "{}").await.failed(415);
    assert_eq!(unknown["reason"], "UnsupportedMediaType");
}

#[tokio::test]
async fn a_changed_schema_is_in_force_at_once_and_old_objects_are_read_by_it() {
    let api = Api::start().await;
    api.define(spec()).await;
    api.post(WIDGETS, widget("a", json!({"size": 3, "color": "blue"}))).await.ok();
    let mut wider = spec();
    wider["properties"]["shape"] = json!({"type": "string", "default": "round"});
    wider["properties"].as_object_mut().unwrap().remove("color");
    let versions = definition(wider)["spec"]["versions"].clone();
    api.merge(
        &format!("{}/widgets.example.com", crate::harness::DEFINITIONS),
        json!({"spec": {"versions": versions}}),
    )
    .await
    .ok();

    let path = &format!("{WIDGETS}/a");
    assert_eq!(api.get(path).await.ok()["spec"], json!({"size": 3, "shape": "round"}));
    assert_eq!(api.get(WIDGETS).await.ok()["items"][0]["spec"], json!({"size": 3, "shape": "round"}));
    assert_eq!(api.post(WIDGETS, widget("b", json!({"size": 1}))).await.ok()["spec"]["shape"], "round");
}

#[tokio::test]
async fn a_version_on_a_new_object_is_refused_last_and_what_is_no_version_is_not() {
    let api = Api::start().await;
    let maps = "/api/v1/namespaces/default/configmaps";
    let map = |version: &str, name: &str| json!({"metadata": {"name": name, "resourceVersion": version}});
    let refused = api.post(maps, map("5", "a")).await.failed(500);
    assert_eq!(refused["message"], "resourceVersion should not be set on objects to be created");
    assert_eq!(
        api.post(maps, map("5", "A")).await.failed(422)["reason"],
        "Invalid",
        "validation comes first"
    );
    assert_eq!(
        api.post(&format!("{maps}?dryRun=All"), map("5", "a")).await.ok()["metadata"]["resourceVersion"],
        "5"
    );
    for (number, version) in ["0", "x", "+5", "18446744073709551616"].into_iter().enumerate() {
        let made = api.post(maps, map(version, &format!("made-{number}"))).await.ok();
        assert_ne!(made["metadata"]["resourceVersion"], version);
    }
}

#[tokio::test]
async fn a_version_is_a_number_in_whatever_digits() {
    let api = Api::start().await;
    let maps = "/api/v1/namespaces/default/configmaps";
    let made = api.post(maps, json!({"metadata": {"name": "a"}})).await.ok();
    let put = async |version: &str| {
        let object = json!({"metadata": {"name": "a", "resourceVersion": version}, "data": {"k": version}});
        api.put(&format!("{maps}/a"), object).await
    };
    for (version, why) in
        [("x", "invalid syntax"), ("+5", "invalid syntax"), ("18446744073709551616", "value out of range")]
    {
        let message = format!("strconv.ParseUint: parsing {version:?}: {why}");
        assert_eq!(put(version).await.failed(500)["message"], message);
        let listed =
            api.get(&format!("{maps}?resourceVersion={}", version.replace('+', "%2B"))).await.failed(400);
        assert_eq!(
            listed["message"],
            format!("invalid resource version: resourceVersion: Invalid value: {version:?}: {message}")
        );
    }
    put(&format!("000{}", made["metadata"]["resourceVersion"].as_str().unwrap())).await.ok();
    assert_eq!(put("1").await.failed(409)["reason"], "Conflict");
    let event = api.get("/api/v1/namespaces/default/events/a?resourceVersion=x").await.failed(400);
    assert_eq!(event["reason"], "BadRequest");
}

#[tokio::test]
async fn what_is_made_by_apply_has_a_name_and_may_have_any_version() {
    let api = Api::start().await;
    let apply = async |name: &str, metadata: Value| {
        let path = format!("/api/v1/namespaces/default/configmaps/{name}?fieldManager=m");
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
        api.send("PATCH", &path, "application/apply-patch+yaml", &object.to_string()).await
    };
    assert_eq!(
        apply("a", json!({})).await.failed(400)["message"],
        "the name of the object (a based on URL) was undeterminable: name must be provided"
    );
    apply("a", json!({"name": "a", "resourceVersion": "5"})).await.ok();
    assert_eq!(
        apply("a", json!({"name": "a", "resourceVersion": "5"})).await.failed(409)["reason"],
        "Conflict"
    );
    apply("b", json!({"name": "b", "resourceVersion": "x"})).await.failed(500);
    let lease = json!({"metadata": {"name": "l", "resourceVersion": "5"}});
    api.put("/apis/coordination.k8s.io/v1/namespaces/default/leases/l", lease).await.ok();
}

#[tokio::test]
async fn a_thousand_warnings_fit_into_the_headers_of_an_answer() {
    let api = Api::start().await;
    let path = "/api/v1/namespaces/default/configmaps?dryRun=All&fieldValidation=Warn";
    let map = |fields: usize, name: &str| {
        let unknown = (0..fields).map(|number| (format!("{name}{number}"), json!(1)));
        let known = [("metadata".to_owned(), json!({"name": "a"}))];
        Value::Object(known.into_iter().chain(unknown).collect())
    };
    assert_eq!(api.post(path, map(60, "unknown")).await.warnings().len(), 60);
    // Clients in Rust and Python take a hundred headers.
    assert_eq!(api.post(path, map(1000, "unknown")).await.warnings().len(), 64);
    let many = api.post(path, map(1000, &"unknown".repeat(20))).await;
    let length: usize = many.warnings().iter().map(|warning| warning.len()).sum();
    assert!((4_096..8_192).contains(&length), "{} warnings, {length} bytes", many.warnings().len());
}

#[tokio::test]
async fn a_scale_that_is_none_changes_nothing() {
    let api = Api::start().await;
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    let template =
        json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let spec = json!({"replicas": 3, "selector": {"matchLabels": {"a": "b"}}, "template": template});
    api.post(deployments, json!({"metadata": {"name": "d"}, "spec": spec})).await.ok();
    let scale = format!("{deployments}/d/scale");
    let replicas = |replicas: Value| json!({"metadata": {"name": "d"}, "spec": {"replicas": replicas}});
    for wrong in [json!("1"), json!(2.5), json!(4294967297_u64), json!([1]), json!(true)] {
        let refused = api.put(&scale, replicas(wrong.clone())).await.failed(400);
        assert!(
            refused["message"].as_str().unwrap().contains("ScaleSpec.spec.replicas of type int32"),
            "{refused}"
        );
        api.merge(&scale, json!({"spec": {"replicas": wrong}})).await.failed(422);
    }
    let other = [
        json!({"name": "e"}),
        json!({"name": "d", "namespace": "x"}),
        json!({}),
        json!({"name": true}),
        json!("d"),
    ];
    for metadata in other {
        api.put(&scale, json!({"metadata": metadata, "spec": {"replicas": 1}})).await.failed(400);
    }
    let kind = json!({"apiVersion": "autoscaling/v1", "kind": "X", "metadata": {"name": "d"}});
    assert_eq!(
        api.put(&scale, kind).await.failed(400)["message"],
        r#"X in version "v1" cannot be handled as a Scale: no kind "X" is registered for version "autoscaling/v1""#
    );
    assert_eq!(api.get(&scale).await.ok()["spec"]["replicas"], 3);
    assert_eq!(api.put(&scale, replicas(json!(1))).await.ok()["spec"]["replicas"], 1);
    assert_eq!(api.merge(&scale, json!({"spec": {"replicas": 2}})).await.ok()["spec"]["replicas"], 2);
}
