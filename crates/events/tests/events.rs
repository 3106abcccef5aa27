//! Events on an API server in this process, in virtual time.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use k8s_openapi::api::events::v1::Event as Written;
use kube_client::Api;
use kube_core::ResourceExt;
use kube_core::params::{DeleteParams, ListParams};
use serde_json::{Value, json};
use tokio::time::sleep;
use watchkeeper_events::{Event, EventOptions, Events, ObjectRef};
use watchkeeper_testkit::{Outcome, TestEnv, eventually};

const SECOND: Duration = Duration::from_secs(1);

fn start(env: &TestEnv) -> Events {
    Events::start(env.connection(), EventOptions::new("example.com/operator"))
}

fn widget(name: &str) -> ObjectRef {
    ObjectRef::new("example.com/v1", "Widget", name).in_namespace("default").with_uid("1234")
}

fn broken(note: &str) -> Event {
    Event::warning("Broken", "Repair", note)
}

fn api(env: &TestEnv) -> Api<Written> {
    Api::default_namespaced(env.client())
}

async fn all(env: &TestEnv) -> Vec<Written> {
    api(env).list(&ListParams::default()).await.unwrap().items
}

/// Waits until there are so many.
async fn written(env: &TestEnv, number: usize) -> Vec<Written> {
    eventually(|| async {
        let found = all(env).await;
        if found.len() == number { Ok(found) } else { Err(format!("{} events", found.len())) }
    })
    .await
}

fn series(event: &Written) -> Option<i32> {
    event.series.as_ref().map(|series| series.count)
}

#[tokio::test(start_paused = true)]
async fn an_event_says_what_happened_to_what() {
    let env = TestEnv::start().await;
    let events = start(&env);
    let event = broken("the wheel came off").related_to(ObjectRef::new("v1", "Node", "n1"));
    events.recorder().event(&widget("w"), event);
    let found = json!(written(&env, 1).await[0]);
    let expected = json!({
        "type": "Warning", "reason": "Broken", "action": "Repair", "note": "the wheel came off",
        "regarding": {"apiVersion": "example.com/v1", "kind": "Widget", "name": "w", "namespace": "default", "uid": "1234"},
        "related": {"apiVersion": "v1", "kind": "Node", "name": "n1"},
        "reportingController": "example.com/operator", "series": null,
    });
    for (field, value) in expected.as_object().unwrap() {
        assert_eq!(found.get(field).unwrap_or(&Value::Null), value, "{field}");
    }
    assert!(found["reportingInstance"].as_str().unwrap().starts_with("operator-"));
    assert!(found["metadata"]["name"].as_str().unwrap().starts_with("w."));
    assert!(found["eventTime"].is_string());
}

#[tokio::test(start_paused = true)]
async fn the_same_again_is_counted_in_one_series() {
    let env = TestEnv::start().await;
    let events = start(&env);
    let recorder = events.recorder();
    for number in 0..50 {
        recorder.event(&widget("w"), broken(&format!("try {number}")));
        sleep(SECOND * 10).await;
    }
    let found = written(&env, 1).await;
    assert!(series(&found[0]).unwrap() >= 44, "{:?}", series(&found[0]));
    // Quiet: the last of them are told when the series is over at the latest.
    sleep(SECOND * 400).await;
    let found = written(&env, 1).await;
    assert_eq!(series(&found[0]), Some(50));
    let writes = env.count(|seen| seen.call.is_write());
    assert!(writes <= 12, "{writes} requests for 50 events in 500 s");
    assert_eq!((events.counts().created, events.counts().repeated), (1, 49));
    // After that, it is news again.
    recorder.event(&widget("w"), broken("again"));
    written(&env, 2).await;
}

#[tokio::test(start_paused = true)]
async fn what_differs_is_not_the_same() {
    let env = TestEnv::start().await;
    let events = start(&env);
    let recorder = events.recorder();
    recorder.event(&widget("w"), Event::normal("Made", "Make", ""));
    recorder.event(&widget("w"), Event::warning("Made", "Make", ""));
    recorder.event(&widget("w"), Event::normal("Moved", "Make", ""));
    recorder.event(&widget("w"), Event::normal("Made", "Move", ""));
    recorder.event(&widget("v"), Event::normal("Made", "Make", ""));
    recorder.event(&widget("w"), Event::normal("Made", "Make", "").related_to(widget("v")));
    let found = written(&env, 6).await;
    assert!(found.iter().all(|event| series(event).is_none()));
}

#[tokio::test(start_paused = true)]
async fn too_many_about_one_object_are_dropped_and_others_are_not() {
    let env = TestEnv::start().await;
    let events = start(&env);
    let recorder = events.recorder();
    let flood = |from: usize, to: usize| {
        for number in from..to {
            recorder.event(&widget("w"), Event::normal(format!("Reason{number}"), "Act", ""));
        }
    };
    flood(0, 100);
    recorder.event(&widget("v"), broken(""));
    written(&env, 26).await;
    assert_eq!(events.counts().limited, 75);
    sleep(SECOND * 301).await;
    flood(100, 110);
    written(&env, 27).await;
    assert_eq!(events.counts().limited, 84);
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_a_server_that_does_not_answer() {
    let env = TestEnv::start().await;
    let hang = env.fault(|_| Outcome::hang());
    let events = start(&env);
    let recorder = events.recorder();
    let begin = tokio::time::Instant::now();
    for number in 0..1_500 {
        recorder.event(&widget(&format!("w{number}")), broken(""));
    }
    assert_eq!(begin.elapsed(), Duration::ZERO);
    assert_eq!(events.counts().overflowed, 500);
    sleep(SECOND).await;
    hang.lift();
    eventually(|| async { all(&env).await.len() == 1_000 }).within(SECOND * 300).await;
}

#[tokio::test(start_paused = true)]
async fn what_fails_on_the_way_is_tried_again_and_written_once() {
    for outcome in [
        Outcome::refuse(),
        Outcome::lose(),
        Outcome::swallow(),
        Outcome::reject(503, "ServiceUnavailable", ""),
    ] {
        let env = TestEnv::start().await;
        let events = start(&env);
        let tries = AtomicUsize::new(0);
        env.fault(move |call| {
            let fails = call.verb == "create" && tries.fetch_add(1, Ordering::Relaxed) < 3;
            if fails { outcome.clone() } else { Outcome::pass() }
        })
        .keep();
        events.recorder().event(&widget("w"), broken(""));
        eventually(|| async { events.counts().created == 1 }).within(SECOND * 120).await;
        assert_eq!(all(&env).await.len(), 1);
        assert_eq!(env.count(|seen| seen.call.verb == "create"), 4);
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_refused_is_not_tried_again() {
    let env = TestEnv::start().await;
    let denial = env.deny(|call| call.is_of("events") && call.is_write());
    let events = start(&env);
    let recorder = events.recorder();
    recorder.event(&widget("w"), broken(""));
    sleep(SECOND * 60).await;
    assert_eq!(env.count(|seen| seen.call.is_write()), 1);
    assert_eq!((events.counts().rejected, events.counts().created), (1, 0));
    denial.lift();
    recorder.event(&widget("v"), broken(""));
    written(&env, 1).await;
}

#[tokio::test(start_paused = true)]
async fn in_the_end_one_gives_up() {
    let env = TestEnv::start().await;
    env.fault(|_| Outcome::refuse()).keep();
    let events = start(&env);
    events.recorder().event(&widget("w"), broken(""));
    eventually(|| async { events.counts().failed == 1 }).within(SECOND * 300).await;
    assert_eq!(env.count(|seen| seen.call.is_write()), 12);
}

#[tokio::test(start_paused = true)]
async fn a_series_whose_event_has_expired_is_written_anew() {
    let env = TestEnv::start().await;
    let events = start(&env);
    let recorder = events.recorder();
    recorder.event(&widget("w"), broken(""));
    let name = written(&env, 1).await[0].name_any();
    api(&env).delete(&name, &DeleteParams::default()).await.unwrap();
    recorder.event(&widget("w"), broken(""));
    assert_eq!(series(&written(&env, 1).await[0]), Some(2));
}

#[tokio::test(start_paused = true)]
async fn events_of_cluster_scoped_objects_are_in_default() {
    let env = TestEnv::start().await;
    env.create_namespace("elsewhere").await;
    let events = start(&env);
    events.recorder().event(&ObjectRef::new("v1", "Node", "N_1.example"), broken(""));
    events.recorder().event(&ObjectRef::new("v1", "Pod", "p").in_namespace("elsewhere"), broken(""));
    let found = written(&env, 1).await;
    assert_eq!(found[0].regarding.as_ref().unwrap().name.as_deref(), Some("N_1.example"));
    let elsewhere: Api<Written> = Api::namespaced(env.client(), "elsewhere");
    eventually(|| async { elsewhere.list(&ListParams::default()).await.unwrap().items.len() == 1 }).await;
}

#[tokio::test(start_paused = true)]
async fn the_end_writes_what_there_is() {
    let env = TestEnv::start().await;
    let events = start(&env);
    let recorder = events.recorder();
    for _ in 0..7 {
        recorder.event(&widget("w"), broken(""));
    }
    for number in 0..20 {
        recorder.event(&widget(&format!("w{number}")), broken(""));
    }
    let counts = events.shutdown(SECOND * 5).await;
    assert_eq!((counts.created, counts.repeated), (21, 6));
    let found = all(&env).await;
    assert_eq!((found.len(), found.iter().filter_map(series).collect::<Vec<_>>()), (21, vec![7]));
    recorder.event(&widget("late"), broken(""));
    assert_eq!(all(&env).await.len(), 21);
}

#[tokio::test(start_paused = true)]
async fn the_end_does_not_wait_forever() {
    let env = TestEnv::start().await;
    env.fault(|_| Outcome::hang()).keep();
    let events = start(&env);
    events.recorder().event(&widget("w"), broken(""));
    let begin = tokio::time::Instant::now();
    assert_eq!(events.shutdown(SECOND * 5).await.created, 0);
    assert!(begin.elapsed() >= SECOND * 5 && begin.elapsed() < SECOND * 6, "{:?}", begin.elapsed());
}

#[tokio::test(start_paused = true)]
async fn the_end_does_not_wait_out_a_pause() {
    let env = TestEnv::start().await;
    env.stop().await;
    let events = start(&env);
    events.recorder().event(&widget("w"), broken(""));
    sleep(SECOND).await;
    env.resume().await;
    let begin = tokio::time::Instant::now();
    assert_eq!(events.shutdown(SECOND * 5).await.created, 1);
    assert!(begin.elapsed() < SECOND, "{:?}", begin.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_writer_that_panics_goes_on() {
    let env = TestEnv::start().await;
    let mut options = EventOptions::new("example.com/operator");
    let supervisor = watchkeeper_supervision::Supervisor::default();
    options.supervisor = supervisor.clone();
    let events = Events::start(env.connection(), options);
    events.recorder().event(&widget("a"), broken("the wheel came off"));
    written(&env, 1).await;
    supervisor.inject("events");
    eventually(|| async { supervisor.panics("events") == 1 }).await;
    events.recorder().event(&widget("b"), broken("the wheel came off"));
    written(&env, 2).await;
    let counts = events.shutdown(SECOND).await;
    assert_eq!((counts.created, counts.failed), (2, 0));
}

#[tokio::test(start_paused = true)]
async fn an_event_that_makes_the_writer_panic_is_counted_and_costs_no_other() {
    let env = TestEnv::start().await;
    let mut options = EventOptions::new("example.com/operator");
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    options.wall_clock = || {
        assert_ne!(CALLS.fetch_add(1, Ordering::Relaxed), 1, "no such time");
        std::time::SystemTime::now()
    };
    let events = Events::start(env.connection(), options);
    for name in ["a", "b", "c"] {
        events.recorder().event(&widget(name), broken("the wheel came off"));
    }
    written(&env, 2).await;
    let counts = events.shutdown(SECOND).await;
    assert_eq!((counts.created, counts.failed), (2, 1));
}
