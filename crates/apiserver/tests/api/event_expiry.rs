//! The time after which events are deleted.

use std::time::{Duration, SystemTime};

use serde_json::json;
use tokio::time::Instant;
use watchkeeper_apiserver::Clock;

use crate::harness::Api;

const EVENTS: &str = "/api/v1/namespaces/default/events";

#[tokio::test(start_paused = true)]
async fn events_are_forgotten_an_hour_after_they_were_last_written() {
    let (start_time, begin) = (SystemTime::now(), Instant::now());
    let clock = Clock::new(move || start_time + begin.elapsed());
    let api = Api::start_with(|options| options.clock = clock).await;
    let event = |name: &str| {
        json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": name}, "reason": "Because",
            "involvedObject": {"namespace": "default"},
        })
    };
    for name in ["once", "again"] {
        api.post(EVENTS, event(name)).await.ok();
    }
    let mut watch =
        api.watch(&format!("{EVENTS}?watch=1&timeoutSeconds=99999&fieldSelector=metadata.name=once")).await;
    assert_eq!(watch.told().await.0, "ADDED");
    tokio::time::sleep(Duration::from_secs(3000)).await;
    api.merge(&format!("{EVENTS}/again"), json!({"count": 2})).await.ok();
    assert_eq!(api.get(&format!("{EVENTS}/once")).await.code, 200);
    tokio::time::sleep(Duration::from_secs(620)).await;
    assert_eq!(watch.told().await, ("DELETED".to_owned(), "once".to_owned()));
    assert_eq!(api.get(&format!("{EVENTS}/once")).await.code, 404);
    assert_eq!(api.get(&format!("{EVENTS}/again")).await.code, 200);
    tokio::time::sleep(Duration::from_secs(3000)).await;
    assert_eq!(api.get(&format!("{EVENTS}/again")).await.code, 404);
}
