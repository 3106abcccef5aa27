//! A storage that several servers share: what one of them knows is behind what others have written, until it asks.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use parking_lot::Mutex;
use serde_json::{Value, json};
use watchkeeper_storage::{
    Answer, Commit, Committed, Entry, Found, Memory, Page, Range, Revision, Stats, Storage, Watch,
};

use crate::harness::{Api, config_map};

const NAMESPACES: &str = "/api/v1/namespaces";

/// What one server knows of a storage.
struct Shared {
    inner: Arc<Memory>,
    /// What it has not heard of yet: under these keys, it knows these entries. Whoever asks hears of everything.
    behind: Mutex<HashMap<String, Option<Arc<Entry>>>>,
    /// How often it asked about the namespace of the tests.
    asked: AtomicUsize,
}

/// The key of the namespace of the tests.
const KEY: &str = "/registry/core/namespaces/there";

impl Shared {
    /// From now on, this server hears of no change of the namespace until it asks.
    async fn falls_behind(&self) {
        let known = self.inner.get(KEY, None).await.unwrap().entry;
        self.behind.lock().insert(KEY.to_owned(), known);
    }
}

impl Storage for Shared {
    fn get<'a>(&'a self, key: &'a str, at: Option<Revision>) -> Answer<'a, Found> {
        // What else it does by itself is to change nothing here.
        if at.is_none() && KEY.starts_with(key) {
            self.behind.lock().clear();
            self.asked.fetch_add(usize::from(key == KEY), SeqCst);
        }
        self.inner.get(key, at)
    }

    fn known<'a>(&'a self, key: &'a str) -> Answer<'a, Found> {
        Box::pin(async move {
            let found = self.inner.get(key, None).await?;
            match self.behind.lock().get(key) {
                Some(entry) => Ok(Found { entry: entry.clone(), ..found }),
                None => Ok(found),
            }
        })
    }

    fn range(&self, range: Range) -> Answer<'_, Page> {
        self.inner.range(range)
    }

    fn commit(&self, commit: Commit) -> Answer<'_, Committed> {
        self.inner.commit(commit)
    }

    fn watch<'a>(&'a self, prefix: &'a str, after: Revision) -> Answer<'a, Watch> {
        self.inner.watch(prefix, after)
    }

    fn compact(&self, to: Revision) -> Answer<'_, ()> {
        self.inner.compact(to)
    }

    fn stats(&self) -> Stats {
        self.inner.stats()
    }

    fn is_shared(&self) -> bool {
        true
    }
}

/// Two servers: what the second one knows can fall behind.
async fn start() -> (Api, Api, Arc<Shared>) {
    let inner = Arc::new(Memory::new(watchkeeper_storage::Options::default()));
    let shared =
        Arc::new(Shared { inner: Arc::clone(&inner), behind: Mutex::default(), asked: AtomicUsize::new(0) });
    let storage: Arc<dyn Storage> = Arc::clone(&shared) as _;
    (Api::over(inner).await, Api::over(storage).await, shared)
}

fn namespace() -> Value {
    json!({"metadata": {"name": "there"}})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_create_asks_nobody_about_a_namespace_that_is_there() {
    let (one, other, shared) = start().await;
    one.post(NAMESPACES, namespace()).await.ok();
    let maps = format!("{NAMESPACES}/there/configmaps");
    let before = shared.asked.load(SeqCst);
    for number in 0..10 {
        other.post(&maps, config_map(&format!("map-{number}"), json!({}))).await.ok();
    }
    assert_eq!(shared.asked.load(SeqCst), before);
    // Of a dry run, no commit finds out.
    other.post(&format!("{maps}?dryRun=All"), config_map("dry", json!({}))).await.ok();
    assert_eq!(shared.asked.load(SeqCst), before + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_another_server_did_to_a_namespace_counts_before_it_is_known_here() {
    let (one, other, shared) = start().await;
    let (maps, map) = (format!("{NAMESPACES}/there/configmaps"), || config_map("late", json!({})));
    // It was made a moment ago.
    shared.falls_behind().await;
    one.post(NAMESPACES, namespace()).await.ok();
    other.post(&maps, map()).await.ok();
    other.delete(&format!("{maps}/late")).await.ok();
    // It has been changed.
    shared.falls_behind().await;
    one.merge(&format!("{NAMESPACES}/there"), json!({"metadata": {"labels": {"a": "b"}}})).await.ok();
    other.post(&maps, map()).await.ok();
    other.delete(&format!("{maps}/late")).await.ok();
    // It is being deleted, and does not end while there is something with a finalizer in it.
    let mut held = config_map("held", json!({}));
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    one.post(&maps, held).await.ok();
    for dry_run in ["", "?dryRun=All"] {
        shared.falls_behind().await;
        one.delete(&format!("{NAMESPACES}/there")).await;
        let refused = other.post(&format!("{maps}{dry_run}"), map()).await.failed(403);
        assert!(refused["message"].as_str().unwrap().contains("is being terminated"), "{refused}");
    }
    // It has gone, and another one has its name.
    shared.falls_behind().await;
    one.merge(&format!("{maps}/held"), json!({"metadata": {"finalizers": null}})).await.ok();
    one.eventually(&format!("{NAMESPACES}/there"), |answer| answer.code == 404).await;
    other.post(&maps, map()).await.failed(404);
    one.post(NAMESPACES, namespace()).await.ok();
    other.post(&maps, map()).await.ok();
}
