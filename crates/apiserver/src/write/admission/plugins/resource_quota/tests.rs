//! What is charged, and what is refused.

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::write::admission::Verb;

fn quota(spec: Value, used: Value) -> Listed {
    let hard = spec["hard"].clone();
    let object = json!({
        "metadata": {"name": "q", "uid": "quota"}, "spec": spec, "status": {"hard": hard, "used": used},
    });
    Listed { object: Arc::new(object), created: 1, modified: 1 }
}

fn change<'a>(evaluator: Evaluator, old: Option<&'a Value>, new: Option<&'a Value>) -> Change<'a> {
    let verb = if old.is_none() { Verb::Create } else { Verb::Update };
    Change { evaluator, verb, subresource: "", old, new }
}

fn used(change: &Change<'_>, quota: &Listed) -> Result<Option<Value>, String> {
    let charges = change.charges(std::slice::from_ref(quota), true)?;
    Ok(charges.into_iter().next().map(|charge| charge.used))
}

fn pod(requests: Value) -> Value {
    json!({"spec": {"containers": [{"name": "c", "resources": {"requests": requests}}]}, "status": {"qosClass": "Burstable"}})
}

#[test]
fn a_pod_is_charged_for_what_it_asks_for_and_refused_beyond_the_limit() {
    let full = quota(
        json!({"hard": {"requests.cpu": "1", "pods": "2"}}),
        json!({"requests.cpu": "800m", "pods": "1"}),
    );
    let (small, large) = (pod(json!({"cpu": "200m"})), pod(json!({"cpu": "201m"})));
    let charged = used(&change(Evaluator::Pods, None, Some(&small)), &full);
    assert_eq!(charged, Ok(Some(json!({"requests.cpu": "1", "pods": "2"}))));
    assert_eq!(
        used(&change(Evaluator::Pods, None, Some(&large)), &full).unwrap_err(),
        "exceeded quota: q, requested: requests.cpu=201m, used: requests.cpu=800m, limited: requests.cpu=1"
    );
    let silent = pod(json!({"memory": "1Gi"}));
    assert_eq!(
        used(&change(Evaluator::Pods, None, Some(&silent)), &full).unwrap_err(),
        "failed quota: q: must specify requests.cpu for: c"
    );
}

#[test]
fn what_has_ended_or_is_gone_is_given_back() {
    let some =
        quota(json!({"hard": {"pods": "2", "count/pods": "2"}}), json!({"pods": "1", "count/pods": "1"}));
    let running = pod(json!({}));
    let mut ended = running.clone();
    ended["status"]["phase"] = "Succeeded".into();
    let charged = used(&change(Evaluator::Pods, Some(&running), Some(&ended)), &some);
    assert_eq!(charged, Ok(Some(json!({"pods": "0", "count/pods": "1"}))));
    let charged = used(&change(Evaluator::Pods, Some(&running), None), &some);
    assert_eq!(charged, Ok(Some(json!({"pods": "0", "count/pods": "0"}))));
    let none = change(Evaluator::Pods, Some(&running), None).charges(&[some], false).unwrap();
    assert!(none.is_empty(), "it is left to kube-controller-manager");
}

#[test]
fn what_is_too_large_to_reckon_with_is_not_forgotten() {
    let full = quota(json!({"hard": {"requests.cpu": "1e38"}}), json!({"requests.cpu": "1e38"}));
    let running = pod(json!({"cpu": "100m"}));
    let charged = used(&change(Evaluator::Pods, Some(&running), None), &full);
    assert_eq!(charged, Ok(Some(json!({"requests.cpu": "100e36"}))));
}

#[test]
fn only_what_is_in_scope_is_charged() {
    let scoped =
        |scopes: Value| quota(json!({"hard": {"pods": "1"}, "scopes": scopes}), json!({"pods": "0"}));
    let mut best_effort = pod(json!({}));
    best_effort["status"]["qosClass"] = "BestEffort".into();
    let charge = |pod: &Value, scopes: Value| {
        used(&change(Evaluator::Pods, None, Some(pod)), &scoped(scopes)).unwrap()
    };
    assert!(charge(&best_effort, json!(["BestEffort"])).is_some());
    assert!(charge(&best_effort, json!(["BestEffort", "Terminating"])).is_none());
    assert!(charge(&best_effort, json!(["NotBestEffort"])).is_none());
    let service = json!({"spec": {"type": "ClusterIP"}});
    let limited =
        quota(json!({"hard": {"services": "0"}, "scopes": ["NotTerminating"]}), json!({"services": "0"}));
    assert_eq!(used(&change(Evaluator::Services, None, Some(&service)), &limited), Ok(None));
    let by_class = |operator: &str, values: Value| {
        let expression = json!({"scopeName": "PriorityClass", "operator": operator, "values": values});
        quota(
            json!({"hard": {"pods": "9"}, "scopeSelector": {"matchExpressions": [expression]}}),
            json!({"pods": "0"}),
        )
    };
    let mut important = pod(json!({}));
    important["spec"]["priorityClassName"] = "high".into();
    let charge = |pod: &Value, quota: Listed| {
        used(&change(Evaluator::Pods, None, Some(pod)), &quota).unwrap().is_some()
    };
    assert!(charge(&important, by_class("In", json!(["high", "higher"]))));
    assert!(!charge(&best_effort, by_class("In", json!(["high"]))));
    assert!(charge(&best_effort, by_class("DoesNotExist", json!(null))));
    assert!(charge(&best_effort, by_class("NotIn", json!(["high"]))));
    assert!(!charge(&important, by_class("NotIn", json!(["high"]))));
}

#[test]
fn services_and_claims_are_charged_for_what_they_become() {
    let limited = quota(
        json!({"hard": {"services.nodeports": "2", "services.loadbalancers": "0"}}),
        json!({"services.nodeports": "0", "services.loadbalancers": "0"}),
    );
    let service = |kind: &str| json!({"spec": {"type": kind, "ports": [{"port": 1}, {"port": 2}]}});
    let [inside, outside, balanced] = ["ClusterIP", "NodePort", "LoadBalancer"].map(service);
    let charged = used(&change(Evaluator::Services, Some(&inside), Some(&outside)), &limited);
    assert_eq!(charged, Ok(Some(json!({"services.nodeports": "2", "services.loadbalancers": "0"}))));
    let refused = used(&change(Evaluator::Services, Some(&inside), Some(&balanced)), &limited).unwrap_err();
    assert!(
        refused.contains("requested: services.loadbalancers=1, used: services.loadbalancers=0"),
        "{refused}"
    );
    let names =
        json!({"gold.storageclass.storage.k8s.io/requests.storage": "10Gi", "requests.storage": "20Gi"});
    let limited = quota(
        json!({"hard": names}),
        json!({"gold.storageclass.storage.k8s.io/requests.storage": "9Gi", "requests.storage": "0"}),
    );
    let claim = json!({"spec": {"storageClassName": "gold", "resources": {"requests": {"storage": "2Gi"}}}});
    let refused = used(&change(Evaluator::VolumeClaims, None, Some(&claim)), &limited).unwrap_err();
    assert!(
        refused.contains("requested: gold.storageclass.storage.k8s.io/requests.storage=2Gi"),
        "{refused}"
    );
}

#[test]
fn nothing_is_created_while_nobody_knows_how_much_is_used() {
    let unknown = quota(json!({"hard": {"pods": "1", "secrets": "1"}}), json!({"secrets": "0"}));
    let refused = used(&change(Evaluator::Pods, None, Some(&pod(json!({})))), &unknown);
    assert_eq!(refused.unwrap_err(), "status unknown for quota: q, resources: pods");
    assert!(!is_settled(&unknown.object));
}
