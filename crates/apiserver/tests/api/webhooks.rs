//! Admission webhooks, asked over HTTPS: what they are asked, and what becomes of their answers.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use watchkeeper_apiserver::Options;
use watchkeeper_apiserver::authentication::Service as _;
use watchkeeper_storage::{Commit, Memory, Storage};
use watchkeeper_testkit::eventually;

use crate::harness::{Answer, Api};
use crate::hooks::Hooks;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";

pub(crate) async fn install(api: &Api, phase: &str, name: &str, hooks: Value) {
    let kind = match phase {
        "mutating" => "MutatingWebhookConfiguration",
        _ => "ValidatingWebhookConfiguration",
    };
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
        "metadata": {"name": name}, "webhooks": hooks,
    });
    api.post(&format!("{GROUP}/{phase}webhookconfigurations"), configuration).await.ok();
}

fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "1"}})
}

fn message(answer: &Answer) -> String {
    answer.json()["message"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn mutating_hooks_are_asked_in_order_and_validating_ones_see_what_came_of_it() {
    let (api, hooks) = (Api::start().await, Hooks::start().await);
    for path in ["/one", "/two", "/three"] {
        hooks.patch(path, move |request| {
            let seen = request["object"]["data"]["seen"].as_str().unwrap_or_default().to_owned();
            json!([{"op": "add", "path": "/data/seen", "value": format!("{seen}{path}")}])
        });
    }
    hooks.answer("/judge", |_| json!({"allowed": true, "warnings": ["mind the gap"]}));
    install(&api, "mutating", "b", json!([hooks.hook("three.b.io", "/three")])).await;
    let first = json!([hooks.hook("one.a.io", "/one"), hooks.hook("two.a.io", "/two")]);
    install(&api, "mutating", "a", first).await;
    install(&api, "validating", "v", json!([hooks.hook("judge.v.io", "/judge")])).await;

    let answer = api.post(MAPS, map("m")).await;
    let created = answer.ok();
    assert_eq!(created["data"]["seen"], "/one/two/three");
    assert_eq!(answer.warnings(), ["299 - \"mind the gap\""]);
    let asked = hooks.asked();
    assert_eq!(
        asked.iter().map(|(path, _)| path.as_str()).collect::<Vec<_>>(),
        ["/one", "/two", "/three", "/judge"]
    );
    let mutating = &asked[0].1;
    assert_eq!(mutating["operation"], "CREATE");
    assert_eq!(mutating["kind"], json!({"group": "", "version": "v1", "kind": "ConfigMap"}));
    assert_eq!(mutating["resource"], json!({"group": "", "version": "v1", "resource": "configmaps"}));
    assert_eq!((&mutating["name"], &mutating["namespace"]), (&json!("m"), &json!("default")));
    assert_eq!(mutating["userInfo"]["username"], "admin");
    assert_eq!((&mutating["oldObject"], &mutating["dryRun"]), (&Value::Null, &json!(false)));
    assert_eq!(mutating["options"]["kind"], "CreateOptions");
    assert!(mutating["object"]["metadata"]["uid"].is_null(), "it has none yet");
    let judged = &asked[3].1;
    assert_eq!(judged["object"]["data"]["seen"], "/one/two/three");
    assert_eq!(judged["object"]["metadata"]["uid"], created["metadata"]["uid"]);

    // A hook that is gone is not asked any more.
    api.delete(&format!("{GROUP}/mutatingwebhookconfigurations/a")).await.ok();
    api.merge(&format!("{MAPS}/m"), json!({"data": {"seen": ""}})).await.ok();
    let asked = hooks.asked();
    assert_eq!(asked.iter().map(|(path, _)| path.as_str()).collect::<Vec<_>>(), ["/three", "/judge"]);
    assert_eq!(asked[1].1["operation"], "UPDATE");
    assert_eq!(asked[1].1["oldObject"]["data"]["seen"], "/one/two/three");
    assert_eq!(asked[1].1["object"]["data"]["seen"], "/three");
    api.delete(&format!("{GROUP}/mutatingwebhookconfigurations/b")).await.ok();
    api.delete(&format!("{MAPS}/m")).await.ok();
    let asked = hooks.asked();
    let deleted = &asked[0].1;
    assert_eq!((&deleted["operation"], &deleted["object"]), (&json!("DELETE"), &Value::Null));
    assert_eq!(deleted["oldObject"]["data"]["seen"], "/three");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_refused_is_told_by_which_hook_and_why() {
    let (api, hooks) = (Api::start().await, Hooks::start().await);
    hooks.answer("/judge", |request| match request["name"].as_str().unwrap() {
        "said" => json!({"allowed": false, "status": {"code": 422, "reason": "Odd", "message": "too odd"}}),
        "reason" => json!({"allowed": false, "status": {"reason": "Because", "code": 200}}),
        "silent" => json!({"allowed": false}),
        _ => json!({"allowed": true}),
    });
    install(&api, "validating", "v", json!([hooks.hook("judge.v.io", "/judge")])).await;
    let refused = api.post(MAPS, map("said")).await;
    let status = refused.failed(422);
    assert_eq!(status["reason"], "Odd");
    assert_eq!(status["message"], "admission webhook \"judge.v.io\" denied the request: too odd");
    let refused = api.post(MAPS, map("reason")).await;
    refused.failed(400);
    assert_eq!(message(&refused), "admission webhook \"judge.v.io\" denied the request: Because");
    let refused = api.post(MAPS, map("silent")).await;
    refused.failed(400);
    assert_eq!(message(&refused), "admission webhook \"judge.v.io\" denied the request without explanation");
    api.post(MAPS, map("fine")).await.ok();
    api.get(&format!("{MAPS}/said")).await.failed(404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_that_cannot_be_asked_fails_the_write_or_is_ignored() {
    let (api, hooks) = (Api::start().await, Hooks::start().await);
    let other = Hooks::start().await;
    let nobody = {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        socket.local_addr().unwrap()
    };
    hooks.script("/500", |_| (500, "<html>oops</html>".to_owned()));
    hooks.script("/text", |_| (200, "hello".to_owned()));
    hooks.script("/absent", |_| {
        (200, json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}).to_string())
    });
    hooks.script("/uid", |_| {
        let response = json!({"uid": "other", "allowed": true});
        let review =
            json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
        (200, review.to_string())
    });
    hooks.script("/version", |_| {
        let review = json!({"apiVersion": "v1", "kind": "Status", "response": {}});
        (200, review.to_string())
    });
    hooks.answer("/untyped", |_| json!({"allowed": true, "patch": "W10="}));
    hooks.answer("/patchless", |_| json!({"allowed": true, "patchType": "JSONPatch"}));
    hooks.answer("/strange", |_| json!({"allowed": true, "patch": "W10=", "patchType": ""}));
    hooks.answer("/broken", |_| json!({"allowed": true, "patch": "e30=", "patchType": "JSONPatch"}));
    let post = |path: &str| format!("failed to call webhook: Post \"{}{path}?timeout=10s\": ", hooks.url);
    let invalid = "received invalid webhook response: ";
    for (path, change, expected) in [
        (
            "/refused",
            json!({"clientConfig": {"url": format!("https://{nobody}/refused")}}),
            format!(
                "failed to call webhook: Post \"https://{nobody}/refused?timeout=10s\": dial tcp {nobody}: connect: connection refused"
            ),
        ),
        (
            "/authority",
            json!({"clientConfig": {"url": format!("{}/authority", hooks.url), "caBundle": other.bundle}}),
            format!(
                "{}tls: failed to verify certificate: x509: certificate signed by unknown authority",
                post("/authority")
            ),
        ),
        (
            "/service",
            json!({"clientConfig": {"service": {"namespace": "default", "name": "nobody", "path": "/service"}}}),
            "failed to call webhook: Post \"https://nobody.default.svc:443/service?timeout=10s\": service \"nobody\" not found"
                .to_owned(),
        ),
        ("/hang", json!({"timeoutSeconds": 1}), {
            format!("failed to call webhook: Post \"{}/hang?timeout=1s\": context deadline exceeded", hooks.url)
        }),
        ("/404", json!({}), "failed to call webhook: the server could not find the requested resource".to_owned()),
        (
            "/500",
            json!({}),
            "failed to call webhook: an error on the server (\"<html>oops</html>\") has prevented the request from succeeding"
                .to_owned(),
        ),
        ("/absent", json!({}), format!("{invalid}webhook response was absent")),
        ("/uid", json!({}), format!("{invalid}expected response.uid=")),
        (
            "/version",
            json!({}),
            format!("{invalid}expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got v1, Kind=Status"),
        ),
        ("/untyped", json!({}), format!("{invalid}webhook returned response.patch but not response.patchType")),
        ("/patchless", json!({}), format!("{invalid}webhook returned response.patchType but not response.patch")),
        ("/strange", json!({}), format!("{invalid}webhook returned invalid response.patchType of \"\"")),
        ("/broken", json!({}), "received undecodable patch in webhook response: ".to_owned()),
        (
            "/text",
            json!({}),
            "failed to call webhook: couldn't get version/kind; json parse error: json: cannot unmarshal string into Go value"
                .to_owned(),
        ),
    ] {
        let mut hook = hooks.hook("hook.m.io", path);
        for (field, value) in change.as_object().unwrap() {
            hook[field] = value.clone();
        }
        install(&api, "mutating", "m", json!([hook])).await;
        let failed = api.post(MAPS, map("m")).await;
        failed.failed(500);
        let expected = format!("Internal error occurred: failed calling webhook \"hook.m.io\": {expected}");
        assert!(message(&failed).starts_with(&expected), "{path}: {}\nand not\n{expected}", message(&failed));

        let ignored = json!([{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Ignore"}]);
        let configuration = format!("{GROUP}/mutatingwebhookconfigurations/m");
        api.send("PATCH", &configuration, "application/json-patch+json", &ignored.to_string()).await.ok();
        api.post(MAPS, map("m")).await.ok();
        api.delete(&configuration).await.ok();
        api.delete(&format!("{MAPS}/m")).await.ok();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_hooks_that_a_write_concerns_are_asked() {
    let (api, hooks) = (Api::start().await, Hooks::start().await);
    for path in ["/space", "/object", "/status", "/cluster", "/all"] {
        hooks.answer(path, |_| json!({"allowed": true}));
    }
    let with = |name: &str, path: &str, change: Value| {
        let mut hook = hooks.hook(name, path);
        for (field, value) in change.as_object().unwrap() {
            hook[field] = value.clone();
        }
        hook
    };
    let rule = |groups: &str, resources: &str, scope: &str| {
        json!([{
            "operations": ["CREATE", "UPDATE"], "apiGroups": [groups], "apiVersions": ["*"],
            "resources": [resources], "scope": scope,
        }])
    };
    install(
        &api,
        "validating",
        "v",
        json!([
            with("space.v.io", "/space", json!({"namespaceSelector": {"matchLabels": {"team": "a"}}})),
            with(
                "object.v.io",
                "/object",
                json!({"objectSelector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}})
            ),
            with("status.v.io", "/status", json!({"rules": rule("apps", "*/status", "*")})),
            with("cluster.v.io", "/cluster", json!({"rules": rule("*", "*", "Cluster")})),
            with("all.v.io", "/all", json!({"rules": rule("*", "*/*", "*")})),
        ]),
    )
    .await;
    assert_eq!(hooks.paths(), [] as [&str; 0], "nobody is asked about webhooks");
    let sorted = |hooks: &Hooks| {
        let mut paths = hooks.paths();
        paths.sort();
        paths
    };
    api.post("/api/v1/namespaces", json!({"metadata": {"name": "a", "labels": {"team": "a"}}})).await.ok();
    assert_eq!(sorted(&hooks), ["/all", "/cluster"]);
    api.post(MAPS, map("plain")).await.ok();
    assert_eq!(sorted(&hooks), ["/all"]);
    api.post("/api/v1/namespaces/a/configmaps", map("here")).await.ok();
    assert_eq!(sorted(&hooks), ["/all", "/space"]);
    let mut labelled = map("labelled");
    labelled["metadata"]["labels"] = json!({"app": "x"});
    api.post(MAPS, labelled).await.ok();
    assert_eq!(sorted(&hooks), ["/all", "/object"]);
    // The old labels count, too.
    api.merge(&format!("{MAPS}/labelled"), json!({"metadata": {"labels": null}})).await.ok();
    assert_eq!(sorted(&hooks), ["/all", "/object"]);
    let template =
        json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let deployment = json!({"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}});
    api.post("/apis/apps/v1/namespaces/default/deployments", deployment).await.ok();
    assert_eq!(sorted(&hooks), ["/all"]);
    let status = "/apis/apps/v1/namespaces/default/deployments/d/status";
    api.merge(status, json!({"status": {"replicas": 1}})).await.ok();
    let asked = hooks.asked();
    assert_eq!(asked.len(), 2, "{asked:?}");
    assert_eq!(
        (&asked[0].1["subResource"], &asked[0].1["requestSubResource"]),
        (&json!("status"), &json!("status"))
    );
    let scale = "/apis/apps/v1/namespaces/default/deployments/d/scale";
    api.merge(scale, json!({"spec": {"replicas": 3}})).await.ok();
    let asked = hooks.asked();
    assert_eq!(asked[0].1["kind"], json!({"group": "autoscaling", "version": "v1", "kind": "Scale"}));
    assert_eq!(asked[0].1["object"]["spec"]["replicas"], 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_sees_the_version_that_it_names_unless_it_wants_that_one_exactly() {
    let (api, hooks) = (Api::start().await, Hooks::start().await);
    let version = |name: &str, storage: bool| {
        json!({"name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema": {
            "type": "object", "properties": {"spec": {"type": "object", "properties": {
                "size": {"type": "integer"}, "kept": {"type": "string", "default": "yes"},
            }}},
        }}})
    };
    let definition = json!({
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
            "versions": [version("v1", true), version("v2", false)],
        },
    });
    api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).await.ok();
    hooks.patch("/near", |_| {
        json!([{"op": "add", "path": "/spec/size", "value": 7}, {"op": "add", "path": "/spec/odd", "value": 1}, {"op": "remove", "path": "/spec/kept"}])
    });
    hooks.answer("/exact", |_| json!({"allowed": true}));
    let rules = json!([{"operations": ["CREATE"], "apiGroups": ["example.com"], "apiVersions": ["v1"], "resources": ["things"]}]);
    let (mut near, mut exact) = (hooks.hook("near.m.io", "/near"), hooks.hook("exact.m.io", "/exact"));
    near["rules"] = rules.clone();
    exact["rules"] = rules;
    exact["matchPolicy"] = json!("Exact");
    install(&api, "mutating", "m", json!([near, exact])).await;
    let thing = json!({"apiVersion": "example.com/v2", "kind": "Thing", "metadata": {"name": "t"}, "spec": {"size": 1}});
    let path = "/apis/example.com/v2/namespaces/default/things";
    let created = api.post(path, thing).await.ok();
    assert_eq!(created["apiVersion"], "example.com/v2");
    assert_eq!(created["spec"], json!({"size": 7, "kept": "yes"}), "pruned and given defaults again");
    let asked = hooks.asked();
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert_eq!(asked[0].1["kind"]["version"], "v1");
    assert_eq!(asked[0].1["requestKind"]["version"], "v2");
    assert_eq!(asked[0].1["object"]["apiVersion"], "example.com/v1");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_that_wants_it_is_asked_again_after_others_changed_the_object() {
    let (api, hooks) = (Api::start().await, Hooks::start().await);
    let count = |path: &'static str| {
        move |request: &Value| {
            let key = path.trim_start_matches('/');
            let seen = request["object"]["data"][key].as_str().unwrap_or("0").parse::<u32>().unwrap();
            json!([{"op": "add", "path": format!("/data/{key}"), "value": (seen + 1).to_string()}])
        }
    };
    hooks.patch("/first", count("/first"));
    hooks.patch("/second", count("/second"));
    hooks.answer("/third", |_| json!({"allowed": true}));
    let (mut first, mut third) = (hooks.hook("first.m.io", "/first"), hooks.hook("third.m.io", "/third"));
    first["reinvocationPolicy"] = json!("IfNeeded");
    third["reinvocationPolicy"] = json!("IfNeeded");
    install(&api, "mutating", "m", json!([first, hooks.hook("second.m.io", "/second"), third])).await;
    let created = api.post(MAPS, map("m")).await.ok();
    assert_eq!(hooks.paths(), ["/first", "/second", "/third", "/first", "/third"]);
    assert_eq!(created["data"], json!({"a": "1", "first": "2", "second": "1"}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_asks_only_hooks_without_side_effects() {
    let (api, hooks) = (Api::start().await, Hooks::start().await);
    hooks.answer("/judge", |_| json!({"allowed": true}));
    let mut hook = hooks.hook("judge.v.io", "/judge");
    install(&api, "validating", "pure", json!([hook])).await;
    api.post(&format!("{MAPS}?dryRun=All"), map("m")).await.ok();
    let asked = hooks.asked();
    assert_eq!(asked[0].1["dryRun"], true);
    assert_eq!(asked[0].1["options"]["dryRun"], json!(["All"]));
    hook["name"] = json!("effects.v.io");
    hook["sideEffects"] = json!("NoneOnDryRun");
    install(&api, "validating", "effects", json!([hook])).await;
    api.post(&format!("{MAPS}?dryRun=All"), map("m")).await.ok();
    assert_eq!(hooks.paths().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_behind_a_service_is_found_by_its_endpoints() {
    let (api, hooks) = (Api::start().await, Hooks::start().await);
    hooks.answer("/judge", |_| json!({"allowed": false, "status": {"message": "asked"}}));
    let port: u16 = hooks.url.rsplit_once(':').unwrap().1.parse().unwrap();
    let service = json!({
        "metadata": {"name": "hooks"},
        "spec": {"ports": [{"name": "https", "port": 443, "targetPort": 8443}]},
    });
    api.post("/api/v1/namespaces/default/services", service).await.ok();
    let mut hook = hooks.hook("judge.v.io", "/judge");
    hook["clientConfig"] = json!({"caBundle": hooks.bundle, "service": {"namespace": "default", "name": "hooks", "path": "/judge"}});
    install(&api, "validating", "v", json!([hook])).await;
    let failed = api.post(MAPS, map("m")).await;
    assert!(
        message(&failed).ends_with("no endpoints available for service \"hooks\""),
        "{}",
        message(&failed)
    );
    let slice = json!({
        "metadata": {"name": "hooks-1", "labels": {"kubernetes.io/service-name": "hooks"}},
        "addressType": "IPv4",
        "ports": [{"name": "https", "port": port}],
        "endpoints": [{"addresses": ["10.10.0.1"]}, {"addresses": ["10.10.0.2"], "conditions": {"ready": false}}],
    });
    api.post("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", slice).await.ok();
    // The API takes no loopback addresses, and tests listen on no others.
    let key = "/registry/discovery.k8s.io/endpointslices/default/hooks-1";
    let stored = api.storage.get(key, None).await.unwrap().entry.unwrap();
    let found = stored.value.windows(9).position(|bytes| bytes == b"10.10.0.1").unwrap();
    let mut value = stored.value.to_vec();
    value[found..found + 9].copy_from_slice(b"127.0.0.1");
    api.storage.commit(Commit::new().put(key, value)).await.unwrap();
    // The certificate is for the name of the Service.
    assert_eq!(
        message(&api.post(MAPS, map("m")).await),
        "admission webhook \"judge.v.io\" denied the request: asked"
    );
}

/// Puts an endpoint of this machine into a slice of the Service `hooks`. The API takes no loopback addresses, and tests listen on no
/// others.
async fn add_endpoint(api: &Api, name: &str, hooks: &Hooks) {
    let port: u16 = hooks.url.rsplit_once(':').unwrap().1.parse().unwrap();
    let slice = json!({
        "metadata": {"name": name, "labels": {"kubernetes.io/service-name": "hooks"}},
        "addressType": "IPv4",
        "ports": [{"name": "https", "port": port}],
        "endpoints": [{"addresses": ["10.10.0.1"]}],
    });
    api.post("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", slice).await.ok();
    let key = format!("/registry/discovery.k8s.io/endpointslices/default/{name}");
    let stored = api.storage.get(&key, None).await.unwrap().entry.unwrap();
    let found = stored.value.windows(9).position(|bytes| bytes == b"10.10.0.1").unwrap();
    let mut value = stored.value.to_vec();
    value[found..found + 9].copy_from_slice(b"127.0.0.1");
    api.storage.commit(Commit::new().put(key, value)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_are_spread_over_all_endpoints_of_a_service_and_follow_changes() {
    let (api, one, other) = (Api::start().await, Hooks::start().await, Hooks::start().await);
    for hooks in [&one, &other] {
        hooks.answer("/judge", |_| json!({"allowed": true}));
    }
    let service = json!({"metadata": {"name": "hooks"}, "spec": {"ports": [{"name": "https", "port": 443}]}});
    api.post("/api/v1/namespaces/default/services", service).await.ok();
    add_endpoint(&api, "one", &one).await;
    add_endpoint(&api, "other", &other).await;
    let bundle = watchkeeper_go::base64::encode(
        [&one.bundle, &other.bundle].map(|bundle| watchkeeper_go::base64::decode(bundle).unwrap()).concat(),
    );
    let mut hook = one.hook("judge.v.io", "/judge");
    hook["clientConfig"] =
        json!({"caBundle": bundle, "service": {"namespace": "default", "name": "hooks", "path": "/judge"}});
    install(&api, "validating", "v", json!([hook])).await;
    let dry_run = format!("{MAPS}?dryRun=All");
    for _ in 0..40 {
        api.post(&dry_run, map("m")).await.ok();
    }
    // Each is chosen by chance: that one gets none of 40 happens once in 2^39 times.
    let counts = [one.paths().len(), other.paths().len()];
    assert!(counts.iter().all(|count| *count > 0) && counts.iter().sum::<usize>() == 40, "{counts:?}");
    api.delete("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/one").await.ok();
    for _ in 0..20 {
        api.post(&dry_run, map("m")).await.ok();
    }
    assert_eq!([one.paths().len(), other.paths().len()], [0, 20]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_that_cannot_be_read_again_stays_in_force() {
    let (api, hooks) = (Api::start().await, Hooks::start().await);
    hooks.answer("/deny", |_| json!({"allowed": false}));
    install(&api, "validating", "v", json!([hooks.hook("deny.v.io", "/deny")])).await;
    api.post(MAPS, map("m")).await.failed(400);
    let supervisor = api.server.supervisor();
    supervisor.poison("/registry/admissionregistration.k8s.io/validatingwebhookconfigurations/v");
    let before = supervisor.panics("webhooks");
    supervisor.inject("webhooks");
    // The panic, and the one of the configuration when all are read again.
    eventually(|| async { supervisor.panics("webhooks") >= before + 2 }).await;
    // Another configuration is in force as soon as everything was read.
    install(&api, "validating", "w", json!([])).await;
    api.post(MAPS, map("m")).await.failed(400);
}

#[tokio::test(flavor = "multi_thread")]
async fn hooks_about_other_resources_do_not_have_the_namespace_read() {
    let (api, hooks) = (Api::start().await, Hooks::start().await);
    hooks.answer("/judge", |_| json!({"allowed": true}));
    let mut hook = hooks.hook("judge.v.io", "/judge");
    hook["namespaceSelector"] = json!({"matchLabels": {"kubernetes.io/metadata.name": "default"}});
    hook["rules"][0]["resources"] = json!(["secrets"]);
    install(&api, "validating", "v", json!([hook])).await;
    // A namespace that cannot be read fails whoever reads it.
    let key = "/registry/core/namespaces/default";
    let namespace = api.storage.get(key, None).await.unwrap().entry.unwrap();
    api.post(MAPS, map("before")).await.ok();
    let broken = json!({"data": {"a": "2"}});
    api.storage.commit(Commit::new().put(key, b"nonsense".to_vec())).await.unwrap();
    api.merge(&format!("{MAPS}/before"), broken).await.ok();
    api.post("/api/v1/namespaces/default/secrets?dryRun=All", json!({"metadata": {"name": "s"}}))
        .await
        .failed(500);
    api.storage.commit(Commit::new().put(key, namespace.value.clone())).await.unwrap();
    api.post("/api/v1/namespaces/default/secrets?dryRun=All", json!({"metadata": {"name": "s"}})).await.ok();
    assert_eq!(hooks.paths(), ["/judge"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_pods_may_be_told_where_a_service_is() {
    let hooks = Hooks::start().await;
    hooks.answer("/judge", |_| json!({"allowed": false, "status": {"message": "asked"}}));
    let mut options = Options::default();
    let address = hooks.url.trim_start_matches("https://").parse().unwrap();
    options.service_addresses.insert("default/hooks".to_owned(), address);
    let api = Api::with(Arc::new(Memory::new(watchkeeper_storage::Options::default())), options).await;
    let mut hook = hooks.hook("judge.v.io", "/judge");
    hook["clientConfig"] = json!({"caBundle": hooks.bundle, "service": {"namespace": "default", "name": "hooks", "path": "/judge"}});
    install(&api, "validating", "v", json!([hook])).await;
    assert_eq!(
        message(&api.post(MAPS, map("m")).await),
        "admission webhook \"judge.v.io\" denied the request: asked"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_patched_and_what_cannot_be_decided_is_refused() {
    let (api, hooks) = (Api::start().await, Hooks::start().await);
    api.post(MAPS, map("m")).await.ok();
    hooks.patch("/delete", |_| json!([{"op": "add", "path": "/metadata/labels", "value": {}}]));
    install(&api, "mutating", "m", json!([hooks.hook("delete.m.io", "/delete")])).await;
    let failed = api.delete(&format!("{MAPS}/m")).await;
    failed.failed(500);
    let why = "admission webhook \"delete.m.io\" attempted to modify the object, which is not supported for this operation";
    assert!(message(&failed).ends_with(why), "{}", message(&failed));
    api.delete(&format!("{GROUP}/mutatingwebhookconfigurations/m")).await.ok();

    let mut hook = hooks.hook("conditions.v.io", "/conditions");
    hook["matchConditions"] = json!([{"name": "always", "expression": "true"}]);
    let configuration = json!({"metadata": {"name": "v"}, "webhooks": [hook]});
    let written = api.post(&format!("{GROUP}/validatingwebhookconfigurations"), configuration).await;
    written.ok();
    assert!(
        written.warnings()[0].contains("webhooks[0].matchConditions: not evaluated"),
        "{:?}",
        written.warnings()
    );
    api.post(MAPS, map("n")).await.failed(403);
    assert_eq!(hooks.paths(), ["/delete"], "nobody was asked");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_that_hangs_holds_up_nothing_but_its_own_writes() {
    let (api, hooks) = (Arc::new(Api::start().await), Hooks::start().await);
    let mut hook = hooks.hook("hang.v.io", "/hang");
    hook["timeoutSeconds"] = json!(30);
    install(&api, "validating", "v", json!([hook])).await;
    let waiting: Vec<_> = (0..50)
        .map(|number| {
            let api = Arc::clone(&api);
            tokio::spawn(async move { api.post(MAPS, map(&format!("m{number}"))).await.code })
        })
        .collect();
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    while hooks.asked.lock().len() < 50 {
        assert!(std::time::Instant::now() < deadline);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let secrets = "/api/v1/namespaces/default/secrets";
    for number in 0..50 {
        api.post(secrets, json!({"metadata": {"name": format!("s{number}")}})).await.ok();
    }
    assert!(waiting.iter().all(|write| !write.is_finished()), "they still wait");
    waiting.iter().for_each(tokio::task::JoinHandle::abort);
}

/// A hook for one subresource of pods.
fn pods_hook(hooks: &Hooks, path: &str, subresource: &str) -> Value {
    let mut hook = hooks.hook(&format!("{}.pods.io", &path[1..]), path);
    hook["rules"][0]["resources"] = json!([format!("pods/{subresource}")]);
    hook
}

/// A pod that runs, on a node unless it is to be bound, and a budget that lets one of its kind go.
async fn budgeted(api: &Api, pod: &str, node: Option<&str>) {
    let mut object = json!({
        "metadata": {"name": pod, "labels": {"app": "a"}},
        "spec": {"terminationGracePeriodSeconds": 30, "containers": [{"name": "c", "image": "i"}]},
    });
    if let Some(node) = node {
        object["spec"]["nodeName"] = node.into();
    }
    api.post(PODS, object).await.ok();
    let running =
        json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
    api.merge(&format!("{PODS}/{pod}/status"), running).await.ok();
    let budget = json!({"metadata": {"name": "b"}, "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "a"}}}});
    api.post(BUDGETS, budget).await.ok();
    let status = json!({"status": {"observedGeneration": 1, "disruptionsAllowed": 1, "currentHealthy": 1, "desiredHealthy": 0, "expectedPods": 1}});
    api.merge(&format!("{BUDGETS}/b/status"), status).await.ok();
}

const PODS: &str = "/api/v1/namespaces/default/pods";
const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";

fn eviction(name: &str) -> Value {
    json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}})
}

#[tokio::test(flavor = "multi_thread")]
async fn an_eviction_that_a_hook_refuses_costs_no_disruption() {
    let (api, hooks) = (Api::start().await, Hooks::start().await);
    budgeted(&api, "p", Some("n")).await;
    hooks.answer("/no", |_| json!({"allowed": false, "status": {"message": "not now"}}));
    install(&api, "validating", "v", json!([pods_hook(&hooks, "/no", "eviction")])).await;
    let evict = format!("{PODS}/p/eviction");
    let refused = api.post(&evict, eviction("p")).await;
    assert!(message(&refused).ends_with("denied the request: not now"), "{}", refused.text);
    assert_eq!(api.get(&format!("{BUDGETS}/b")).await.ok()["status"]["disruptionsAllowed"], 1);
    api.delete(&format!("{GROUP}/validatingwebhookconfigurations/v")).await.ok();
    api.post(&format!("{evict}?dryRun=All"), eviction("p")).await.ok();
    assert_eq!(api.get(&format!("{BUDGETS}/b")).await.ok()["status"]["disruptionsAllowed"], 1);
    api.post(&evict, eviction("p")).await.ok();
    let budget = api.get(&format!("{BUDGETS}/b")).await.ok();
    assert_eq!(budget["status"]["disruptionsAllowed"], 0);
    assert!(budget["status"]["disruptedPods"]["p"].is_string(), "{budget}");
    assert!(api.get(&format!("{PODS}/p")).await.ok()["metadata"]["deletionTimestamp"].is_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_takes_effect_is_the_eviction_that_hooks_made_and_others_judged() {
    let (api, hooks) = (Api::start().await, Hooks::start().await);
    budgeted(&api, "p", Some("n")).await;
    hooks.patch(
        "/sooner",
        |_| json!([{"op": "add", "path": "/deleteOptions", "value": {"gracePeriodSeconds": 7}}]),
    );
    hooks.answer("/see", |_| json!({"allowed": true}));
    install(&api, "mutating", "m", json!([pods_hook(&hooks, "/sooner", "eviction")])).await;
    install(&api, "validating", "v", json!([pods_hook(&hooks, "/see", "eviction")])).await;
    api.post(&format!("{PODS}/p/eviction"), eviction("p")).await.ok();
    let seen = hooks.asked().into_iter().find(|(path, _)| path == "/see").unwrap().1;
    assert_eq!(seen["object"]["deleteOptions"]["gracePeriodSeconds"], 7);
    assert_eq!(api.get(&format!("{PODS}/p")).await.ok()["metadata"]["deletionGracePeriodSeconds"], 7);
    // Of another pod, it takes no effect at all.
    hooks.patch("/sooner", |_| json!([{"op": "replace", "path": "/metadata/name", "value": "q"}]));
    let refused = api.post(&format!("{PODS}/p/eviction"), eviction("p")).await;
    assert!(
        message(&refused).contains("name in URL does not match name in Eviction object"),
        "{}",
        refused.text
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_takes_effect_is_the_binding_that_hooks_made_and_others_judged() {
    let (api, hooks) = (Api::start().await, Hooks::start().await);
    budgeted(&api, "p", None).await;
    hooks.answer("/see", |_| json!({"allowed": true}));
    install(&api, "mutating", "m", json!([pods_hook(&hooks, "/node", "binding")])).await;
    install(&api, "validating", "v", json!([pods_hook(&hooks, "/see", "binding")])).await;
    let binding = json!({"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "one"}});
    hooks.patch("/node", |_| json!([{"op": "remove", "path": "/target/name"}]));
    assert_eq!(api.post(&format!("{PODS}/p/binding"), binding.clone()).await.code, 500);
    hooks.asked();
    hooks.patch("/node", |_| json!([{"op": "replace", "path": "/target/name", "value": "other"}]));
    api.post(&format!("{PODS}/p/binding"), binding).await.ok();
    let seen = hooks.asked().into_iter().find(|(path, _)| path == "/see").unwrap().1;
    assert_eq!(seen["object"]["target"]["name"], "other");
    assert_eq!(api.get(&format!("{PODS}/p")).await.ok()["spec"]["nodeName"], "other");
}

#[tokio::test(flavor = "multi_thread")]
async fn warnings_reach_the_client_whatever_was_asked_for() {
    const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
    let (api, hooks) = (Api::start().await, Hooks::start().await);
    budgeted(&api, "p", None).await;
    api.post(MAPS, map("one")).await.ok();
    api.post(MAPS, map("two")).await.ok();
    let deployment = json!({"metadata": {"name": "d"}, "spec": {
        "selector": {"matchLabels": {"app": "d"}},
        "template": {"metadata": {"labels": {"app": "d"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
    }});
    api.post(DEPLOYMENTS, deployment).await.ok();
    let account = json!({"metadata": {"name": "a"}});
    api.post("/api/v1/namespaces/default/serviceaccounts", account).await.ok();
    for phase in ["mutating", "validating"] {
        let path = format!("/{phase}");
        hooks.answer(
            &path,
            move |request| json!({"allowed": true, "warnings": [format!("{phase} {}", request["operation"].as_str().unwrap())]}),
        );
        let mut hook = hooks.hook(&format!("{phase}.warns.io"), &path);
        hook["rules"][0] = json!({"operations": ["*"], "apiGroups": ["", "apps", "authorization.k8s.io"], "apiVersions": ["*"], "resources": ["*/*"]});
        install(&api, phase, "all", json!([hook])).await;
    }
    let binding = json!({"metadata": {"name": "p"}, "nodes": 1, "target": {"kind": "Node", "name": "n"}});
    let review = json!({"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}});
    let access = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let scale = format!("{DEPLOYMENTS}/d/scale");
    let wrong = json!({"metadata": {"name": "Wrong"}});
    let warned = |names: [&str; 2]| names.map(|name| format!("299 - \"{name}\"")).to_vec();
    let [created, connected, deleted] = ["CREATE", "CONNECT", "DELETE"]
        .map(|verb| warned([&format!("mutating {verb}"), &format!("validating {verb}")]));
    let updated = warned(["mutating UPDATE", "validating UPDATE"]);
    let unknown = "299 - \"unknown field \\\"nodes\\\"\"".to_owned();
    for (what, answer, code, wanted) in [
        ("CONNECT", api.post(&format!("{PODS}/p/exec?command=ls"), Value::Null).await, 400, connected),
        ("a review", api.post(access, review).await, 201, created.clone()),
        ("a scale", api.merge(&scale, json!({"spec": {"replicas": 2}})).await, 200, updated),
        (
            "a binding",
            api.post(&format!("{PODS}/p/binding?fieldValidation=Warn"), binding).await,
            201,
            [vec![unknown], created.clone()].concat(),
        ),
        (
            "an eviction",
            api.post(&format!("{PODS}/p/eviction?dryRun=All"), eviction("p")).await,
            201,
            created.clone(),
        ),
        (
            "an eviction of nobody",
            api.post(&format!("{PODS}/nobody/eviction"), eviction("nobody")).await,
            404,
            created[..1].to_vec(),
        ),
        (
            "a token",
            api.post("/api/v1/namespaces/default/serviceaccounts/a/token", json!({"spec": {}})).await,
            201,
            created.clone(),
        ),
        ("an object that is not valid", api.post(MAPS, wrong).await, 422, created[..1].to_vec()),
        ("a collection", api.delete(MAPS).await, 200, deleted),
    ] {
        assert_eq!(
            (answer.code, answer.warnings()),
            (code, wanted.iter().map(String::as_str).collect()),
            "{what}: {}",
            answer.text
        );
    }
}
