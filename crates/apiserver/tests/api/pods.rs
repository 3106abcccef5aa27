//! What clients ask of Pods besides what they ask of all objects.

use serde_json::{Value, json};

use crate::harness::Api;

const PODS: &str = "/api/v1/namespaces/default/pods";

fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": "a", "tier": "web"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    })
}

fn binding(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Binding",
        "metadata": {"name": name, "labels": {"tier": "db", "zone": "z"}, "annotations": {"by": "me"}},
        "target": {"kind": "Node", "name": "n"},
    })
}

#[tokio::test]
async fn a_pod_can_be_replaced_by_what_it_was_made_of() {
    let api = Api::start().await;
    let made = api.post(PODS, pod("a")).await.ok();
    let put = api.put(&format!("{PODS}/a"), pod("a")).await.ok();
    assert_eq!(put["spec"], made["spec"]);
    assert_eq!(put["metadata"], made["metadata"], "nothing has changed");
    // And with another image.
    let mut next = pod("a");
    next["spec"]["containers"][0]["image"] = "j".into();
    let put = api.put(&format!("{PODS}/a"), next).await.ok();
    assert_eq!(put["spec"]["tolerations"], made["spec"]["tolerations"]);
    let owned = put["metadata"]["managedFields"].to_string();
    assert!(!owned.contains("f:tolerations") && !owned.contains("f:priority"), "{owned}");
    // What was chosen cannot be changed by leaving it out.
    let mut chosen = pod("b");
    chosen["spec"]["nodeName"] = "n".into();
    api.post(PODS, chosen).await.ok();
    api.put(&format!("{PODS}/b"), pod("b")).await.failed(422);
}

#[tokio::test]
async fn a_binding_brings_a_pod_its_node_and_labels_in_both_ways() {
    let api = Api::start().await;
    let bindings = "/api/v1/namespaces/default/bindings";
    for (name, path) in [("a", format!("{PODS}/a/binding")), ("b", bindings.to_owned())] {
        api.post(PODS, pod(name)).await.ok();
        let answer = api.post(&path, binding(name)).await;
        assert_eq!(
            (answer.code, &answer.json()["kind"], &answer.json()["status"]),
            (201, &json!("Status"), &json!("Success"))
        );
        let bound = api.get(&format!("{PODS}/{name}")).await.ok();
        assert_eq!(bound["spec"]["nodeName"], "n");
        assert!(!bound["metadata"]["managedFields"].to_string().contains("f:nodeName"), "{bound}");
        assert_eq!(bound["metadata"]["labels"], json!({"app": "a", "tier": "db", "zone": "z"}));
        assert_eq!(bound["metadata"]["annotations"], json!({"by": "me"}));
        let again = api.post(&path, binding(name)).await.failed(409);
        let message = again["message"].as_str().unwrap();
        assert!(message.ends_with(&format!("pod {name} is already assigned to node \"n\"")), "{message}");
    }
    api.post(bindings, binding("nobody")).await.failed(404);
    api.post(PODS, pod("c")).await.ok();
    let (mut nowhere, mut other) = (binding("c"), binding("c"));
    nowhere["target"]["name"] = "".into();
    other["metadata"]["uid"] = "another".into();
    let refused = api.post(bindings, nowhere).await.failed(500);
    assert_eq!(refused["message"], "target.name: Required value");
    let mut text = binding("c");
    text["target"] = "n".into();
    for path in [bindings.to_owned(), format!("{PODS}/c/binding")] {
        let refused = api.post(&path, text.clone()).await.failed(400);
        let message = refused["message"].as_str().unwrap();
        let why =
            "json: cannot unmarshal string into Go struct field Binding.target of type v1.ObjectReference";
        assert!(message.ends_with(why), "{message}");
    }
    let refused = api.post(&format!("{PODS}/c/binding"), other.clone()).await.failed(409);
    assert!(refused["message"].as_str().unwrap().contains("UID in precondition: another"), "{refused}");
    assert_eq!(api.get(&format!("{PODS}/c")).await.ok()["spec"]["nodeName"], Value::Null);
    api.post(bindings, other).await.ok();
}

#[tokio::test]
async fn of_a_pod_on_no_node_there_is_no_log() {
    let api = Api::start().await;
    api.post(PODS, pod("a")).await.ok();
    for query in ["", "?container=c"] {
        let answer = api.get(&format!("{PODS}/a/log{query}")).await;
        assert_eq!((answer.code, answer.text.as_str()), (204, ""));
        assert_eq!(answer.headers.get("content-type"), None);
    }
    let refused = api.get(&format!("{PODS}/a/log?container=d")).await.failed(400);
    assert_eq!(refused["message"], "container d is not valid for pod a");
    let mut two = pod("b");
    two["spec"]["containers"] = json!([{"name": "c", "image": "i"}, {"name": "d", "image": "i"}]);
    api.post(PODS, two).await.ok();
    let refused = api.get(&format!("{PODS}/b/log")).await.failed(400);
    assert_eq!(refused["message"], "a container name must be specified for pod b, choose one of: [c d]");
    api.get(&format!("{PODS}/nobody/log")).await.failed(404);
    // On a node, it is the node that would know.
    api.post(&format!("{PODS}/a/binding"), binding("a")).await.ok();
    api.get(&format!("{PODS}/a/log")).await.failed(400);
}
