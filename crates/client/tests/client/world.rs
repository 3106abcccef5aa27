//! A server, a client of it, and a kind of our own.

use std::borrow::Cow;
use std::sync::Arc;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_core::{ObjectMeta, Resource};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use watchkeeper_client::{Cache, Client, Condition};
use watchkeeper_core::Key;
use watchkeeper_testkit::{Fault, Outcome, TestEnv};

/// A custom resource, written as a derive would write it.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Greeting {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    #[serde(default)]
    pub(crate) metadata: ObjectMeta,
    pub(crate) spec: GreetingSpec,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<GreetingStatus>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
pub(crate) struct GreetingSpec {
    pub(crate) text: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
pub(crate) struct GreetingStatus {
    #[serde(default)]
    pub(crate) conditions: Vec<Condition>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) observed_generation: Option<i64>,
    #[serde(default)]
    pub(crate) pages: i32,
}

impl Resource for Greeting {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind(_: &()) -> Cow<'_, str> {
        "Greeting".into()
    }
    fn group(_: &()) -> Cow<'_, str> {
        "demo.dev".into()
    }
    fn version(_: &()) -> Cow<'_, str> {
        "v1".into()
    }
    fn plural(_: &()) -> Cow<'_, str> {
        "greetings".into()
    }
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }
    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

const DEFINITION: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: greetings.demo.dev}
spec:
  group: demo.dev
  scope: Namespaced
  names: {plural: greetings, singular: greeting, kind: Greeting}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {text: {type: string, maxLength: 20}}}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
    subresources: {status: {}}
";

pub(crate) struct World {
    pub(crate) env: TestEnv,
    pub(crate) client: Client,
}

impl World {
    /// A server that knows greetings, and a client that caches greetings and config maps.
    pub(crate) async fn start() -> Self {
        let world = Self::bare().await;
        world.client.declare(Cache::of::<ConfigMap>()).unwrap();
        world.client.declare(Cache::of::<Greeting>()).unwrap();
        world.client.synced().await.unwrap();
        world
    }

    /// The same, with nothing cached.
    pub(crate) async fn bare() -> Self {
        let env = TestEnv::start().await;
        env.install_yaml(DEFINITION).await;
        let client = Client::new(env.client());
        Self { env, client }
    }

    /// Another program, which has its own ideas.
    pub(crate) fn somebody_else(&self) -> Client {
        Client::builder(self.env.client()).manager("somebody-else").build()
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

    /// A greeting that exists.
    pub(crate) async fn greeting(&self, name: &str) -> Greeting {
        self.client.create(&greeting(name, "hello")).await.unwrap()
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

pub(crate) fn key(name: &str) -> Key {
    Key::new(Some("default"), name)
}

pub(crate) fn greeting(name: &str, text: &str) -> Greeting {
    from(
        json!({"apiVersion": "demo.dev/v1", "kind": "Greeting", "metadata": {"name": name, "namespace": "default"},
        "spec": {"text": text}}),
    )
}

pub(crate) fn config_map(name: &str, value: &str) -> ConfigMap {
    from(json!({"metadata": {"name": name, "namespace": "default"}, "data": {"k": value}}))
}

pub(crate) fn from<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// The value of a config map.
pub(crate) fn data(map: &ConfigMap) -> &str {
    &map.data.as_ref().unwrap()["k"]
}
