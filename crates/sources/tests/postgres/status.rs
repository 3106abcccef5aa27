//! The status of objects is written where nobody takes it for a change.

use std::time::Duration;

use serde_json::{Value, json};
use watchkeeper_core::{ChangeKind, Error, Key, ObjectStatus, Source as _, Version};
use watchkeeper_informer::Informer;

use crate::server::{LONG, Server};

fn about(key: &Key, version: &Version, status: &Value) -> ObjectStatus {
    ObjectStatus::new(key.clone(), version.clone(), status.to_string())
}

#[tokio::test]
async fn a_status_wakes_nobody_however_changes_are_learned_of() {
    let database = Server::shared().database().await;
    database.sql("CREATE TABLE items (name text PRIMARY KEY, value bigint, status jsonb)").await;
    database.put_three("a", 1).await;
    let source = database.source("items").status_column("status");
    assert!(source.capabilities().status_write_back);
    source.clone().notify().install().await.unwrap();
    source.clone().replicate().install().await.unwrap();
    let sources = [
        source.clone(),
        source.clone().notify().rescan(Duration::from_millis(100)),
        source.clone().replicate(),
    ];
    let informers: Vec<_> =
        sources.into_iter().map(|source| Informer::<Value>::builder().start(source)).collect();
    let mut subscriptions = Vec::new();
    for informer in &informers {
        informer.synced().await.unwrap();
        let mut changes = informer.subscribe("test");
        assert_eq!(changes.next().await.unwrap().kind(), ChangeKind::Added);
        subscriptions.push(changes);
    }
    let version = informers[0].store().get(&Key::new(None, "a")).unwrap().version().clone();
    let write = |status: Value| source.write_status(about(&Key::new(None, "a"), &version, &status));
    write(json!({"ready": true})).await.unwrap();
    let written_by = "SELECT xmin::text::bigint FROM items";
    let first = database.number(written_by).await;
    write(json!({"ready": true})).await.unwrap();
    assert_eq!(database.number(written_by).await, first, "it is what it was, and is not written");
    write(json!({"ready": "it's"})).await.unwrap();
    assert_eq!(
        database.number("SELECT count(*) FROM items WHERE status = '{\"ready\": \"it''s\"}'").await,
        1
    );
    // What came before this row is told before it.
    database.put_three("b", 1).await;
    for changes in &mut subscriptions {
        let mut seen = Vec::new();
        while seen.last() != Some(&(ChangeKind::Added, "b".to_owned())) {
            let change = tokio::time::timeout(LONG, changes.next()).await.unwrap().unwrap();
            assert!(change.new.as_ref().unwrap().get().unwrap().get("status").is_none());
            seen.push((change.kind(), change.key.to_string()));
        }
        assert_eq!(seen.len(), 1, "{seen:?}");
    }
}

#[tokio::test]
async fn a_status_is_written_for_the_state_that_it_is_about_or_not_at_all() {
    let database = Server::shared().database().await;
    database.sql("CREATE TABLE items (name text PRIMARY KEY, value bigint, status jsonb)").await;
    database.put_three("a", 1).await;
    let source = database.source("items").status_column("status").interval(Duration::from_millis(50));
    let informer = Informer::<Value>::builder().start(source.clone());
    informer.synced().await.unwrap();
    let key = Key::new(None, "a");
    let version = informer.store().get(&key).unwrap().version().clone();
    let status = |key: &Key| about(key, &version, &json!({"ready": true}));
    source.write_status(status(&key)).await.unwrap();
    let written = "SELECT count(*) FROM items WHERE status = '{\"ready\": true}'";
    assert_eq!(database.number(written).await, 1);
    // It is no change, so it can be written again; also over a connection that was cut meanwhile.
    database.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database()").await;
    source.write_status(status(&key)).await.unwrap();
    let gone = source.write_status(status(&Key::new(None, "nobody"))).await.unwrap_err();
    assert!(matches!(gone, Error::Missing(_)), "{gone}");
    database.sql("UPDATE items SET value = 2, status = NULL").await;
    let changed = source.write_status(status(&key)).await.unwrap_err();
    assert!(matches!(changed, Error::Expired(_)), "{changed}");
    assert_eq!(database.number(written).await, 0);
}

#[tokio::test]
async fn a_status_can_go_to_a_table_of_its_own() {
    let database = Server::shared().database().await;
    database
        .sql(
            "CREATE TABLE pages (site text, path text, value bigint, PRIMARY KEY (site, path));
             CREATE TABLE page_status (site text, path text, status jsonb, PRIMARY KEY (site, path));
             INSERT INTO pages VALUES ('shop', 'a/b', 1)",
        )
        .await;
    let source = database.source("pages").namespace("site").status_table("public.page_status");
    let informer = Informer::<Value>::builder().start(source.clone());
    informer.synced().await.unwrap();
    let key = Key::new(Some("shop"), "a/b");
    let version = informer.store().get(&key).unwrap().version().clone();
    for n in [1, 1, 2] {
        source.write_status(about(&key, &version, &json!({"n": n}))).await.unwrap();
    }
    for nobody in [Key::new(Some("shop"), "nowhere"), Key::new(None, "a")] {
        let error = source.write_status(about(&nobody, &version, &json!({"n": 2}))).await.unwrap_err();
        assert!(matches!(error, Error::Missing(_)), "{error}");
    }
    let count = "SELECT count(*) FROM page_status WHERE path = 'a/b' AND status = '{\"n\": 2}'";
    assert_eq!(database.number(count).await, 1);
    assert_eq!(database.number("SELECT count(*) FROM page_status").await, 1);
    let nowhere = database.source("pages").write_status(about(&key, &version, &json!({}))).await.unwrap_err();
    assert!(nowhere.to_string().contains("it was not said where the status of objects goes"), "{nowhere}");
}

impl crate::server::Database {
    async fn put_three(&self, name: &str, value: i64) {
        self.sql(&format!("INSERT INTO items VALUES ('{name}', {value})")).await;
    }
}
