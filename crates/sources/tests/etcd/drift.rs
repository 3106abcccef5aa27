//! What the log tells, compared with the keys themselves.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use watchkeeper_core::Source as _;
use watchkeeper_etcd::testing::Proxy;
use watchkeeper_etcd::{Delete, Keys, Put, Range};
use watchkeeper_informer::{Informer, SourceBackoff};
use watchkeeper_sources::etcd::Etcd;

use crate::server;
use crate::tap::LONG;

fn copy(from: &Path, to: &Path) {
    let _ = std::fs::remove_dir_all(to);
    assert!(Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap().success());
}

#[tokio::test]
async fn a_member_whose_disk_was_set_back_is_found_out_and_the_difference_is_told_and_counted() {
    let server = server!();
    let client = server.builder().build().unwrap();
    let put = async |name: &str, value: u64| {
        let put = Put::new(format!("/a/{name}"), format!(r#"{{"value":{value}}}"#));
        client.put(&put).await.unwrap().header.revision
    };
    put("same", 1).await;
    put("x", 1).await;
    let quick = Duration::from_millis(50);
    let proxy = Proxy::to(server.port()).await.unwrap();
    let etcd = Etcd::prefix([proxy.endpoint()], "/a/").check_drift(quick).progress_interval(quick);
    let backoff = SourceBackoff::new(Duration::from_millis(1), quick).with_refused_cap(quick);
    let informer = Informer::<Value>::builder().backoff(backoff).start(etcd.clone());
    informer.synced().await.unwrap();
    let mut changes = informer.subscribe("test");
    let shown = |name: &str| {
        let found = informer.store().get(&watchkeeper_core::Key::new(None, name))?;
        found.get().unwrap()["value"].as_u64()
    };
    let mut until = async |what: &dyn Fn() -> bool| {
        while !what() {
            let change = tokio::time::timeout(LONG, changes.next()).await;
            change.unwrap_or_else(|_| panic!("nothing comes, drift is {}", etcd.drift())).unwrap();
        }
    };
    // A copy of the disk, then one change more, which is told.
    server.kill();
    let backup = tempfile::tempdir().unwrap();
    copy(&server.data(), &backup.path().join("data"));
    server.restart().await.unwrap();
    client.range(&Range::of(Keys::one("?"))).await.unwrap();
    let told = put("x", 2).await;
    until(&|| shown("x") == Some(2)).await;
    // The disk is set back, and another change has the same revision. Who resumes after that sees no difference.
    proxy.refuse(true);
    proxy.cut();
    server.kill();
    copy(&backup.path().join("data"), &server.data());
    server.restart().await.unwrap();
    client.range(&Range::of(Keys::one("?"))).await.unwrap();
    assert_eq!(put("y", 3).await, told, "the same revision means something else now");
    proxy.refuse(false);
    until(&|| shown("x") == Some(1) && shown("y") == Some(3)).await;
    assert_eq!(etcd.drift(), 2);
    assert_eq!(shown("same"), Some(1));
    // What the log tells is no drift.
    for value in 10..40 {
        put("z", value).await;
        until(&|| shown("z") == Some(value)).await;
    }
    client.delete(&Delete::of(Keys::one("/a/z"))).await.unwrap();
    until(&|| shown("z").is_none()).await;
    assert_eq!(etcd.drift(), 2);
}
