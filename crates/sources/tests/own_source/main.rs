//! The source of the chapter "Write your own source", as it is printed there.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    unreachable_pub,
    reason = "tests, and written as a user would"
)]

mod contract;
mod hosts;

use watchkeeper_core::ChangeKind;
use watchkeeper_informer::Informer;

use hosts::Hosts;

#[derive(Debug, serde::Deserialize)]
struct Host {
    address: String,
}

#[tokio::test(start_paused = true)]
async fn the_source_of_the_chapter_does_what_it_says() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("hosts");
    std::fs::write(&path, "127.0.0.1 localhost # here\n10.0.0.7 web cache\nten.0.0.8 broken\n").unwrap();
    let informer = Informer::<Host>::builder().start(Hosts::new(&path));
    informer.synced().await.unwrap();
    let mut changes = informer.subscribe("test");
    for name in ["cache", "localhost", "web"] {
        let change = changes.next().await.unwrap();
        assert_eq!((change.key.name(), change.kind()), (name, ChangeKind::Added));
    }
    std::fs::write(&path, "127.0.0.1 localhost\n10.0.0.9 web cache\n").unwrap();
    for name in ["cache", "web"] {
        let change = changes.next().await.unwrap();
        assert_eq!((change.key.name(), change.kind()), (name, ChangeKind::Modified));
        assert_eq!(change.new.unwrap().get().unwrap().address, "10.0.0.9");
    }
    // Gone for a moment: nothing is deleted.
    std::fs::remove_file(&path).unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    assert_eq!(informer.store().len(), 3);
}

#[test]
fn the_chapter_prints_this_code() {
    let chapter = include_str!("../../../../docs/book/own-source.md");
    let code = [include_str!("hosts.rs"), include_str!("contract.rs")];
    let blocks: Vec<&str> =
        chapter.split("```rust\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert_eq!(blocks, code);
}
