//! Requests for certificates: who asks, who decides, who signs.

use serde_json::{Value, json};
use watchkeeper_apiserver::authentication::Identity;

use crate::harness::Api;
use crate::rights::RBAC;

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const JANE: &str = include_str!("keys/jane.csr");
const MASTER: &str = include_str!("keys/master.csr");
/// The same group, in a string type with two bytes a character.
const WIDE_MASTER: &str = include_str!("keys/wide-master.csr");

fn jane() -> Identity {
    Identity::new("jane", ["people"])
}

fn request(name: &str, text: &str, signer: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {
        "request": watchkeeper_go::base64::encode(text), "signerName": signer, "usages": ["client auth"],
    }})
}

fn condition(kind: &str) -> Value {
    json!({"status": {"conditions": [{"type": kind, "status": "True", "reason": "x", "message": "y"}]}})
}

/// Gives jane these rights.
async fn allow(api: &Api, rules: Value) {
    api.post(&format!("{RBAC}/clusterroles"), json!({"metadata": {"name": "r"}, "rules": rules})).await.ok();
    let binding = json!({
        "metadata": {"name": "r"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"},
        "subjects": [{"kind": "User", "name": "jane", "apiGroup": "rbac.authorization.k8s.io"}],
    });
    api.post(&format!("{RBAC}/clusterrolebindings"), binding).await.ok();
}

fn rule(verbs: &[&str], resources: &[&str], names: &[&str]) -> Value {
    json!({"apiGroups": ["certificates.k8s.io"], "verbs": verbs, "resources": resources, "resourceNames": names})
}

#[tokio::test]
async fn a_request_says_who_asked_and_not_who_it_says_asked() {
    let api = Api::start().await;
    allow(&api, json!([rule(&["create", "get", "patch"], &["certificatesigningrequests"], &[])])).await;
    let mut asked = request("a", JANE, "example.com/client");
    asked["spec"]["username"] = "root".into();
    asked["spec"]["groups"] = json!(["system:masters"]);
    asked["spec"]["extra"] = json!({"k": ["v"]});
    asked["status"] = condition("Approved")["status"].clone();
    let made = api.send_as(&jane(), "POST", REQUESTS, asked).await.ok();
    assert_eq!(made["spec"]["username"], "jane");
    assert_eq!(made["spec"]["groups"], json!(["people", "system:authenticated"]));
    assert_eq!((&made["spec"]["extra"], &made["status"]), (&Value::Null, &json!({})));
    let other = json!({"spec": {"username": "root", "signerName": "other.com/x"}, "metadata": {"labels": {"a": "b"}}});
    let changed = api.merge(&format!("{REQUESTS}/a"), other).await.ok();
    assert_eq!((&changed["spec"], &changed["metadata"]["labels"]["a"]), (&made["spec"], &json!("b")));
}

#[tokio::test]
async fn a_decision_has_its_own_door_and_is_final() {
    let api = Api::start().await;
    api.post(REQUESTS, request("a", JANE, "example.com/client")).await.ok();
    let (approval, status) = (format!("{REQUESTS}/a/approval"), format!("{REQUESTS}/a/status"));
    let refused = api.merge(&status, condition("Approved")).await.failed(422);
    let said = r#"status.conditions: Forbidden: updates may not add a condition of type \"Approved\""#;
    assert!(refused.to_string().contains(said), "{refused}");
    let approved = api.merge(&approval, condition("Approved")).await.ok();
    let decision = &approved["status"]["conditions"][0];
    assert!(decision["lastUpdateTime"].is_string() && decision["lastTransitionTime"].is_string());
    let other = json!({"status": {"conditions": [{"type": "Approved", "status": "True", "reason": "z"}]}});
    let kept = api.merge(&status, other).await.ok();
    assert_eq!(&kept["status"]["conditions"][0], decision);
    let refused = api.merge(&approval, condition("Denied")).await.failed(422);
    assert!(refused.to_string().contains("updates may not remove a condition"), "{refused}");
    let certificate = json!({"status": {"certificate": watchkeeper_go::base64::encode(JANE)}});
    let refused = api.merge(&status, certificate).await.failed(422);
    assert!(refused.to_string().contains("only CERTIFICATE PEM blocks are allowed"), "{refused}");
}

#[tokio::test]
async fn whoever_decides_or_signs_needs_the_right_to_do_it_for_the_signer() {
    let api = Api::start().await;
    let parts = ["certificatesigningrequests/approval", "certificatesigningrequests/status"];
    allow(
        &api,
        json!([rule(&["get", "update"], &parts, &[]), rule(&["approve"], &["signers"], &["a.com/*"])]),
    )
    .await;
    for (name, signer, code) in [("mine", "a.com/client", 200), ("theirs", "b.com/client", 403)] {
        let mut object = api.post(REQUESTS, request(name, JANE, signer)).await.ok();
        object["status"] = condition("Approved")["status"].clone();
        let answer = api.send_as(&jane(), "PUT", &format!("{REQUESTS}/{name}/approval"), object).await;
        assert_eq!(answer.code, code, "{}", answer.text);
        assert!(
            code == 200 || answer.text.contains("user not permitted to approve requests"),
            "{}",
            answer.text
        );
    }
    let mut object = api.get(&format!("{REQUESTS}/mine")).await.ok();
    let path = format!("{REQUESTS}/mine/status");
    api.send_as(&jane(), "PUT", &path, object.clone()).await.ok();
    object["status"]["conditions"] =
        json!([object["status"]["conditions"][0], condition("Failed")["status"]["conditions"][0]]);
    let refused = api.send_as(&jane(), "PUT", &path, object).await.failed(403);
    assert!(refused.to_string().contains("user not permitted to sign requests"), "{refused}");
}

#[tokio::test]
async fn nobody_asks_to_be_a_master() {
    let api = Api::start().await;
    let signer = "kubernetes.io/kube-apiserver-client";
    for text in [MASTER, WIDE_MASTER] {
        let refused = api.post(REQUESTS, request("a", text, signer)).await.failed(403);
        assert!(refused.to_string().contains("signer with system:masters group is not allowed"), "{refused}");
    }
    api.post(REQUESTS, request("a", JANE, signer)).await.ok();
    api.post(REQUESTS, request("b", MASTER, "example.com/client")).await.ok();
}

#[tokio::test]
async fn the_block_of_addresses_is_there_from_the_start_and_comes_back_as_it_was() {
    let api = Api::start().await;
    let path = "/apis/networking.k8s.io/v1/servicecidrs/kubernetes";
    let found = api.get(path).await.ok();
    assert_eq!(found["spec"]["cidrs"], json!(["10.0.0.0/16"]));
    assert_eq!(found["status"]["conditions"][0]["type"], "Ready");
    let again = Api::over(std::sync::Arc::clone(&api.storage)).await;
    assert_eq!(again.get(path).await.ok(), found);
}
