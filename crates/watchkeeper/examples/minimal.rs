//! An operator, complete. It writes a page for every Greeting: a ConfigMap of the same name that holds the text.
//!
//! Run it with `cargo run --example minimal`, then `kubectl apply -f examples/greeting.yaml` and `kubectl get greetings`.

use k8s_openapi::api::core::v1::ConfigMap;
use watchkeeper::prelude::*;

/// What people declare. The derive makes a kind of it, `Greeting`, with this as its `spec`.
#[derive(CustomResource, JsonSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(
    group = "demo.watchkeeper.dev",
    version = "v1",
    kind = "Greeting",
    namespaced,
    status = "GreetingStatus"
)]
#[kube(printcolumn = r#"{"name":"Text","type":"string","jsonPath":".spec.text"}"#)]
#[kube(
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].status"}"#
)]
pub(crate) struct GreetingSpec {
    pub(crate) text: String,
}

/// What the operator reports: whether the page is there.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default)]
pub(crate) struct GreetingStatus {
    #[serde(default)]
    pub(crate) conditions: Vec<Condition>,
}

/// Called when a greeting or its page has changed, and once for each when the program starts. It does not ask what
/// happened: it says what should be there, and nothing is sent where that is so already.
async fn reconcile(greeting: Arc<Greeting>, cx: Context<Greeting>) -> Result<Action> {
    let text = greeting.spec.text.trim();
    if text.is_empty() {
        cx.status().condition(not_ready("NoText", "spec.text is empty")).await?;
        return Ok(Action::done());
    }
    let page =
        ConfigMap { data: Some([("index.html".into(), format!("<h1>{text}</h1>"))].into()), ..cx.named() };
    // Creates the page, puts it back if someone edits or deletes it, and removes it when it is no longer wanted.
    cx.children().apply([page]).await?;
    cx.status().condition(ready("PageWritten")).await?;
    Ok(Action::done())
}

/// Called before a greeting goes. The page goes by itself, because the greeting owns it; this is for what is not in the
/// cluster. Until it has returned `Ok`, the greeting stays.
async fn say_goodbye(_: Arc<Greeting>, cx: Context<Greeting>) -> Result<Action> {
    cx.event(Event::normal("Goodbye", "Delete", "The page is taken down"));
    Ok(Action::done())
}

/// What wakes the operator, and what it does then.
pub(crate) fn operator(manager: Manager) -> Manager {
    manager.install::<Greeting>().controller(
        Controller::of::<Greeting>()
            .owns::<ConfigMap>()
            .cleanup("demo.watchkeeper.dev/goodbye", say_goodbye)
            .reconcile(reconcile),
    )
}

#[tokio::main]
async fn main() -> Result<()> {
    tracing_subscriber::fmt().with_env_filter("info").init();
    operator(Manager::from_args()?).run().await
}
