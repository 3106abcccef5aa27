//! The status of objects goes to files of their own, which nobody takes for objects.

use std::fs;

use serde_json::{Value, json};
use watchkeeper_core::{ChangeKind, Error, Key, ObjectStatus, Source as _, Version};
use watchkeeper_informer::Informer;
use watchkeeper_sources::files::Files;

use crate::place::{Place, route};
use crate::tap::LONG;

fn about(key: &Key, version: &Version, status: &Value) -> ObjectStatus {
    ObjectStatus::new(key.clone(), version.clone(), status.to_string())
}

#[tokio::test]
async fn a_status_is_written_for_the_state_that_it_is_about_and_wakes_nobody() {
    let place = Place::new();
    place.write("a.yaml", &route("a", 1));
    let statuses = place.path(".status");
    let files = Files::directory(place.root()).kind("example.com/v1", "Route").status_directory(&statuses);
    assert!(files.capabilities().status_write_back);
    let informer = Informer::<Value>::builder().start(files.clone());
    informer.synced().await.unwrap();
    let mut changes = informer.subscribe("test");
    assert_eq!(changes.next().await.unwrap().kind(), ChangeKind::Added);
    let key = Key::new(None, "a");
    let version = informer.store().get(&key).unwrap().version().clone();
    let write = |status: Value| files.write_status(about(&key, &version, &status));
    let read = || fs::read_to_string(statuses.join("a.json")).unwrap();
    write(json!({"ready": false})).await.unwrap();
    write(json!({"ready": true})).await.unwrap();
    assert_eq!(read(), r#"{"ready":true}"#);
    assert_eq!(fs::read_dir(&statuses).unwrap().count(), 1, "nothing else is left");
    // What came before this file is told before it.
    place.write("b.yaml", &route("b", 1));
    let change = tokio::time::timeout(LONG, changes.next()).await.unwrap().unwrap();
    assert_eq!((change.kind(), change.key.to_string()), (ChangeKind::Added, "b".into()));

    // As soon as the file is another one, whether that was told or not.
    place.replace("a.yaml", &route("a", 2));
    let changed = write(json!({"ready": "old"})).await.unwrap_err();
    assert!(matches!(changed, Error::Expired(_)), "{changed}");
    place.replace("a.yaml", "kind: [");
    let broken = write(json!({"ready": "old"})).await.unwrap_err();
    assert!(matches!(broken, Error::Expired(_)), "{broken}");
    place.remove("a.yaml");
    let gone = write(json!({"ready": "old"})).await.unwrap_err();
    assert!(matches!(gone, Error::Missing(_)), "{gone}");
    assert_eq!(read(), r#"{"ready":true}"#);
}

#[tokio::test]
async fn a_place_for_statuses_that_would_be_read_as_objects_is_refused() {
    let place = Place::new();
    place.write("a.yaml", &route("a", 1));
    let status = about(&Key::new(None, "a"), &Version::from("x"), &json!({}));
    let files = Files::directory(place.root()).kind("example.com/v1", "Route");
    let nowhere = files.write_status(status.clone()).await.unwrap_err();
    assert!(matches!(&nowhere, Error::Fatal(said) if said.contains("status_directory")), "{nowhere}");
    let inside = files.status_directory(place.path("status"));
    let refused = inside.write_status(status).await.unwrap_err();
    assert!(matches!(&refused, Error::Fatal(said) if said.contains("would be read as objects")), "{refused}");
    assert!(!place.path("status").exists());
}
