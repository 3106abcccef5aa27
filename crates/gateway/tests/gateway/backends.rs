//! Servers that come and go: Services and their slices.

use serde_json::{Value, json};
use watchkeeper_core::Key;

use crate::support::{Bench, Server, id, within};

#[tokio::test]
async fn a_service_is_its_endpoints_that_are_ready() {
    let bench = Bench::start().await;
    let (one, two) = (Server::echo("one"), Server::echo("two"));
    bench.put("GatewayBackend", "shop", json!({"service": {"name": "shop", "port": 80}})).await;
    bench.route("shop", "/", "shop").await;
    assert_eq!(bench.get("/").await.status, 503);
    let report = bench.handle.report(&id("GatewayBackend", "shop")).unwrap();
    assert!(!report.resolved.is_true);
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "shop"},
        "spec": {"ports": [{"name": "admin", "port": 9}, {"name": "web", "port": 80}]}});
    bench.objects.put(&Key::new(None, "service"), &service).unwrap();
    let slice = |server: &Server, ready: bool| {
        json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {"name": format!("shop-{}", server.address.port()), "labels": {"kubernetes.io/service-name": "shop"}},
            "addressType": "IPv4",
            "ports": [{"name": "admin", "port": 1}, {"name": "web", "port": server.address.port()}],
            "endpoints": [{"addresses": ["127.0.0.1"], "conditions": {"ready": ready}}]})
    };
    let put = |key: &str, value: Value| bench.objects.put(&Key::new(None, key), &value).unwrap();
    put("one", slice(&one, true));
    put("two", slice(&two, false));
    let served_by = async |expected: &[&str]| {
        within("endpoints", async {
            loop {
                let mut seen = std::collections::BTreeSet::new();
                for _ in 0..4 {
                    let answer = bench.get("/").await;
                    if answer.status == 200 {
                        seen.insert(answer.json()["server"].as_str().unwrap().to_owned());
                    }
                }
                if seen.iter().map(String::as_str).eq(expected.iter().copied()) {
                    break;
                }
            }
        })
        .await;
    };
    served_by(&["one"]).await;
    put("two", slice(&two, true));
    served_by(&["one", "two"]).await;
    bench.objects.remove(&Key::new(None, "one"));
    served_by(&["two"]).await;
    assert!(bench.handle.report(&id("GatewayBackend", "shop")).unwrap().resolved.is_true);
}
