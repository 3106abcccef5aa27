//! The example as its users run it, against an API server in this process.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

#[allow(dead_code, reason = "the example's main is not called here")]
#[path = "../examples/minimal.rs"]
mod minimal;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::events::v1::Event as Written;
use minimal::{Greeting, GreetingSpec};
use watchkeeper::prelude::*;
use watchkeeper_testkit::{TestEnv, consistently, eventually};

#[tokio::test(start_paused = true)]
async fn every_greeting_has_its_page_says_so_and_leaves_nothing_behind() {
    let env = TestEnv::start().await;
    let manager = minimal::operator(Manager::new("minimal", env.connection()));
    let running = manager.start().await.unwrap();
    running.ready().await;
    let client = running.client();
    let key = Key::new(Some("default"), "hello");
    let page = || async {
        Some(client.live().get::<ConfigMap>(&key).await.unwrap()?.data.clone()?["index.html"].clone())
    };

    let mut greeting = Greeting::new("hello", GreetingSpec { text: "Hello".into() });
    greeting.metadata.namespace = Some("default".into());
    client.create(&greeting).await.unwrap();
    eventually(|| async { page().await.as_deref() == Some("<h1>Hello</h1>") }).await;
    let is_ready = |greeting: &Greeting| {
        let conditions = greeting.status.iter().flat_map(|status| &status.conditions);
        conditions.map(|condition| (condition.status.clone(), condition.reason.clone())).next_back()
    };
    let status = || async { is_ready(&*client.live().get::<Greeting>(&key).await.unwrap()?) };
    eventually(|| async { status().await == Some(("True".into(), "PageWritten".into())) }).await;

    client.delete_key::<ConfigMap>(&key).await.unwrap();
    eventually(|| async { page().await.is_some() }).await;
    client.modify::<Greeting>(&key, |greeting| greeting.spec.text = "Bye".into()).await.unwrap();
    eventually(|| async { page().await.as_deref() == Some("<h1>Bye</h1>") }).await;
    client.modify::<Greeting>(&key, |greeting| greeting.spec.text = "  ".into()).await.unwrap();
    eventually(|| async { status().await == Some(("False".into(), "NoText".into())) }).await;

    let before = env.request_count();
    consistently(|| async { env.count(|seen| seen.call.number > before && seen.call.is_write()) == 0 }).await;

    client.delete_key::<Greeting>(&key).await.unwrap();
    eventually(|| async { status().await.is_none() && page().await.is_none() }).await;
    running.stop().await;
    let events = Client::new(env.connection());
    let events = events.live().list::<Written>().await.unwrap();
    assert!(events.iter().any(|event| event.reason.as_deref() == Some("Goodbye")), "{} events", events.len());
}
