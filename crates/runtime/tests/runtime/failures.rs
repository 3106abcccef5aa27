//! Reconciles that fail, panic, take too long, or are stopped.

use std::sync::Arc;
use std::time::Duration;

use watchkeeper_queue::Backoff;
use watchkeeper_runtime::{Action, Context, Controller, Error, Manager, Result, Running};
use watchkeeper_testkit::fixtures::{Widget, widget};
use watchkeeper_testkit::{TestEnv, eventually};

use crate::log::Log;

async fn env() -> TestEnv {
    let env = TestEnv::start().await;
    env.install::<Widget>().await;
    env
}

/// A manager with one widget `a`, whose reconcile does this with the attempt.
async fn run<F, R>(
    env: &TestEnv,
    builder: watchkeeper_runtime::ControllerBuilder<watchkeeper_runtime::Primary<Widget>>,
    does: F,
) -> Running
where
    F: Fn(Context<Widget>) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Action>> + Send + 'static,
{
    let controller = builder.reconcile(move |_: Arc<Widget>, cx: Context<Widget>| does(cx));
    let running = Manager::new("test", env.connection()).controller(controller).start().await.unwrap();
    running.ready().await;
    running.client().create(&widget("a", 1)).await.unwrap();
    running
}

fn no_jitter() -> Backoff {
    Backoff::new(Duration::from_secs(1), Duration::from_secs(60)).with_jitter(0.0)
}

fn metric(running: &Running, line: &str) -> bool {
    running.metrics().lines().any(|found| found == line)
}

#[tokio::test(start_paused = true)]
async fn what_fails_is_tried_again_with_a_growing_wait_and_knows_its_attempt() {
    let env = env().await;
    let log = Log::default();
    let seen = log.clone();
    let start = tokio::time::Instant::now();
    let running = run(&env, Controller::of::<Widget>().backoff(no_jitter()), move |cx| {
        let log = seen.clone();
        async move {
            log.say(format!("{} at {}", cx.attempt(), start.elapsed().as_secs()));
            if cx.attempt() < 3 { Err(Error::message("not yet")) } else { Ok(Action::done()) }
        }
    })
    .await;
    eventually(|| async { log.lines().len() == 4 }).await;
    assert_eq!(log.lines(), ["0 at 0", "1 at 1", "2 at 3", "3 at 7"]);
    assert!(metric(&running, r#"controller_runtime_reconcile_total{controller="widget",result="error"} 3"#));
    assert!(metric(
        &running,
        r#"controller_runtime_reconcile_total{controller="widget",result="success"} 1"#
    ));
    assert!(metric(&running, r#"controller_runtime_reconcile_errors_total{controller="widget"} 3"#));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_terminal_failure_waits_for_a_change() {
    let env = env().await;
    let log = Log::default();
    let seen = log.clone();
    let running = run(&env, Controller::of::<Widget>(), move |cx| {
        seen.say(cx.attempt().to_string());
        async { Err(Error::terminal("no such colour")) }
    })
    .await;
    eventually(|| async { log.lines().len() == 1 }).await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(log.lines(), ["0"]);
    let key = watchkeeper_core::Key::new(Some("default"), "a");
    running.client().modify::<Widget>(&key, |widget| widget.spec.size = 2).await.unwrap();
    eventually(|| async { log.lines() == ["0", "0"] }).await;
    assert!(metric(&running, r#"controller_runtime_terminal_reconcile_errors_total{controller="widget"} 2"#));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_failure_may_say_when_to_try_again() {
    let env = env().await;
    let log = Log::default();
    let seen = log.clone();
    let start = tokio::time::Instant::now();
    let running = run(&env, Controller::of::<Widget>(), move |cx| {
        seen.say(format!("{} at {}", cx.attempt(), start.elapsed().as_secs()));
        async { Err(Error::message("quota").retry_after(Duration::from_secs(300))) }
    })
    .await;
    eventually(|| async { log.lines().len() == 3 }).within(Duration::from_secs(1000)).await;
    assert_eq!(log.lines(), ["0 at 0", "1 at 300", "2 at 600"]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_requeue_comes_when_it_was_asked_for() {
    let env = env().await;
    let log = Log::default();
    let seen = log.clone();
    let start = tokio::time::Instant::now();
    let running = run(&env, Controller::of::<Widget>(), move |_cx| {
        seen.say(start.elapsed().as_secs().to_string());
        async { Ok(Action::requeue_after(Duration::from_secs(60))) }
    })
    .await;
    eventually(|| async { log.lines().len() == 3 }).within(Duration::from_secs(1000)).await;
    assert_eq!(log.lines(), ["0", "60", "120"]);
    assert!(metric(
        &running,
        r#"controller_runtime_reconcile_total{controller="widget",result="requeue_after"} 3"#
    ));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_a_failure_of_one_object() {
    let env = env().await;
    let log = Log::default();
    let seen = log.clone();
    let running = run(&env, Controller::of::<Widget>().concurrency(1).backoff(no_jitter()), move |cx| {
        seen.say(cx.attempt().to_string());
        assert!(cx.attempt() > 0, "the first attempt panics, before it returns a future");
        async { Ok(Action::done()) }
    })
    .await;
    eventually(|| async { log.lines() == ["0", "1"] }).await;
    assert!(metric(&running, r#"controller_runtime_reconcile_panics_total{controller="widget"} 1"#));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_takes_too_long_is_dropped_and_tried_again() {
    let env = env().await;
    let log = Log::default();
    let seen = log.clone();
    let builder = Controller::of::<Widget>().timeout(Duration::from_secs(10)).backoff(no_jitter());
    let running = run(&env, builder, move |cx| {
        seen.say(cx.attempt().to_string());
        async move {
            if cx.attempt() == 0 {
                std::future::pending::<()>().await;
            }
            Ok(Action::done())
        }
    })
    .await;
    eventually(|| async { log.lines() == ["0", "1"] }).within(Duration::from_secs(60)).await;
    assert!(metric(&running, r#"controller_runtime_reconcile_timeouts_total{controller="widget"} 1"#));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_stop_lets_what_runs_end_and_starts_nothing() {
    let env = env().await;
    let log = Log::default();
    let seen = log.clone();
    let builder = Controller::of::<Widget>().concurrency(1);
    let running = run(&env, builder, move |cx| {
        let log = seen.clone();
        async move {
            log.say("begun");
            cx.cancelled().await;
            tokio::time::sleep(Duration::from_secs(5)).await;
            log.say("ended");
            Ok(Action::done())
        }
    })
    .await;
    eventually(|| async { log.lines() == ["begun"] }).await;
    running.client().create(&widget("b", 1)).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let before = tokio::time::Instant::now();
    let left = running.stop().await;
    assert_eq!(log.lines(), ["begun", "ended"]);
    assert_eq!((left.waiting, left.dropped), (1, 0));
    assert!(before.elapsed() < Duration::from_secs(10), "{:?}", before.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_stop_does_not_wait_longer_than_its_grace() {
    let env = env().await;
    let log = Log::default();
    let seen = log.clone();
    let controller = Controller::of::<Widget>().reconcile(move |_: Arc<Widget>, _cx: Context<Widget>| {
        seen.say("begun");
        std::future::pending::<Result<Action>>()
    });
    let manager = Manager::new("test", env.connection()).controller(controller).grace(Duration::from_secs(7));
    let running = manager.start().await.unwrap();
    running.ready().await;
    running.client().create(&widget("a", 1)).await.unwrap();
    eventually(|| async { log.lines() == ["begun"] }).await;
    let before = tokio::time::Instant::now();
    let left = running.stop().await;
    assert_eq!(left.dropped, 1);
    assert!((7..12).contains(&before.elapsed().as_secs()), "{:?}", before.elapsed());
}
