//! What every namespace has: the ServiceAccount `default` and the ConfigMap `kube-root-ca.crt`.

use serde_json::{Value, json};

use crate::harness::Api;

const ACCOUNT: &str = "/api/v1/namespaces/default/serviceaccounts/default";
const CERTIFICATES: &str = "/api/v1/namespaces/default/configmaps/kube-root-ca.crt";

#[tokio::test]
async fn every_namespace_has_an_account_that_comes_back() {
    let api = Api::start().await;
    let first = api.eventually(ACCOUNT, |answer| answer.code == 200).await.ok();
    api.delete(ACCOUNT).await.ok();
    let is_another = |account: &Value| account["metadata"]["uid"] != first["metadata"]["uid"];
    api.eventually(ACCOUNT, |answer| answer.code == 200 && is_another(&answer.json())).await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "new"}});
    api.post("/api/v1/namespaces", namespace).await.ok();
    api.eventually("/api/v1/namespaces/new/serviceaccounts/default", |answer| answer.code == 200).await;
}

#[tokio::test]
async fn every_namespace_has_the_certificates_and_nobody_can_change_them() {
    let api = Api::start_with(|options| options.certificate_authority = Some("made up".into())).await;
    let is_right = |answer: &crate::harness::Answer| {
        answer.code == 200 && answer.json()["data"] == json!({"ca.crt": "made up"})
    };
    let map = api.eventually(CERTIFICATES, is_right).await.ok();
    assert!(map["metadata"]["annotations"]["kubernetes.io/description"].is_string());
    api.merge(CERTIFICATES, json!({"data": {"ca.crt": "other", "more": "x"}})).await.ok();
    api.eventually(CERTIFICATES, is_right).await;
    api.merge(CERTIFICATES, json!({"metadata": {"annotations": null}})).await.ok();
    let is_described = |answer: &crate::harness::Answer| {
        answer.json()["metadata"]["annotations"]["kubernetes.io/description"].is_string()
    };
    api.eventually(CERTIFICATES, is_described).await;
    api.delete(CERTIFICATES).await.ok();
    api.eventually(CERTIFICATES, is_right).await;
    // A namespace that goes takes them along.
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "new"}});
    api.post("/api/v1/namespaces", namespace).await.ok();
    api.eventually("/api/v1/namespaces/new/configmaps/kube-root-ca.crt", is_right).await;
    api.delete("/api/v1/namespaces/new").await;
    api.eventually("/api/v1/namespaces/new", |answer| answer.code == 404).await;
}

#[tokio::test]
async fn what_is_turned_off_is_left_to_others() {
    let api = Api::start_with(|options| options.service_accounts = false).await;
    api.delete("/api/v1/namespaces/kube-node-lease").await;
    api.eventually("/api/v1/namespaces/kube-node-lease", |answer| answer.code == 404).await;
    assert_eq!(api.get(ACCOUNT).await.code, 404);
    assert_eq!(api.get(CERTIFICATES).await.code, 404);
}
