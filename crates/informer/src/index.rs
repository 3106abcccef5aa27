use std::any::Any;
use std::borrow::Borrow;
use std::collections::BTreeSet;
use std::hash::Hash;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};

use hashbrown::HashMap;

use crate::object::Object;
use crate::store::Store;

/// A way into a store by a value of the user's choice, kept up to date with every change.
///
/// The index and the store change in one step: what one shows, the other shows. A lookup costs what it returns. An
/// object may stand under any number of values. Made by [`Store::index`].
pub struct Index<K, V> {
    pub(crate) store: Store<K>,
    pub(crate) at: usize,
    pub(crate) value: PhantomData<fn() -> V>,
}

/// The error of an index function: any error. The object is then not in the index.
pub type IndexError = Box<dyn std::error::Error + Send + Sync>;

impl<K, V: Hash + Eq + Send + Sync + 'static> Index<K, V> {
    /// The objects under a value, in no particular order.
    pub fn get<Q: Hash + Eq + ?Sized>(&self, value: &Q) -> Vec<Object<K>>
    where
        V: Borrow<Q>,
    {
        self.store.read(|state| {
            let slots = state.index::<V>(self.at).and_then(|entries| entries.get(value));
            slots.map_or_else(Vec::new, |slots| {
                slots.iter().filter_map(|slot| state.object(slot)).cloned().map(Object::typed).collect()
            })
        })
    }

    /// The number of objects under a value.
    pub fn count<Q: Hash + Eq + ?Sized>(&self, value: &Q) -> usize
    where
        V: Borrow<Q>,
    {
        self.store.read(|state| {
            state.index::<V>(self.at).and_then(|entries| entries.get(value)).map_or(0, Slots::len)
        })
    }

    /// All values under which there is at least one object.
    pub fn values(&self) -> Vec<V>
    where
        V: Clone,
    {
        self.store.read(|state| state.index::<V>(self.at).map(Entries::values).unwrap_or_default())
    }
}

impl<K, V> Clone for Index<K, V> {
    fn clone(&self) -> Self {
        Self { store: self.store.clone(), at: self.at, value: PhantomData }
    }
}

/// A set of slot numbers; most sets of most indexes have one element.
#[derive(Debug)]
pub(crate) enum Slots {
    One(u32),
    Many(BTreeSet<u32>),
}

impl Slots {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Many(slots) => slots.len(),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let (one, many) = match self {
            Self::One(slot) => (Some(*slot), None),
            Self::Many(slots) => (None, Some(slots)),
        };
        one.into_iter().chain(many.into_iter().flatten().copied())
    }

    fn insert(&mut self, slot: u32) {
        match self {
            Self::One(one) if *one == slot => {}
            Self::One(one) => *self = Self::Many(BTreeSet::from([*one, slot])),
            Self::Many(slots) => {
                slots.insert(slot);
            }
        }
    }

    /// Says whether the set is empty now.
    fn remove(&mut self, slot: u32) -> bool {
        match self {
            Self::One(one) => *one == slot,
            Self::Many(slots) => {
                slots.remove(&slot);
                slots.is_empty()
            }
        }
    }
}

/// Values and the slots under them. Empty sets are removed.
#[derive(Debug)]
pub(crate) struct Entries<V> {
    map: HashMap<V, Slots>,
}

impl<V> Default for Entries<V> {
    fn default() -> Self {
        Self { map: HashMap::new() }
    }
}

impl<V: Hash + Eq> Entries<V> {
    pub(crate) fn get<Q: Hash + Eq + ?Sized>(&self, value: &Q) -> Option<&Slots>
    where
        V: Borrow<Q>,
    {
        self.map.get(value)
    }

    fn values(&self) -> Vec<V>
    where
        V: Clone,
    {
        self.map.keys().cloned().collect()
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &V> {
        self.map.keys()
    }

    /// Adds a slot under a value; the owned value is only made if it is new.
    pub(crate) fn insert<Q: Hash + Eq + ?Sized>(&mut self, value: &Q, slot: u32, own: impl FnOnce(&Q) -> V)
    where
        V: Borrow<Q>,
    {
        match self.map.get_mut(value) {
            Some(slots) => slots.insert(slot),
            None => drop(self.map.insert(own(value), Slots::One(slot))),
        }
    }

    pub(crate) fn remove<Q: Hash + Eq + ?Sized>(&mut self, value: &Q, slot: u32)
    where
        V: Borrow<Q>,
    {
        if self.map.get_mut(value).is_some_and(|slots| slots.remove(slot)) {
            self.map.remove(value);
        }
    }
}

/// Computes the values of an object for one index. Runs outside the store's lock: it is the user's code.
pub(crate) trait Extract: Send + Sync {
    /// The values, for [`UserIndex::set`] of the same index; or why there are none.
    fn extract(&self, object: &Object) -> Result<Box<dyn Any + Send>, String>;
    /// An empty index for such values.
    fn empty(&self) -> Box<dyn UserIndex>;
}

/// A user's index, its value type erased.
pub(crate) trait UserIndex: Any + Send + Sync {
    /// Replaces the values of a slot; `None` removes it.
    fn set(&mut self, slot: u32, values: Option<Box<dyn Any + Send>>);
    fn as_any(&self) -> &dyn Any;
}

pub(crate) struct Extractor<F, V> {
    function: F,
    value: PhantomData<fn() -> V>,
}

impl<F, V> Extractor<F, V> {
    pub(crate) fn new(function: F) -> Self {
        Self { function, value: PhantomData }
    }
}

impl<F, V> Extract for Extractor<F, V>
where
    F: Fn(&Object) -> Result<Vec<V>, IndexError> + Send + Sync,
    V: Hash + Eq + Clone + Send + Sync + 'static,
{
    fn extract(&self, object: &Object) -> Result<Box<dyn Any + Send>, String> {
        match catch_unwind(AssertUnwindSafe(|| (self.function)(object))) {
            Ok(Ok(values)) => Ok(Box::new(values)),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("the index function panicked".to_owned()),
        }
    }

    fn empty(&self) -> Box<dyn UserIndex> {
        Box::new(Typed::<V> { entries: Entries::default(), by_slot: HashMap::new() })
    }
}

struct Typed<V> {
    entries: Entries<V>,
    /// What each slot stands under, so that an old state need not be asked again.
    by_slot: HashMap<u32, Vec<V>>,
}

impl<V: Hash + Eq + Clone + Send + Sync + 'static> UserIndex for Typed<V> {
    fn set(&mut self, slot: u32, values: Option<Box<dyn Any + Send>>) {
        for value in self.by_slot.remove(&slot).into_iter().flatten() {
            self.entries.remove(&value, slot);
        }
        // Values come from the extractor that made this index, so the types agree.
        let Some(values) = values.and_then(|values| values.downcast::<Vec<V>>().ok()) else {
            return;
        };
        for value in values.iter() {
            self.entries.insert(value, slot, V::clone);
        }
        if !values.is_empty() {
            self.by_slot.insert(slot, *values);
        }
    }

    fn as_any(&self) -> &dyn Any {
        &self.entries
    }
}
