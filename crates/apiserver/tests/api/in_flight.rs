//! Too many requests at a time.

use std::sync::Arc;

use futures_util::{FutureExt, stream};
use serde_json::{Value, json};
use watchkeeper_apiserver::authentication::{Identity, Service};
use watchkeeper_apiserver::front::Body;
use watchkeeper_apiserver::{Authorization, Options};
use watchkeeper_storage::Memory;

use crate::harness::{Api, config_map};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";

async fn limited() -> Api {
    let mut options = Options::default();
    options.authorization = Authorization::None;
    options.in_flight.mutating = 4;
    options.in_flight.watches_per_user = 2;
    Api::with(Arc::new(Memory::new(watchkeeper_storage::Options::default())), options).await
}

fn user(name: &str) -> Identity {
    Identity::new(name, ["people"])
}

/// A request that runs until this is dropped: its body never ends.
fn begun(api: &Api, who: &Identity) -> impl Future<Output = watchkeeper_apiserver::front::Response> + use<> {
    let request = http::Request::post(CONFIG_MAPS).header("content-type", "application/json");
    let mut call = api.server.call(request.body(Body::stream(stream::pending())).unwrap(), who.clone());
    assert!((&mut call).now_or_never().is_none());
    call
}

#[tokio::test]
async fn more_requests_than_may_run_are_answered_with_429_and_when_to_come_back() {
    let api = limited().await;
    let (jane, joe, ann) = (user("jane"), user("joe"), user("ann"));
    let create = async |who: &Identity, name: &str| {
        api.send_as(who, "POST", CONFIG_MAPS, config_map(name, json!({}))).await
    };
    let running = [begun(&api, &jane), begun(&api, &jane)];
    let refused = create(&jane, "refused").await;
    assert_eq!((refused.code, refused.text.as_str()), (429, "Too many requests, please try again later.\n"));
    assert_eq!(refused.headers["retry-after"], "1");
    assert_eq!(refused.headers["content-type"], "text/plain; charset=utf-8");

    // What else she does has its own limits, and so have others.
    assert_eq!(api.send_as(&jane, "GET", CONFIG_MAPS, Value::Null).await.code, 200);
    assert_eq!(api.send_as(&jane, "GET", "/readyz", Value::Null).await.code, 200);
    let lease = json!({"metadata": {"name": "l"}, "spec": {"holderIdentity": "jane"}});
    assert_eq!(api.send_as(&jane, "POST", LEASES, lease).await.code, 201);
    assert_eq!(create(&joe, "joes").await.code, 201);

    let others = [begun(&api, &joe), begun(&api, &joe)];
    assert_eq!(create(&ann, "anns").await.code, 429, "of all users, as many run as may");
    assert_eq!(create(&Identity::admin(), "masters").await.code, 201);
    drop(running);
    assert_eq!(create(&ann, "anns").await.code, 201);
    drop(others);
    let metrics = api.send_as(&Identity::admin(), "GET", "/metrics", Value::Null).await.text;
    for (reason, count) in [("user", 1), ("total", 1)] {
        let line = format!(
            "watchkeeper_rejected_requests_total{{request_kind=\"mutating\",reason=\"{reason}\"}} {count}\n"
        );
        assert!(metrics.contains(&line), "{metrics}");
    }
}

#[tokio::test]
async fn a_watch_counts_until_it_ends() {
    let api = limited().await;
    let jane = user("jane");
    let watch = async |who: &Identity| {
        let request = http::Request::get(format!("{CONFIG_MAPS}?watch=true")).body(Body::empty()).unwrap();
        api.server.call(request, who.clone()).await
    };
    let mut open = vec![watch(&jane).await, watch(&jane).await];
    assert!(open.iter().all(|watch| watch.status() == 200));
    assert_eq!(watch(&jane).await.status(), 429);
    assert_eq!(watch(&user("joe")).await.status(), 200);
    open.pop();
    assert_eq!(watch(&jane).await.status(), 200);
}
