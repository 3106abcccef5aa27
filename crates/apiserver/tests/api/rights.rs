//! What roles allow, at once and no longer than they are there.

use std::sync::Arc;

use serde_json::{Value, json};
use watchkeeper_apiserver::Options;
use watchkeeper_apiserver::authentication::{Identity, Service};
use watchkeeper_apiserver::front::Body;
use watchkeeper_storage::{Memory, Range, Storage};

use crate::harness::{Api, config_map, read};

pub(crate) const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const PODS: &str = "/api/v1/namespaces/default/pods";

fn jane() -> Identity {
    Identity::new("jane", ["people"])
}

fn rule(verbs: &[&str], group: &str, resource: &str) -> Value {
    json!({"verbs": verbs, "apiGroups": [group], "resources": [resource]})
}

/// Gives a ClusterRole with these rules to jane.
async fn allow(api: &Api, name: &str, rules: Value) {
    api.post(&format!("{RBAC}/clusterroles"), json!({"metadata": {"name": name}, "rules": rules})).await.ok();
    api.post(&format!("{RBAC}/clusterrolebindings"), binding(name, "ClusterRole", name)).await.ok();
}

fn binding(name: &str, kind: &str, role: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
        "subjects": [{"kind": "User", "name": "jane", "apiGroup": "rbac.authorization.k8s.io"}],
    })
}

#[tokio::test]
async fn a_right_is_there_when_its_giver_hears_of_it_and_gone_when_it_is_taken_back() {
    let api = Api::start().await;
    let may = async || api.send_as(&jane(), "GET", PODS, Value::Null).await.code;
    let bindings = format!("{RBAC}/namespaces/default/rolebindings");
    let role = json!({"metadata": {"name": "r"}, "rules": [rule(&["list"], "", "pods")]});
    for _ in 0..20 {
        assert_eq!(may().await, 403);
        api.post(&format!("{RBAC}/namespaces/default/roles"), role.clone()).await.ok();
        api.post(&bindings, binding("b", "Role", "r")).await.ok();
        assert_eq!(may().await, 200);
        let none = json!({"rules": [rule(&["get"], "", "pods")]});
        api.merge(&format!("{RBAC}/namespaces/default/roles/r"), none).await.ok();
        assert_eq!(may().await, 403);
        api.merge(&format!("{RBAC}/namespaces/default/roles/r"), role.clone()).await.ok();
        assert_eq!(may().await, 200);
        api.delete(&format!("{bindings}/b")).await.ok();
        assert_eq!(may().await, 403);
        api.delete(&format!("{RBAC}/namespaces/default/roles/r")).await.ok();
    }
}

#[tokio::test]
async fn a_right_in_one_namespace_is_none_in_another() {
    let api = Api::start().await;
    api.post(&format!("{RBAC}/namespaces/default/rolebindings"), binding("b", "ClusterRole", "view"))
        .await
        .ok();
    assert_eq!(api.send_as(&jane(), "GET", PODS, Value::Null).await.code, 200);
    for path in ["/api/v1/namespaces/kube-system/pods", "/api/v1/pods", "/api/v1/namespaces/default/secrets"]
    {
        assert_eq!(api.send_as(&jane(), "GET", path, Value::Null).await.code, 403, "{path}");
    }
}

#[tokio::test]
async fn nobody_gives_what_they_do_not_have_unless_they_may_escalate_or_bind() {
    let api = Api::start().await;
    let roles = format!("{RBAC}/namespaces/default/roles");
    let bindings = format!("{RBAC}/namespaces/default/rolebindings");
    let group = "rbac.authorization.k8s.io";
    allow(&api, "writers", json!([rule(&["create", "update", "patch"], group, "*")])).await;
    let role = json!({"metadata": {"name": "secrets"}, "rules": [rule(&["get", "list"], "", "secrets")]});
    let refused = api.send_as(&jane(), "POST", &roles, role.clone()).await.failed(403);
    assert_eq!(
        refused["message"],
        "roles.rbac.authorization.k8s.io \"secrets\" is forbidden: user \"jane\" (groups=[\"people\" \"system:authenticated\"]) is \
         attempting to grant RBAC permissions not currently held:\n{APIGroups:[\"\"], Resources:[\"secrets\"], Verbs:[\"get\" \
         \"list\"]}"
    );
    let bind = binding("b", "ClusterRole", "cluster-admin");
    let refused = api.send_as(&jane(), "POST", &bindings, bind.clone()).await.failed(403);
    assert!(
        refused["message"].as_str().unwrap().ends_with("{NonResourceURLs:[\"*\"], Verbs:[\"*\"]}"),
        "{refused}"
    );
    let sum = json!({"metadata": {"name": "sum"}, "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}});
    let refused =
        api.send_as(&jane(), "POST", &format!("{RBAC}/clusterroles"), sum.clone()).await.failed(403);
    assert!(
        refused["message"]
            .as_str()
            .unwrap()
            .ends_with("must have cluster-admin privileges to use the aggregationRule")
    );

    allow(&api, "escalators", json!([rule(&["escalate", "bind"], group, "*")])).await;
    api.send_as(&jane(), "POST", &roles, role.clone()).await.ok();
    api.send_as(&jane(), "POST", &bindings, bind).await.ok();
    api.send_as(&jane(), "POST", &format!("{RBAC}/clusterroles"), sum).await.ok();
    assert_eq!(
        api.send_as(&jane(), "GET", "/api/v1/namespaces/default/secrets", Value::Null).await.code,
        200
    );

    // What is taken away again, a patch does not bring back either.
    api.delete(&format!("{RBAC}/clusterroles/escalators")).await.ok();
    api.delete(&format!("{bindings}/b")).await.ok();
    let request = http::Request::builder().method("PATCH").uri(format!("{roles}/secrets"));
    let request = request.header("content-type", "application/merge-patch+json");
    let patch = json!({"rules": [rule(&["*"], "", "secrets")]}).to_string();
    let answer = api.server.call(request.body(Body::whole(patch)).unwrap(), jane()).await;
    read(answer).await.failed(403);
    // Owners and finalizers are not rights.
    let mut same = api.get(&format!("{roles}/secrets")).await.ok();
    same["metadata"]["finalizers"] = json!(["example.com/hold"]);
    api.send_as(&jane(), "PUT", &format!("{roles}/secrets"), same).await.ok();
}

#[tokio::test]
async fn a_role_that_is_a_sum_follows_its_parts() {
    let api = Api::start().await;
    api.post(&format!("{RBAC}/clusterrolebindings"), binding("b", "ClusterRole", "admin")).await.ok();
    let widgets = "/apis/example.com/v1/namespaces/default/widgets";
    assert_eq!(api.send_as(&jane(), "GET", widgets, Value::Null).await.code, 403);
    let part = json!({
        "metadata": {"name": "widgets", "labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}},
        "rules": [rule(&["list"], "example.com", "widgets")],
    });
    api.post(&format!("{RBAC}/clusterroles"), part).await.ok();
    let has = |answer: &crate::harness::Answer| answer.text.contains("widgets");
    // From view to edit to admin.
    api.eventually(&format!("{RBAC}/clusterroles/admin"), has).await;
    assert_eq!(api.send_as(&jane(), "GET", widgets, Value::Null).await.code, 404);
    api.delete(&format!("{RBAC}/clusterroles/widgets")).await.ok();
    api.eventually(&format!("{RBAC}/clusterroles/admin"), |answer| !has(answer)).await;
    assert_eq!(api.send_as(&jane(), "GET", widgets, Value::Null).await.code, 403);
}

#[tokio::test]
async fn the_roles_of_every_cluster_are_mended_at_the_next_start_and_no_others() {
    let storage = Arc::new(Memory::new(watchkeeper_storage::Options::default()));
    let api = Api::over(storage.clone()).await;
    let (user, kept) = ("clusterroles/system:basic-user", "clusterroles/system:discovery");
    let more = rule(&["get"], "", "nodes");
    api.merge(&format!("{RBAC}/{user}"), json!({"rules": [more]})).await.ok();
    let own = json!({"rules": [], "metadata": {"annotations": {"rbac.authorization.kubernetes.io/autoupdate": "false"}}});
    api.merge(&format!("{RBAC}/{kept}"), own).await.ok();
    api.delete(&format!("{RBAC}/clusterrolebindings/system:discovery")).await.ok();
    api.merge(&format!("{RBAC}/clusterrolebindings/system:basic-user"), json!({"subjects": []})).await.ok();
    api.server.stop().await;

    let api = Api::over(storage).await;
    let mended = api.get(&format!("{RBAC}/{user}")).await.ok();
    let rules = mended["rules"].as_array().unwrap();
    assert!(rules.contains(&more) && rules.len() > 2, "{mended}");
    assert_eq!(api.get(&format!("{RBAC}/{kept}")).await.ok()["rules"], json!([]));
    for name in ["system:discovery", "system:basic-user"] {
        let binding = api.get(&format!("{RBAC}/clusterrolebindings/{name}")).await.ok();
        assert_eq!(binding["subjects"][0]["name"], "system:authenticated");
    }
    let newest = async |api: &Api| {
        let page = api.storage.range(Range::prefix("/registry/rbac.authorization.k8s.io/")).await.unwrap();
        page.entries.iter().map(|entry| entry.modified).max()
    };
    let before = newest(&api).await;
    api.server.stop().await;
    let api = Api::over(Arc::clone(&api.storage)).await;
    assert_eq!(newest(&api).await, before, "a start with nothing to mend writes nothing");
}

#[tokio::test]
async fn without_authorization_everybody_may_everything_but_nobody_is_still_nobody() {
    let mut options = Options::default();
    options.authorization = watchkeeper_apiserver::Authorization::None;
    let storage = Arc::new(Memory::new(watchkeeper_storage::Options::default()));
    let api = Api::with(storage, options).await;
    let maps = "/api/v1/namespaces/default/configmaps";
    api.send_as(&jane(), "POST", maps, config_map("a", json!({}))).await.ok();
    let request = http::Request::builder().uri(maps).header("impersonate-user", "admin");
    let request = request.header("impersonate-group", "system:masters").body(Body::empty()).unwrap();
    read(api.server.call(request, Identity::anonymous()).await).await.failed(403);
    assert_eq!(api.send_as(&Identity::anonymous(), "GET", "/version", Value::Null).await.code, 200);
    assert_eq!(api.send_as(&Identity::anonymous(), "GET", "/apis", Value::Null).await.code, 403);
    let roles = api.get(&format!("{RBAC}/clusterroles")).await.ok();
    assert_eq!(roles["items"], json!([]));
}

#[tokio::test]
async fn impersonating_needs_a_right_for_every_part_of_the_user() {
    let api = Api::start().await;
    let ask = async |headers: &[(&str, &str)]| {
        let mut request =
            http::Request::builder().method("POST").uri("/apis/authentication.k8s.io/v1/selfsubjectreviews");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        read(api.server.call(request.body(Body::whole("{}")).unwrap(), jane()).await).await
    };
    let refused = ask(&[("impersonate-user", "bob")]).await.failed(403);
    assert_eq!(
        refused["message"],
        "selfsubjectreviews.authentication.k8s.io is forbidden: User \"jane\" cannot impersonate-on:user-info:create resource \
         \"selfsubjectreviews\" in API group \"authentication.k8s.io\" at the cluster scope"
    );
    let named = json!({"verbs": ["impersonate"], "apiGroups": [""], "resources": ["users"], "resourceNames": ["bob"]});
    allow(&api, "impersonate-bob", json!([named])).await;
    let review = ask(&[("impersonate-user", "bob")]).await.ok();
    assert_eq!(review["status"]["userInfo"], json!({"username": "bob", "groups": ["system:authenticated"]}));
    for more in [
        [("impersonate-user", "alice"), ("x", "y")],
        [("impersonate-user", "bob"), ("impersonate-group", "system:masters")],
        [("impersonate-user", "bob"), ("impersonate-uid", "7")],
        [("impersonate-user", "bob"), ("impersonate-extra-scopes", "all")],
        [("impersonate-user", "system:serviceaccount:default:default"), ("x", "y")],
    ] {
        ask(&more).await.failed(403);
    }
    // For one purpose only.
    let verb = "impersonate-on:user-info:create";
    let purpose = rule(&[verb], "authentication.k8s.io", "selfsubjectreviews");
    let who = rule(&["impersonate:user-info"], "authentication.k8s.io", "users");
    allow(&api, "impersonate-anybody-to-ask", json!([purpose, who])).await;
    ask(&[("impersonate-user", "alice")]).await.ok();
    let request = http::Request::builder().uri(PODS).header("impersonate-user", "alice");
    let answer = api.server.call(request.body(Body::empty()).unwrap(), jane()).await;
    read(answer).await.failed(403);
}
