//! Managers that share a lease, in virtual time.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use watchkeeper_client::Client;
use watchkeeper_core::Key;
use watchkeeper_election::ElectionOptions;
use watchkeeper_runtime::{Action, Context, Controller, Manager, Running, Verbs};
use watchkeeper_testkit::fixtures::{Widget, config_map, widget};
use watchkeeper_testkit::{TestEnv, eventually};

use crate::log::Log;

/// A candidate whose reconciles say its name, and write it into a map.
async fn candidate(env: &TestEnv, name: &'static str, log: &Log) -> Running {
    let seen = log.clone();
    let widgets = Controller::of::<Widget>().writes::<ConfigMap>(Verbs::APPLY);
    let controller = widgets.reconcile(move |object: Arc<Widget>, cx: Context<Widget>| {
        let log = seen.clone();
        async move {
            log.say(format!("{name}: {} {}", object.metadata.name.as_deref().unwrap(), object.spec.size));
            cx.client().apply(&config_map("leader", &[("is", name)])).await?;
            Ok(Action::done())
        }
    });
    let mut options = ElectionOptions::default();
    options.identity = name.into();
    let manager = Manager::new("test", env.connection()).controller(controller).leader_election(options);
    let running = manager.start().await.unwrap();
    running.ready().await;
    running
}

async fn env() -> TestEnv {
    let env = TestEnv::start().await;
    env.install::<Widget>().await;
    Client::new(env.connection()).create(&widget("a", 1)).await.unwrap();
    env
}

#[tokio::test(start_paused = true)]
async fn the_standby_is_warm_does_nothing_and_takes_over_at_once_after_a_stop() {
    let env = env().await;
    let log = Log::default();
    let one = candidate(&env, "one", &log).await;
    one.leading().await;
    let two = candidate(&env, "two", &log).await;
    eventually(|| async { two.leader().as_deref() == Some("one") }).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(log.lines(), ["one: a 1"]);
    assert!(one.metrics().contains(r#"leader_election_master_status{name="default/test"} 1"#));
    assert!(two.metrics().contains(r#"leader_election_master_status{name="default/test"} 0"#));

    assert!(one.metrics().contains(r#"leader_election_slowpath_total{name="default/test"} 0"#));

    one.stop().await;
    let stopped = tokio::time::Instant::now();
    eventually(|| async { log.lines() == ["one: a 1", "two: a 1"] }).await;
    assert!(stopped.elapsed() <= Duration::from_secs(1), "{:?}", stopped.elapsed());
    two.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_lease_is_released_only_after_the_last_reconcile_has_ended() {
    let env = env().await;
    let log = Log::default();
    let seen = log.clone();
    let widgets = Controller::of::<Widget>().writes::<ConfigMap>(Verbs::APPLY);
    let controller = widgets.reconcile(move |_: Arc<Widget>, cx: Context<Widget>| {
        let log = seen.clone();
        async move {
            log.say("begun");
            cx.cancelled().await;
            tokio::time::sleep(Duration::from_secs(20)).await;
            // Still the leader, although the lease had to be renewed meanwhile.
            cx.client().apply(&config_map("last", &[])).await?;
            log.say("ended");
            Ok(Action::done())
        }
    });
    let manager = Manager::new("test", env.connection())
        .controller(controller)
        .leader_election(ElectionOptions::default());
    let running = manager.start().await.unwrap();
    eventually(|| async { log.lines() == ["begun"] }).await;
    running.stop().await;
    assert_eq!(log.lines(), ["begun", "ended"]);
    let live = Client::new(env.connection());
    let lease = live.live().get::<Lease>(&Key::new(Some("default"), "test")).await.unwrap().unwrap();
    let holder = lease.spec.as_ref().and_then(|spec| spec.holder_identity.clone()).unwrap_or_default();
    assert_eq!(holder, "");
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_cannot_renew_writes_nothing_and_leads_again_later() {
    let env = env().await;
    let log = Log::default();
    let one = candidate(&env, "one", &log).await;
    eventually(|| async { log.lines() == ["one: a 1"] }).await;

    // Everything but leases works, so that only the guard stands between a reconcile and its write.
    let cut_off = env.deny(|call| call.is_of("leases"));
    eventually(|| async { !one.is_leading() }).within(Duration::from_secs(30)).await;
    let before = env.request_count();
    let client = Client::new(env.connection());
    client.modify::<Widget>(&Key::new(Some("default"), "a"), |widget| widget.spec.size = 2).await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(log.lines(), ["one: a 1"], "who does not lead does not reconcile");
    assert_eq!(
        env.count(|seen| seen.call.number > before && seen.call.is_of("configmaps") && seen.call.is_write()),
        0
    );

    cut_off.lift();
    eventually(|| async { log.lines() == ["one: a 1", "one: a 2"] }).within(Duration::from_secs(60)).await;
    one.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_running_reconcile_is_dropped_and_its_writes_refused_when_the_lead_is_lost() {
    let env = env().await;
    let log = Log::default();
    let seen = log.clone();
    let escaped = Arc::new(parking_lot::Mutex::new(None));
    let kept = Arc::clone(&escaped);
    let controller = Controller::of::<Widget>().reconcile(move |_: Arc<Widget>, cx: Context<Widget>| {
        seen.say("begun");
        // A task that outlives its reconcile still has the client of the leader.
        *kept.lock() = Some(cx.client().clone());
        std::future::pending::<watchkeeper_runtime::Result<Action>>()
    });
    let manager = Manager::new("test", env.connection())
        .controller(controller)
        .leader_election(ElectionOptions::default());
    let running = manager.start().await.unwrap();
    eventually(|| async { log.lines() == ["begun"] }).await;
    let cut_off = env.deny(|call| call.is_of("leases"));
    eventually(|| async { !running.is_leading() }).within(Duration::from_secs(30)).await;
    let client = escaped.lock().clone().unwrap();
    let refused = client.apply(&config_map("late", &[])).await.unwrap_err();
    assert!(matches!(refused, watchkeeper_client::Error::NotLeading { .. }), "{refused}");
    assert_eq!(env.count(|seen| seen.call.is_of("configmaps") && seen.call.is_write()), 0);
    cut_off.lift();
    eventually(|| async { log.lines() == ["begun", "begun"] }).within(Duration::from_secs(60)).await;
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn a_controller_without_election_works_on_every_replica() {
    let env = env().await;
    let log = Log::default();
    let mut replicas = Vec::new();
    for name in ["one", "two"] {
        let seen = log.clone();
        let controller = Controller::of::<Widget>().without_election().reconcile(
            move |_: Arc<Widget>, _cx: Context<Widget>| {
                seen.say(name);
                async { Ok(Action::done()) }
            },
        );
        let manager = Manager::new("test", env.connection())
            .controller(controller)
            .leader_election(ElectionOptions::default());
        replicas.push(manager.start().await.unwrap());
    }
    eventually(|| async {
        let mut lines = log.lines();
        lines.sort();
        lines == ["one", "two"]
    })
    .await;
    for replica in replicas {
        replica.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_for_the_leader_runs_once_in_each_term() {
    let env = env().await;
    let log = Log::default();
    let seen = log.clone();
    let manager = Manager::new("test", env.connection())
        .leader_election(ElectionOptions::default())
        .leader_task("greeter", move |_client, stop| {
            let log = seen.clone();
            async move {
                log.say("begins");
                stop.cancelled().await;
                log.say("ends");
                Ok(())
            }
        });
    let running = manager.start().await.unwrap();
    eventually(|| async { log.lines() == ["begins"] }).await;
    let cut_off = env.deny(|call| call.is_of("leases"));
    eventually(|| async { log.lines() == ["begins", "ends"] }).within(Duration::from_secs(60)).await;
    cut_off.lift();
    eventually(|| async { log.lines() == ["begins", "ends", "begins"] })
        .within(Duration::from_secs(60))
        .await;
    running.stop().await;
    assert_eq!(log.lines().len(), 4);
}
