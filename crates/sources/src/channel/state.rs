//! The state of a channel: its objects, and their last changes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use watchkeeper_core::{Document, Key};

use super::document;

/// So many changes are kept for those who resume and those who are slow.
const KEPT: usize = 4096;

pub(super) struct State {
    held: Mutex<Held>,
    /// The newest revision, for those who wait for it.
    moved: watch::Sender<u64>,
}

#[derive(Default)]
struct Held {
    revision: u64,
    objects: BTreeMap<Key, Object>,
    /// The last changes, oldest first.
    log: VecDeque<(u64, Change)>,
    /// The newest revision whose change is not kept any more.
    forgotten: u64,
}

struct Object {
    /// The revision that made it.
    uid: u64,
    /// The revision that changed it last.
    revision: u64,
    body: Arc<[u8]>,
}

struct Change {
    key: Key,
    /// Its uid and new state, unless it was removed.
    put: Option<(u64, Arc<[u8]>)>,
}

/// A change, as it is told.
pub(super) enum Entry {
    Put(Document),
    Gone(Key),
}

impl Default for State {
    fn default() -> Self {
        Self { held: Mutex::default(), moved: watch::Sender::new(0) }
    }
}

impl State {
    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes what is held, then wakes those who wait.
    fn change<T>(&self, change: impl FnOnce(&mut Held) -> T) -> T {
        let mut held = self.lock();
        let changed = change(&mut held);
        let revision = held.revision;
        drop(held);
        self.moved.send_if_modified(|moved| {
            let further = revision > *moved;
            *moved = revision.max(*moved);
            further
        });
        changed
    }

    pub(super) fn revision(&self) -> u64 {
        self.lock().revision
    }

    pub(super) fn put(&self, key: &Key, body: Vec<u8>) {
        self.change(|held| held.put(key, body));
    }

    pub(super) fn remove(&self, key: &Key) -> bool {
        self.change(|held| held.remove(key))
    }

    pub(super) fn replace(&self, objects: Vec<(Key, Vec<u8>)>) {
        self.change(|held| {
            let named: BTreeSet<&Key> = objects.iter().map(|(key, _)| key).collect();
            let gone: Vec<Key> = held.objects.keys().filter(|key| !named.contains(key)).cloned().collect();
            for key in gone {
                held.remove(&key);
            }
            objects.iter().for_each(|(key, body)| held.put(key, body.clone()));
        });
    }

    /// All objects, and the revision they are of.
    pub(super) fn snapshot(&self) -> (Vec<Document>, u64) {
        let held = self.lock();
        let documents = held.objects.iter();
        let documents =
            documents.map(|(key, object)| document(key, object.uid, object.revision, &object.body));
        (documents.collect(), held.revision)
    }

    /// The changes after a revision; the oldest revision that could be asked for, if this one is older.
    pub(super) fn since(&self, revision: u64) -> Result<Vec<(u64, Entry)>, u64> {
        let held = self.lock();
        if revision < held.forgotten {
            return Err(held.forgotten);
        }
        let from = held.log.partition_point(|(at, _)| *at <= revision);
        let entries = held.log.iter().skip(from).map(|(at, change)| {
            let entry = match &change.put {
                Some((uid, body)) => Entry::Put(document(&change.key, *uid, *at, body)),
                None => Entry::Gone(change.key.clone()),
            };
            (*at, entry)
        });
        Ok(entries.collect())
    }

    pub(super) async fn moved_beyond(&self, revision: u64) {
        let mut moved = self.moved.subscribe();
        // The sender is ours, so that it is there for as long as we wait.
        let _ = moved.wait_for(|moved| *moved > revision).await;
    }
}

impl Held {
    fn put(&mut self, key: &Key, body: Vec<u8>) {
        let known = self.objects.get(key);
        if known.is_some_and(|object| *object.body == *body) {
            return;
        }
        let body: Arc<[u8]> = body.into();
        let uid = known.map(|object| object.uid);
        let revision = self.revision + 1;
        let uid = uid.unwrap_or(revision);
        self.objects.insert(key.clone(), Object { uid, revision, body: Arc::clone(&body) });
        self.record(key, Some((uid, body)));
    }

    fn remove(&mut self, key: &Key) -> bool {
        let was_there = self.objects.remove(key).is_some();
        if was_there {
            self.record(key, None);
        }
        was_there
    }

    fn record(&mut self, key: &Key, put: Option<(u64, Arc<[u8]>)>) {
        self.revision += 1;
        self.log.push_back((self.revision, Change { key: key.clone(), put }));
        if self.log.len() > KEPT
            && let Some((revision, _)) = self.log.pop_front()
        {
            self.forgotten = revision;
        }
    }
}
