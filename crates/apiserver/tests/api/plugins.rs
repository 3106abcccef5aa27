//! The admission plug-ins as clients see them. What each of them says in which case is recorded from the real server
//! (`conformance/differential`); here is what holds at once, and what only this server does.

use std::sync::Arc;

use serde_json::{Value, json};
use watchkeeper_apiserver::authentication::{Identity, Service};
use watchkeeper_apiserver::{Options, PodSecurityConfiguration};
use watchkeeper_storage::Memory;

use crate::harness::Api;

const PODS: &str = "/api/v1/namespaces/default/pods";
const RANGES: &str = "/api/v1/namespaces/default/limitranges";

async fn start(change: impl FnOnce(&mut Options)) -> Api {
    let mut options = Options::default();
    change(&mut options);
    Api::with(Arc::new(Memory::new(watchkeeper_storage::Options::default())), options).await
}

fn pod(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
}

fn message(answer: &Value) -> &str {
    answer["message"].as_str().unwrap()
}

#[tokio::test]
async fn what_plug_ins_look_up_holds_when_its_writer_hears_of_it() {
    let api = start(|_| {}).await;
    for round in 0..20 {
        let range = json!({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "r"}, "spec": {"limits": [
            {"type": "Container", "default": {"cpu": format!("{}", round + 1)}},
        ]}});
        api.post(RANGES, range).await.ok();
        let made = api.post(&format!("{PODS}?dryRun=All"), pod("p")).await.ok();
        assert_eq!(made["spec"]["containers"][0]["resources"]["limits"]["cpu"], (round + 1).to_string());
        api.delete(&format!("{RANGES}/r")).await.ok();
        let made = api.post(&format!("{PODS}?dryRun=All"), pod("p")).await.ok();
        assert_eq!(made["spec"]["containers"][0]["resources"], json!({}));
        let class = json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "c"}, "value": round});
        api.post("/apis/scheduling.k8s.io/v1/priorityclasses", class).await.ok();
        let mut important = pod("p");
        important["spec"]["priorityClassName"] = "c".into();
        let made = api.post(&format!("{PODS}?dryRun=All"), important.clone()).await.ok();
        assert_eq!(made["spec"]["priority"], round);
        api.delete("/apis/scheduling.k8s.io/v1/priorityclasses/c").await.ok();
        let refused = api.post(&format!("{PODS}?dryRun=All"), important).await.failed(403);
        assert_eq!(message(&refused), "pods \"p\" is forbidden: no PriorityClass with name c was found");
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {
            "name": format!("n{round}"), "labels": {"pod-security.kubernetes.io/enforce": "restricted"},
        }});
        api.post("/api/v1/namespaces", namespace).await.ok();
        api.post(&format!("/api/v1/namespaces/n{round}/pods"), pod("p")).await.failed(403);
    }
}

#[tokio::test]
async fn a_pod_waits_for_the_account_of_its_new_namespace() {
    let api = start(|options| options.disabled_admission_plugins.clear()).await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "new"}});
    api.post("/api/v1/namespaces", namespace).await.ok();
    let made = api.post("/api/v1/namespaces/new/pods", pod("p")).await.ok();
    let spec = &made["spec"];
    assert_eq!(
        (&spec["serviceAccountName"], &spec["serviceAccount"]),
        (&json!("default"), &json!("default"))
    );
    let volume = spec["volumes"][0]["name"].as_str().unwrap();
    assert!(volume.starts_with("kube-api-access-"), "{volume}");
    assert_eq!(spec["containers"][0]["volumeMounts"][0]["name"], volume);
    let mut other = pod("q");
    other["spec"]["serviceAccountName"] = "nope".into();
    let refused = api.post("/api/v1/namespaces/new/pods", other).await.failed(403);
    assert_eq!(
        message(&refused),
        "pods \"q\" is forbidden: error looking up service account new/nope: serviceaccount \"nope\" not found"
    );
}

#[tokio::test(start_paused = true)]
async fn without_an_account_a_pod_is_refused_after_a_while() {
    let api = start(|options| {
        options.disabled_admission_plugins.clear();
        options.service_accounts = false;
    })
    .await;
    let refused = api.post(PODS, pod("p")).await.failed(403);
    assert_eq!(
        message(&refused),
        "pods \"p\" is forbidden: error looking up service account default/default: serviceaccount \"default\" not found"
    );
}

#[tokio::test]
async fn the_exempt_are_told_so_and_not_judged() {
    let configuration = json!({
        "apiVersion": "pod-security.admission.config.k8s.io/v1", "kind": "PodSecurityConfiguration",
        "defaults": {"enforce": "restricted", "warn": "restricted"},
        "exemptions": {"namespaces": ["free"], "usernames": ["alice"], "runtimeClasses": ["vm"]},
    });
    let api = start(|options| {
        options.pod_security = PodSecurityConfiguration::read(&configuration).unwrap();
        options.authorization = watchkeeper_apiserver::Authorization::None;
    })
    .await;
    let refused = api.post(PODS, pod("p")).await.failed(403);
    assert!(
        message(&refused)
            .starts_with("pods \"p\" is forbidden: violates PodSecurity \"restricted:latest\": allow"),
        "{refused}"
    );
    let alice = Identity::new("alice", ["devs"]);
    api.send_as(&alice, "POST", PODS, pod("alices")).await.ok();
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {
        "name": "free", "labels": {"pod-security.kubernetes.io/enforce": "baseline"},
    }});
    let made = api.post("/api/v1/namespaces", namespace).await;
    assert_eq!(
        made.warnings(),
        [
            "299 - \"namespace \\\"free\\\" is exempt from Pod Security, and the policy (enforce=baseline:latest) will be ignored\""
        ]
    );
    let answer = api.post("/api/v1/namespaces/free/pods", pod("p")).await;
    answer.ok();
    assert!(answer.warnings().is_empty());
    let class = json!({"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "vm"}, "handler": "h"});
    api.post("/apis/node.k8s.io/v1/runtimeclasses", class).await.ok();
    let mut vm = pod("vm");
    vm["spec"]["runtimeClassName"] = "vm".into();
    api.post(PODS, vm).await.ok();
}

#[tokio::test]
async fn owners_are_enforced_where_that_is_switched_on() {
    let name = "OwnerReferencesPermissionEnforcement";
    for is_on in [false, true] {
        let api =
            start(|options| options.enabled_admission_plugins.extend(is_on.then(|| name.to_owned()))).await;
        let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "maker"},
            "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "patch", "get"]}]});
        api.post("/apis/rbac.authorization.k8s.io/v1/clusterroles", role).await.ok();
        let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "maker"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "maker"},
            "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "bob"}]});
        api.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding).await.ok();
        let bob = Identity::new("bob", ["system:authenticated"]);
        let maps = "/api/v1/namespaces/default/configmaps";
        let owned = |name: &str, blocks: bool| {
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "ownerReferences": [
                {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "blockOwnerDeletion": blocks},
            ]}})
        };
        api.send_as(&bob, "POST", maps, owned("plain", false)).await.ok();
        let blocking = api.send_as(&bob, "POST", maps, owned("blocking", true)).await;
        api.post(maps, json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}}))
            .await
            .ok();
        let request = http::Request::builder().method("PATCH").uri(format!("{maps}/other"));
        let request = request.header("content-type", "application/merge-patch+json");
        let body = json!({"metadata": {"ownerReferences": owned("x", false)["metadata"]["ownerReferences"]}})
            .to_string();
        let request = request.body(watchkeeper_apiserver::front::Body::whole(body)).unwrap();
        let adopted = crate::harness::read(api.server.call(request, bob.clone()).await).await;
        match is_on {
            false => {
                blocking.ok();
                adopted.ok();
            }
            true => {
                let refused = blocking.failed(403);
                assert!(message(&refused).contains("cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on"), "{refused}");
                let refused = adopted.failed(403);
                assert!(
                    message(&refused).contains("cannot set an ownerRef on a resource you can't delete"),
                    "{refused}"
                );
                api.post(maps, owned("by-admin", true)).await.ok();
            }
        }
    }
}

#[tokio::test]
async fn warnings_of_one_plug_in_come_with_the_refusal_of_another() {
    let api = start(|_| {}).await;
    let labels = json!({"metadata": {"labels": {"pod-security.kubernetes.io/warn": "baseline"}}});
    api.merge("/api/v1/namespaces/default", labels).await.ok();
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": {"pods": "0"}}});
    api.post("/api/v1/namespaces/default/resourcequotas", quota).await.ok();
    let mut wild = pod("p");
    wild["spec"]["hostNetwork"] = true.into();
    let answer = api.post(PODS, wild).await;
    let refused = answer.failed(403);
    assert_eq!(
        message(&refused),
        "pods \"p\" is forbidden: exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0"
    );
    assert_eq!(answer.warnings().len(), 1, "{answer:?}");
}
