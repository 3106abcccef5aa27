//! Objects go away with their owners.
//!
//! What kube-controller-manager's garbage collector does, in process and without polling: every change to any object goes by
//! here, and who owns what is kept in a [`Graph`]. Whatever may have to be done about an object is done on what is stored at
//! that moment, so it does not matter in which order things are noticed, or how often.
//!
//! - An object all of whose owners are gone is deleted. Owners that are gone are taken off an object that has others.
//! - An owner that is deleted in the foreground waits until those of its dependents are gone that say they block it.
//! - An owner that is deleted with its dependents orphaned waits until none of them names it any more.

mod decide;
mod graph;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use tokio::time::{Instant, sleep_until};
use watchkeeper_storage::{self as storage, Entry, Event, Followed};

use crate::resource::ROOT;
use crate::server::Server;
use graph::{Facts, Graph, Waits};

/// What the task is called.
pub(super) const TASK: &str = "garbage-collector";

/// How many objects are looked at together; their commits share syncs.
const TOGETHER: usize = 64;

/// How long changes are gathered while nothing is under way: waking up for each would cost every writer more than it is worth.
const COALESCE_INTERVAL: Duration = Duration::from_millis(2);

/// How long to wait before trying again what failed.
const RETRY_DELAY: Duration = Duration::from_millis(500);

/// How long to wait before trying again what panicked: it will most likely do so again.
const PANIC_RETRY_DELAY: Duration = Duration::from_secs(60);

/// Looks at everything, and then at everything that changes, until the storage is closed.
pub(super) async fn run(server: Arc<Server>) {
    let server = &*server;
    let mut following = storage::follow(&*server.storage, "all objects", ROOT);
    let (mut work, mut running) = (Work::default(), FuturesUnordered::new());
    loop {
        // Whoever acts must know of everything that happened before.
        while let Some(followed) = following.next().now_or_never() {
            let Some(followed) = followed else { return };
            if work.take(server, followed) {
                running.clear();
            }
        }
        while running.len() < TOGETHER
            && let Some(key) = work.next()
        {
            let dependents = match work.graph.waits_for(&key) {
                // It is looked at again when the last of them is gone.
                Waits::Dependents => continue,
                // Those that wait for each other wait for nobody.
                Waits::Itself => Vec::new(),
                Waits::Nothing => work.graph.dependents_of(&key),
            };
            running.push(async move {
                let decision = decide::decide(server, &key, &dependents);
                let outcome = server.supervisor.caught_async(TASK, &key, decision).await;
                (key, outcome)
            });
        }
        tokio::select! {
            Some((key, outcome)) = running.next(), if !running.is_empty() => {
                match outcome {
                    Some(Ok(())) => {}
                    Some(Err(failure)) => {
                        tracing::warn!(%key, failure = %failure.message, "object could not be garbage-collected; it is retried");
                        work.later(key, RETRY_DELAY);
                    }
                    None => work.later(key, PANIC_RETRY_DELAY),
                }
            }
            followed = following.next() => {
                let Some(followed) = followed else { return };
                if work.take(server, followed) {
                    running.clear();
                }
                if running.is_empty() {
                    tokio::time::sleep(COALESCE_INTERVAL).await;
                }
            }
            () = until(work.due()) => work.retry(Instant::now()),
        }
    }
}

/// What an object says about itself; `None` if that cannot be read.
fn read(server: &Server, entry: &Entry) -> Option<Facts> {
    server.supervisor.caught(TASK, &entry.key, || Facts::read(entry)).flatten()
}

/// Which objects have to be looked at.
#[derive(Default)]
struct Work {
    graph: Graph,
    queue: VecDeque<Box<str>>,
    queued: HashSet<Box<str>>,
    /// What failed, and when it is tried again.
    failed: HashMap<Box<str>, Instant>,
}

impl Work {
    /// Takes in what there is, or what has changed. Returns whether what was under way is to be forgotten, because everything is new.
    fn take(&mut self, server: &Server, followed: Followed) -> bool {
        match followed {
            Followed::Snapshot(page) => {
                *self = Self::default();
                page.entries.iter().for_each(|entry| self.see(server, entry));
                return true;
            }
            Followed::Event(event) => self.changed(server, &event),
            Followed::Progress(_) => {}
        }
        false
    }

    fn changed(&mut self, server: &Server, event: &Event) {
        match event.entry() {
            Some(entry) => self.see(server, entry),
            None => self.gone(event.key(), event.previous().and_then(|entry| read(server, entry))),
        }
    }

    /// Takes in what an object says of its owners.
    fn see(&mut self, server: &Server, entry: &Entry) {
        let key = &*entry.key;
        // Most objects have no owners, never had, and are not being deleted.
        if !self.graph.has(key) && !Facts::may_matter(entry) {
            return;
        }
        let Some(facts) = read(server, entry) else { return };
        let change = self.graph.put(key, &facts);
        if facts.waits_for_dependents() || (change.has_other_owners && !facts.owners.is_empty()) {
            self.add(key);
        }
        if change.begins_to_wait && facts.is_deleted_in_foreground() {
            self.graph.dependents(&facts.uid).iter().for_each(|dependent| self.add(dependent));
        }
        change.released.iter().for_each(|owner| self.add(owner));
    }

    /// An object is gone: its dependents have lost an owner, and an owner of it may have waited for that.
    fn gone(&mut self, key: &str, last: Option<Facts>) {
        let Some(last) = last else { return };
        for dependent in self.graph.dependents(&last.uid) {
            self.add(&dependent);
        }
        for owner in self.graph.remove(key, &last) {
            self.add(&owner);
        }
    }

    fn add(&mut self, key: &str) {
        if self.queued.insert(key.into()) {
            self.queue.push_back(key.into());
        }
    }

    fn next(&mut self) -> Option<Box<str>> {
        let key = self.queue.pop_front()?;
        self.queued.remove(&key);
        Some(key)
    }

    fn later(&mut self, key: Box<str>, pause: Duration) {
        let now = Instant::now();
        self.failed.insert(key, now.checked_add(pause).unwrap_or(now));
    }

    /// When something that failed is to be tried again.
    fn due(&self) -> Option<Instant> {
        self.failed.values().min().copied()
    }

    fn retry(&mut self, now: Instant) {
        let due: Vec<_> = self.failed.extract_if(|_, due| *due <= now).map(|(key, _)| key).collect();
        due.iter().for_each(|key| self.add(key));
    }
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}
