//! A thousand objects at once, and something going wrong in the middle.

use std::sync::Arc;
use std::time::Duration;

use watchkeeper_client::Client;
use watchkeeper_runtime::{Action, Context, Controller, Manager, Running};
use watchkeeper_testkit::fixtures::{Widget, widget};
use watchkeeper_testkit::{TestEnv, eventually};

use crate::log::Log;

const MANY: usize = 1000;

struct Storm {
    env: TestEnv,
    log: Log,
    /// The size of each widget as its last reconcile saw it.
    seen: Arc<parking_lot::Mutex<std::collections::HashMap<String, u32>>>,
    running: Running,
    client: Client,
}

impl Storm {
    /// A thousand widgets of size 1, all of them reconciled.
    async fn start() -> Self {
        let env = TestEnv::start().await;
        env.install::<Widget>().await;
        let client = Client::new(env.connection());
        for number in 0..MANY {
            client.create(&widget(&format!("w{number}"), 1)).await.unwrap();
        }
        let log = Log::default();
        let seen = Arc::<parking_lot::Mutex<std::collections::HashMap<_, _>>>::default();
        let (noted, sizes) = (log.clone(), Arc::clone(&seen));
        let controller = Controller::of::<Widget>().concurrency(16).reconcile(
            move |widget: Arc<Widget>, _cx: Context<Widget>| {
                let (log, sizes) = (noted.clone(), Arc::clone(&sizes));
                async move {
                    let name = widget.metadata.name.clone().unwrap();
                    let _run = log.run(&name);
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    sizes.lock().insert(name, widget.spec.size);
                    Ok(Action::done())
                }
            },
        );
        let running = Manager::new("test", env.connection()).controller(controller).start().await.unwrap();
        running.ready().await;
        eventually(|| async { log.keys() == MANY }).await;
        Self { env, log, seen, running, client }
    }

    /// Changes all of them to this size, as fast as the server takes it, whether it is there or not.
    async fn change_all(&self, size: u32) {
        for number in 0..MANY {
            self.change(number, size).await;
        }
    }

    async fn change(&self, number: usize, size: u32) {
        let key = watchkeeper_core::Key::new(Some("default"), &format!("w{number}"));
        let patch = watchkeeper_client::Patch::Merge(serde_json::json!({ "spec": { "size": size } }));
        while self.client.patch::<Widget>(&key, patch.clone()).await.is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    async fn all_have_seen(&self, size: u32) {
        eventually(|| async {
            let seen = self.seen.lock();
            let missing = seen.values().filter(|seen| **seen != size).count();
            if missing == 0 { Ok(()) } else { Err(format!("{missing} of {} have not", seen.len())) }
        })
        .within(Duration::from_secs(120))
        .await;
    }

    async fn end(self) {
        assert_eq!(self.log.overlaps(), 0, "an object was reconciled twice at the same time");
        self.running.stop().await;
    }
}

#[tokio::test]
async fn a_thousand_changes_are_a_thousand_reconciles_or_more_never_two_of_one_object_at_a_time() {
    let storm = Storm::start().await;
    let before = storm.log.total();
    storm.change_all(2).await;
    storm.all_have_seen(2).await;
    assert!(storm.log.total() - before >= MANY as u32);
    storm.end().await;
}

#[tokio::test]
async fn none_is_lost_when_the_watch_is_cut_in_the_middle() {
    let storm = Storm::start().await;
    for number in 0..MANY {
        if number % 100 == 50 {
            storm.env.break_watches();
        }
        storm.change(number, 3).await;
    }
    storm.all_have_seen(3).await;
    storm.end().await;
}

#[tokio::test]
async fn none_is_lost_when_the_api_server_is_restarted_in_the_middle() {
    let storm = Storm::start().await;
    for number in 0..MANY {
        if number == MANY / 2 {
            storm.env.restart().await;
        }
        storm.change(number, 4).await;
    }
    storm.all_have_seen(4).await;
    storm.end().await;
}
