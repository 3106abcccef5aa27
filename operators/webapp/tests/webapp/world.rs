use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use serde_json::{Value, json};
use watchkeeper::Connection;
use watchkeeper::client::{Client, Kind, Patch};
use watchkeeper::election::ElectionOptions;
use watchkeeper::prelude::Manager;
use watchkeeper::runtime::{Description, Running};
use watchkeeper_testkit::fixtures::key;
use watchkeeper_testkit::{Call, TestEnv, eventually};
use watchkeeper_webapp::{Http, WebApp, WebAppSpec};

pub(crate) const NAME: &str = "webapp";
/// Who the operator is, for those who count its requests.
pub(crate) const OPERATOR: &str = "system:serviceaccount:default:webapp";

/// What the operator says about itself, without its webhooks: those are asked over sockets, which virtual time does not wait for.
pub(crate) fn description() -> Description {
    let manager = Manager::from_environment(NAME).leader_election(ElectionOptions::default());
    watchkeeper_webapp::operator(manager).description()
}

/// The same with webhooks, of a program with this name.
pub(crate) fn description_of(name: &str) -> Description {
    let manager = Manager::from_environment(name).leader_election(ElectionOptions::default());
    watchkeeper_webapp::webhooks(watchkeeper_webapp::operator(manager)).description()
}

/// A server, and a person who uses it.
pub(crate) struct World {
    pub(crate) env: TestEnv,
    pub(crate) person: Client,
    operator: Connection,
}

impl World {
    pub(crate) async fn new() -> Self {
        let env = TestEnv::builder().with_roles().start().await;
        env.install::<WebApp>().await;
        let person =
            Client::builder(env.connection_as("person", &["system:masters"])).manager("person").build();
        let operator = env.connection_for(&description()).await;
        Self { env, person, operator }
    }

    /// The operator, started and ready. It may do what it describes and nothing else.
    pub(crate) async fn operator(&self) -> Running {
        let manager = Manager::new(NAME, self.operator.clone());
        let running = watchkeeper_webapp::operator(manager).start().await.unwrap();
        running.ready().await;
        running
    }

    pub(crate) async fn app(&self, name: &str) -> Option<Arc<WebApp>> {
        self.person.live().get(&key(name)).await.unwrap()
    }

    /// An object as it is stored.
    pub(crate) async fn seen<K: Kind>(&self, name: &str) -> Option<Value> {
        Some(without_noise(&*self.person.live().get::<K>(&key(name)).await.unwrap()?))
    }

    pub(crate) async fn deployment(&self, name: &str) -> Option<Value> {
        self.seen::<Deployment>(name).await
    }

    pub(crate) async fn service(&self, name: &str) -> Option<Value> {
        self.seen::<Service>(name).await
    }

    /// Creates a WebApp and waits for its children and its status.
    pub(crate) async fn settled(&self, name: &str, spec: WebAppSpec) {
        self.person.create(&webapp(name, spec)).await.unwrap();
        eventually(|| async { self.condition(name, "Available").await.ok_or("no status") }).await;
    }

    /// Status and reason of a condition.
    pub(crate) async fn condition(&self, name: &str, kind: &str) -> Option<(String, String)> {
        let status = self.app(name).await?.status.clone()?;
        let found = status.conditions.into_iter().find(|condition| condition.type_ == kind)?;
        Some((found.status, found.reason))
    }

    /// Changes an object as somebody would who does not know of the operator.
    pub(crate) async fn edit<K: Kind>(&self, name: &str, operations: Value) -> Value {
        without_noise(&*self.person.patch::<K>(&key(name), Patch::Json(operations)).await.unwrap())
    }

    /// Writes the status of a Deployment, as its controller does.
    pub(crate) async fn report(&self, name: &str, status: Value) {
        let deployment = self.person.live().get::<Deployment>(&key(name)).await.unwrap().unwrap();
        let status: k8s_openapi::api::apps::v1::DeploymentStatus = serde_json::from_value(status).unwrap();
        let writer = self.person.status(&*deployment);
        writer
            .set(move |deployment: &mut Deployment| deployment.status = Some(status.clone()))
            .await
            .unwrap();
    }

    /// How many requests of the operator match, of those after a moment. Events, and its definition when it starts, are not
    /// counted.
    pub(crate) fn sent(&self, after: u64, matching: impl Fn(&Call) -> bool) -> usize {
        let about = |call: &Call| !["events", "customresourcedefinitions"].contains(&&*call.resource);
        let ours = |call: &Call| call.user == OPERATOR && call.number > after && about(call);
        self.env.count(|seen| ours(&seen.call) && matching(&seen.call))
    }
}

/// An object as JSON, without what moves by itself.
fn without_noise<K: Kind>(object: &K) -> Value {
    let whole = serde_json::to_value(object).unwrap();
    let metadata = &whole["metadata"];
    json!({"spec": whole["spec"], "labels": metadata["labels"], "owners": metadata["ownerReferences"]})
}

pub(crate) fn is_operators(call: &Call) -> bool {
    call.user == OPERATOR
}

pub(crate) fn spec() -> WebAppSpec {
    let env = [("B", "2"), ("A", "1")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    WebAppSpec {
        image: "nginx:1.29".into(),
        replicas: 2,
        http: Http { port: 8080 },
        environment: BTreeMap::from(env),
    }
}

pub(crate) fn webapp(name: &str, spec: WebAppSpec) -> WebApp {
    let mut app = WebApp::new(name, spec);
    app.metadata.namespace = Some("default".into());
    app
}
