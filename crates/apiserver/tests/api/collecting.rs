//! Garbage collection over random graphs of owners: whatever happens in whatever order, it ends as the rules say.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::harness::{Api, config_map};
use serde_json::{Value, json};
use watchkeeper_testkit::{consistently, eventually};

const NAMESPACED: &str = "/api/v1/namespaces/default/configmaps";
const CLUSTER_WIDE: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
const PREFIX: &str = "graph-";

/// What the rules say is there.
#[derive(Clone, Debug, Default)]
struct Model {
    objects: BTreeMap<usize, Object>,
}

#[derive(Clone, Debug)]
struct Object {
    uid: String,
    is_namespaced: bool,
    /// The uids of its owners.
    owners: BTreeSet<String>,
}

impl Model {
    /// Whether an owner is there.
    fn keeps(&self, owner: &str) -> bool {
        self.objects.values().any(|object| object.uid == owner)
    }

    /// Objects that have lost all their owners go, and so on; owners that are gone are not named any more.
    fn collect(&mut self) {
        loop {
            let lost = |(_, object): &(&usize, &Object)| {
                !object.owners.is_empty() && !object.owners.iter().any(|owner| self.keeps(owner))
            };
            let Some(index) = self.objects.iter().find(lost).map(|(index, _)| *index) else { break };
            self.objects.remove(&index);
        }
        let known = self.clone();
        for object in self.objects.values_mut() {
            object.owners.retain(|owner| known.keeps(owner));
        }
    }

    /// An owner goes and leaves its dependents behind.
    fn orphan(&mut self, index: usize) {
        if let Some(gone) = self.objects.remove(&index) {
            for object in self.objects.values_mut() {
                object.owners.remove(&gone.uid);
            }
        }
    }
}

struct Run {
    api: Api,
    random: fastrand::Rng,
    model: Model,
    made: Vec<Object>,
}

fn path(index: usize, is_namespaced: bool) -> String {
    format!("{}/{PREFIX}{index}", if is_namespaced { NAMESPACED } else { CLUSTER_WIDE })
}

impl Run {
    async fn new(seed: u64) -> Self {
        let api = Api::start().await;
        Self { api, random: fastrand::Rng::with_seed(seed), model: Model::default(), made: Vec::new() }
    }

    /// Makes an object with these owners. Namespaced objects can be owned by everything, others by others.
    async fn make(&mut self, owners: &[Value]) -> usize {
        let (index, is_namespaced) = (self.made.len(), self.random.u8(..4) > 0);
        let owners = if is_namespaced { owners } else { &[] };
        let mut object = if is_namespaced {
            config_map(&format!("{PREFIX}{index}"), json!({}))
        } else {
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": format!("{PREFIX}{index}")}})
        };
        object["metadata"]["ownerReferences"] = owners.to_vec().into();
        let collection = if is_namespaced { NAMESPACED } else { CLUSTER_WIDE };
        let made = self.api.post(collection, object).await.ok();
        let uid = made["metadata"]["uid"].as_str().unwrap().to_owned();
        let object = Object { uid, is_namespaced, owners: uids(owners) };
        self.made.push(object.clone());
        self.model.objects.insert(index, object);
        index
    }

    /// References to some of the objects that were ever made, or to nothing that ever was.
    fn references(&mut self, of_namespaced: bool) -> Vec<Value> {
        let mut references: BTreeMap<String, Value> = BTreeMap::new();
        for _ in 0..self.random.usize(..4) {
            let index = self.random.usize(..self.made.len());
            let owner = &self.made[index];
            if owner.is_namespaced && !of_namespaced {
                continue;
            }
            let (version, kind) = if owner.is_namespaced {
                ("v1", "ConfigMap")
            } else {
                ("rbac.authorization.k8s.io/v1", "ClusterRole")
            };
            let uid = match self.random.u8(..12) {
                0 => format!("{:032x}", self.random.u128(..)),
                _ => owner.uid.clone(),
            };
            let reference = json!({
                "apiVersion": version, "kind": kind, "name": format!("{PREFIX}{index}"), "uid": uid,
                "blockOwnerDeletion": self.random.bool(),
            });
            references.insert(uid, reference);
        }
        references.into_values().collect()
    }

    /// Gives an object its owners, once.
    async fn own(&mut self, index: usize) {
        let is_namespaced = self.made[index].is_namespaced;
        let references = self.references(is_namespaced);
        let body = json!({"metadata": {"ownerReferences": references}});
        self.api.merge(&path(index, is_namespaced), body).await.ok();
        if let Some(object) = self.model.objects.get_mut(&index) {
            object.owners = uids(&references);
        }
    }

    async fn delete(&mut self, index: usize) {
        let policy = ["Background", "Foreground", "Orphan"][self.random.usize(..3)];
        // Who orphans races with those who collect: what it finds has to be settled.
        if policy == "Orphan" {
            self.settle().await;
        }
        let path = path(index, self.made[index].is_namespaced);
        let answer = self.api.delete(&format!("{path}?propagationPolicy={policy}")).await;
        assert!(matches!(answer.code, 200 | 404), "{answer:?}");
        if policy == "Orphan" {
            self.model.orphan(index);
            self.settle().await;
        } else {
            self.model.objects.remove(&index);
        }
    }

    async fn there(&self) -> BTreeMap<usize, BTreeSet<String>> {
        let mut found = BTreeMap::new();
        for collection in [NAMESPACED, CLUSTER_WIDE] {
            let list = self.api.get(collection).await.ok();
            for item in list["items"].as_array().unwrap() {
                let name = item["metadata"]["name"].as_str().unwrap();
                let Some(index) = name.strip_prefix(PREFIX).and_then(|rest| rest.parse().ok()) else {
                    continue;
                };
                let owners = item["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
                found.insert(index, uids(&owners));
            }
        }
        found
    }

    /// Waits until everything is as the model says.
    async fn settle(&mut self) {
        self.model.collect();
        let expected: BTreeMap<usize, BTreeSet<String>> =
            self.model.objects.iter().map(|(index, object)| (*index, object.owners.clone())).collect();
        eventually(|| async {
            let found = self.there().await;
            if found == expected { Ok(()) } else { Err(format!("found {found:#?}, expected {expected:#?}")) }
        })
        .await;
    }
}

fn uids(references: &[Value]) -> BTreeSet<String> {
    references.iter().map(|reference| reference["uid"].as_str().unwrap().to_owned()).collect()
}

async fn collected_as_the_rules_say(seed: u64) {
    let mut run = Run::new(seed).await;
    for _ in 0..run.random.usize(3..12) {
        run.make(&[]).await;
    }
    let mut order: Vec<usize> = (0..run.made.len()).collect();
    run.random.shuffle(&mut order);
    for index in &order {
        run.own(*index).await;
    }
    run.random.shuffle(&mut order);
    for index in order {
        match run.random.u8(..5) {
            0 => {}
            1 => {
                let references = run.references(true);
                run.make(&references).await;
            }
            _ => run.delete(index).await,
        }
    }
    run.settle().await;
}

#[tokio::test]
async fn random_graphs_of_owners_end_as_the_rules_say() {
    let cases = std::env::var("WATCHKEEPER_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(60);
    for seed in 0..u64::min(cases, 5_000) {
        println!("seed {seed}");
        collected_as_the_rules_say(seed).await;
    }
}

fn owned_by(owner: &Value, name: &str, blocks: bool) -> Value {
    let mut object = config_map(name, json!({}));
    object["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"],
        "blockOwnerDeletion": blocks,
    }]);
    object
}

#[tokio::test]
async fn thousands_of_dependents_go_with_their_owner_in_every_way() {
    for policy in ["Background", "Foreground"] {
        let api = Api::start().await;
        let owner = api.post(NAMESPACED, config_map("owner", json!({}))).await.ok();
        for index in 0..1_000 {
            api.post(NAMESPACED, owned_by(&owner, &format!("d-{index}"), true)).await.ok();
        }
        api.delete(&format!("{NAMESPACED}/owner?propagationPolicy={policy}")).await.ok();
        api.eventually(NAMESPACED, |answer| answer.json()["items"].as_array().unwrap().is_empty()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_middle_one_waits_for_its_own_dependents() {
    let api = Api::start().await;
    let top = api.post(NAMESPACED, config_map("top", json!({}))).await.ok();
    let middle = api.post(NAMESPACED, owned_by(&top, "middle", true)).await.ok();
    let mut held = owned_by(&middle, "bottom", true);
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    api.post(NAMESPACED, held).await.ok();
    api.delete(&format!("{NAMESPACED}/top?propagationPolicy=Foreground")).await.ok();
    let bottom = format!("{NAMESPACED}/bottom");
    api.eventually(&bottom, |answer| answer.json()["metadata"]["deletionTimestamp"].is_string()).await;
    // However often the collector looks at them, those above wait.
    consistently(|| async {
        for name in ["top", "middle"] {
            let waiting = api.get(&format!("{NAMESPACED}/{name}")).await.json();
            if waiting["metadata"]["finalizers"] != json!(["foregroundDeletion"]) {
                return Err(format!("{name} does not wait: {waiting}"));
            }
        }
        Ok(())
    })
    .throughout(Duration::from_secs(5))
    .await;
    api.merge(&bottom, json!({"metadata": {"finalizers": null}})).await.ok();
    api.eventually(&format!("{NAMESPACED}/top"), |answer| answer.code == 404).await;
    assert_eq!(api.get(&format!("{NAMESPACED}/middle")).await.code, 404);
}

#[tokio::test]
async fn owners_of_each_other_do_not_wait_for_each_other_for_ever() {
    let api = Api::start().await;
    let one = api.post(NAMESPACED, config_map("one", json!({}))).await.ok();
    let two = api.post(NAMESPACED, owned_by(&one, "two", true)).await.ok();
    let references = owned_by(&two, "one", true)["metadata"]["ownerReferences"].clone();
    api.merge(&format!("{NAMESPACED}/one"), json!({"metadata": {"ownerReferences": references}})).await.ok();
    api.delete(&format!("{NAMESPACED}/one?propagationPolicy=Foreground")).await.ok();
    api.eventually(NAMESPACED, |answer| answer.json()["items"].as_array().unwrap().is_empty()).await;
}
