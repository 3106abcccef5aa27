//! An operator that writes a page for every Greeting, on kube-runtime.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::runtime::finalizer::{Error as FinalizerError, Event as Finalizer, finalizer};
use kube::runtime::watcher;
use kube::{Client, CustomResource, CustomResourceExt, Resource, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(CustomResource, JsonSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(
    group = "demo.watchkeeper.dev",
    version = "v1",
    kind = "Greeting",
    namespaced,
    status = "GreetingStatus"
)]
struct GreetingSpec {
    text: String,
}

#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default)]
struct GreetingStatus {
    #[serde(default)]
    conditions: Vec<Condition>,
}

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("{0}")]
    Kube(#[from] kube::Error),
    #[error("{0}")]
    Finalizer(#[from] Box<FinalizerError<Error>>),
}

struct Context {
    client: Client,
    recorder: Recorder,
}

async fn reconcile(greeting: Arc<Greeting>, cx: Arc<Context>) -> Result<Action, Error> {
    let namespace = greeting.namespace().unwrap_or_default();
    let greetings: Api<Greeting> = Api::namespaced(cx.client.clone(), &namespace);
    finalizer(&greetings, "demo.watchkeeper.dev/goodbye", greeting, |event| async {
        match event {
            Finalizer::Apply(greeting) => apply(&greeting, &cx).await,
            Finalizer::Cleanup(greeting) => say_goodbye(&greeting, &cx).await,
        }
    })
    .await
    .map_err(|error| Error::Finalizer(Box::new(error)))
}

async fn apply(greeting: &Greeting, cx: &Context) -> Result<Action, Error> {
    let namespace = greeting.namespace().unwrap_or_default();
    let text = greeting.spec.text.trim();
    if text.is_empty() {
        report(greeting, cx, "False", "NoText", "spec.text is empty").await?;
        return Ok(Action::await_change());
    }
    let pages: Api<ConfigMap> = Api::namespaced(cx.client.clone(), &namespace);
    let mut page = ConfigMap {
        data: Some([("index.html".into(), format!("<h1>{text}</h1>"))].into()),
        ..ConfigMap::default()
    };
    page.metadata.name = Some(greeting.name_any());
    page.metadata.owner_references = greeting.controller_owner_ref(&()).map(|owner| vec![owner]);
    let params = PatchParams::apply("greeting").force();
    pages.patch(&greeting.name_any(), &params, &Patch::Apply(&page)).await?;
    report(greeting, cx, "True", "PageWritten", "").await?;
    Ok(Action::await_change())
}

async fn report(
    greeting: &Greeting,
    cx: &Context,
    status: &str,
    reason: &str,
    message: &str,
) -> Result<(), Error> {
    let known = greeting.status.iter().flat_map(|status| &status.conditions);
    let same = known.clone().find(|condition| condition.type_ == "Ready" && condition.status == status);
    if same.is_some_and(|condition| condition.reason == reason) {
        return Ok(());
    }
    let condition = Condition {
        last_transition_time: same
            .map_or_else(|| Time(k8s_openapi::jiff::Timestamp::now()), |same| same.last_transition_time.clone()),
        message: message.into(),
        observed_generation: greeting.metadata.generation,
        reason: reason.into(),
        status: status.into(),
        type_: "Ready".into(),
    };
    let namespace = greeting.namespace().unwrap_or_default();
    let greetings: Api<Greeting> = Api::namespaced(cx.client.clone(), &namespace);
    let patch = Patch::Merge(json!({"status": {"conditions": [condition]}}));
    greetings.patch_status(&greeting.name_any(), &PatchParams::default(), &patch).await?;
    Ok(())
}

async fn say_goodbye(greeting: &Greeting, cx: &Context) -> Result<Action, Error> {
    let event = Event {
        type_: EventType::Normal,
        reason: "Goodbye".into(),
        note: Some("The page is taken down".into()),
        action: "Delete".into(),
        secondary: None,
    };
    cx.recorder.publish(&event, &greeting.object_ref(&())).await?;
    Ok(Action::await_change())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tracing_subscriber::fmt().with_env_filter("info").init();
    let client = Client::try_default().await?;
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let params = PatchParams::apply("greeting").force();
    definitions.patch(Greeting::crd_name(), &params, &Patch::Apply(Greeting::crd())).await?;
    let recorder = Recorder::new(client.clone(), Reporter::from("greeting"));
    let context = Arc::new(Context { client: client.clone(), recorder });
    Controller::new(Api::<Greeting>::all(client.clone()), watcher::Config::default())
        .owns(Api::<ConfigMap>::all(client), watcher::Config::default())
        .shutdown_on_signal()
        .run(reconcile, |_, _, _| Action::requeue(Duration::from_secs(5)), context)
        .for_each(|_| async {})
        .await;
    Ok(())
}
