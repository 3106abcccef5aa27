//! The alarm for controllers that keep themselves busy.

use std::sync::Arc;
use std::time::Duration;

use watchkeeper_core::Key;
use watchkeeper_runtime::{Action, Context, Controller, Manager};
use watchkeeper_testkit::fixtures::{Widget, widget};
use watchkeeper_testkit::{TestEnv, eventually};

#[tokio::test(start_paused = true)]
async fn an_object_that_is_woken_again_and_again_by_own_writes_raises_an_alarm_that_names_the_field() {
    let env = TestEnv::start().await;
    env.install::<Widget>().await;
    let controller = Controller::of::<Widget>().writes_status::<Widget>().hot_loop_limit(10).reconcile(
        |widget: Arc<Widget>, cx: Context<Widget>| async move {
            // Never satisfied with what is there.
            let seen = widget.status.as_ref().map_or(0, |status| status.seen) + 1;
            cx.status().set(|widget: &mut Widget| widget.status.get_or_insert_default().seen = seen).await?;
            tokio::time::sleep(Duration::from_millis(500)).await;
            Ok(Action::done())
        },
    );
    let running = Manager::new("test", env.connection()).controller(controller).start().await.unwrap();
    running.ready().await;
    running.client().create(&widget("a", 1)).await.unwrap();
    let alarm = r#"watchkeeper_hot_loops_total{controller="widget",source="widgets.test.watchkeeper.dev",field="status.seen"} 1"#;
    let raised = || async {
        let metrics = running.metrics();
        let counted: Vec<&str> = metrics.lines().filter(|line| line.contains("hot_loops")).collect();
        if counted.contains(&alarm) { Ok(()) } else { Err(format!("{counted:?}")) }
    };
    eventually(raised).within(Duration::from_secs(60)).await;
    let events = running.client().live();
    eventually(|| async {
        let events = events.list::<k8s_openapi::api::events::v1::Event>().await.unwrap();
        events.iter().any(|event| {
            event.reason.as_deref() == Some("HotLoop")
                && event.note.as_ref().is_some_and(|note| note.contains("status.seen"))
        })
    })
    .await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn own_writes_that_come_to_rest_raise_none_and_send_nothing_more() {
    let env = TestEnv::start().await;
    env.install::<Widget>().await;
    let controller = Controller::of::<Widget>().writes_status::<Widget>().hot_loop_limit(2).reconcile(
        |widget: Arc<Widget>, cx: Context<Widget>| async move {
            let size = widget.spec.size;
            cx.status().set(|widget: &mut Widget| widget.status.get_or_insert_default().seen = size).await?;
            Ok(Action::done())
        },
    );
    let running = Manager::new("test", env.connection()).controller(controller).start().await.unwrap();
    running.ready().await;
    running.client().create(&widget("a", 1)).await.unwrap();
    let key = Key::new(Some("default"), "a");
    let live = running.client().live();
    eventually(|| async { live.get::<Widget>(&key).await.unwrap().unwrap().status.is_some() }).await;
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!(env.count(|seen| seen.call.is_of("widgets/status")), 1);
    assert!(!running.metrics().contains("watchkeeper_hot_loops_total{"));
    running.stop().await;
}
