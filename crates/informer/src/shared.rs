//! The writer's side of a store: batches in, one step each.

use std::any::Any;
use std::hash::BuildHasher;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use hashbrown::DefaultHashBuilder;
use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify;
use watchkeeper_core::{Delivery, Document, Header, Key, Order, Reason, Rejection, Version};

use crate::codec::Codec;
use crate::dictionary::{Dictionary, SAMPLE_BYTES, SAMPLE_OBJECTS};
use crate::index::Extract;
use crate::journal::{Entry, Journal};
use crate::metrics::StoreMetrics;
use crate::object::{DecodeError, Object, same_incarnation, same_state};
use crate::outbox::Outbox;
use crate::store::{NamedExtract, Partition, State};

/// What an informer's handles and its reflectors share.
pub(crate) struct Shared {
    pub(crate) name: Arc<str>,
    pub(crate) state: RwLock<State>,
    pub(crate) codec: Arc<Codec>,
    pub(crate) metrics: Arc<StoreMetrics>,
    /// For those who want to know everything.
    pub(crate) journal: Option<Journal>,
    /// Held for the length of a batch: whoever holds it is the one writer. Never taken while `state` is locked.
    extracts: Mutex<Vec<NamedExtract>>,
    hasher: DefaultHashBuilder,
    born: Instant,
    /// Wakes whoever waits for the store to get somewhere.
    pub(crate) progress: Notify,
    pub(crate) closed: AtomicBool,
}

/// One thing a source said about one object.
pub(crate) enum Write {
    /// The object is in the snapshot that is being taken.
    List(Document),
    /// The object is in the snapshot, but cannot be read: what is known of it stays.
    Keep(Key),
    /// The object was created or changed.
    Put(Document),
    /// The object is gone.
    Delete(Document),
    /// The object is gone, and its source does not know its last state.
    Gone(Key),
}

impl Write {
    fn key(&self) -> &Key {
        match self {
            Self::List(document) | Self::Put(document) | Self::Delete(document) => &document.header.key,
            Self::Keep(key) | Self::Gone(key) => key,
        }
    }
}

/// The source of a write; whether it may overwrite newer versions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    pub(crate) partition: u16,
    pub(crate) order: Order,
    /// Whether older states are taken too: the source was asked for the newest there is.
    pub(crate) overrules: bool,
}

/// A write that will change something, with everything computed that can be computed without the lock.
enum Step {
    Put { object: Object, epoch: u32, values: Vec<Option<Box<dyn Any + Send>>> },
    Delete { slot: u32, last: Option<Object> },
    Listed { slot: u32 },
}

impl Shared {
    pub(crate) fn new(
        name: &str,
        codec: Arc<Codec>,
        metrics: Arc<StoreMetrics>,
        journal: Option<Journal>,
    ) -> Self {
        Self {
            name: name.into(),
            state: RwLock::new(State::new()),
            codec,
            metrics,
            journal,
            extracts: Mutex::default(),
            hasher: DefaultHashBuilder::default(),
            born: Instant::now(),
            progress: Notify::new(),
            closed: AtomicBool::new(false),
        }
    }

    /// A new partition of the store, for a new source.
    pub(crate) fn add_partition(&self) -> u16 {
        let mut state = self.state.write();
        let partition = Partition { live: true, ..Partition::default() };
        match state.partitions.iter().position(|partition| !partition.live) {
            // The epoch goes on, so that nothing of the former partition can look listed.
            Some(at) => {
                let epoch = state.partitions[at].epoch;
                state.partitions[at] = Partition { epoch, ..partition };
                at as u16
            }
            None => {
                state.partitions.push(partition);
                (state.partitions.len() - 1) as u16
            }
        }
    }

    /// Removes a partition with everything in it.
    pub(crate) fn remove_partition(&self, partition: u16) {
        let writer = self.extracts.lock();
        let mut state = self.state.write();
        state.partitions[partition as usize].epoch += 1;
        self.remove_unlisted(&mut state, partition);
        state.partitions[partition as usize].live = false;
        self.note_synced(&mut state);
        self.publish(state);
        drop(writer);
    }

    /// A snapshot begins.
    pub(crate) fn begin(&self, partition: u16) {
        self.state.write().partitions[partition as usize].epoch += 1;
    }

    /// Applies a batch in one step (in several if one key occurs more than once) and moves the partition's position.
    /// What is rejected here goes to `reject`; the objects concerned keep their last good state.
    pub(crate) fn apply(
        &self,
        origin: Origin,
        writes: impl IntoIterator<Item = Write>,
        position: Option<Version>,
        reject: &mut dyn FnMut(Rejection),
    ) {
        let extracts = self.extracts.lock();
        let mut steps = Vec::new();
        // The hashes of the keys so far; two keys with one hash break the batch up, too, which does no harm.
        let mut touched: Vec<u32> = Vec::new();
        for write in writes {
            let hash = self.hasher.hash_one(write.key()) as u32;
            if touched.contains(&hash) {
                self.commit(origin, std::mem::take(&mut steps), None);
                touched.clear();
            }
            touched.push(hash);
            steps.extend(self.prepare(origin, write, &extracts, reject));
        }
        self.commit(origin, steps, position);
    }

    /// The snapshot is complete: what it did not list is gone. With `keep_unlisted`, it is only the position that moves.
    pub(crate) fn complete(&self, partition: u16, version: Version, keep_unlisted: bool) {
        let writer = self.extracts.lock();
        let mut state = self.state.write();
        if !keep_unlisted {
            self.remove_unlisted(&mut state, partition);
        }
        let entry = &mut state.partitions[partition as usize];
        entry.position = Some(version.clone());
        entry.synced = true;
        if let Some(journal) = &self.journal {
            journal.note(Entry::Complete(version));
        }
        self.note_synced(&mut state);
        self.publish(state);
        drop(writer);
    }

    /// Of how many objects of a partition how many have not been listed by the newest snapshot.
    pub(crate) fn shrinkage(&self, partition: u16) -> (usize, usize) {
        let state = self.state.read();
        (state.unlisted(partition).count(), state.count(partition))
    }

    pub(crate) fn add_index(&self, name: &str, extract: Arc<dyn Extract>) -> usize {
        let mut extracts = self.extracts.lock();
        let mut index = extract.empty();
        let objects: Vec<_> =
            self.state.read().objects_from(0).map(|(slot, object)| (slot, object.clone())).collect();
        for (slot, object) in objects {
            index.set(slot, self.extract(name, &*extract, &object));
        }
        extracts.push(NamedExtract { name: name.to_owned(), extract });
        self.state.write().add_index(index)
    }

    /// Attaches a subscriber; it will be shown everything that is there.
    pub(crate) fn attach(&self, outbox: &Arc<Outbox>) {
        let mut state = self.state.write();
        outbox.show_all(&state, true, self.stamp());
        if is_synced(&state) {
            outbox.initial_complete();
        }
        state.outboxes.push(Arc::clone(outbox));
    }

    pub(crate) fn detach(&self, outbox: &Arc<Outbox>) {
        self.state.write().outboxes.retain(|other| !Arc::ptr_eq(other, outbox));
        outbox.close();
    }

    pub(crate) fn close(&self) {
        let outboxes = std::mem::take(&mut self.state.write().outboxes);
        outboxes.iter().for_each(|outbox| outbox.close());
        self.closed.store(true, Ordering::Release);
        self.progress.notify_waiters();
        self.metrics.clear();
    }

    pub(crate) fn is_synced(&self) -> bool {
        is_synced(&self.state.read())
    }

    /// Milliseconds since the informer was made; wraps after seven weeks, which differences survive.
    pub(crate) fn stamp(&self) -> u32 {
        self.born.elapsed().as_millis() as u32
    }

    /// Decides what a write means for the store as it is, and does everything that needs no lock.
    fn prepare(
        &self,
        origin: Origin,
        write: Write,
        extracts: &[NamedExtract],
        reject: &mut dyn FnMut(Rejection),
    ) -> Option<Step> {
        let (known, epoch) = {
            let state = self.state.read();
            let known =
                state.find(write.key()).map(|(slot, object, partition)| (slot, object.clone(), partition));
            (known, state.partitions[origin.partition as usize].epoch)
        };
        if let Some((_, _, owner)) = known
            && owner != origin.partition
        {
            let detail = format!("source {owner} of this store has an object of this name");
            reject(Rejection::new(Some(write.key().clone()), Reason::Conflict, detail));
            return None;
        }
        let known = known.map(|(slot, object, _)| (slot, object));
        match (write, known) {
            (Write::Keep(_), known) => known.map(|(slot, _)| Step::Listed { slot }),
            (Write::Gone(_), known) => known.map(|(slot, _)| Step::Delete { slot, last: None }),
            (Write::Delete(document), known) => self.prepare_delete(origin, document, known?),
            (Write::List(document), Some((slot, old))) if !supersedes(origin, &document.header, &old) => {
                self.metrics.unchanged.inc();
                drop(document);
                Some(Step::Listed { slot })
            }
            (Write::Put(document), Some((_, old))) if !supersedes(origin, &document.header, &old) => {
                self.metrics.unchanged.inc();
                drop(document);
                None
            }
            (Write::List(mut document) | Write::Put(mut document), known) => {
                if let Some((_, old)) = &known {
                    // One text for all states of an object.
                    document.header.key = old.key().clone();
                }
                let object = match self.pack(document) {
                    Ok(object) => object,
                    Err(error) => {
                        let (key, detail) = (Some(error.key), error.detail);
                        reject(Rejection::new(key, Reason::Undecodable, detail));
                        return known.map(|(slot, _)| Step::Listed { slot });
                    }
                };
                let values = extracts
                    .iter()
                    .map(|index| self.extract(&index.name, &*index.extract, &object))
                    .collect();
                Some(Step::Put { object, epoch, values })
            }
        }
    }

    fn prepare_delete(&self, origin: Origin, document: Document, known: (u32, Object)) -> Option<Step> {
        let (slot, old) = known;
        let header = &document.header;
        let another = !same_incarnation(header, &old.record().header);
        let outdated = !origin.overrules && origin.order.is_older(&header.version, old.version());
        if another || outdated {
            self.metrics.unchanged.inc();
            return None;
        }
        // A last state that cannot be decoded is worth less than the last one that could.
        Some(Step::Delete { slot, last: self.pack(document).ok() })
    }

    /// Makes an object of a document. Decoding and transforming are the user's code, which may panic.
    fn pack(&self, document: Document) -> Result<Object, DecodeError> {
        let key = document.header.key.clone();
        catch_unwind(AssertUnwindSafe(|| self.codec.pack(document))).unwrap_or_else(|_| {
            Err(DecodeError { key, detail: "decoding or transforming it panicked".into() })
        })
    }

    fn extract(&self, name: &str, extract: &dyn Extract, object: &Object) -> Option<Box<dyn Any + Send>> {
        match extract.extract(object) {
            Ok(values) => Some(values),
            Err(error) => {
                self.metrics.index_failures.inc();
                tracing::warn!(informer = %self.name, index = name, object = %object.key(), error, "not indexed");
                None
            }
        }
    }

    fn commit(&self, origin: Origin, steps: Vec<Step>, position: Option<Version>) {
        if steps.is_empty() && position.is_none() {
            return;
        }
        let stamp = self.stamp();
        let mut state = self.state.write();
        for step in steps {
            match step {
                Step::Listed { slot } => {
                    let epoch = state.partitions[origin.partition as usize].epoch;
                    state.listed(slot, epoch);
                }
                Step::Put { object, epoch, values } => {
                    let new = object.clone();
                    let old = state.put(object, origin.partition, epoch, values);
                    if old.is_some() { &self.metrics.modified } else { &self.metrics.added }.inc();
                    state.outboxes.iter().for_each(|outbox| outbox.put(&new, old.as_ref(), stamp));
                    if let Some(journal) = &self.journal {
                        let initial = !state.partitions[origin.partition as usize].synced;
                        journal.put(new, old, if initial { Delivery::Initial } else { Delivery::Live });
                    }
                }
                Step::Delete { slot, last } => self.remove(&mut state, slot, last, stamp),
            }
        }
        if let Some(position) = position {
            state.partitions[origin.partition as usize].position = Some(position);
        }
        self.publish(state);
    }

    fn remove(&self, state: &mut State, slot: u32, last: Option<Object>, stamp: u32) {
        let Some(removed) = state.remove(slot) else { return };
        self.metrics.deleted.inc();
        let last = last.unwrap_or(removed);
        state.outboxes.iter().for_each(|outbox| outbox.delete(&last, stamp));
        if let Some(journal) = &self.journal {
            journal.delete(last);
        }
    }

    fn remove_unlisted(&self, state: &mut State, partition: u16) {
        let stamp = self.stamp();
        let gone: Vec<u32> = state.unlisted(partition).collect();
        for slot in gone {
            self.remove(state, slot, None, stamp);
        }
    }

    fn note_synced(&self, state: &mut State) {
        if is_synced(state) {
            self.metrics.synced.set(1);
            state.outboxes.iter().for_each(|outbox| outbox.initial_complete());
        }
    }

    /// Lets go of the lock, then tells the subscribers.
    fn publish(&self, state: parking_lot::RwLockWriteGuard<'_, State>) {
        self.metrics.objects.set(state.len() as i64);
        self.metrics.bytes.set(state.bytes as i64);
        let state = parking_lot::RwLockWriteGuard::downgrade(state);
        state.outboxes.iter().for_each(|outbox| outbox.wake());
        self.progress.notify_waiters();
    }

    /// Samples to learn a dictionary from, if there are enough.
    pub(crate) fn samples(&self) -> Option<Vec<Vec<u8>>> {
        if !self.codec.wants_dictionary() {
            return None;
        }
        let state = self.state.read();
        if state.len() < SAMPLE_OBJECTS {
            return None;
        }
        // Spread over the store: neighbours tend to be alike.
        let stride = (state.len() / SAMPLE_OBJECTS).max(1);
        let mut room = SAMPLE_BYTES;
        let samples = state.objects().step_by(stride).filter_map(|object| self.codec.json(object.record()));
        let fitting = samples.map_while(|json| {
            room = room.checked_sub(json.len())?;
            Some(json.into_owned())
        });
        Some(fitting.collect())
    }

    /// From now on new objects are compressed; those that are there follow a few at a time.
    pub(crate) fn compress_with(&self, dictionary: Dictionary) {
        debug_assert!(self.codec.policy.compresses());
        self.codec.install(dictionary);
        let mut from = 0;
        loop {
            let _writer = self.extracts.lock();
            let some: Vec<(u32, Object)> = {
                let state = self.state.read();
                state.objects_from(from).take(64).map(|(slot, object)| (slot, object.clone())).collect()
            };
            let Some((last, _)) = some.last() else { break };
            from = last + 1;
            let packed: Vec<_> =
                some.iter().filter_map(|(slot, object)| Some((*slot, self.codec.repack(object)?))).collect();
            let mut state = self.state.write();
            packed.into_iter().for_each(|(slot, object)| state.exchange(slot, object));
            self.metrics.bytes.set(state.bytes as i64);
        }
    }
}

fn is_synced(state: &State) -> bool {
    let mut live = state.partitions.iter().filter(|partition| partition.live).peekable();
    live.peek().is_some() && live.all(|partition| partition.synced)
}

/// Whether the state that a source reports supersedes the one that the store holds.
fn supersedes(origin: Origin, said: &Header, known: &Object) -> bool {
    let held = &known.record().header;
    if same_state(said, held) {
        return false;
    }
    let outdated = same_incarnation(said, held) && origin.order.is_older(&said.version, &held.version);
    origin.overrules || !outdated
}
