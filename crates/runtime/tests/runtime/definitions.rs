//! Definitions that go away and come back while a controller works with their kind.

use std::sync::Arc;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_core::CustomResourceExt;
use watchkeeper_client::Client;
use watchkeeper_core::Key;
use watchkeeper_runtime::{Action, Context, Controller, Manager};
use watchkeeper_testkit::fixtures::{Widget, widget};
use watchkeeper_testkit::{TestEnv, eventually};

use crate::log::Log;

#[tokio::test(start_paused = true)]
async fn a_definition_that_is_deleted_and_made_again_takes_old_objects_along_and_brings_new_ones() {
    let env = TestEnv::start().await;
    env.install::<Widget>().await;
    let log = Log::default();
    let (seen, gone) = (log.clone(), log.clone());
    let controller = Controller::of::<Widget>()
        .deleted(move |last: Arc<Widget>, _cx: Context<Widget>| {
            gone.say(format!("{} gone", last.metadata.name.as_deref().unwrap()));
            async { Ok(Action::done()) }
        })
        .reconcile(move |widget: Arc<Widget>, _cx: Context<Widget>| {
            seen.say(format!("{} {}", widget.metadata.name.as_deref().unwrap(), widget.spec.size));
            async { Ok(Action::done()) }
        });
    let running = Manager::new("test", env.connection()).controller(controller).start().await.unwrap();
    running.ready().await;
    let person = Client::new(env.connection());
    for name in ["a", "b"] {
        person.create(&widget(name, 1)).await.unwrap();
    }
    eventually(|| async { sorted(&log) == ["a 1", "b 1"] }).await;

    let definition = Key::new(None, Widget::crd_name());
    person.delete_key::<CustomResourceDefinition>(&definition).await.unwrap();
    let live = person.live();
    eventually(|| async { live.get::<CustomResourceDefinition>(&definition).await.unwrap().is_none() }).await;
    env.install::<Widget>().await;
    person.create(&widget("a", 2)).await.unwrap();
    person.create(&widget("c", 1)).await.unwrap();

    eventually(|| async { sorted(&log) == ["a 1", "a 2", "a gone", "b 1", "b gone", "c 1"] }).await;
    let known = running.client().list::<Widget>().await.unwrap();
    let mut sizes: Vec<_> =
        known.iter().map(|widget| (widget.metadata.name.clone().unwrap(), widget.spec.size)).collect();
    sizes.sort();
    assert_eq!(sizes, [("a".to_owned(), 2), ("c".to_owned(), 1)]);
    running.stop().await;
}

fn sorted(log: &Log) -> Vec<String> {
    let mut lines = log.lines();
    lines.sort();
    lines
}
