//! Watches.

use std::sync::Arc;
use std::time::Duration;

use crate::harness::{Api, config_map};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use watchkeeper_apiserver::front::Body;
use watchkeeper_storage::{Memory, Options, Storage, Window};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn told(kind: &str, name: &str) -> (String, String) {
    (kind.into(), name.into())
}

async fn labelled(api: &Api, name: &str, tier: Option<&str>) {
    let path = format!("{CONFIG_MAPS}/{name}");
    api.merge(&path, json!({"metadata": {"labels": {"tier": tier}}})).await.ok();
}

#[tokio::test]
async fn a_watch_tells_everything_after_a_version_once_and_in_order() {
    let api = Api::start().await;
    let version = api.get(CONFIG_MAPS).await.ok()["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    api.post(CONFIG_MAPS, config_map("a", json!({}))).await.ok();
    let mut watch = api.watch(&format!("{CONFIG_MAPS}?watch=true&resourceVersion={version}")).await;
    assert_eq!(watch.told().await, told("ADDED", "a"));
    let changed = api.merge(&format!("{CONFIG_MAPS}/a"), json!({"data": {"k": "1"}})).await.ok();
    let event = watch.next().await.unwrap();
    assert_eq!(event["type"], "MODIFIED");
    assert_eq!(event["object"], changed);
    api.delete(&format!("{CONFIG_MAPS}/a")).await.ok();
    let event = watch.next().await.unwrap();
    assert_eq!(event["type"], "DELETED");
    assert_eq!(event["object"]["data"], json!({"k": "1"}));
    let number = |version: &Value| version.as_str().unwrap().parse::<u64>().unwrap();
    let (deleted, before) =
        (&event["object"]["metadata"]["resourceVersion"], &changed["metadata"]["resourceVersion"]);
    assert!(number(deleted) > number(before), "the version is that of the deletion");
}

#[tokio::test]
async fn a_web_socket_that_names_no_version_is_refused_by_an_answer_that_ends() {
    let api = Api::start().await;
    api.post(CONFIG_MAPS, config_map("a", json!({}))).await.ok();
    let request = http::Request::get(format!("{CONFIG_MAPS}?watch=true"))
        .header("connection", "keep-alive, Upgrade")
        .header("upgrade", "websocket");
    let answer = api.answer(request.body(Body::empty()).unwrap()).await;
    assert_eq!((answer.code, answer.text.as_str()), (400, "bad version of Web Sockets"));
}

#[tokio::test]
async fn a_watch_without_a_version_begins_with_what_is_there() {
    let api = Api::start().await;
    api.post(CONFIG_MAPS, config_map("a", json!({}))).await.ok();
    for path in ["?watch=1", "?watch=true&resourceVersion=0"] {
        let mut watch = api.watch(&format!("{CONFIG_MAPS}{path}")).await;
        assert_eq!(watch.told().await, told("ADDED", "a"));
        api.post(CONFIG_MAPS, config_map("b", json!({}))).await;
        assert_eq!(watch.told().await, told("ADDED", "b"));
        api.delete(&format!("{CONFIG_MAPS}/b")).await.ok();
    }
    let mut watch = api.watch("/api/v1/watch/namespaces/default/configmaps").await;
    assert_eq!(watch.told().await, told("ADDED", "a"));
}

#[tokio::test]
async fn initial_events_end_with_a_bookmark() {
    let api = Api::start().await;
    api.post(CONFIG_MAPS, config_map("a", json!({}))).await.ok();
    let query = "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut watch = api.watch(&format!("{CONFIG_MAPS}{query}")).await;
    assert_eq!(watch.told().await, told("ADDED", "a"));
    let bookmark = watch.next().await.unwrap();
    assert_eq!(bookmark["type"], "BOOKMARK");
    assert_eq!(bookmark["object"]["kind"], "ConfigMap");
    assert_eq!(bookmark["object"]["metadata"]["annotations"], json!({"k8s.io/initial-events-end": "true"}));
    api.post(CONFIG_MAPS, config_map("b", json!({}))).await.ok();
    assert_eq!(watch.told().await, told("ADDED", "b"));
    api.get(&format!("{CONFIG_MAPS}?watch=1&sendInitialEvents=true")).await.failed(422);
}

#[tokio::test]
async fn objects_enter_and_leave_a_selector() {
    let api = Api::start().await;
    for name in ["a", "b"] {
        api.post(CONFIG_MAPS, config_map(name, json!({}))).await.ok();
    }
    labelled(&api, "a", Some("web")).await;
    let mut watch = api.watch(&format!("{CONFIG_MAPS}?watch=1&labelSelector=tier%3Dweb")).await;
    assert_eq!(watch.told().await, told("ADDED", "a"));
    labelled(&api, "b", Some("web")).await;
    assert_eq!(watch.told().await, told("ADDED", "b"));
    labelled(&api, "a", Some("db")).await;
    let event = watch.next().await.unwrap();
    assert_eq!(event["type"], "DELETED");
    assert_eq!(event["object"]["metadata"]["labels"]["tier"], "web", "the last state that matched");
    labelled(&api, "a", None).await;
    api.delete(&format!("{CONFIG_MAPS}/a")).await.ok();
    api.delete(&format!("{CONFIG_MAPS}/b")).await.ok();
    assert_eq!(watch.told().await, told("DELETED", "b"));
}

#[tokio::test]
async fn one_object_can_be_watched() {
    let api = Api::start().await;
    for name in ["a", "ab"] {
        api.post(CONFIG_MAPS, config_map(name, json!({}))).await.ok();
    }
    let mut watch = api.watch(&format!("{CONFIG_MAPS}?watch=1&fieldSelector=metadata.name%3Da")).await;
    assert_eq!(watch.told().await, told("ADDED", "a"));
    labelled(&api, "ab", Some("x")).await;
    labelled(&api, "a", Some("x")).await;
    assert_eq!(watch.told().await, told("MODIFIED", "a"));
}

#[tokio::test]
async fn a_version_that_was_forgotten_is_an_error_in_the_stream() {
    let window = Window { revisions: 2, ..Window::default() };
    let storage: Arc<dyn Storage> = Arc::new(Memory::new(Options { window, ..Options::default() }));
    let api = Api::over(storage).await;
    for name in ["a", "b", "c", "d"] {
        api.post(CONFIG_MAPS, config_map(name, json!({}))).await.ok();
    }
    let mut watch = api.watch(&format!("{CONFIG_MAPS}?watch=1&resourceVersion=1")).await;
    let event = watch.next().await.unwrap();
    assert_eq!(event["type"], "ERROR");
    assert_eq!(event["object"]["code"], 410);
    assert_eq!(event["object"]["reason"], "Expired");
    assert!(event["object"]["message"].as_str().unwrap().starts_with("too old resource version: 1 ("));
    assert!(watch.next().await.is_none());
}

#[tokio::test]
async fn a_watcher_that_does_not_keep_up_is_told_so_and_closed() {
    let window = Window { revisions: 100, ..Window::default() };
    let storage: Arc<dyn Storage> = Arc::new(Memory::new(Options { window, ..Options::default() }));
    let api = Api::over(storage).await;
    api.post(CONFIG_MAPS, config_map("a", json!({}))).await.ok();
    let mut watch = api.watch(&format!("{CONFIG_MAPS}?watch=1")).await;
    assert_eq!(watch.told().await, told("ADDED", "a"));
    for n in 0..2_000 {
        api.merge(&format!("{CONFIG_MAPS}/a"), json!({"data": {"n": n.to_string()}})).await.ok();
    }
    let mut last = 0;
    loop {
        let event = watch.next().await.expect("an error before the end");
        if event["type"] == "ERROR" {
            assert_eq!(event["object"]["code"], 410);
            break;
        }
        let n = event["object"]["data"]["n"].as_str().unwrap().parse::<i64>().unwrap() + 1;
        assert_eq!(n, last + 1, "nothing is left out before the error");
        last = n;
    }
    assert!(last < 1_900, "{last}");
    assert!(watch.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn bookmarks_come_by_and_by_and_the_watch_ends_in_time() {
    let api = Api::start().await;
    let path = format!("{CONFIG_MAPS}?watch=1&allowWatchBookmarks=true&timeoutSeconds=130");
    let began = tokio::time::Instant::now();
    let mut watch = api.watch(&path).await;
    // Something else happens: the bookmark is about the whole store, not about what is watched.
    api.post(
        "/api/v1/namespaces/default/secrets",
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}),
    )
    .await
    .ok();
    let first = watch.next().await.unwrap();
    assert_eq!(first["object"]["metadata"]["annotations"], json!({"k8s.io/initial-events-end": "true"}));
    let mut bookmarks = 0;
    while let Some(event) =
        tokio::time::timeout(std::time::Duration::from_secs(200), watch.next_patiently()).await.unwrap()
    {
        assert_eq!(event["type"], "BOOKMARK");
        assert_eq!(event["object"]["metadata"]["resourceVersion"], api.storage.stats().revision.to_string());
        bookmarks += 1;
    }
    assert_eq!(bookmarks, 3, "one a minute, and one before the end");
    assert_eq!(began.elapsed().as_secs(), 130);
}

#[tokio::test]
async fn watches_end_when_the_server_stops() {
    let api = Api::start().await;
    let mut watch = api.watch(&format!("{CONFIG_MAPS}?watch=1")).await;
    api.server.stop().await;
    assert!(watch.next().await.is_none());
}

#[tokio::test]
async fn metadata_alone_can_be_watched() {
    let api = Api::start().await;
    api.post(CONFIG_MAPS, config_map("a", json!({"k": "1"}))).await.ok();
    let request = http::Request::builder()
        .uri(format!("{CONFIG_MAPS}?watch=1"))
        .header("accept", "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io");
    let answer = api.call(request.body(watchkeeper_apiserver::front::Body::empty()).unwrap()).await;
    let mut watch = crate::harness::Watching::of(answer);
    let event = watch.next().await.unwrap();
    assert_eq!(event["object"]["kind"], "PartialObjectMetadata");
    assert!(event["object"].get("data").is_none());
}

/// How long it takes until each of three changes is told, one after the other, if there are so many watchers.
async fn delays(watchers: usize) -> [Duration; 3] {
    let api = Api::start().await;
    let path = format!("{CONFIG_MAPS}?watch=true");
    let mut others = Vec::new();
    for _ in 1..watchers {
        others.push(api.watch(&path).await);
    }
    let mut watch = api.watch(&path).await;
    let mut delays = [Duration::ZERO; 3];
    for (number, delay) in delays.iter_mut().enumerate() {
        let name = format!("a{number}");
        api.post(CONFIG_MAPS, config_map(&name, json!({}))).await.ok();
        let begin = tokio::time::Instant::now();
        assert_eq!(watch.told().await, told("ADDED", &name));
        *delay = begin.elapsed();
    }
    delays
}

#[tokio::test(start_paused = true)]
async fn what_is_told_to_a_few_is_never_held_back() {
    assert_eq!(delays(50).await, [Duration::ZERO; 3]);
}

#[tokio::test(start_paused = true)]
async fn what_is_told_to_many_is_gathered_for_a_moment_if_it_comes_fast() {
    let [first, second, third] = delays(300).await;
    assert_eq!([first, second], [Duration::ZERO; 2], "nothing came fast so far");
    assert!((Duration::from_millis(2)..Duration::from_millis(6)).contains(&third), "{third:?}");
}

#[tokio::test]
async fn a_watch_may_be_asked_to_last_longer_than_any_clock() {
    const MAPS: &str = "/api/v1/namespaces/default/configmaps";
    let api = Api::start().await;
    for seconds in [i64::MAX, i64::MAX / 1_000_000_000, 99_999_999_999] {
        let path = format!("{MAPS}?watch=1&allowWatchBookmarks=true&timeoutSeconds={seconds}");
        let mut watch = api.watch(&path).await;
        let name = format!("for-{seconds}");
        api.post(MAPS, config_map(&name, json!({}))).await.ok();
        while watch.told().await != told("ADDED", &name) {}
    }
}

#[tokio::test]
async fn watchers_share_the_bytes_of_large_objects_whatever_comes_before_and_after() {
    let api = Api::start().await;
    let path = format!("{CONFIG_MAPS}?watch=true&resourceVersion=0");
    let mut bodies = Vec::new();
    for _ in 0..2 {
        bodies.push(api.call(http::Request::get(&path).body(Body::empty()).unwrap()).await.into_body());
    }
    let large = "x".repeat(100_000);
    for name in ["a", "b", "large", "c", "largest", "d"] {
        let data = if name.starts_with("large") { json!({"k": large}) } else { json!({}) };
        api.post(CONFIG_MAPS, config_map(name, data)).await.ok();
    }
    let mut seen = Vec::new();
    for mut body in bodies {
        let (mut all, mut places) = (Vec::new(), Vec::new());
        while !String::from_utf8_lossy(&all).contains(r#""name":"d""#) {
            let bytes = body.frame().await.unwrap().unwrap().into_data().unwrap();
            if bytes.len() > large.len() {
                places.push(bytes.as_ptr());
            }
            all.extend_from_slice(&bytes);
        }
        let text = String::from_utf8(all).unwrap();
        let events = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let names: Vec<_> = events.map(|event| event["object"]["metadata"]["name"].clone()).collect();
        assert_eq!(names, ["a", "b", "large", "c", "largest", "d"]);
        seen.push(places);
    }
    assert_eq!(seen[0].len(), 2);
    assert_eq!(seen[0], seen[1], "each watcher has a copy of its own");
}
