//! Timers and tasks of objects.

use std::sync::Arc;
use std::time::Duration;

use watchkeeper_client::key_of;
use watchkeeper_core::Key;
use watchkeeper_queue::Backoff;
use watchkeeper_runtime::{Action, Context, Controller, Error, Every, Manager, Result, Running};
use watchkeeper_testkit::fixtures::{Widget, widget};
use watchkeeper_testkit::{TestEnv, eventually};

use crate::log::Log;

type Builder = watchkeeper_runtime::ControllerBuilder<watchkeeper_runtime::Primary<Widget>>;

async fn start(build: impl FnOnce(Builder) -> Builder) -> (TestEnv, Running) {
    let env = TestEnv::start().await;
    env.install::<Widget>().await;
    let backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(60)).with_jitter(0.0);
    let controller = build(Controller::of::<Widget>().backoff(backoff))
        .reconcile(|_: Arc<Widget>, _cx: Context<Widget>| async { Ok(Action::done()) });
    let running = Manager::new("test", env.connection()).controller(controller).start().await.unwrap();
    running.ready().await;
    (env, running)
}

#[tokio::test(start_paused = true)]
async fn a_timer_calls_with_the_newest_state_until_the_object_goes() {
    let log = Log::default();
    let seen = log.clone();
    let (_env, running) = start(|builder| {
        builder.every(
            Every::new(Duration::from_secs(60)).jitter(0.0),
            move |widget: Arc<Widget>, _cx: Context<Widget>| {
                seen.say(widget.spec.size.to_string());
                async { Ok(Action::done()) }
            },
        )
    })
    .await;
    let made = running.client().create(&widget("a", 1)).await.unwrap().into_object();
    tokio::time::sleep(Duration::from_secs(150)).await;
    assert_eq!(log.lines(), ["1", "1"]);
    running.client().modify::<Widget>(&key_of(&made), |widget| widget.spec.size = 2).await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(log.lines(), ["1", "1", "2"]);
    running.client().delete_key::<Widget>(&key_of(&made)).await.unwrap();
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(log.lines(), ["1", "1", "2"]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_timer_waits_for_an_object_that_is_being_edited() {
    let log = Log::default();
    let seen = log.clone();
    let every = Every::new(Duration::from_secs(10)).jitter(0.0).idle(Duration::from_secs(30));
    let (_env, running) = start(|builder| {
        builder.every(every, move |widget: Arc<Widget>, _cx: Context<Widget>| {
            seen.say(widget.spec.size.to_string());
            async { Ok(Action::done()) }
        })
    })
    .await;
    let made = running.client().create(&widget("a", 1)).await.unwrap().into_object();
    for size in 2..10 {
        tokio::time::sleep(Duration::from_secs(20)).await;
        running.client().modify::<Widget>(&key_of(&made), |widget| widget.spec.size = size).await.unwrap();
        assert!(log.lines().is_empty());
    }
    tokio::time::sleep(Duration::from_secs(35)).await;
    assert_eq!(log.lines(), ["9"]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_task_lives_as_long_as_its_object_and_is_awaited() {
    let log = Log::default();
    let seen = log.clone();
    let (_env, running) = start(|builder| {
        builder.task(Duration::from_secs(30), move |widget: Arc<Widget>, cx: Context<Widget>| {
            let log = seen.clone();
            async move {
                let name = widget.metadata.name.clone().unwrap();
                let _run = log.run(&name);
                log.say(format!("{name} begins"));
                cx.cancelled().await;
                tokio::time::sleep(Duration::from_secs(5)).await;
                log.say(format!("{name} ends"));
                Ok(Action::done())
            }
        })
    })
    .await;
    let made = running.client().create(&widget("a", 1)).await.unwrap().into_object();
    eventually(|| async { log.lines() == ["a begins"] }).await;
    running.client().delete_key::<Widget>(&key_of(&made)).await.unwrap();
    // Its successor does not begin before it has ended.
    running.client().create(&widget("a", 1)).await.unwrap();
    eventually(|| async { log.lines() == ["a begins", "a ends", "a begins"] }).await;
    assert_eq!(log.overlaps(), 0);
    running.stop().await;
    assert_eq!(log.lines().last().unwrap(), "a ends", "a stop waits for it");
}

#[tokio::test(start_paused = true)]
async fn a_task_that_fails_is_started_again_and_one_that_returns_is_not() {
    let log = Log::default();
    let seen = log.clone();
    let (_env, running) = start(|builder| {
        builder.task(Duration::from_secs(30), move |_: Arc<Widget>, cx: Context<Widget>| {
            seen.say(cx.attempt().to_string());
            async move {
                match cx.attempt() {
                    0 => Err(Error::message("once")),
                    1 => panic!("twice"),
                    _ => Ok::<_, Error>(Action::done()),
                }
            }
        })
    })
    .await;
    running.client().create(&widget("a", 1)).await.unwrap();
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(log.lines(), ["0", "1", "2"]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_task_that_does_not_end_is_dropped_after_its_grace() {
    let log = Log::default();
    let seen = log.clone();
    let (_env, running) = start(|builder| {
        builder.task(Duration::from_secs(30), move |_: Arc<Widget>, _cx: Context<Widget>| {
            seen.say("begins");
            std::future::pending::<Result<Action>>()
        })
    })
    .await;
    let key = Key::new(Some("default"), "a");
    running.client().create(&widget("a", 1)).await.unwrap();
    eventually(|| async { log.lines().len() == 1 }).await;
    running.client().delete_key::<Widget>(&key).await.unwrap();
    running.client().create(&widget("a", 1)).await.unwrap();
    let before = tokio::time::Instant::now();
    eventually(|| async { log.lines().len() == 2 }).within(Duration::from_secs(60)).await;
    assert!((25..40).contains(&before.elapsed().as_secs()), "{:?}", before.elapsed());
    running.stop().await;
}
