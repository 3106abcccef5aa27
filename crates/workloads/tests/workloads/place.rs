//! An API server with the simulation in it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::Instant;
use watchkeeper_client::{Client, Kind};
use watchkeeper_core::Key;
use watchkeeper_runtime::{Manager, Running};
use watchkeeper_supervision::Supervisor;
use watchkeeper_testkit::{Fault, Outcome, TestEnv, eventually};
use watchkeeper_workloads::{Simulation, Timing};

pub(crate) struct Place {
    pub(crate) env: TestEnv,
    timing: Timing,
    epoch: (SystemTime, Instant),
    running: Option<Running>,
    pub(crate) client: Client,
    writes: Arc<AtomicU64>,
    _count: Fault,
}

impl Place {
    pub(crate) async fn new(timing: Timing) -> Self {
        Self::over(TestEnv::start().await, timing).await
    }

    pub(crate) async fn over(env: TestEnv, timing: Timing) -> Self {
        let epoch = (env.wall_clock(), Instant::now());
        let client = Client::new(env.connection());
        let writes = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&writes);
        let count = env.fault(move |call| {
            let counts = call.is_write() && call.resource != "events";
            counter.fetch_add(u64::from(counts), Ordering::Relaxed);
            Outcome::pass()
        });
        let mut place = Self { env, timing, epoch, running: None, client, writes, _count: count };
        place.start().await;
        place
    }

    pub(crate) async fn start(&mut self) {
        let (time, instant) = self.epoch;
        let simulation = Simulation::new(self.timing).clock(move || time + instant.elapsed());
        let manager = simulation.run_in(Manager::new("workloads", self.env.connection()));
        let running = manager.start().await.unwrap();
        running.ready().await;
        self.running = Some(running);
    }

    pub(crate) fn supervisor(&self) -> Supervisor {
        self.running.as_ref().unwrap().supervisor().clone()
    }

    pub(crate) fn not_ready(&self) -> Vec<(String, String)> {
        self.running.as_ref().unwrap().not_ready()
    }

    pub(crate) async fn stop(&mut self) {
        if let Some(running) = self.running.take() {
            running.stop().await;
        }
    }

    pub(crate) async fn create<K: Kind>(&self, value: Value) -> K {
        self.client.create(&read::<K>(value)).await.unwrap().into_object()
    }

    pub(crate) async fn get<K: Kind>(&self, name: &str) -> Option<Arc<K>> {
        let namespace = (std::any::type_name::<K>()
            != std::any::type_name::<k8s_openapi::api::core::v1::Node>())
        .then_some("default");
        self.client.live().get::<K>(&Key::new(namespace, name)).await.unwrap()
    }

    pub(crate) async fn modify<K: Kind>(&self, name: &str, change: impl FnMut(&mut K) + Send) {
        self.client.modify::<K>(&Key::new(Some("default"), name), change).await.unwrap();
    }

    pub(crate) async fn delete<K: Kind>(&self, name: &str) {
        self.client.delete_key::<K>(&Key::new(Some("default"), name)).await.unwrap();
    }

    pub(crate) async fn list<K: Kind>(&self) -> Vec<Arc<K>> {
        self.client.live().list::<K>().in_namespace("default").await.unwrap()
    }

    pub(crate) async fn pods(&self) -> Vec<Arc<Pod>> {
        self.list::<Pod>().await
    }

    pub(crate) async fn sets(&self) -> Vec<Arc<ReplicaSet>> {
        self.list::<ReplicaSet>().await
    }

    /// Waits until a Deployment says that all its pods are new and available, as `kubectl rollout status` does.
    pub(crate) async fn rolled_out(&self, name: &str) -> Arc<Deployment> {
        eventually(|| async move {
            let deployment = self.get::<Deployment>(name).await.ok_or("it is not there")?;
            let status = deployment.status.clone().unwrap_or_default();
            let wanted = deployment.spec.replicas;
            let counts = [status.replicas, status.updated_replicas, status.available_replicas];
            let is = counts.iter().all(|count| count.unwrap_or(0) == wanted.unwrap_or(1))
                && status.observed_generation == deployment.metadata.generation;
            if is { Ok(deployment) } else { Err(format!("{status:?}")) }
        })
        .within(Duration::from_secs(120))
        .await
    }

    /// Waits until nothing has been written for a while.
    pub(crate) async fn settled(&self) {
        loop {
            let before = self.writes();
            tokio::time::sleep(Duration::from_secs(45)).await;
            if self.writes() == before {
                return;
            }
        }
    }

    /// How often something other than an event was written so far.
    pub(crate) fn writes(&self) -> u64 {
        self.writes.load(Ordering::Relaxed)
    }
}

pub(crate) fn read<K: DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).unwrap()
}

pub(crate) fn template(image: &str) -> Value {
    json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "web", "image": image}]},
    })
}

pub(crate) fn deployment(replicas: i32, image: &str) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": template(image),
        },
    })
}

pub(crate) fn set_image(deployment: &mut Deployment, image: &str) {
    deployment.spec.template.spec.as_mut().unwrap().containers[0].image = Some(image.into());
}
