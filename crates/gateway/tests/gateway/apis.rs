//! The life of APIs: drafts, subscriptions, deprecation, retirement.

use std::time::{Duration, Instant};

use http::Request;
use serde_json::{Value, json};
use watchkeeper_core::Key;

use crate::ai::sha256;
use crate::support::{Bench, Server, id, object};

async fn bench() -> (Bench, Server) {
    let (bench, server) = (Bench::start().await, Server::echo("one"));
    bench.backend("one", &[&server]).await;
    bench.route("shop", "/shop", "one").await;
    bench.route("other", "/other", "one").await;
    (bench, server)
}

#[tokio::test]
async fn an_api_is_drafted_published_deprecated_and_retired() {
    let (bench, _server) = bench().await;
    bench.put("ApiDefinition", "shop", json!({"routes": ["shop"]})).await;
    assert_eq!(bench.get("/shop").await.status, 404, "a draft is nothing to others");
    assert_eq!(bench.get("/other").await.status, 200);
    bench.put("ApiDefinition", "shop", json!({"routes": ["shop"], "state": "Published"})).await;
    let told = bench.get("/shop").await;
    assert_eq!((told.status.as_u16(), told.header("deprecation")), (200, None));
    let old = json!({"routes": ["shop"], "state": "Deprecated", "deprecated": "2026-01-01T00:00:00Z", "sunset": "2027-01-01T00:00:00Z", "successor": "https://example.com/v2"});
    bench.put("ApiDefinition", "shop", old).await;
    let told = bench.get("/shop").await;
    assert_eq!((told.status.as_u16(), told.header("deprecation")), (200, Some("@1767225600")));
    assert_eq!(told.header("sunset"), Some("Fri, 01 Jan 2027 00:00:00 GMT"));
    assert_eq!(told.header("link"), Some("<https://example.com/v2>; rel=\"successor-version\""));
    bench
        .put(
            "ApiDefinition",
            "shop",
            json!({"routes": ["shop"], "state": "Retired", "successor": "https://example.com/v2"}),
        )
        .await;
    let told = bench.get("/shop").await;
    assert!(told.status == 410 && told.header("link").is_some());
    bench.remove("ApiDefinition", "shop").await;
    assert_eq!(bench.get("/shop").await.status, 200);
}

#[tokio::test]
async fn a_subscription_works_when_it_is_approved_and_stops_when_it_is_not() {
    let (bench, _server) = bench().await;
    bench
        .put(
            "ApiDefinition",
            "shop",
            json!({"routes": ["shop"], "state": "Published", "subscription": "Approved"}),
        )
        .await;
    let ask = async |key: &str| bench.send(Request::get("/shop").header("x-api-key", key)).await;
    assert_eq!(ask("secret").await.status, 401);
    let put = |approved: Option<&str>, suspended: bool| {
        let spec =
            json!({"api": "shop", "consumer": "team-a", "keys": [sha256("secret")], "suspended": suspended});
        let mut subscription: Value = object("ApiSubscription", "team-a", spec);
        subscription["metadata"]["generation"] = 1.into();
        if let Some(approved) = approved {
            subscription["status"] = json!({"conditions": [{"type": "Approved", "status": approved, "reason": "Yes", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]});
        }
        bench.objects.put(&Key::new(Some("ApiSubscription"), "team-a"), &subscription).unwrap();
    };
    put(None, false);
    bench.reported("ApiSubscription", "team-a", 1).await;
    assert_eq!(ask("secret").await.status, 401);
    let report = bench.handle.report(&id("ApiSubscription", "team-a")).unwrap();
    assert_eq!(report.programmed.reason, "Pending");
    let changes = async |code: u16| {
        let begin = Instant::now();
        while ask("secret").await.status != code {
            assert!(begin.elapsed() < Duration::from_secs(30));
        }
        begin.elapsed()
    };
    put(Some("True"), false);
    let approved = changes(200).await;
    assert_eq!(ask("secret").await.json()["headers"]["x-consumer"], "team-a");
    assert_eq!(ask("wrong").await.status, 401);
    put(Some("False"), false);
    let revoked = changes(401).await;
    put(Some("True"), false);
    changes(200).await;
    put(Some("True"), true);
    changes(401).await;
    println!("approved after {approved:?}, revoked after {revoked:?}");
}
