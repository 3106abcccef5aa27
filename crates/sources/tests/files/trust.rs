//! When a directory is believed that says that everything is gone.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::Value;
use watchkeeper_core::{ChangeKind, Error};
use watchkeeper_informer::{Informer, Subscription};
use watchkeeper_sources::files::Files;

use crate::place::{Place, route};
use crate::tap::{LONG, Tap};

async fn informer(files: &Files) -> Informer<Value> {
    let informer = Informer::<Value>::builder().start(files.clone());
    informer.synced().await.unwrap();
    informer
}

fn fill(place: &Place) -> Files {
    for number in 0..10 {
        place.write(&format!("{number}.yaml"), &route(&format!("n{number}"), 1));
    }
    Files::directory(place.root()).kind("example.com/v1", "Route")
}

async fn until_failed(informer: &Informer<Value>) -> Error {
    let mut status = informer.watch_status();
    let failed = status.wait_for(|sources| sources.iter().any(|source| source.error.is_some()));
    let sources = tokio::time::timeout(LONG, failed).await.unwrap().unwrap().clone();
    sources[0].error.clone().unwrap()
}

/// Reads changes until one of this kind.
async fn next(changes: &mut Subscription<Value>, kind: ChangeKind) -> String {
    loop {
        let change = tokio::time::timeout(LONG, changes.next()).await.unwrap().unwrap();
        if change.kind() == kind {
            return change.key.to_string();
        }
    }
}

#[tokio::test]
async fn a_directory_that_is_gone_keeps_its_objects() {
    let place = Place::new();
    let informer = informer(&fill(&place)).await;
    let mut changes = informer.subscribe("test");
    fs::rename(place.root(), place.aside("away")).unwrap();
    let error = until_failed(&informer).await;
    assert!(matches!(&error, Error::Missing(said) if said.contains("routes.d")), "{error}");
    assert_eq!(informer.store().len(), 10);
    fs::rename(place.aside("away"), place.root()).unwrap();
    place.write("new.yaml", &route("new", 1));
    while next(&mut changes, ChangeKind::Added).await != "new" {}
    assert_eq!(informer.store().len(), 11);
}

#[tokio::test]
async fn a_file_that_does_not_exist_is_missing_and_not_empty() {
    let place = Place::new();
    place.write("a.yaml", &route("a", 1));
    let mut tap = Tap::on(&Files::file(place.path("a.yaml"))).await;
    place.remove("a.yaml");
    assert!(matches!(tap.failure().await, Error::Missing(_)));
    assert_eq!(tap.values.len(), 1);
}

#[tokio::test]
async fn an_empty_directory_is_believed_the_second_time() {
    let place = Place::new();
    let informer = informer(&fill(&place)).await;
    let mut changes = informer.subscribe("test");
    fs::rename(place.root(), place.aside("away")).unwrap();
    fs::create_dir(place.root()).unwrap();
    let asked = std::time::Instant::now();
    next(&mut changes, ChangeKind::Deleted).await;
    assert!(asked.elapsed().as_millis() >= 1000, "{:?}", asked.elapsed());
    while !informer.store().is_empty() {
        next(&mut changes, ChangeKind::Deleted).await;
    }
}

#[tokio::test]
async fn a_directory_that_is_not_mounted_keeps_its_objects() {
    let Ok(mounted) = tempfile::tempdir_in("/dev/shm") else { return };
    let place = Place::new();
    fs::remove_dir(place.root()).unwrap();
    symlink(mounted.path(), place.root()).unwrap();
    let informer = informer(&fill(&place)).await;
    // Another file system, with nothing on it.
    fs::create_dir(place.aside("empty")).unwrap();
    symlink(place.aside("empty"), place.aside("link")).unwrap();
    fs::rename(place.aside("link"), place.root()).unwrap();
    let error = until_failed(&informer).await;
    assert!(matches!(&error, Error::Missing(said) if said.contains("is it mounted?")), "{error}");
    assert_eq!(informer.store().len(), 10);
}
