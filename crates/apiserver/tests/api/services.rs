//! The cluster IPs and node ports of Services.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use futures_util::future::join_all;
use proptest::prelude::*;
use serde_json::{Value, json};
use watchkeeper_storage::{
    Answer, Commit, Committed, Error, Found, Memory, Page, Range, Revision, Stats, Storage, Watch,
};

use crate::harness::Api;

const SERVICES: &str = "/api/v1/namespaces/default/services";

/// A storage that counts the entries it hands out, and can be told to fail or to forget the answers of commits.
struct Observed {
    inner: Memory,
    entries: AtomicU64,
    is_full: AtomicBool,
    is_stuck: AtomicBool,
}

impl Observed {
    fn new() -> Arc<Self> {
        let inner = Memory::new(watchkeeper_storage::Options::default());
        Arc::new(Self {
            inner,
            entries: AtomicU64::new(0),
            is_full: AtomicBool::new(false),
            is_stuck: AtomicBool::new(false),
        })
    }

    fn entries(&self) -> u64 {
        self.entries.load(Ordering::SeqCst)
    }
}

impl Storage for Observed {
    fn get<'a>(&'a self, key: &'a str, at: Option<Revision>) -> Answer<'a, Found> {
        self.entries.fetch_add(1, Ordering::SeqCst);
        self.inner.get(key, at)
    }

    fn range(&self, range: Range) -> Answer<'_, Page> {
        Box::pin(async move {
            let page = self.inner.range(range).await?;
            self.entries.fetch_add(page.entries.len() as u64, Ordering::SeqCst);
            Ok(page)
        })
    }

    fn commit(&self, commit: Commit) -> Answer<'_, Committed> {
        if self.is_full.load(Ordering::SeqCst) {
            return Box::pin(async { Err(Error::Full { reason: "told to be".into() }) });
        }
        if self.is_stuck.load(Ordering::SeqCst) {
            return Box::pin(async move {
                while self.is_stuck.load(Ordering::SeqCst) {
                    tokio::task::yield_now().await;
                }
                self.inner.commit(commit).await
            });
        }
        self.inner.commit(commit)
    }

    fn watch<'a>(&'a self, prefix: &'a str, after: Revision) -> Answer<'a, Watch> {
        self.inner.watch(prefix, after)
    }

    fn compact(&self, to: Revision) -> Answer<'_, ()> {
        self.inner.compact(to)
    }

    fn stats(&self) -> Stats {
        self.inner.stats()
    }
}

fn service(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec})
}

fn at(name: &str, address: &str) -> Value {
    service(name, json!({"clusterIP": address, "ports": [{"port": 80}]}))
}

fn node_port(name: &str, port: i64) -> Value {
    service(name, json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": port}]}))
}

fn path(name: &str) -> String {
    format!("{SERVICES}/{name}")
}

#[tokio::test]
async fn a_service_costs_the_same_however_many_there_are() {
    const ALL: usize = 5_000;
    const SOME: usize = 100;
    let storage = Observed::new();
    let api = Api::over(storage.clone()).await;
    let mut costs = Vec::with_capacity(ALL);
    for number in 0..ALL {
        let before = storage.entries();
        let spec =
            json!({"type": if number % 4 == 0 { "NodePort" } else { "ClusterIP" }, "ports": [{"port": 80}]});
        api.post(SERVICES, service(&format!("s{number}"), spec)).await.ok();
        costs.push(storage.entries() - before);
    }
    let first: u64 = costs[..SOME].iter().sum();
    let last: u64 = costs[ALL - SOME..].iter().sum();
    assert!(last <= 2 * first, "{SOME} Services: {first} entries were read at first, {last} in the end");
    // Neither do the other ways of writing.
    for (what, most) in [("labels", 4), ("status", 4), ("ports", 4)] {
        let before = storage.entries();
        let patch = match what {
            "labels" => json!({"metadata": {"labels": {"a": "b"}}}),
            "status" => json!({"status": {"conditions": []}}),
            _ => json!({"spec": {"type": "NodePort"}}),
        };
        let path = if what == "status" { path("s1/status") } else { path("s1") };
        api.merge(&path, patch).await.ok();
        assert!(storage.entries() - before <= most, "{what}: {} entries", storage.entries() - before);
    }
    let before = storage.entries();
    api.delete(&path("s2")).await.ok();
    // Its Endpoints go with it, if there are any.
    assert!(storage.entries() - before <= 6, "a deletion: {} entries", storage.entries() - before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_who_ask_for_the_same_address_exactly_one_gets_it() {
    let api = Arc::new(Api::start().await);
    for round in 0..20 {
        let (address, port) = (format!("10.0.1.{round}"), 30_500 + round);
        let asking = (0..16).map(|number| {
            let (api, address) = (Arc::clone(&api), address.clone());
            tokio::spawn(async move {
                let name = format!("s{round}-{number}");
                let service = if number % 2 == 0 { at(&name, &address) } else { node_port(&name, port) };
                api.post(SERVICES, service).await
            })
        });
        let answers: Vec<_> = join_all(asking).await.into_iter().map(Result::unwrap).collect();
        for (what, refusal) in [
            (
                0,
                format!(
                    "spec.clusterIPs: Invalid value: [\"{address}\"]: failed to allocate IP {address}: provided IP is already allocated"
                ),
            ),
            (1, format!("spec.ports[0].nodePort: Invalid value: {port}: provided port is already allocated")),
        ] {
            let answers: Vec<_> = answers.iter().skip(what).step_by(2).collect();
            assert_eq!(answers.iter().filter(|answer| answer.code == 201).count(), 1);
            for answer in answers.into_iter().filter(|answer| answer.code != 201) {
                let message = answer.failed(422)["message"].as_str().unwrap().to_owned();
                assert!(message.ends_with(&refusal), "{message}");
            }
        }
    }
}

#[tokio::test]
async fn what_a_service_gives_back_is_free_when_its_writer_hears_of_it() {
    let api = Api::start().await;
    for round in 0..50 {
        // Deleted.
        api.post(SERVICES, at("a", "10.0.2.1")).await.ok();
        api.delete(&path("a")).await.ok();
        api.post(SERVICES, at("b", "10.0.2.1")).await.ok();
        // Turned into what has no address.
        let elsewhere = json!({"spec": {"type": "ExternalName", "externalName": "example.com"}});
        let moved = api.merge(&path("b"), elsewhere).await.ok();
        assert_eq!(moved["spec"]["clusterIP"], Value::Null, "{round}");
        api.post(SERVICES, at("c", "10.0.2.1")).await.ok();
        // Held by a finalizer until that goes.
        let held = json!({"metadata": {"finalizers": ["example.com/hold"]}});
        api.merge(&path("c"), held).await.ok();
        api.delete(&path("c")).await.ok();
        api.post(SERVICES, at("d", "10.0.2.1")).await.failed(422);
        api.merge(&path("c"), json!({"metadata": {"finalizers": null}})).await.ok();
        api.post(SERVICES, at("d", "10.0.2.1")).await.ok();
        // Ports that are not wanted any more.
        api.post(SERVICES, node_port("p", 30_700)).await.ok();
        api.merge(&path("p"), json!({"spec": {"type": "ClusterIP"}})).await.ok();
        api.post(SERVICES, node_port("q", 30_700)).await.ok();
        // Back again, with another address.
        let back =
            api.merge(&path("b"), json!({"spec": {"type": "ClusterIP", "ports": [{"port": 1}]}})).await;
        assert_ne!(back.ok()["spec"]["clusterIP"], "10.0.2.1");
        for name in ["b", "d", "p", "q"] {
            api.delete(&path(name)).await.ok();
        }
    }
}

#[tokio::test]
async fn a_write_that_fails_takes_nothing() {
    let storage = Observed::new();
    let api = Api::over(storage.clone()).await;
    storage.is_full.store(true, Ordering::SeqCst);
    api.post(SERVICES, at("a", "10.0.3.1")).await.failed(503);
    storage.is_full.store(false, Ordering::SeqCst);
    // One that is not valid, one that is there already, one that is only tried.
    api.post(SERVICES, service("b", json!({"clusterIP": "10.0.3.1", "ports": []}))).await.failed(422);
    api.post(SERVICES, at("kubernetes", "10.0.3.1")).await.failed(409);
    api.post(&format!("{SERVICES}?dryRun=All"), at("c", "10.0.3.1")).await.ok();
    api.post(SERVICES, at("d", "10.0.3.1")).await.ok();
    api.post(&format!("{SERVICES}?dryRun=All"), at("e", "10.0.3.1")).await.failed(422);
}

#[tokio::test]
async fn an_address_is_taken_although_its_writer_went_away_in_the_middle_of_the_commit() {
    let storage = Observed::new();
    let api = Arc::new(Api::over(storage.clone()).await);
    storage.is_stuck.store(true, Ordering::SeqCst);
    let writer = tokio::spawn({
        let api = Arc::clone(&api);
        async move { api.post(SERVICES, at("a", "10.0.4.1")).await.code }
    });
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    writer.abort();
    assert!(writer.await.unwrap_err().is_cancelled(), "it was still waiting");
    api.post(&format!("{SERVICES}?dryRun=All"), at("b", "10.0.4.1")).await.failed(422);
    storage.is_stuck.store(false, Ordering::SeqCst);
    api.eventually(&path("a"), |answer| answer.code == 200).await;
    api.post(SERVICES, at("b", "10.0.4.1")).await.failed(422);
}

#[tokio::test]
async fn a_server_knows_what_is_taken_when_it_answers_its_first_request() {
    let storage = Observed::new();
    let first = Api::over(storage.clone()).await;
    first.post(SERVICES, at("a", "10.0.5.1")).await.ok();
    first.post(SERVICES, node_port("b", 30_900)).await.ok();
    drop(first);
    let second = Api::over(storage).await;
    second.post(SERVICES, at("c", "10.0.5.1")).await.failed(422);
    second.post(SERVICES, node_port("d", 30_900)).await.failed(422);
    second.post(SERVICES, at("e", "10.0.0.1")).await.failed(422);
}

#[tokio::test]
async fn nobody_owns_what_the_server_gives() {
    let api = Api::start().await;
    let plain = || service("a", json!({"ports": [{"name": "web", "port": 80}]}));
    api.post(SERVICES, plain()).await.ok();
    let mut open = plain();
    open["spec"]["type"] = "NodePort".into();
    let opened = api.put(&path("a"), open.clone()).await.ok();
    let port = opened["spec"]["ports"][0]["nodePort"].as_i64().unwrap();
    let owned = opened["metadata"]["managedFields"].to_string();
    assert!(owned.contains("f:port") && owned.contains("f:type"), "{owned}");
    for given in ["f:nodePort", "f:clusterIP", "f:ipFamilies"] {
        assert!(!owned.contains(given), "{given}: {owned}");
    }
    // The same once more changes nothing.
    let again = api.put(&path("a"), open.clone()).await.ok();
    assert_eq!(again["spec"], opened["spec"]);
    assert_eq!(again["metadata"]["resourceVersion"], opened["metadata"]["resourceVersion"]);
    // A port is the same by its name.
    open["spec"]["ports"][0]["port"] = 81.into();
    let renumbered = api.put(&path("a"), open).await.ok();
    assert_eq!(renumbered["spec"]["ports"][0]["nodePort"], port);
}

#[tokio::test]
async fn traffic_that_stays_on_its_node_needs_a_port_to_ask_the_node() {
    let api = Api::start().await;
    let local = |name: &str, port: i64| {
        service(
            name,
            json!({
                "type": "LoadBalancer", "externalTrafficPolicy": "Local", "healthCheckNodePort": port, "ports": [{"port": 80}],
            }),
        )
    };
    let given = api.post(SERVICES, local("a", 0)).await.ok();
    let port = given["spec"]["healthCheckNodePort"].as_i64().unwrap();
    assert!((30_000..32_768).contains(&port), "{given}");
    let refused = api.post(SERVICES, local("b", port)).await.failed(500);
    let message = refused["message"].as_str().unwrap();
    assert!(
        message.contains(&format!("failed to allocate requested HealthCheck NodePort {port}")),
        "{message}"
    );
    api.post(SERVICES, node_port("b", port)).await.failed(422);
    api.merge(&path("a"), json!({"spec": {"externalTrafficPolicy": "Cluster"}})).await.ok();
    api.post(SERVICES, node_port("b", port)).await.ok();
    // A balancer that finds its own way needs no ports.
    let own_way =
        json!({"type": "LoadBalancer", "allocateLoadBalancerNodePorts": false, "ports": [{"port": 80}]});
    let made = api.post(SERVICES, service("c", own_way)).await.ok();
    assert_eq!(made["spec"]["ports"][0]["nodePort"], Value::Null);
}

/// What clients do.
#[derive(Clone, Debug)]
enum Request {
    Create { name: u8, address: u8, port: u8 },
    Retype { name: u8, kind: u8, port: u8 },
    Relabel { name: u8 },
    Delete { name: u8 },
}

const KINDS: [&str; 3] = ["ClusterIP", "NodePort", "ExternalName"];

fn requests() -> impl Strategy<Value = Vec<Request>> {
    let (name, number) = (0..5u8, 0..4u8);
    let request = prop_oneof![
        (name.clone(), number.clone(), number.clone()).prop_map(|(name, address, port)| Request::Create {
            name,
            address,
            port
        }),
        (name.clone(), 0..3u8, number).prop_map(|(name, kind, port)| Request::Retype { name, kind, port }),
        name.clone().prop_map(|name| Request::Relabel { name }),
        name.prop_map(|name| Request::Delete { name }),
    ];
    proptest::collection::vec(request, 1..40)
}

/// What a Service has, as simply as it can be said: its address, its port if it is a `NodePort`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Model {
    kind: usize,
    address: Option<String>,
    port: Option<i64>,
}

type Models = BTreeMap<String, Model>;

/// The address of a number; the first means any.
fn address(number: u8) -> String {
    if number == 0 { String::new() } else { format!("10.0.6.{number}") }
}

fn port(number: u8) -> i64 {
    if number == 0 { 0 } else { 31_000 + i64::from(number) }
}

async fn send(api: &Api, request: &Request, models: &mut Models) -> Result<(), TestCaseError> {
    let others = |models: &Models, name: &str, has: &dyn Fn(&Model) -> bool| {
        models.iter().any(|(other, model)| other != name && has(model))
    };
    match request {
        Request::Create { name, address: number, port: wanted } => {
            let (name, address, port) = (format!("s{name}"), address(*number), port(*wanted));
            let body = json!({
                "type": "NodePort", "clusterIP": address, "ports": [{"port": 80, "nodePort": port}],
            });
            let answer = api.post(SERVICES, service(&name, body)).await;
            let is_taken = others(models, &name, &|model| model.address.as_ref() == Some(&address))
                || others(models, &name, &|model| model.port == Some(port));
            match answer.code {
                // Whether the name or what it asks for is looked at first does not matter.
                409 => prop_assert!(models.contains_key(&name)),
                422 => {
                    let has =
                        |model: &Model| model.address.as_ref() == Some(&address) || model.port == Some(port);
                    prop_assert!(is_taken || models.get(&name).is_some_and(has), "{}", answer.text);
                }
                _ => {
                    let spec = &answer.ok()["spec"];
                    prop_assert!(!is_taken && !models.contains_key(&name));
                    models.insert(name, read(spec));
                }
            }
        }
        Request::Retype { name, kind, port: wanted } => {
            let (name, kind, port) = (format!("s{name}"), usize::from(*kind), port(*wanted));
            let mut spec = json!({"type": KINDS[kind]});
            match KINDS[kind] {
                "ExternalName" => {
                    spec["externalName"] = "example.com".into();
                    spec["ports"] = Value::Null;
                }
                "NodePort" => spec["ports"] = json!([{"port": 80, "nodePort": port}]),
                _ => spec["ports"] = json!([{"port": 80}]),
            }
            let answer = api.merge(&path(&name), json!({"spec": spec})).await;
            let is_taken = kind == 1 && others(models, &name, &|model| model.port == Some(port));
            match answer.code {
                404 => prop_assert!(!models.contains_key(&name)),
                422 => prop_assert!(is_taken, "{}", answer.text),
                _ => {
                    let (after, before) = (read(&answer.ok()["spec"]), models[&name].clone());
                    prop_assert!(!is_taken);
                    prop_assert_eq!(after.kind, kind);
                    if kind != 2 && before.kind != 2 {
                        prop_assert_eq!(&after.address, &before.address, "an address stays");
                    }
                    if kind == 1 && port == 0 && before.kind == 1 {
                        prop_assert_eq!(after.port, before.port, "a port stays");
                    }
                    models.insert(name, after);
                }
            }
        }
        Request::Relabel { name } => {
            let name = format!("s{name}");
            let answer = api.merge(&path(&name), json!({"metadata": {"labels": {"a": "b"}}})).await;
            if answer.code == 404 {
                prop_assert!(!models.contains_key(&name));
            } else {
                prop_assert_eq!(&read(&answer.ok()["spec"]), &models[&name]);
            }
        }
        Request::Delete { name } => {
            let name = format!("s{name}");
            let answer = api.delete(&path(&name)).await;
            prop_assert_eq!(answer.code == 200, models.remove(&name).is_some(), "{}", answer.text);
        }
    }
    Ok(())
}

fn read(spec: &Value) -> Model {
    Model {
        kind: KINDS.iter().position(|kind| spec["type"] == *kind).unwrap(),
        address: spec["clusterIP"].as_str().map(str::to_owned),
        port: spec["ports"][0]["nodePort"].as_i64(),
    }
}

fn cases() -> u32 {
    std::env::var("WATCHKEEPER_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(64)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn no_two_services_ever_have_the_same_and_each_gets_what_is_free(requests in requests()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let storage = Observed::new();
            let mut api = Api::over(storage.clone()).await;
            let mut models = Models::new();
            for (number, request) in requests.iter().enumerate() {
                if number % 10 == 9 {
                    api = Api::over(storage.clone()).await;
                }
                send(&api, request, &mut models).await?;
                let addresses: Vec<_> = models.values().filter_map(|model| model.address.clone()).collect();
                let ports: Vec<_> = models.values().filter_map(|model| model.port).collect();
                prop_assert_eq!(addresses.iter().collect::<BTreeSet<_>>().len(), addresses.len());
                prop_assert_eq!(ports.iter().collect::<BTreeSet<_>>().len(), ports.len());
            }
            Ok(())
        })?;
    }
}
