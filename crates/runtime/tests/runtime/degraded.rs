//! Kinds that are denied or missing.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use watchkeeper_runtime::{Action, Context, Controller, Manager};
use watchkeeper_testkit::fixtures::{Widget, config_map, widget};
use watchkeeper_testkit::{TestEnv, eventually};

use crate::log::Log;

fn of<K: watchkeeper_client::StaticKind>(log: &Log) -> Controller {
    let log = log.clone();
    Controller::of::<K>().reconcile(move |object: Arc<K>, _cx: Context<K>| {
        log.say(format!("{} {}", K::kind(&()), object.meta().name.as_deref().unwrap()));
        async { Ok(Action::done()) }
    })
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_denied_disturbs_nobody_is_named_and_recovers_by_itself() {
    let env = TestEnv::start().await;
    let denied = env.deny(|call| call.is_of("secrets"));
    let log = Log::default();
    let manager =
        Manager::new("test", env.connection())
            .controller(of::<ConfigMap>(&log))
            .controller(of::<Secret>(&log));
    let running = manager.start().await.unwrap();
    running.client().create(&config_map("m", &[])).await.unwrap();
    eventually(|| async { log.lines().contains(&"ConfigMap m".to_owned()) }).await;

    eventually(|| async {
        let not_ready = running.not_ready();
        let [(name, reason)] = not_ready.as_slice() else { return false };
        name == "cache secrets" && reason.starts_with("secrets: denied: ")
    })
    .await;
    eventually(|| async {
        running.metrics().contains(r#"watchkeeper_source_degraded{source="secrets",reason="denied"} 1"#)
    })
    .await;

    // Long enough that the waits have grown to their longest.
    tokio::time::sleep(Duration::from_secs(600)).await;
    let secret = Secret { metadata: config_map("s", &[]).metadata, ..Secret::default() };
    denied.lift();
    let granted = tokio::time::Instant::now();
    running.client().create(&secret).await.unwrap();
    eventually(|| async { log.lines().contains(&"Secret s".to_owned()) }).await;
    assert!(granted.elapsed() <= Duration::from_secs(10), "{:?}", granted.elapsed());
    running.ready().await;
    assert!(running.metrics().contains(r#"watchkeeper_source_degraded{source="secrets",reason="denied"} 0"#));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_missing_disturbs_nobody_is_named_and_is_picked_up_when_it_appears() {
    let env = TestEnv::start().await;
    let log = Log::default();
    let manager =
        Manager::new("test", env.connection())
            .controller(of::<ConfigMap>(&log))
            .controller(of::<Widget>(&log));
    let running = manager.start().await.unwrap();
    running.client().create(&config_map("m", &[])).await.unwrap();
    eventually(|| async { log.lines().contains(&"ConfigMap m".to_owned()) }).await;
    eventually(|| async {
        let not_ready = running.not_ready();
        let [(name, reason)] = not_ready.as_slice() else { return false };
        name == "cache widgets.test.watchkeeper.dev" && reason.contains("missing: ")
    })
    .await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    env.install::<Widget>().await;
    let installed = tokio::time::Instant::now();
    running.client().create(&widget("w", 1)).await.unwrap();
    eventually(|| async { log.lines().contains(&"Widget w".to_owned()) }).await;
    assert!(installed.elapsed() <= Duration::from_secs(10), "{:?}", installed.elapsed());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_program_may_bring_its_definitions_along() {
    let env = TestEnv::start().await;
    let denied = env.deny(|call| call.is_of("customresourcedefinitions"));
    let log = Log::default();
    let manager = Manager::new("test", env.connection()).install::<Widget>().controller(of::<Widget>(&log));
    let running = manager.start().await.unwrap();
    eventually(|| async {
        let not_ready = running.not_ready();
        not_ready
            .iter()
            .any(|(name, why)| name.starts_with("definition widgets") && why.contains("forbidden"))
    })
    .await;
    denied.lift();
    running.ready().await;
    running.client().create(&widget("w", 1)).await.unwrap();
    eventually(|| async { log.lines() == ["Widget w"] }).await;
    running.stop().await;
}
