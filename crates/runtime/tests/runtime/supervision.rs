//! Tasks of a manager that panic.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;
use watchkeeper_client::key_of;
use watchkeeper_election::ElectionOptions;
use watchkeeper_runtime::{Action, Context, Controller, Every, Manager, Running};
use watchkeeper_testkit::fixtures::{Widget, widget};
use watchkeeper_testkit::{TestEnv, eventually};

use crate::log::Log;

/// A manager that has every kind of task, and says what it reconciles.
async fn start(env: &TestEnv, log: &Log) -> Running {
    env.install::<Widget>().await;
    let (seen, ticked) = (log.clone(), log.clone());
    let controller = Controller::of::<Widget>()
        .every(
            Every::new(Duration::from_secs(3)).jitter(0.0),
            move |widget: Arc<Widget>, _cx: Context<Widget>| {
                ticked.say(format!("tick {}", widget.spec.size));
                async { Ok(Action::done()) }
            },
        )
        .reconcile(move |widget: Arc<Widget>, _cx: Context<Widget>| {
            seen.say(format!("reconcile {}", widget.spec.size));
            async { Ok(Action::done()) }
        });
    let manager = Manager::new("test", env.connection())
        .controller(controller)
        .leader_election(ElectionOptions::default())
        .serve(([127, 0, 0, 1], 0).into());
    let running = manager.start().await.unwrap();
    running.ready().await;
    running.leading().await;
    running
}

#[tokio::test(start_paused = true)]
async fn every_task_of_a_manager_goes_on_after_a_panic() {
    let (env, log) = (TestEnv::start().await, Log::default());
    let running = start(&env, &log).await;
    let key = key_of(&*running.client().create(&widget("a", 1)).await.unwrap());
    eventually(|| async { log.lines().contains(&"tick 1".to_owned()) }).await;
    let supervisor = running.supervisor().clone();
    let tasks = supervisor.tasks();
    for kind in [
        "cache-status",
        "controller widget",
        "controller widget tasks",
        "election",
        "events",
        "feed ",
        "informer ",
        "leadership",
        "probes",
    ] {
        assert!(tasks.iter().any(|task| task.starts_with(kind)), "no {kind} among {tasks:?}");
    }
    for (task, size) in tasks.iter().zip(2..) {
        let before: u64 = tasks.iter().map(|task| supervisor.panics(task)).sum();
        supervisor.inject(task);
        sleep(Duration::from_millis(1)).await;
        assert!(supervisor.panics(task) > 0, "{task} was not told to panic");
        let after: u64 = tasks.iter().map(|task| supervisor.panics(task)).sum();
        assert_eq!(after - before, supervisor.panics(task), "{task} took others along");
        // Until the lease that it held has run out, if it was the election.
        sleep(Duration::from_secs(30)).await;
        running.leading().await;
        running.client().modify::<Widget>(&key, |widget| widget.spec.size = size).await.unwrap();
        for what in ["reconcile", "tick"] {
            let line = format!("{what} {size}");
            eventually(|| async {
                if log.lines().contains(&line) { Ok(()) } else { Err(format!("no {line} after {task}")) }
            })
            .await;
        }
        assert_eq!(running.not_ready(), [], "{task}");
        let metric = format!("watchkeeper_task_panics_total{{task=\"{task}\"}}");
        assert!(running.metrics().contains(&metric), "{metric}");
    }
    let lines = log.lines();
    let last = lines.iter().rev().take_while(|line| line.starts_with("tick")).count();
    sleep(Duration::from_secs(30)).await;
    let ticks = log.lines().iter().rev().take_while(|line| line.starts_with("tick")).count() - last;
    assert!((9..=11).contains(&ticks), "{ticks} ticks of one timer: another was left behind");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn readiness_names_a_task_that_does_not_recover_until_it_does() {
    let (env, log) = (TestEnv::start().await, Log::default());
    let running = start(&env, &log).await;
    let supervisor = running.supervisor().clone();
    for task in ["controller widget", "events", "probes"] {
        supervisor.break_down(task);
        sleep(Duration::from_secs(5)).await;
        let said = format!("panicked again and again: {task}");
        assert_eq!(running.not_ready(), [("tasks".to_owned(), said)]);
        supervisor.mend(task);
        sleep(Duration::from_secs(45)).await;
        assert_eq!(running.not_ready(), [], "{task}");
    }
    running.client().create(&widget("a", 1)).await.unwrap();
    eventually(|| async { log.lines().contains(&"reconcile 1".to_owned()) }).await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_object_whose_change_makes_the_feed_panic_costs_that_change() {
    let (env, log) = (TestEnv::start().await, Log::default());
    let running = start(&env, &log).await;
    running.supervisor().poison("default/poison");
    running.client().create(&widget("poison", 7)).await.unwrap();
    running.client().create(&widget("fine", 1)).await.unwrap();
    eventually(|| async { log.lines().contains(&"reconcile 1".to_owned()) }).await;
    assert!(!log.lines().contains(&"reconcile 7".to_owned()));
    assert_eq!(running.supervisor().panics("feed"), 1);
    assert_eq!(running.not_ready(), []);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_task_of_the_user_that_panics_is_said_by_readiness() {
    let env = TestEnv::start().await;
    let manager = Manager::new("test", env.connection());
    let running = manager.task("mine", |_, _| async { panic!("a mistake") }).start().await.unwrap();
    eventually(|| async { !running.not_ready().is_empty() }).await;
    assert_eq!(running.not_ready(), [("task mine".to_owned(), "task mine panicked".to_owned())]);
    assert_eq!(running.supervisor().panics("manager-task"), 1);
    running.stop().await;
}
