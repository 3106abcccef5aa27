use std::any::Any;
use std::hash::{BuildHasher, Hash};
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use hashbrown::{DefaultHashBuilder, HashTable};
use serde::de::DeserializeOwned;
use watchkeeper_core::{Key, Uid, Version};

use crate::index::{Entries, Extract, Extractor, Index, IndexError, Slots, UserIndex};
use crate::informer::Inner;
use crate::object::{Object, Untyped};
use crate::outbox::Outbox;

/// A type that a store can hold: anything that can be decoded and shared.
pub trait Readable: DeserializeOwned + Send + Sync + 'static {}

impl<T: DeserializeOwned + Send + Sync + 'static> Readable for T {}

/// The objects of an informer: complete once the informer is synced, indexed, always readable.
///
/// A store has one writer, the informer. It writes in batches, and a reader sees all of a batch or nothing of it, in the
/// objects and in every index alike. Reads do not copy objects, do not wait for the network, and cost what they
/// return.
///
/// # What it does not promise
///
/// - It is behind the source by the time a change needs to arrive.
/// - Across objects, it is a state the source really had only while changes arrive by log; during a new snapshot, objects
///   are brought up to date one batch after the other. No object ever goes back to an older state, unless the source
///   itself did.
///
/// A store is a handle; while any handle is alive, the informer goes on.
pub struct Store<K = Untyped> {
    pub(crate) inner: Arc<Inner>,
    kind: PhantomData<fn() -> K>,
}

impl Store {
    /// This store with objects of type `K`.
    pub fn typed<K>(&self) -> Store<K> {
        Store::new(Arc::clone(&self.inner))
    }
}

impl<K> Store<K> {
    pub(crate) fn new(inner: Arc<Inner>) -> Self {
        Self { inner, kind: PhantomData }
    }

    /// This store without the type of its objects.
    pub fn untyped(&self) -> Store {
        Store::new(Arc::clone(&self.inner))
    }

    /// The object under a key.
    pub fn get(&self, key: &Key) -> Option<Object<K>> {
        self.read(|state| state.get(key).cloned()).map(Object::typed)
    }

    /// Whether there is an object under a key.
    pub fn contains(&self, key: &Key) -> bool {
        self.read(|state| state.get(key).is_some())
    }

    /// All objects, in no particular order.
    pub fn list(&self) -> Vec<Object<K>> {
        typed(self.read(|state| state.objects().cloned().collect()))
    }

    /// All objects of a namespace, in no particular order.
    pub fn in_namespace(&self, namespace: &str) -> Vec<Object<K>> {
        typed(self.read(|state| state.gather(state.namespaces.get(namespace))))
    }

    /// All objects that name this owner, in no particular order.
    pub fn owned_by(&self, owner: &Uid) -> Vec<Object<K>> {
        typed(self.read(|state| state.gather(state.owners.get(owner))))
    }

    /// The namespaces in which there is an object.
    pub fn namespaces(&self) -> Vec<String> {
        self.read(|state| state.namespaces.keys().map(|name| String::from(&**name)).collect())
    }

    /// The number of objects.
    pub fn len(&self) -> usize {
        self.read(|state| state.table.len())
    }

    /// Whether there is no object.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds an index, at any time. The function gives the values an object stands under; it is called once for each
    /// state, outside the store's lock. If it fails or panics, the object is not in the index, and that is counted.
    ///
    /// Indexing by what is in the header ([`Object::owners`], [`Object::generation`], ...) or by
    /// [`Object::metadata`] is cheap; [`Object::get`] decodes every object as it arrives.
    ///
    /// ```no_run
    /// # use watchkeeper_informer::{Informer, Object};
    /// # #[derive(serde::Deserialize)] struct Route { backends: Vec<String> }
    /// # fn example(routes: Informer<Route>) {
    /// let by_backend = routes.store().index("backend", |route: &Object<Route>| Ok(route.get()?.backends.clone()));
    /// for route in by_backend.get("cart") {
    ///     println!("{} sends to cart", route.key());
    /// }
    /// # }
    /// ```
    pub fn index<V, I, F>(&self, name: &str, function: F) -> Index<K, V>
    where
        V: Hash + Eq + Clone + Send + Sync + 'static,
        I: IntoIterator<Item = V>,
        F: Fn(&Object<K>) -> Result<I, IndexError> + Send + Sync + 'static,
        K: 'static,
    {
        let function = move |object: &Object| {
            function(&object.clone().typed()).map(|values| values.into_iter().collect::<Vec<V>>())
        };
        let at = self.inner.shared.add_index(name, Arc::new(Extractor::new(function)));
        Index { store: self.clone(), at, value: PhantomData }
    }

    /// The version each of the informer's sources has reached, in the order in which they were added; `None` before
    /// the first snapshot.
    pub fn positions(&self) -> Vec<Option<Version>> {
        self.read(|state| {
            state
                .partitions
                .iter()
                .filter(|partition| partition.live)
                .map(|partition| partition.position.clone())
                .collect()
        })
    }

    /// Waits until something is true of this store: asked now, and again after every step of the writer (a batch, a new
    /// position). The answer is `false` if the informer was stopped first. Cancel-safe.
    ///
    /// ```no_run
    /// # use watchkeeper_core::Key;
    /// # use watchkeeper_informer::Informer;
    /// # async fn example(routes: Informer) {
    /// let key = Key::new(Some("shop"), "cart");
    /// routes.store().until(|store| store.contains(&key)).await;
    /// # }
    /// ```
    pub async fn until(&self, mut is_so: impl FnMut(&Self) -> bool) -> bool {
        let shared = &self.inner.shared;
        loop {
            let mut step = std::pin::pin!(shared.progress.notified());
            // Listens before it looks, so that no step falls in between.
            step.as_mut().enable();
            if is_so(self) {
                return true;
            }
            if shared.closed.load(Ordering::Acquire) {
                return false;
            }
            step.await;
        }
    }

    pub(crate) fn read<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.inner.shared.state.read())
    }
}

impl<K> Clone for Store<K> {
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.inner))
    }
}

fn typed<K>(objects: Vec<Object>) -> Vec<Object<K>> {
    objects.into_iter().map(Object::typed).collect()
}

/// Everything that changes in one step: objects, indexes, and what waits for whom.
pub(crate) struct State {
    /// Slots by key. Slots hold the objects, so that indexes need four bytes for each entry.
    table: HashTable<HashedSlot>,
    hasher: DefaultHashBuilder,
    slots: Vec<Slot>,
    free: Vec<u32>,
    namespaces: Entries<Box<str>>,
    owners: Entries<Uid>,
    indexes: Vec<Box<dyn UserIndex>>,
    pub(crate) partitions: Vec<Partition>,
    pub(crate) outboxes: Vec<Arc<Outbox>>,
    pub(crate) bytes: usize,
}

/// The slot of a key. The hash is kept, so that growing the table need not look at every key again.
#[derive(Clone, Copy)]
struct HashedSlot {
    hash: u32,
    slot: u32,
}

struct Slot {
    object: Option<Object>,
    /// The snapshot that listed it last.
    epoch: u32,
    /// The partition it belongs to.
    partition: u16,
}

/// The objects of one source in a store.
#[derive(Default)]
pub(crate) struct Partition {
    pub(crate) live: bool,
    pub(crate) synced: bool,
    pub(crate) position: Option<Version>,
    /// The number of the snapshot that is being taken, or was taken last.
    pub(crate) epoch: u32,
}

impl State {
    pub(crate) fn new() -> Self {
        Self {
            table: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            slots: Vec::new(),
            free: Vec::new(),
            namespaces: Entries::default(),
            owners: Entries::default(),
            indexes: Vec::new(),
            partitions: Vec::new(),
            outboxes: Vec::new(),
            bytes: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    pub(crate) fn get(&self, key: &Key) -> Option<&Object> {
        self.object(self.slot(key)?)
    }

    /// The object under a key and the partition it belongs to.
    pub(crate) fn find(&self, key: &Key) -> Option<(u32, &Object, u16)> {
        let slot = self.slot(key)?;
        Some((slot, self.object(slot)?, self.slots[slot as usize].partition))
    }

    pub(crate) fn object(&self, slot: u32) -> Option<&Object> {
        self.slots.get(slot as usize)?.object.as_ref()
    }

    pub(crate) fn objects(&self) -> impl Iterator<Item = &Object> {
        self.slots.iter().filter_map(|slot| slot.object.as_ref())
    }

    /// Slots and objects, from a slot on: for walks that let go of the lock in between.
    pub(crate) fn objects_from(&self, from: u32) -> impl Iterator<Item = (u32, &Object)> {
        let slots = self.slots.get(from as usize..).unwrap_or_default();
        (from..).zip(slots).filter_map(|(at, slot)| Some((at, slot.object.as_ref()?)))
    }

    /// Slots of a partition that its newest snapshot has not listed.
    pub(crate) fn unlisted(&self, partition: u16) -> impl Iterator<Item = u32> + '_ {
        let epoch = self.partitions[partition as usize].epoch;
        (0..)
            .zip(&self.slots)
            .filter(move |(_, slot)| slot.partition == partition && slot.epoch != epoch)
            .filter_map(|(at, slot): (u32, &Slot)| slot.object.as_ref().map(|_| at))
    }

    pub(crate) fn count(&self, partition: u16) -> usize {
        self.slots.iter().filter(|slot| slot.partition == partition && slot.object.is_some()).count()
    }

    pub(crate) fn index<V: 'static>(&self, at: usize) -> Option<&Entries<V>> {
        self.indexes.get(at)?.as_any().downcast_ref()
    }

    pub(crate) fn add_index(&mut self, index: Box<dyn UserIndex>) -> usize {
        self.indexes.push(index);
        self.indexes.len() - 1
    }

    pub(crate) fn listed(&mut self, slot: u32, epoch: u32) {
        self.slots[slot as usize].epoch = epoch;
    }

    /// Puts an object, with its values for each user index, and gives the one that was there.
    pub(crate) fn put(
        &mut self,
        object: Object,
        partition: u16,
        epoch: u32,
        values: Vec<Option<Box<dyn Any + Send>>>,
    ) -> Option<Object> {
        self.bytes += object.record().body.bytes();
        let (slot, old) = match self.slot(object.key()) {
            Some(slot) => (slot, self.slots[slot as usize].object.take()),
            None => (self.free_slot(), None),
        };
        if let Some(old) = &old {
            self.bytes -= old.record().body.bytes();
            self.unindex_owners(slot, old, Some(&object));
        } else {
            if let Some(namespace) = object.key().namespace() {
                self.namespaces.insert(namespace, slot, |name| name.into());
            }
            let hash = self.hash(object.key());
            self.table.insert_unique(spread(hash), HashedSlot { hash, slot }, |place| spread(place.hash));
        }
        for owner in object.owners() {
            self.owners.insert(owner, slot, Uid::clone);
        }
        for (index, values) in self.indexes.iter_mut().zip(values) {
            index.set(slot, values);
        }
        self.slots[slot as usize] = Slot { object: Some(object), epoch, partition };
        old
    }

    /// Exchanges an object for another form of the same state.
    pub(crate) fn exchange(&mut self, slot: u32, object: Object) {
        if let Some(old) = self.slots[slot as usize].object.as_mut() {
            self.bytes = self.bytes + object.record().body.bytes() - old.record().body.bytes();
            *old = object;
        }
    }

    pub(crate) fn remove(&mut self, slot: u32) -> Option<Object> {
        let object = self.slots[slot as usize].object.take()?;
        let hash = self.hash(object.key());
        if let Ok(entry) = self.table.find_entry(spread(hash), |place| place.slot == slot) {
            entry.remove();
        }
        self.bytes -= object.record().body.bytes();
        if let Some(namespace) = object.key().namespace() {
            self.namespaces.remove(namespace, slot);
        }
        self.unindex_owners(slot, &object, None);
        for index in &mut self.indexes {
            index.set(slot, None);
        }
        self.free.push(slot);
        Some(object)
    }

    fn unindex_owners(&mut self, slot: u32, old: &Object, new: Option<&Object>) {
        let kept = new.map_or(&[][..], Object::owners);
        for owner in old.owners().iter().filter(|owner| !kept.contains(owner)) {
            self.owners.remove(owner, slot);
        }
    }

    fn gather(&self, slots: Option<&Slots>) -> Vec<Object> {
        slots.map_or_else(Vec::new, |slots| {
            slots.iter().filter_map(|slot| self.object(slot)).cloned().collect()
        })
    }

    fn slot(&self, key: &Key) -> Option<u32> {
        let hash = self.hash(key);
        let is_it = |place: &HashedSlot| {
            place.hash == hash && self.object(place.slot).is_some_and(|object| object.key() == key)
        };
        self.table.find(spread(hash), is_it).map(|place| place.slot)
    }

    fn hash(&self, key: &Key) -> u32 {
        self.hasher.hash_one(key) as u32
    }

    fn free_slot(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { object: None, epoch: 0, partition: 0 });
            (self.slots.len() - 1) as u32
        })
    }
}

/// A hash as the table wants it: with something in the upper bits, too.
fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// A user's index function, with the name it is reported under.
pub(crate) struct NamedExtract {
    pub(crate) name: String,
    pub(crate) extract: Arc<dyn Extract>,
}
