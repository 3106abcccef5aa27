//! An operator, complete. It writes a page for every Greeting: a ConfigMap of the same name that holds the text.
//!
//! Run it with `cargo run --example minimal`, then `kubectl apply -f examples/greeting.yaml` and `kubectl get greetings`.

use k8s_openapi::api::core::v1::ConfigMap;
use watchkeeper::prelude::*;

/// What people declare: the `spec` of the kind `Greeting`.
#[watchkeeper::kind(
    group = "demo.watchkeeper.dev",
    version = "v1",
    kind = "Greeting",
    namespaced,
    status = "GreetingStatus",
    printcolumn("Text", ".spec.text"),
    printcolumn("Ready", ".status.conditions[?(@.type=='Ready')].status")
)]
pub(crate) struct GreetingSpec {
    pub(crate) text: String,
}

/// What the operator reports: whether the page is there.
#[watchkeeper::schema]
#[derive(Default)]
pub(crate) struct GreetingStatus {
    #[serde(default)]
    pub(crate) conditions: Vec<Condition>,
}

/// Called when a greeting or its page has changed. It says what should be there; nothing is sent where that is so already.
async fn reconcile(greeting: Arc<Greeting>, cx: Context<Greeting>) -> Result<Action> {
    let text = greeting.spec.text.trim();
    let html = [("index.html".to_owned(), format!("<h1>{text}</h1>"))];
    let page = (!text.is_empty()).then(|| ConfigMap { data: Some(html.into()), ..cx.named() });
    let state =
        if text.is_empty() { not_ready("NoText", "spec.text is empty") } else { ready("PageWritten") };
    // Creates the page, puts it back if someone edits or deletes it, and removes it when it is no longer wanted.
    cx.children().apply(page).await?;
    cx.status().condition(state).await?;
    Ok(Action::done())
}

/// Called before a greeting goes. Its page goes by itself; this is for what is not in the cluster.
async fn say_goodbye(_: Arc<Greeting>, cx: Context<Greeting>) -> Result<Action> {
    cx.event(Event::normal("Goodbye", "Delete", "The page is taken down"));
    Ok(Action::done())
}

/// What wakes the operator, and what it does then.
pub(crate) fn operator(manager: Manager) -> Manager {
    let greetings = Controller::of::<Greeting>().owns::<ConfigMap>();
    let greetings = greetings.cleanup("demo.watchkeeper.dev/goodbye", say_goodbye);
    manager.install::<Greeting>().controller(greetings.reconcile(reconcile))
}

#[tokio::main]
async fn main() -> Result<()> {
    watchkeeper::log::init();
    operator(Manager::from_args()).run().await
}
