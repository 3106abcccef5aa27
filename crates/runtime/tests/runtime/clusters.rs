//! Several clusters in one manager.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use watchkeeper_client::Client;
use watchkeeper_runtime::{Action, Context, Controller, Manager, StartError, Verbs};
use watchkeeper_testkit::fixtures::{Widget, config_map, widget};
use watchkeeper_testkit::{TestEnv, eventually};

use crate::log::Log;

#[tokio::test(start_paused = true)]
async fn a_request_knows_its_cluster_and_writes_go_there() {
    let (hub, east, west) = (TestEnv::start().await, TestEnv::start().await, TestEnv::start().await);
    for env in [&east, &west] {
        env.install::<Widget>().await;
    }
    let log = Log::default();
    let seen = log.clone();
    let widgets = Controller::of::<Widget>().in_clusters(["east", "west"]);
    let controller = widgets.writes::<ConfigMap>(Verbs::APPLY).reconcile(
        move |object: Arc<Widget>, cx: Context<Widget>| {
            let log = seen.clone();
            async move {
                let name = object.metadata.name.clone().unwrap();
                log.say(format!("{name} of {}", object.spec.size));
                cx.client().apply(&config_map(&name, &[("from", "here")])).await?;
                cx.cluster("west")?.apply(&config_map(&format!("copy-of-{name}"), &[])).await?;
                assert!(cx.cluster("north").is_err());
                Ok(Action::done())
            }
        },
    );
    let running = Manager::new("test", hub.connection())
        .cluster("east", east.connection())
        .cluster("west", west.connection())
        .controller(controller)
        .start()
        .await
        .unwrap();
    running.ready().await;
    Client::new(east.connection()).create(&widget("a", 1)).await.unwrap();
    Client::new(west.connection()).create(&widget("a", 2)).await.unwrap();
    eventually(|| async {
        let mut lines = log.lines();
        lines.sort();
        lines == ["a of 1", "a of 2"]
    })
    .await;
    let maps = |env: &TestEnv| {
        let client = Client::new(env.connection());
        async move {
            let all = client
                .live()
                .list::<k8s_openapi::api::core::v1::ConfigMap>()
                .in_namespace("default")
                .await
                .unwrap();
            let mut names: Vec<_> = all.iter().filter_map(|map| map.metadata.name.clone()).collect();
            names.retain(|name| name != "kube-root-ca.crt");
            names.sort();
            names
        }
    };
    eventually(|| async { maps(&east).await == ["a"] && maps(&west).await == ["a", "copy-of-a"] }).await;
    assert!(maps(&hub).await.is_empty());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_nobody_added_is_an_error_that_says_what_to_do() {
    let hub = TestEnv::start().await;
    let controller = Controller::of::<Widget>()
        .in_clusters(["north"])
        .reconcile(|_: Arc<Widget>, _cx: Context<Widget>| async { Ok(Action::done()) });
    let error = Manager::new("test", hub.connection()).controller(controller).start().await.unwrap_err();
    assert!(matches!(&error, StartError::UnknownCluster { cluster, .. } if cluster == "north"));
    assert!(error.to_string().contains("Manager::cluster"), "{error}");
}
