//! What happens by itself: definitions, namespaces and garbage.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use tokio::time::Instant;
use watchkeeper_apiserver::{Clock, Options};
use watchkeeper_storage::Memory;

use crate::harness::{Answer, Api, DEFINITIONS, WIDGETS, config_map, definition, spec, widget};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const WIDGETS_DEFINITION: &str =
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com";

fn condition<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    let conditions = object["status"]["conditions"].as_array()?;
    conditions.iter().find(|condition| condition["type"] == name)?["status"].as_str()
}

#[tokio::test]
async fn what_the_server_says_of_a_definition_is_its_own() {
    let api = Api::start().await;
    let made = api.post(DEFINITIONS, definition(spec())).await.ok();
    let entries = made["metadata"]["managedFields"].as_array().unwrap();
    let own: Vec<&Value> = entries.iter().filter(|entry| entry["manager"] == "kube-apiserver").collect();
    assert_eq!(own.len(), 1, "{entries:?}");
    assert_eq!((&own[0]["operation"], &own[0]["subresource"]), (&json!("Update"), &json!("status")));
    let fields = &own[0]["fieldsV1"];
    assert_eq!(fields.as_object().unwrap().keys().collect::<Vec<_>>(), ["f:status"]);
    for kind in ["Established", "NamesAccepted"] {
        let key = format!(r#"k:{{"type":"{kind}"}}"#);
        assert!(fields["f:status"]["f:conditions"][&key].is_object(), "{fields}");
    }
    assert!(fields["f:status"]["f:acceptedNames"]["f:plural"].is_object());
    let others = entries.iter().filter(|entry| entry["manager"] != "kube-apiserver");
    assert!(others.clone().all(|entry| entry["fieldsV1"]["f:status"].is_null()));
    // A change that it has nothing to say about leaves its entry alone.
    let changed = api.merge(WIDGETS_DEFINITION, json!({"metadata": {"labels": {"a": "b"}}})).await.ok();
    let after = changed["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!(after.iter().find(|entry| entry["manager"] == "kube-apiserver"), Some(own[0]));
}

#[tokio::test]
async fn a_definition_is_in_force_when_its_writer_hears_of_it() {
    let api = Api::start().await;
    api.get(WIDGETS).await;
    let made = api.post(DEFINITIONS, definition(spec())).await.ok();
    assert_eq!(condition(&made, "NamesAccepted"), Some("True"));
    assert_eq!(condition(&made, "Established"), Some("True"));
    assert_eq!(made["status"]["storedVersions"], json!(["v1"]));
    api.post(WIDGETS, widget("a", json!({"size": 1}))).await.ok();

    let resources = api.get("/apis/example.com/v1").await.ok();
    let names: Vec<&str> = resources["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|resource| resource["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["widgets", "widgets/status", "widgets/scale"]);
    let groups = api.get("/apis").await.ok();
    assert!(groups["groups"].as_array().unwrap().iter().any(|group| group["name"] == "example.com"));
}

#[tokio::test]
async fn a_definition_that_makes_no_sense_is_refused_by_its_fields() {
    let api = Api::start().await;
    let mut wrong = definition(spec());
    wrong["metadata"]["name"] = json!("other.example.com");
    let refused = api.post(DEFINITIONS, wrong).await.failed(422);
    assert!(
        refused["message"].as_str().unwrap().contains(
            r#"metadata.name: Invalid value: "other.example.com": must be spec.names.plural+"."+spec.group"#
        ),
        "{refused}"
    );
}

#[tokio::test]
async fn names_are_given_to_the_first_who_asks() {
    let api = Api::start().await;
    api.define(spec()).await;
    let mut other = definition(spec());
    other["metadata"]["name"] = json!("gadgets.example.com");
    other["spec"]["names"] = json!({"plural": "gadgets", "singular": "gadget", "kind": "Widget"});
    let made = api.post(DEFINITIONS, other).await.ok();
    assert_eq!(condition(&made, "NamesAccepted"), Some("False"));
    assert_eq!(condition(&made, "Established"), Some("False"));
    api.get("/apis/example.com/v1/gadgets").await;
    api.delete(WIDGETS_DEFINITION).await.ok();
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gadgets.example.com";
    api.eventually(path, |answer| condition(&answer.json(), "Established") == Some("True")).await;
}

#[tokio::test]
async fn a_definition_goes_after_its_objects() {
    let api = Api::start().await;
    api.define(spec()).await;
    for name in ["a", "b"] {
        api.post(WIDGETS, widget(name, json!({"size": 1}))).await.ok();
    }
    let held = json!({"metadata": {"finalizers": ["example.com/hold"]}});
    api.merge(&format!("{WIDGETS}/b"), held).await.ok();
    let marked = api.delete(WIDGETS_DEFINITION).await.ok();
    assert_eq!(condition(&marked, "Terminating"), Some("True"));
    assert_eq!(marked["metadata"]["finalizers"], json!(["customresourcecleanup.apiextensions.k8s.io"]));

    api.eventually(&format!("{WIDGETS}/a"), |answer| answer.code == 404).await;
    let refused = api.post(WIDGETS, widget("c", json!({"size": 1}))).await.failed(403);
    assert!(
        refused["message"]
            .as_str()
            .unwrap()
            .contains("create not allowed while custom resource definition is terminating")
    );
    assert!(api.get(&format!("{WIDGETS}/b")).await.ok()["metadata"]["deletionTimestamp"].is_string());
    api.get(WIDGETS_DEFINITION).await.ok();

    api.merge(&format!("{WIDGETS}/b"), json!({"metadata": {"finalizers": null}})).await.ok();
    api.eventually(WIDGETS_DEFINITION, |answer| answer.code == 404).await;
    let gone = api.get(WIDGETS).await;
    assert_eq!((gone.code, gone.text.as_str()), (404, "404 page not found\n"));
    api.define(spec()).await;
    assert_eq!(api.get(WIDGETS).await.ok()["items"], json!([]));
}

#[tokio::test]
async fn several_versions_are_served_of_what_is_stored_once() {
    let api = Api::start().await;
    let mut several = definition(spec());
    let mut beta = several["spec"]["versions"][0].clone();
    beta["name"] = json!("v1beta1");
    beta["storage"] = json!(false);
    beta["deprecated"] = json!(true);
    beta["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["shape"] =
        json!({"type": "string", "default": "round"});
    several["spec"]["versions"].as_array_mut().unwrap().push(beta);
    api.post(DEFINITIONS, several).await.ok();
    api.post(WIDGETS, widget("a", json!({"size": 1}))).await.ok();

    let old = WIDGETS.replace("/v1/", "/v1beta1/");
    let read = api.get(&format!("{old}/a")).await;
    assert_eq!(
        read.warnings(),
        [r#"299 - "example.com/v1beta1 Widget is deprecated; use example.com/v1 Widget""#]
    );
    let read = read.ok();
    assert_eq!(read["apiVersion"], "example.com/v1beta1");
    // Defaults of a version are for those who write it, as in kube-apiserver.
    assert_eq!(read["spec"], json!({"size": 1, "color": "red"}));
    let mut watch = api.watch(&format!("{old}?watch=1")).await;
    assert_eq!(watch.next().await.unwrap()["object"], read);

    let changed = api.merge(&format!("{old}/a"), json!({"spec": {"size": 2}})).await.ok();
    assert_eq!(changed["apiVersion"], "example.com/v1beta1");
    let newest = api.get(&format!("{WIDGETS}/a")).await.ok();
    assert_eq!(newest["apiVersion"], "example.com/v1");
    assert_eq!(newest["spec"], json!({"size": 2, "color": "red"}));
    let group = api.get("/apis/example.com").await.ok();
    assert_eq!(group["preferredVersion"]["version"], "v1");
}

#[tokio::test]
async fn definitions_are_there_after_a_restart() {
    let api = Api::start().await;
    api.define(spec()).await;
    api.post(WIDGETS, widget("a", json!({"size": 1}))).await.ok();
    let storage = std::sync::Arc::clone(&api.storage);
    api.server.stop().await;
    drop(api);
    let api = Api::over(storage).await;
    assert_eq!(api.get(&format!("{WIDGETS}/a")).await.ok()["spec"]["size"], 1);
}

#[tokio::test]
async fn objects_are_made_in_namespaces_that_are_there() {
    let api = Api::start().await;
    for name in ["default", "kube-system", "kube-public", "kube-node-lease"] {
        assert_eq!(api.get(&format!("/api/v1/namespaces/{name}")).await.ok()["status"]["phase"], "Active");
    }
    let missing =
        api.post("/api/v1/namespaces/nowhere/configmaps", config_map("a", json!({}))).await.failed(404);
    assert_eq!(missing["message"], r#"namespaces "nowhere" not found"#);
    let other = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "kube-system"}});
    let refused = api.post(CONFIG_MAPS, other).await.failed(400);
    assert_eq!(
        refused["message"],
        "the namespace of the provided object does not match the namespace sent on the request"
    );
    let refused = api.delete("/api/v1/namespaces/default").await.failed(403);
    assert_eq!(refused["message"], r#"namespaces "default" is forbidden: this namespace may not be deleted"#);
}

#[tokio::test]
async fn a_namespace_goes_after_what_is_in_it() {
    let api = Api::start().await;
    api.define(spec()).await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "temporary"}});
    let made = api.post("/api/v1/namespaces", namespace).await.ok();
    assert_eq!(made["metadata"]["labels"], json!({"kubernetes.io/metadata.name": "temporary"}));
    assert_eq!(made["spec"]["finalizers"], json!(["kubernetes"]));
    let config_maps = "/api/v1/namespaces/temporary/configmaps";
    let widgets = WIDGETS.replace("default", "temporary");
    let mut held = config_map("held", json!({}));
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    api.post(config_maps, held).await.ok();
    api.post(&widgets, widget("a", json!({"size": 1}))).await.ok();

    let marked = api.delete("/api/v1/namespaces/temporary").await.ok();
    assert_eq!(marked["status"]["phase"], "Terminating");
    api.eventually(&format!("{widgets}/a"), |answer| answer.code == 404).await;
    let refused = api.post(config_maps, config_map("late", json!({}))).await.failed(403);
    assert_eq!(
        refused["message"],
        r#"configmaps "late" is forbidden: unable to create new content in namespace temporary because it is being terminated"#
    );
    assert_eq!(refused["details"]["causes"][0]["reason"], "NamespaceTerminating");
    assert_eq!(api.get("/api/v1/namespaces/temporary").await.ok()["status"]["phase"], "Terminating");
    api.merge(&format!("{config_maps}/held"), json!({"metadata": {"finalizers": null}})).await.ok();
    api.eventually("/api/v1/namespaces/temporary", |answer| answer.code == 404).await;
}

/// A config map that is owned by others.
async fn owned(api: &Api, name: &str, owners: &[(&Value, bool)]) -> Value {
    let mut object = config_map(name, json!({}));
    let reference = |(owner, blocks): &(&Value, bool)| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"], "blockOwnerDeletion": blocks});
    object["metadata"]["ownerReferences"] = owners.iter().map(reference).collect();
    api.post(CONFIG_MAPS, object).await.ok()
}

#[tokio::test]
async fn objects_go_with_the_last_of_their_owners() {
    let api = Api::start().await;
    let one = api.post(CONFIG_MAPS, config_map("one", json!({}))).await.ok();
    let two = api.post(CONFIG_MAPS, config_map("two", json!({}))).await.ok();
    let both = owned(&api, "both", &[(&one, false), (&two, false)]).await;
    owned(&api, "grandchild", &[(&both, false)]).await;
    api.delete(&format!("{CONFIG_MAPS}/one")).await.ok();
    let path = &format!("{CONFIG_MAPS}/both");
    api.eventually(path, |answer| {
        answer.json()["metadata"]["ownerReferences"].as_array().is_some_and(|owners| owners.len() == 1)
    })
    .await;
    api.delete(&format!("{CONFIG_MAPS}/two")).await.ok();
    api.eventually(path, |answer| answer.code == 404).await;
    api.eventually(&format!("{CONFIG_MAPS}/grandchild"), |answer| answer.code == 404).await;
}

#[tokio::test]
async fn an_object_whose_owner_never_was_is_collected() {
    let api = Api::start().await;
    let nobody = json!({"metadata": {"name": "nobody", "uid": "00000000-0000-4000-8000-000000000000"}});
    owned(&api, "orphan", &[(&nobody, false)]).await;
    api.eventually(&format!("{CONFIG_MAPS}/orphan"), |answer| answer.code == 404).await;
    let one = api.post(CONFIG_MAPS, config_map("one", json!({}))).await.ok();
    let impostor = json!({"metadata": {"name": "one", "uid": "00000000-0000-4000-8000-000000000000"}});
    owned(&api, "mistaken", &[(&impostor, false)]).await;
    api.eventually(&format!("{CONFIG_MAPS}/mistaken"), |answer| answer.code == 404).await;
    assert_eq!(api.get(&format!("{CONFIG_MAPS}/one")).await.ok(), one);
}

#[tokio::test]
async fn an_owner_deleted_in_the_foreground_goes_last() {
    let api = Api::start().await;
    let owner = api.post(CONFIG_MAPS, config_map("owner", json!({}))).await.ok();
    owned(&api, "child", &[(&owner, true)]).await;
    let path = &format!("{CONFIG_MAPS}/owner");
    api.merge(&format!("{CONFIG_MAPS}/child"), json!({"metadata": {"finalizers": ["example.com/hold"]}}))
        .await
        .ok();
    let marked = api.delete(&format!("{path}?propagationPolicy=Foreground")).await.ok();
    assert_eq!(marked["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    let child = &format!("{CONFIG_MAPS}/child");
    api.eventually(child, |answer| answer.json()["metadata"]["deletionTimestamp"].is_string()).await;
    api.get(path).await.ok();
    api.merge(child, json!({"metadata": {"finalizers": null}})).await.ok();
    api.eventually(path, |answer| answer.code == 404).await;
    api.get(child).await.failed(404);
}

#[tokio::test]
async fn an_owner_waits_for_every_dependent_that_blocks_it() {
    let api = Api::start().await;
    let owner = api.post(CONFIG_MAPS, config_map("owner", json!({}))).await.ok();
    for name in ["a", "held", "z"] {
        owned(&api, name, &[(&owner, true)]).await;
    }
    let held = &format!("{CONFIG_MAPS}/held");
    api.merge(held, json!({"metadata": {"finalizers": ["example.com/hold"]}})).await.ok();
    api.delete(&format!("{CONFIG_MAPS}/owner?propagationPolicy=Foreground")).await.ok();
    for name in ["a", "z"] {
        api.eventually(&format!("{CONFIG_MAPS}/{name}"), |answer| answer.code == 404).await;
    }
    // What is done about an owner is done in the order of changes: after this one, the others have been seen.
    let next = api.post(CONFIG_MAPS, config_map("next", json!({}))).await.ok();
    owned(&api, "with-next", &[(&next, false)]).await;
    api.delete(&format!("{CONFIG_MAPS}/next")).await.ok();
    api.eventually(&format!("{CONFIG_MAPS}/with-next"), |answer| answer.code == 404).await;
    let waiting = api.get(&format!("{CONFIG_MAPS}/owner")).await.ok();
    assert_eq!(waiting["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    api.merge(held, json!({"metadata": {"finalizers": null}})).await.ok();
    api.eventually(&format!("{CONFIG_MAPS}/owner"), |answer| answer.code == 404).await;
}

#[tokio::test]
async fn orphans_stay_and_name_no_owner() {
    let api = Api::start().await;
    let owner = api.post(CONFIG_MAPS, config_map("owner", json!({}))).await.ok();
    owned(&api, "child", &[(&owner, true)]).await;
    api.delete(&format!("{CONFIG_MAPS}/owner?propagationPolicy=Orphan")).await.ok();
    api.eventually(&format!("{CONFIG_MAPS}/owner"), |answer| answer.code == 404).await;
    assert!(api.get(&format!("{CONFIG_MAPS}/child")).await.ok()["metadata"].get("ownerReferences").is_none());
}

#[tokio::test]
async fn two_thousand_dependents_go_with_their_owner() {
    let api = Api::start().await;
    let owner = api.post(CONFIG_MAPS, config_map("owner", json!({}))).await.ok();
    for n in 0..2_000 {
        owned(&api, &format!("child-{n}"), &[(&owner, false)]).await;
    }
    api.delete(&format!("{CONFIG_MAPS}/owner")).await.ok();
    api.eventually(CONFIG_MAPS, |answer| answer.json()["items"].as_array().unwrap().is_empty()).await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_on_a_node_has_its_time_to_end_before_its_namespace_is_emptied() {
    let (start, begin) = (SystemTime::now(), Instant::now());
    let mut options = Options::default();
    options.clock = Clock::new(move || start + begin.elapsed());
    let api = Api::with(Arc::new(Memory::new(watchkeeper_storage::Options::default())), options).await;
    for (namespace, is_ended_by_node) in [("served", true), ("forgotten", false)] {
        api.post("/api/v1/namespaces", json!({"metadata": {"name": namespace}})).await.ok();
        let namespace = format!("/api/v1/namespaces/{namespace}");
        let (pods, maps) = (format!("{namespace}/pods"), format!("{namespace}/configmaps"));
        let pod = |name: &str, node: Value| {
            json!({
                "metadata": {"name": name},
                "spec": {"nodeName": node, "terminationGracePeriodSeconds": 40, "containers": [{"name": "c", "image": "i"}]},
            })
        };
        api.post(&pods, pod("running", "node".into())).await.ok();
        api.post(&pods, pod("waiting", Value::Null)).await.ok();
        api.post(&maps, config_map("mounted", json!({}))).await.ok();
        let deleted = Instant::now();
        api.delete(&namespace).await.ok();
        api.eventually(&namespace, |answer| answer.text.contains("pods. has 1 resource instances")).await;
        let ending = api.get(&format!("{pods}/running")).await.ok();
        assert_eq!(ending["metadata"]["deletionGracePeriodSeconds"], 40);
        assert_eq!(api.get(&format!("{pods}/waiting")).await.code, 404, "it is on no node");
        tokio::time::sleep(Duration::from_secs(20)).await;
        assert_eq!(api.get(&format!("{pods}/running")).await.code, 200);
        assert_eq!(api.get(&format!("{maps}/mounted")).await.code, 200, "the pod may still need it");
        if is_ended_by_node {
            api.delete(&format!("{pods}/running?gracePeriodSeconds=0")).await.ok();
        } else {
            tokio::time::sleep(Duration::from_secs(22)).await;
        }
        api.eventually(&namespace, |answer| answer.code == 404).await;
        let took = deleted.elapsed().as_secs();
        assert_eq!(took < 40, is_ended_by_node, "{namespace} took {took} s");
    }
}

#[tokio::test]
async fn a_namespace_is_emptied_of_pods_before_anything_else() {
    let api = Api::start().await;
    api.post("/api/v1/namespaces", json!({"metadata": {"name": "other"}})).await.ok();
    let (pods, maps) = ("/api/v1/namespaces/other/pods", "/api/v1/namespaces/other/configmaps");
    let pod = json!({
        "metadata": {"name": "held", "finalizers": ["example.com/held"]},
        "spec": {"nodeName": "node", "terminationGracePeriodSeconds": 0, "containers": [{"name": "c", "image": "i"}]},
    });
    api.post(pods, pod).await.ok();
    api.post(maps, config_map("mounted", json!({}))).await.ok();
    api.delete("/api/v1/namespaces/other").await.ok();
    // The conditions say what is in the way, after everything was looked at that could go.
    let says = |answer: &Answer| {
        answer.text.contains("Some resources are remaining: pods. has 1 resource instances")
    };
    api.eventually("/api/v1/namespaces/other", says).await;
    assert!(api.get(&format!("{pods}/held")).await.ok()["metadata"]["deletionTimestamp"].is_string());
    let map = api.get(&format!("{maps}/mounted")).await.ok();
    assert!(map["metadata"]["deletionTimestamp"].is_null(), "the pod may still need it: {map}");
    api.merge(&format!("{pods}/held"), json!({"metadata": {"finalizers": null}})).await.ok();
    api.eventually("/api/v1/namespaces/other", |answer| answer.code == 404).await;
    assert_eq!(api.get(&format!("{maps}/mounted")).await.code, 404);
}
