use serde_json::json;
use watchkeeper::client::Patch;
use watchkeeper_testkit::fixtures::key;
use watchkeeper_webapp::{Http, WebApp, WebAppSpec};

use crate::world::{World, spec, webapp};

#[tokio::test(start_paused = true)]
async fn what_cannot_run_is_refused_with_the_field_and_the_rule() {
    let world = World::new().await;
    let refused = [
        (WebAppSpec { image: "Not An Image".into(), ..spec() }, "spec.image"),
        (WebAppSpec { image: String::new(), ..spec() }, "spec.image"),
        (WebAppSpec { replicas: 0, ..spec() }, "spec.replicas"),
        (WebAppSpec { replicas: 11, ..spec() }, "spec.replicas"),
        (WebAppSpec { http: Http { port: 0 }, ..spec() }, "spec.http.port"),
        (WebAppSpec { http: Http { port: 65536 }, ..spec() }, "spec.http.port"),
    ];
    for (spec, field) in refused {
        let error = world.person.create(&webapp("bad", spec)).await.unwrap_err().to_string();
        assert!(error.contains(field), "{error}");
    }
    let digest = format!("registry.example.com:5000/team/shop@sha256:{}", "0a".repeat(32));
    for image in ["nginx", "nginx:1.29", "ghcr.io/team/shop:V1.0_rc-1", "localhost:5000/a/b", &digest] {
        let app = webapp("good", WebAppSpec { image: image.into(), ..spec() });
        world.person.create(&app).await.unwrap_or_else(|error| panic!("{image}: {error}"));
        world.person.delete_key::<WebApp>(&key("good")).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn one_replica_is_the_default_and_a_scale_reaches_the_deployment() {
    let world = World::new().await;
    let operator = world.operator().await;
    let least = json!({"apiVersion": "apps.watchkeeper.dev/v1beta1", "kind": "WebApp",
        "metadata": {"name": "shop", "namespace": "default"}, "spec": {"image": "nginx", "http": {"port": 80}}});
    let app: WebApp = serde_json::from_value(least).unwrap();
    world.person.create(&app).await.unwrap();
    let replicas =
        || async { world.deployment("shop").await.map(|deployment| deployment["spec"]["replicas"].clone()) };
    watchkeeper_testkit::eventually(|| async { replicas().await == Some(json!(1)) }).await;

    let scale = Patch::Merge(json!({"spec": {"replicas": 4}}));
    world.person.subresource::<WebApp>(&key("shop"), "scale").patch(scale).await.unwrap();
    watchkeeper_testkit::eventually(|| async { replicas().await == Some(json!(4)) }).await;
    operator.stop().await;
}
