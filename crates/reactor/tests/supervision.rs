//! A task that panics is seen, and goes on.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::path::Path;
use std::time::Duration;

use serde_json::json;
use watchkeeper_core::Key;
use watchkeeper_reactor::{Engine, Options, Reactor};
use watchkeeper_sources::channel::channel;

const FILE: &str = "
apiVersion: run.watchkeeper.dev/v1alpha1
kind: Reactor
spec:
  sources: [{name: items, url: 'file:nowhere'}]
  reactions:
  - {name: all, on: items, filter: [{path: .value, equals: -1}], retry: {initial: 10ms}, do: {shell: 'false'}}
";

async fn until(what: &str, mut done: impl FnMut() -> bool) {
    for _ in 0..3_000 {
        if done() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{what}");
}

#[tokio::test]
async fn what_panics_goes_on_and_no_change_is_lost() {
    let (sender, source) = channel("items");
    sender.put(&Key::new(None, "a"), &json!({"value": 1})).unwrap();
    let reactor =
        Reactor::read(FILE, "r.yaml", Path::new("/")).unwrap().with_source("items", source).unwrap();
    let engine = Engine::start(reactor, Options::default()).unwrap();
    until("the first object", || engine.delivered() == 1).await;
    let supervisor = engine.supervisor();
    assert!(supervisor.tasks().iter().any(|task| &**task == "source items"), "{:?}", supervisor.tasks());

    // What comes while the task does not run is not lost, whether it is new or gone.
    supervisor.break_down("source items");
    until("a panic", || supervisor.panics("source items") > 0).await;
    sender.put(&Key::new(None, "b"), &json!({"value": 2})).unwrap();
    sender.remove(&Key::new(None, "a"));
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(engine.delivered(), 1);
    supervisor.mend("source items");
    until("what came meanwhile", || engine.summary().filtered == 3).await;
    until("the state", || engine.delivered() == 1 && engine.is_idle()).await;

    // A change that panics is tried again, and costs no other.
    supervisor.poison("c");
    sender.put(&Key::new(None, "c"), &json!({"value": 3})).unwrap();
    sender.put(&Key::new(None, "d"), &json!({"value": 4})).unwrap();
    until("a panic of the reaction", || supervisor.panics("all") > 0).await;
    until("the other one", || engine.summary().filtered == 4).await;
    engine.stop().await;
}

#[tokio::test]
async fn a_task_of_the_state_that_panics_begins_again_and_forgets_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("state");
    let (sender, source) = channel("items");
    let reactor = Reactor::read(FILE, "r.yaml", Path::new("/")).unwrap();
    let reactor = reactor.with_source("items", source).unwrap();
    let options = || Options { state: Some(state.clone()), ..Options::default() };
    let engine = Engine::start(reactor, options()).unwrap();
    let supervisor = engine.supervisor();
    supervisor.break_down("state");
    until("a panic", || supervisor.panics("state") > 0).await;
    for (at, name) in ["a", "b"].into_iter().enumerate() {
        sender.put(&Key::new(None, name), &json!({"value": at})).unwrap();
        until("the object", || engine.delivered() == at + 1 && engine.is_idle()).await;
    }
    supervisor.mend("state");
    until("an end of the trouble", || supervisor.failing().is_empty()).await;
    engine.stop().await;
    let (_sender, source) = channel("items");
    let reactor = Reactor::read(FILE, "r.yaml", Path::new("/")).unwrap();
    let engine = Engine::start(reactor.with_source("items", source).unwrap(), options()).unwrap();
    assert_eq!(engine.delivered(), 2, "what was delivered is written down");
    engine.stop().await;
}
