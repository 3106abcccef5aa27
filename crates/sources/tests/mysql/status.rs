//! The status of objects is written where nobody takes it for a change.

use serde_json::{Value, json};
use watchkeeper_core::{ChangeKind, Error, Key, ObjectStatus, Source as _, Version};
use watchkeeper_informer::Informer;

use crate::server::{Database, LONG, Server};

fn about(key: &Key, version: &Version, status: &Value) -> ObjectStatus {
    ObjectStatus::new(key.clone(), version.clone(), status.to_string())
}

/// A table whose rows note when they were changed, with a row.
fn items() -> Database {
    let database = Server::shared().database();
    database.sql(
        "CREATE TABLE items (name varchar(20) PRIMARY KEY, value bigint, status json, \
         changed timestamp(6) DEFAULT current_timestamp(6) ON UPDATE current_timestamp(6))",
    );
    database.sql("INSERT INTO items (name, value) VALUES ('a', 1)");
    database
}

#[tokio::test]
async fn a_status_wakes_nobody() {
    let database = items();
    let source = database.source("items").status_column("status");
    assert!(source.capabilities().status_write_back);
    assert!(!database.source("items").capabilities().status_write_back);
    let informer = Informer::<Value>::builder().start(source.clone());
    informer.synced().await.unwrap();
    let mut changes = informer.subscribe("test");
    assert_eq!(changes.next().await.unwrap().kind(), ChangeKind::Added);
    let version = informer.store().get(&Key::new(None, "a")).unwrap().version().clone();
    let write = |status: Value| source.write_status(about(&Key::new(None, "a"), &version, &status));
    let changed = database.sql("SELECT changed FROM items");
    for ready in [json!(true), json!(true), json!("it's \\ \"so\"")] {
        write(json!({"ready": ready})).await.unwrap();
    }
    assert_eq!(database.sql("SELECT JSON_VALUE(status, '$.ready') FROM items"), ["it's \\ \"so\""]);
    assert_eq!(database.sql("SELECT changed FROM items"), changed, "the object was not changed");
    // What came before this row is told before it.
    database.sql("INSERT INTO items (name, value) VALUES ('b', 1)");
    let change = tokio::time::timeout(LONG, changes.next()).await.unwrap().unwrap();
    assert_eq!((change.kind(), change.key.to_string()), (ChangeKind::Added, "b".to_owned()));
    assert!(change.new.as_ref().unwrap().get().unwrap().get("status").is_none());
}

#[tokio::test]
async fn a_status_is_written_for_the_state_that_it_is_about_or_not_at_all() {
    let database = items();
    let source = database.source("items").status_column("status");
    let informer = Informer::<Value>::builder().start(source.clone());
    informer.synced().await.unwrap();
    let key = Key::new(None, "a");
    let version = informer.store().get(&key).unwrap().version().clone();
    let status = |key: &Key| about(key, &version, &json!({"ready": true}));
    source.write_status(status(&key)).await.unwrap();
    // The connection that statuses are written with is cut, and made anew.
    database.cut();
    source.write_status(status(&key)).await.unwrap();
    database.sql("UPDATE items SET value = 2, status = NULL");
    let error = source.write_status(status(&key)).await.unwrap_err();
    assert!(matches!(error, Error::Expired(_)), "{error}");
    database.sql("DELETE FROM items");
    let error = source.write_status(status(&key)).await.unwrap_err();
    assert!(matches!(error, Error::Missing(_)), "{error}");
    let error = source.write_status(status(&Key::new(Some("x"), "a"))).await.unwrap_err();
    assert!(matches!(error, Error::Missing(_)), "{error}");
    assert_eq!(database.sql("SELECT COUNT(*) FROM items"), ["0"]);
    let wrong = database.source("items").status_column("nowhere");
    let error = wrong.write_status(status(&key)).await.unwrap_err();
    assert!(error.to_string().contains("has no column nowhere for statuses"), "{error}");
}

#[tokio::test]
async fn a_status_can_go_to_a_table_of_its_own() {
    let database = Server::shared().database();
    database.sql(
        "CREATE TABLE pages (site varchar(20), path varbinary(20), value bigint, PRIMARY KEY (site, path)); \
         CREATE TABLE page_status (site varchar(20), path varbinary(20), status json, PRIMARY KEY (site, path)); \
         INSERT INTO pages VALUES ('shop', 'a/b', 1)",
    );
    let source =
        database.source("pages").namespace("site").status_table(&format!("{}.page_status", database.name));
    let informer = Informer::<Value>::builder().start(source.clone());
    informer.synced().await.unwrap();
    let (key, version) = {
        let object = informer.store().list().pop().unwrap();
        (object.key().clone(), object.version().clone())
    };
    for n in [1, 1, 2] {
        source.write_status(about(&key, &version, &json!({"n": n}))).await.unwrap();
    }
    let nobody = Key::new(Some("shop"), "bm93aGVyZQ==");
    let error = source.write_status(about(&nobody, &version, &json!({"n": 2}))).await.unwrap_err();
    assert!(matches!(error, Error::Missing(_)), "{error}");
    assert_eq!(database.sql("SELECT path, JSON_VALUE(status, '$.n') FROM page_status"), ["a/b\t2"],);
    let nowhere = database.source("pages").write_status(about(&key, &version, &json!({}))).await.unwrap_err();
    assert!(nowhere.to_string().contains("it was not said where the status of objects goes"), "{nowhere}");
}
