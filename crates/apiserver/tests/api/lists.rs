//! Lists: pages, versions and selectors.

use std::sync::Arc;

use crate::harness::{Api, WIDGETS, config_map, spec, widget};
use serde_json::{Value, json};
use watchkeeper_storage::{Memory, Options, Storage, Window};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn names(list: &Value) -> Vec<&str> {
    list["items"].as_array().unwrap().iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect()
}

async fn with_five() -> Api {
    let api = Api::start().await;
    for (name, tier) in [("a", "web"), ("b", "web"), ("c", "db"), ("d", "web"), ("e", "db")] {
        let mut object = config_map(name, json!({}));
        object["metadata"]["labels"] = json!({"tier": tier});
        api.post(CONFIG_MAPS, object).await.ok();
    }
    api
}

#[tokio::test]
async fn pages_fit_together_whatever_happens_meanwhile() {
    let api = with_five().await;
    let first = api.get(&format!("{CONFIG_MAPS}?limit=2")).await.ok();
    assert_eq!(names(&first), ["a", "b"]);
    assert_eq!(first["metadata"]["remainingItemCount"], 3);
    api.delete(&format!("{CONFIG_MAPS}/c")).await.ok();
    api.post(CONFIG_MAPS, config_map("b2", json!({}))).await.ok();

    let token = first["metadata"]["continue"].as_str().unwrap();
    let second = api.get(&format!("{CONFIG_MAPS}?limit=2&continue={token}")).await.ok();
    assert_eq!(names(&second), ["c", "d"]);
    assert_eq!(second["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
    let token = second["metadata"]["continue"].as_str().unwrap();
    let last = api.get(&format!("{CONFIG_MAPS}?limit=2&continue={token}")).await.ok();
    assert_eq!(names(&last), ["e"]);
    assert!(last["metadata"].get("continue").is_none());
    assert_eq!(names(&api.get(CONFIG_MAPS).await.ok()), ["a", "b", "b2", "d", "e"]);
}

#[tokio::test]
async fn a_list_that_was_forgotten_can_be_continued_in_the_present() {
    let api = with_five().await;
    let first = api.get(&format!("{CONFIG_MAPS}?limit=2")).await.ok();
    let token = first["metadata"]["continue"].as_str().unwrap();
    api.post(CONFIG_MAPS, config_map("z", json!({}))).await.ok();
    api.storage.compact(api.storage.stats().revision).await.unwrap();
    let gone = api.get(&format!("{CONFIG_MAPS}?limit=2&continue={token}")).await.failed(410);
    assert_eq!(gone["reason"], "Expired");
    let token = gone["metadata"]["continue"].as_str().unwrap();
    let rest = api.get(&format!("{CONFIG_MAPS}?continue={token}")).await.ok();
    assert_eq!(names(&rest), ["c", "d", "e", "z"]);
}

#[tokio::test]
async fn selectors_choose_and_pages_of_them_are_full() {
    let api = with_five().await;
    let web = api.get(&format!("{CONFIG_MAPS}?labelSelector=tier%3Dweb")).await.ok();
    assert_eq!(names(&web), ["a", "b", "d"]);
    let page = api.get(&format!("{CONFIG_MAPS}?labelSelector=tier%3Dweb&limit=2")).await.ok();
    assert_eq!(names(&page), ["a", "b"]);
    assert!(page["metadata"].get("remainingItemCount").is_none());
    let token = page["metadata"]["continue"].as_str().unwrap();
    let rest =
        api.get(&format!("{CONFIG_MAPS}?labelSelector=tier%3Dweb&limit=2&continue={token}")).await.ok();
    assert_eq!(names(&rest), ["d"]);

    let one = api.get(&format!("{CONFIG_MAPS}?fieldSelector=metadata.name%3Dc")).await.ok();
    assert_eq!(names(&one), ["c"]);
    let others = api
        .get("/api/v1/configmaps?fieldSelector=metadata.name!%3Dc,metadata.namespace%3Ddefault")
        .await
        .ok();
    assert_eq!(names(&others), ["a", "b", "d", "e"]);
    let unknown = api.get(&format!("{CONFIG_MAPS}?fieldSelector=spec.x%3Dc")).await.failed(400);
    assert!(
        unknown["message"].as_str().unwrap().contains(r#""spec.x" is not a known field selector"#),
        "{unknown}"
    );
    api.get(&format!("{CONFIG_MAPS}?labelSelector=a%3D%3D%3Db")).await.failed(400);
}

#[tokio::test]
async fn a_version_is_read_exactly_or_waited_for() {
    let api = with_five().await;
    let then = api.get(CONFIG_MAPS).await.ok()["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    api.delete(&format!("{CONFIG_MAPS}/a")).await.ok();
    let exact = format!("{CONFIG_MAPS}?resourceVersion={then}&resourceVersionMatch=Exact");
    assert_eq!(names(&api.get(&exact).await.ok()).len(), 5);
    let newer = format!("{CONFIG_MAPS}?resourceVersion={then}&resourceVersionMatch=NotOlderThan");
    assert_eq!(names(&api.get(&newer).await.ok()).len(), 4);
    assert_eq!(names(&api.get(&format!("{CONFIG_MAPS}?resourceVersion=0")).await.ok()).len(), 4);

    let next = api.storage.stats().revision + 1;
    let path = format!("{CONFIG_MAPS}?resourceVersion={next}&resourceVersionMatch=NotOlderThan");
    let (waiting, _) = tokio::join!(api.get(&path), api.post(CONFIG_MAPS, config_map("new", json!({}))));
    assert_eq!(names(&waiting.ok()).len(), 5);
    api.get(&format!("{CONFIG_MAPS}?resourceVersionMatch=Exact")).await.failed(422);
}

#[tokio::test(start_paused = true)]
async fn a_version_that_does_not_come_is_not_waited_for_long() {
    let api = with_five().await;
    let failed = api.get(&format!("{CONFIG_MAPS}?resourceVersion=999999")).await.failed(504);
    assert_eq!(failed["reason"], "Timeout");
    assert_eq!(failed["details"]["causes"][0]["reason"], "ResourceVersionTooLarge");
    assert_eq!(failed["details"]["retryAfterSeconds"], 1);
}

#[tokio::test]
async fn a_version_that_was_forgotten_is_gone() {
    let window = Window { revisions: 3, ..Window::default() };
    let storage: Arc<dyn Storage> = Arc::new(Memory::new(Options { window, ..Options::default() }));
    let api = Api::over(storage).await;
    for name in ["a", "b", "c", "d", "e"] {
        api.post(CONFIG_MAPS, config_map(name, json!({}))).await.ok();
    }
    let gone =
        api.get(&format!("{CONFIG_MAPS}?resourceVersion=1&resourceVersionMatch=Exact")).await.failed(410);
    assert_eq!(gone["reason"], "Expired");
}

#[tokio::test]
async fn long_lists_are_whole() {
    let api = Api::start().await;
    api.define(spec()).await;
    for n in 0..1_500 {
        let mut object = widget(&format!("w{n:05}"), json!({"size": 1 + n % 9}));
        object["metadata"]["annotations"] = json!({"text": "x".repeat(200)});
        api.post(WIDGETS, object).await.ok();
    }
    let list = api.get(WIDGETS).await.ok();
    assert_eq!(list["kind"], "WidgetList");
    assert_eq!(list["apiVersion"], "example.com/v1");
    let items = list["items"].as_array().unwrap();
    assert_eq!(items.len(), 1_500);
    for (n, item) in items.iter().enumerate() {
        assert_eq!(item["metadata"]["name"], format!("w{n:05}"));
        assert_eq!(item["apiVersion"], "example.com/v1");
        assert_eq!(item["spec"]["size"], 1 + n % 9);
    }
}

#[tokio::test]
async fn lists_are_shown_as_tables_and_as_metadata() {
    let api = Api::start().await;
    api.define(spec()).await;
    api.post(WIDGETS, widget("a", json!({"size": 3}))).await.ok();
    let table =
        api.get_as(WIDGETS, "application/json;as=Table;v=v1;g=meta.k8s.io,application/json").await.ok();
    assert_eq!(table["kind"], "Table");
    let columns: Vec<&str> = table["columnDefinitions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|column| column["name"].as_str().unwrap())
        .collect();
    assert_eq!(columns, ["Name", "Size"]);
    assert_eq!(table["rows"][0]["cells"], json!(["a", 3]));
    assert_eq!(table["rows"][0]["object"]["kind"], "PartialObjectMetadata");

    let accept = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
    let partial = api.get_as(WIDGETS, accept).await.ok();
    assert_eq!(partial["kind"], "PartialObjectMetadataList");
    assert_eq!(partial["items"][0]["metadata"]["name"], "a");
    assert!(partial["items"][0].get("spec").is_none());
    api.get_as(WIDGETS, "application/xml").await.failed(406);
}

#[tokio::test]
async fn many_objects_are_deleted_at_once() {
    let api = with_five().await;
    let deleted = api.delete(&format!("{CONFIG_MAPS}?labelSelector=tier%3Dweb")).await.ok();
    assert_eq!(names(&deleted), ["a", "b", "d"]);
    assert_eq!(names(&api.get(CONFIG_MAPS).await.ok()), ["c", "e"]);
}
