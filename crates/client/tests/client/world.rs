//! A server and a client of it.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::Value;
use watchkeeper_client::{Cache, Client};
use watchkeeper_testkit::fixtures::{self, Widget, key};
use watchkeeper_testkit::{Fault, Outcome, TestEnv};

pub(crate) struct World {
    pub(crate) env: TestEnv,
    pub(crate) client: Client,
}

impl World {
    /// A server that knows widgets, and a client that caches widgets and config maps.
    pub(crate) async fn start() -> Self {
        let world = Self::bare().await;
        world.client.declare(Cache::of::<ConfigMap>()).unwrap();
        world.client.declare(Cache::of::<Widget>()).unwrap();
        world.client.synced().await.unwrap();
        world
    }

    /// The same, with nothing cached.
    pub(crate) async fn bare() -> Self {
        let env = TestEnv::start().await;
        env.install::<Widget>().await;
        let client = Client::new(env.connection());
        Self { env, client }
    }

    /// Another program, which has its own ideas.
    pub(crate) fn somebody_else(&self) -> Client {
        Client::builder(self.env.connection()).manager("somebody-else").build()
    }

    /// From now on the caches are told nothing, until the fault is lifted.
    pub(crate) fn hold_watches(&self) -> Fault {
        let fault =
            self.env.fault(|call| if call.verb == "watch" { Outcome::refuse() } else { Outcome::pass() });
        self.env.break_watches();
        fault
    }

    /// How many writes the server was sent.
    pub(crate) fn writes(&self) -> usize {
        self.env.count(|seen| seen.call.is_write())
    }

    /// How many times the server was asked about objects of this resource past the cache.
    pub(crate) fn live_reads(&self, resource: &str) -> usize {
        let live = |call: &watchkeeper_testkit::Call| {
            call.verb == "get" || call.verb == "list" && call.query.contains("fieldSelector")
        };
        self.env.count(|seen| seen.call.is_of(resource) && live(&seen.call))
    }

    /// A widget that exists.
    pub(crate) async fn widget(&self, name: &str) -> Widget {
        self.client.create(&widget(name, "hello")).await.unwrap().into_object()
    }

    pub(crate) async fn map(&self, name: &str) -> Option<Arc<ConfigMap>> {
        self.client.get::<ConfigMap>(&key(name)).await.unwrap()
    }

    /// The names of the config maps in the default namespace.
    pub(crate) async fn maps(&self) -> Vec<String> {
        let maps = self.client.list::<ConfigMap>().in_namespace("default").await.unwrap();
        maps.iter()
            .map(|map| map.metadata.name.clone().unwrap())
            .filter(|name| name != "kube-root-ca.crt")
            .collect()
    }
}

pub(crate) fn widget(name: &str, text: &str) -> Widget {
    let mut widget = fixtures::widget(name, 1);
    widget.spec.text = text.into();
    widget
}

pub(crate) fn config_map(name: &str, value: &str) -> ConfigMap {
    fixtures::config_map(name, &[("k", value)])
}

pub(crate) fn from<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// The value of a config map.
pub(crate) fn data(map: &ConfigMap) -> &str {
    &map.data.as_ref().unwrap()["k"]
}
