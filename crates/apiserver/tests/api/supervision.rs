//! Background tasks that panic: what that costs, and who hears of it.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use watchkeeper_apiserver::authentication::{Identity, Service, Tokens};
use watchkeeper_apiserver::{Clock, Options};
use watchkeeper_storage::{
    Answer as StorageAnswer, Commit, Committed, Found, Limits, Memory, Page, Range, Revision, Stats, Storage,
    Watch,
};
use watchkeeper_supervision::Supervisor;

use crate::harness::{Answer, Api, DEFINITIONS, WIDGETS, config_map, definition, spec, widget};
use crate::storage_protection;

const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
const API_SERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
const FLOW_SCHEMAS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas";
const WEBHOOKS: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
const EVENTS: &str = "/api/v1/namespaces/default/events";

/// All tasks of a server.
const LISTERS: &str = "admission-listers";
const QUOTAS: &str = "/api/v1/namespaces/default/resourcequotas";

const TASKS: [&str; 22] = [
    "access",
    "aggregation",
    "api-service-availability",
    "api-services",
    "claim-protection",
    "definition-deletion",
    "definitions",
    "event-expiry",
    "flow-control",
    "flow-schemas",
    "front-proxy",
    "garbage-collector",
    "history-packing",
    "namespace-deletion",
    "resource-quotas",
    "role-aggregation",
    "root-ca-certificates",
    "service-accounts",
    "service-allocation",
    "volume-attributes-class-protection",
    "volume-protection",
    "webhooks",
];

/// A server with all tasks, whose clock goes with the time of the test.
async fn start() -> (Api, Supervisor) {
    let (start, begin) = (SystemTime::now(), Instant::now());
    let mut options = Options::default();
    options.clock = Clock::new(move || start + begin.elapsed());
    options.certificate_authority = Some("made up".into());
    let limits = Limits { pack_after: Duration::ZERO, pack_bytes: 1, ..Limits::default() };
    let storage = watchkeeper_storage::Options { limits, ..watchkeeper_storage::Options::default() };
    let api = Api::with(Arc::new(Memory::new(storage)), options).await;
    let supervisor = api.server.supervisor();
    // Tasks begin when their turn comes.
    sleep(Duration::from_millis(1)).await;
    (api, supervisor)
}

/// Does something that only this task can finish, and waits until it has.
async fn use_task(api: &Api, task: &str, turn: usize) {
    match task {
        "access" => {
            // Whoever writes a role hears of it when it is in force.
            let role = json!({"metadata": {"name": format!("role-{turn}")}, "rules": []});
            api.post(ROLES, role).await.ok();
        }
        "api-services" => {
            api.post(DEFINITIONS, definition(spec())).await.ok();
            api.eventually(&format!("{API_SERVICES}/v1.example.com"), |answer| answer.code == 200).await;
            api.delete(&format!("{DEFINITIONS}/widgets.example.com")).await.ok();
            gone(api, &format!("{API_SERVICES}/v1.example.com")).await;
        }
        "aggregation" => {
            let group = format!("turn{turn}.example.org");
            let spec = json!({
                "group": group, "version": "v1", "service": {"name": "s", "namespace": "default"},
                "groupPriorityMinimum": 1, "versionPriority": 1, "insecureSkipTLSVerify": true,
            });
            api.post(API_SERVICES, json!({"metadata": {"name": format!("v1.{group}")}, "spec": spec}))
                .await
                .ok();
            api.eventually(&format!("/apis/{group}"), |answer| answer.code == 200).await;
        }
        "claim-protection" => {
            let claims = "/api/v1/namespaces/default/persistentvolumeclaims";
            make_and_delete(api, claims, storage_protection::claim("unused")).await;
        }
        "volume-protection" => {
            make_and_delete(api, storage_protection::VOLUMES, storage_protection::volume("unused")).await;
        }
        "volume-attributes-class-protection" => {
            let class = storage_protection::attributes_class("unused");
            make_and_delete(api, storage_protection::ATTRIBUTES_CLASSES, class).await;
        }
        "front-proxy" => {
            let path = format!("{}/extension-apiserver-authentication", maps("kube-system"));
            api.delete(&path).await.ok();
            api.eventually(&path, |answer| answer.code == 200).await;
        }
        "flow-control" | "flow-schemas" => follow_schema(api, turn).await,
        "api-service-availability" => {
            let name = format!("v{}.example.org", turn + 1);
            let (api_services, service) = (API_SERVICES, json!({"name": "s", "namespace": "default"}));
            let spec = json!({
                "group": "example.org", "version": format!("v{}", turn + 1), "service": service,
                "groupPriorityMinimum": 1, "versionPriority": 1, "insecureSkipTLSVerify": true,
            });
            api.post(api_services, json!({"metadata": {"name": name}, "spec": spec})).await.ok();
            let is_judged = |answer: &Answer| answer.json()["status"]["conditions"][0]["status"] == "False";
            api.eventually(&format!("{api_services}/{name}"), is_judged).await;
        }
        "resource-quotas" => {
            let quota =
                json!({"metadata": {"name": format!("quota-{turn}")}, "spec": {"hard": {"pods": "9"}}});
            api.post(QUOTAS, quota).await.ok();
            let is_added_up = |answer: &Answer| answer.json()["status"]["used"]["pods"] == "0";
            api.eventually(&format!("{QUOTAS}/quota-{turn}"), is_added_up).await;
            api.delete(&format!("{QUOTAS}/quota-{turn}")).await.ok();
        }
        "role-aggregation" => aggregate(api, turn).await,
        "definitions" => {
            api.post(DEFINITIONS, definition(spec())).await.ok();
            api.post(WIDGETS, widget("w", json!({"size": 3}))).await.ok();
            api.delete(&format!("{DEFINITIONS}/widgets.example.com")).await.ok();
            gone(api, &format!("{DEFINITIONS}/widgets.example.com")).await;
        }
        "definition-deletion" => Box::pin(use_task(api, "definitions", turn)).await,
        "namespace-deletion" => {
            let name = format!("going-{turn}");
            namespace(api, &name).await;
            api.post(&maps(&name), config_map("a", json!({}))).await.ok();
            api.delete(&format!("/api/v1/namespaces/{name}")).await;
            gone(api, &format!("/api/v1/namespaces/{name}")).await;
        }
        "garbage-collector" => {
            let orphan = orphaned(config_map(&format!("orphan-{turn}"), json!({})));
            let name = orphan["metadata"]["name"].as_str().unwrap().to_owned();
            api.post(&maps("default"), orphan).await.ok();
            gone(api, &format!("{}/{name}", maps("default"))).await;
        }
        "service-accounts" | "root-ca-certificates" => {
            let name = format!("new-{turn}");
            namespace(api, &name).await;
            let there = match task {
                "service-accounts" => format!("/api/v1/namespaces/{name}/serviceaccounts/default"),
                _ => format!("{}/kube-root-ca.crt", maps(&name)),
            };
            api.eventually(&there, |answer| answer.code == 200).await;
        }
        "event-expiry" => {
            let name = format!("event-{turn}");
            let event = json!({"metadata": {"name": name}, "involvedObject": {"namespace": "default"}});
            api.post(EVENTS, event).await.ok();
            sleep(Duration::from_secs(3_620)).await;
            gone(api, &format!("{EVENTS}/{name}")).await;
        }
        "history-packing" => {
            // All but the last revision are packed.
            namespace(api, &format!("past-{turn}")).await;
            namespace(api, &format!("present-{turn}")).await;
            let deadline = Instant::now() + Duration::from_secs(20);
            let is_packed = |stats: watchkeeper_storage::Stats| stats.events < stats.packed + 5;
            while !is_packed(api.storage.stats()) {
                assert!(Instant::now() < deadline, "{:?}", api.storage.stats());
                sleep(Duration::from_millis(20)).await;
            }
        }
        "service-allocation" => follow_service(api, turn).await,
        "webhooks" => {
            // Whoever writes a configuration hears of it when it is in force.
            api.post(WEBHOOKS, json!({"metadata": {"name": format!("hooks-{turn}")}})).await.ok();
        }
        task => panic!("{task} is not known here"),
    }
}

/// Writes a FlowSchema, and waits until requests belong to it and it says that its level exists.
async fn follow_schema(api: &Api, turn: usize) {
    let user = format!("user-{turn}");
    let everything = json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"], "clusterScope": true});
    let schema = json!({
        "metadata": {"name": user},
        "spec": {
            "matchingPrecedence": 50, "priorityLevelConfiguration": {"name": "workload-low"},
            "rules": [{"subjects": [{"kind": "User", "user": {"name": user}}], "resourceRules": [everything]}],
        },
    });
    let made = api.post(FLOW_SCHEMAS, schema).await.ok();
    let who = Identity::new(user.as_str(), ["x"]);
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let answer = api.send_as(&who, "GET", "/api/v1/pods", Value::Null).await;
        if answer.headers["x-kubernetes-pf-flowschema-uid"] == made["metadata"]["uid"].as_str().unwrap() {
            break;
        }
        assert!(Instant::now() < deadline, "{:?}", answer.headers);
        sleep(Duration::from_millis(2)).await;
    }
    let is_said = |answer: &Answer| answer.json()["status"]["conditions"][0]["reason"] == "Found";
    api.eventually(&format!("{FLOW_SCHEMAS}/{user}"), is_said).await;
}

/// Has another server write a Service, and waits until its address is taken here.
async fn follow_service(api: &Api, turn: usize) {
    let (services, address) = ("/api/v1/namespaces/default/services", format!("10.0.7.{turn}"));
    let service = |name: &str| json!({"metadata": {"name": format!("{name}-{turn}")}, "spec": {"clusterIP": address, "ports": [{"port": 1}]}});
    api.post(services, service("own")).await.ok();
    let key = |name: &str| format!("/registry/core/services/default/{name}-{turn}");
    let stored = api.storage.get(&key("own"), None).await.unwrap().entry.unwrap();
    api.storage.commit(Commit::new().put(key("foreign"), stored.value.clone())).await.unwrap();
    api.delete(&format!("{services}/own-{turn}")).await.ok();
    let deadline = Instant::now() + Duration::from_secs(20);
    while api.post(&format!("{services}?dryRun=All"), service("late")).await.code != 422 {
        assert!(Instant::now() < deadline, "{address} is still free");
        sleep(Duration::from_millis(2)).await;
    }
}

async fn aggregate(api: &Api, turn: usize) {
    let (sum, label) = (format!("sum-{turn}"), format!("in-{turn}"));
    let sums = json!({
        "metadata": {"name": sum},
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {label.as_str(): "yes"}}]},
    });
    api.post(ROLES, sums).await.ok();
    let rules = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]);
    let part = json!({
        "metadata": {"name": format!("part-{turn}"), "labels": {label: "yes"}}, "rules": rules,
    });
    api.post(ROLES, part).await.ok();
    api.eventually(&format!("{ROLES}/{sum}"), |answer| answer.json()["rules"] == rules).await;
}

async fn namespace(api: &Api, name: &str) {
    api.post("/api/v1/namespaces", json!({"metadata": {"name": name}})).await.ok();
}

async fn make_and_delete(api: &Api, path: &str, object: Value) {
    api.post(path, object).await.ok();
    api.delete(&format!("{path}/unused")).await.ok();
    gone(api, &format!("{path}/unused")).await;
}

async fn gone(api: &Api, path: &str) {
    api.eventually(path, |answer| answer.code == 404).await;
}

fn maps(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/configmaps")
}

/// With an owner that never was.
fn orphaned(mut object: Value) -> Value {
    object["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "nobody", "uid": "no-such-uid"}]);
    object
}

fn pod(name: &str, grace: i64) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {
            "nodeName": "n", "terminationGracePeriodSeconds": grace,
            "containers": [{"name": "c", "image": "i"}],
        },
    })
}

#[tokio::test(start_paused = true)]
async fn what_plug_ins_look_up_is_followed_again_after_a_panic() {
    let (api, supervisor) = start().await;
    supervisor.inject(LISTERS);
    sleep(Duration::from_millis(1)).await;
    assert!(supervisor.panics(LISTERS) > 1);
    let class = json!({"metadata": {"name": "important"}, "value": 7});
    api.post("/apis/scheduling.k8s.io/v1/priorityclasses", class).await.ok();
    let mut pod = pod("p", 1);
    pod["spec"]["priorityClassName"] = "important".into();
    assert_eq!(api.post("/api/v1/namespaces/default/pods", pod).await.ok()["spec"]["priority"], 7);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_panics_goes_on_and_no_other_hears_of_it() {
    let (api, supervisor) = start().await;
    // Those of plug-ins have one name, a task for each kind that they look up.
    let own = |task: &&str| *task != LISTERS;
    assert_eq!(supervisor.tasks().iter().map(|task| &**task).filter(own).collect::<Vec<_>>(), TASKS);
    for (turn, task) in TASKS.into_iter().enumerate() {
        supervisor.inject(task);
        sleep(Duration::from_millis(1)).await;
        assert_eq!(supervisor.panics(task), 1, "{task} was not told to panic");
        for other in TASKS.into_iter().filter(|other| *other != task) {
            assert_eq!(supervisor.panics(other), u64::from(other < task), "{other} while {task} panics");
        }
        use_task(&api, task, turn).await;
        assert!(api.get("/readyz").await.code == 200, "one panic is an accident");
    }
    let metrics = api.get("/metrics").await.text;
    for task in TASKS {
        assert!(
            metrics.contains(&format!("watchkeeper_task_panics_total{{task=\"{task}\"}} 1")),
            "{metrics}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn readiness_names_a_task_that_does_not_recover_until_it_does() {
    let (api, supervisor) = start().await;
    for (turn, task) in TASKS.into_iter().enumerate() {
        let check = format!("/readyz/task/{task}");
        assert_eq!(api.get(&check).await.text, "ok");
        supervisor.break_down(task);
        sleep(Duration::from_secs(5)).await;
        for (path, code) in [("/readyz", 500), ("/healthz", 500), ("/livez", 200), (check.as_str(), 500)] {
            assert_eq!(api.get(path).await.code, code, "{path} while {task} panics");
        }
        let said = api.get("/readyz").await.text;
        assert!(said.contains(&format!("[-]task/{task} failed")), "{said}");
        assert_eq!(said.matches("[-]").count(), 1, "{said}");
        supervisor.mend(task);
        sleep(Duration::from_secs(45)).await;
        assert_eq!(api.get("/readyz").await.text, "ok", "{task}");
        use_task(&api, task, turn).await;
    }
}

#[tokio::test]
async fn a_pod_with_an_endless_grace_period_does_not_stop_collection() {
    let storage = Arc::new(Memory::new(watchkeeper_storage::Options::default()));
    let poison = "/api/v1/namespaces/default/pods/poison";
    for life in 0..2 {
        let api = Api::over(storage.clone()).await;
        if life == 0 {
            api.post("/api/v1/namespaces/default/pods", orphaned(pod("poison", i64::MAX))).await.ok();
            namespace(&api, "other").await;
        }
        let marked = |answer: &crate::harness::Answer| {
            answer.json()["metadata"]["deletionTimestamp"] == "9999-01-01T00:00:00Z"
        };
        api.eventually(poison, marked).await;
        let name = format!("orphan-{life}");
        api.post(&maps("other"), orphaned(config_map(&name, json!({})))).await.ok();
        gone(&api, &format!("{}/{name}", maps("other"))).await;
        assert_eq!(api.server.supervisor().panics("garbage-collector"), 0);
        api.server.stop().await;
    }
}

#[tokio::test]
async fn a_grace_period_that_no_time_can_express_is_accepted() {
    let api = Api::start().await;
    for (name, grace) in [("a", i64::MAX), ("c", 253_402_300_800)] {
        api.post("/api/v1/namespaces/default/pods", pod(name, 30)).await.ok();
        let path = format!("/api/v1/namespaces/default/pods/{name}?gracePeriodSeconds={grace}");
        let deleted = api.delete(&path).await.ok();
        let metadata = &deleted["metadata"];
        assert_eq!(metadata["deletionTimestamp"], "9999-01-01T00:00:00Z");
        assert_eq!(metadata["deletionGracePeriodSeconds"], grace);
        let path = format!("/api/v1/namespaces/default/pods/{name}?gracePeriodSeconds=0");
        api.delete(&path).await.ok();
        assert_eq!(api.get(&path).await.code, 404);
    }
}

/// What each task meets in the objects that it works on.
#[tokio::test(start_paused = true)]
async fn an_object_that_a_task_panics_at_costs_that_object_only() {
    let (api, supervisor) = start().await;
    for (key, task) in [
        ("/registry/core/configmaps/default/poison", "garbage-collector"),
        ("/registry/core/events/default/poison", "event-expiry"),
        ("/registry/rbac.authorization.k8s.io/clusterroles/poison", "access"),
        ("/registry/apiextensions.k8s.io/customresourcedefinitions/gadgets.example.com", "definitions"),
        ("poisoned", "service-accounts"),
        ("v1.poison.example", "api-services"),
        ("/registry/core/services/default/poison", "service-allocation"),
        ("/registry/admissionregistration.k8s.io/validatingwebhookconfigurations/poison", "webhooks"),
        ("poisonous-sum", "role-aggregation"),
        ("/registry/core/resourcequotas/elsewhere/poison", "resource-quotas"),
        ("poisonous-schema", "flow-control"),
        ("poisonous-schema", "flow-schemas"),
        ("/registry/apiregistration.k8s.io/apiservices/v1.remote.example", "aggregation"),
        ("/registry/apiregistration.k8s.io/apiservices/v1.remote.example", "api-service-availability"),
        ("/registry/scheduling.k8s.io/priorityclasses/poison", LISTERS),
    ] {
        supervisor.poison(key);
        assert_eq!(supervisor.panics(task), 0);
    }
    let selector = json!({"clusterRoleSelectors": [{"matchLabels": {"in": "poison"}}]});
    api.post(ROLES, json!({"metadata": {"name": "poisonous-sum"}, "aggregationRule": selector})).await.ok();
    namespace(&api, "elsewhere").await;
    let quota = json!({"metadata": {"name": "poison"}, "spec": {"hard": {"pods": "9"}}});
    api.post("/api/v1/namespaces/elsewhere/resourcequotas", quota).await.ok();
    let level = json!({"matchingPrecedence": 50, "priorityLevelConfiguration": {"name": "workload-low"}});
    api.post(FLOW_SCHEMAS, json!({"metadata": {"name": "poisonous-schema"}, "spec": level})).await.ok();
    let remote = json!({
        "group": "remote.example", "version": "v1", "service": {"name": "s", "namespace": "default"},
        "groupPriorityMinimum": 1, "versionPriority": 1, "insecureSkipTLSVerify": true,
    });
    api.post(API_SERVICES, json!({"metadata": {"name": "v1.remote.example"}, "spec": remote})).await.ok();
    let class = json!({"metadata": {"name": "poison"}, "value": 7});
    api.post("/apis/scheduling.k8s.io/v1/priorityclasses", class).await.ok();
    // Events are read when the task begins.
    let event = json!({"metadata": {"name": "poison"}, "involvedObject": {"namespace": "default"}});
    api.post(EVENTS, event).await.ok();
    supervisor.inject("event-expiry");
    sleep(Duration::from_secs(1)).await;
    assert_eq!(supervisor.panics("event-expiry"), 2, "the one that was injected, and the one at the event");
    api.post(&maps("default"), orphaned(config_map("poison", json!({})))).await.ok();
    let role = json!({"metadata": {"name": "poison"}, "rules": []});
    api.post(ROLES, role).await.ok();
    api.post(WEBHOOKS, json!({"metadata": {"name": "poison"}})).await.ok();
    let mut gadgets = definition(spec());
    gadgets["metadata"]["name"] = "gadgets.example.com".into();
    gadgets["spec"]["names"] = json!({"plural": "gadgets", "kind": "Gadget"});
    api.post(DEFINITIONS, gadgets).await.ok();
    namespace(&api, "poisoned").await;
    let spec =
        json!({"group": "poison.example", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1});
    api.post(API_SERVICES, json!({"metadata": {"name": "v1.poison.example"}, "spec": spec})).await.ok();
    // Of its own writes, the server takes note without reading them.
    let service = json!({"metadata": {"name": "here"}, "spec": {"ports": [{"port": 1}]}});
    api.post("/api/v1/namespaces/default/services", service).await.ok();
    let stored = api.storage.get("/registry/core/services/default/here", None).await.unwrap().entry.unwrap();
    let foreign = Commit::new().put("/registry/core/services/default/poison", stored.value.clone());
    api.storage.commit(foreign).await.unwrap();
    for (turn, task) in TASKS.into_iter().enumerate() {
        use_task(&api, task, turn).await;
    }
    for task in [
        "garbage-collector",
        "access",
        "definitions",
        "service-accounts",
        "api-services",
        "service-allocation",
        "webhooks",
        "role-aggregation",
        "resource-quotas",
        "flow-control",
        "flow-schemas",
        "aggregation",
        "api-service-availability",
        LISTERS,
    ] {
        assert!(supervisor.panics(task) > 0, "{task} has not met its object");
    }
    assert_eq!(api.get("/readyz").await.text, "ok");
    assert_eq!(api.get(&format!("{}/poison", maps("default"))).await.code, 200);
    assert_eq!(api.get(&format!("{EVENTS}/poison")).await.code, 404, "it has expired with all others");
    assert_eq!(api.get("/apis/example.com/v1/gadgets").await.code, 404, "what cannot be read is not served");
}

#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_deleted_keeps_its_own_namespace_and_no_other() {
    let (api, supervisor) = start().await;
    supervisor.poison("/registry/core/configmaps/stuck/poison");
    for name in ["stuck", "fine"] {
        namespace(&api, name).await;
        for map in ["a", "poison", "z"] {
            api.post(&maps(name), config_map(map, json!({}))).await.ok();
        }
        api.delete(&format!("/api/v1/namespaces/{name}")).await;
    }
    gone(&api, "/api/v1/namespaces/fine").await;
    for map in ["a", "z"] {
        gone(&api, &format!("{}/{map}", maps("stuck"))).await;
    }
    assert_eq!(api.get(&format!("{}/poison", maps("stuck"))).await.code, 200);
    assert!(supervisor.panics("namespace-deletion") > 0);
    assert_eq!(api.get("/readyz").await.text, "ok", "it is the affair of one namespace");
}

/// A storage that other servers might use as well.
struct SharedStorage(Memory);

impl Storage for SharedStorage {
    fn get<'a>(&'a self, key: &'a str, at: Option<Revision>) -> StorageAnswer<'a, Found> {
        self.0.get(key, at)
    }

    fn range(&self, range: Range) -> StorageAnswer<'_, Page> {
        self.0.range(range)
    }

    fn commit(&self, commit: Commit) -> StorageAnswer<'_, Committed> {
        self.0.commit(commit)
    }

    fn watch<'a>(&'a self, prefix: &'a str, after: Revision) -> StorageAnswer<'a, Watch> {
        self.0.watch(prefix, after)
    }

    fn compact(&self, to: Revision) -> StorageAnswer<'_, ()> {
        self.0.compact(to)
    }

    fn stats(&self) -> Stats {
        self.0.stats()
    }

    fn is_shared(&self) -> bool {
        true
    }
}

#[tokio::test(start_paused = true)]
async fn servers_that_share_a_storage_are_shown_after_a_panic() {
    let storage = SharedStorage(Memory::new(watchkeeper_storage::Options::default()));
    let api = Api::over(Arc::new(storage)).await;
    let supervisor = api.server.supervisor();
    api.server.advertise(Some("192.0.2.1:6443".parse().unwrap())).await.unwrap();
    let endpoints = "/api/v1/namespaces/default/endpoints/kubernetes";
    let shows =
        |address: &'static str| move |answer: &Answer| answer.code == 200 && answer.text.contains(address);
    api.eventually(endpoints, shows("192.0.2.1")).await;
    for task in ["server-registration", "server-endpoints"] {
        supervisor.inject(task);
        sleep(Duration::from_millis(1)).await;
        assert_eq!(supervisor.panics(task), 1, "{task} was not told to panic");
        assert!(shows("192.0.2.1")(&api.get(endpoints).await), "what is shown stays");
    }
    // Each is needed for what follows: to be there again, and to show who else is.
    let forgotten = Commit::new().delete("/servers/192.0.2.1:6443").put("/servers/192.0.2.2:6443", "");
    api.storage.commit(forgotten).await.unwrap();
    api.eventually(endpoints, shows("192.0.2.2")).await;
    api.eventually(endpoints, shows("192.0.2.1")).await;
}

#[tokio::test(start_paused = true)]
async fn tokens_in_files_are_read_again_after_a_panic() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("tokens.csv");
    let write = |token: &str| {
        std::fs::write(&file, format!("{token},jane,1\n")).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    };
    write("old");
    let mut tokens = Tokens::new();
    tokens.add_file(&file).unwrap();
    let mut options = Options::default();
    options.tokens = Some(Arc::new(tokens));
    let limits = Limits { pack_after: Duration::ZERO, pack_bytes: 1, ..Limits::default() };
    let storage = watchkeeper_storage::Options { limits, ..watchkeeper_storage::Options::default() };
    let api = Api::with(Arc::new(Memory::new(storage)), options).await;
    let supervisor = api.server.supervisor();
    sleep(Duration::from_millis(1)).await;
    supervisor.inject("token-files");
    sleep(Duration::from_millis(1)).await;
    assert_eq!(supervisor.panics("token-files"), 1);
    let is_known = async |token: &str| {
        let review = json!({"spec": {"token": token}});
        let answer = api.post("/apis/authentication.k8s.io/v1/tokenreviews", review).await.ok();
        answer["status"]["authenticated"] == true
    };
    assert!(is_known("old").await, "what is in force stays");
    write("new");
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_known("new").await {
        assert!(Instant::now() < deadline, "the file is not read again");
        sleep(Duration::from_secs(1)).await;
    }
}
