//! A server that remembers every state, and what a client with a cache sees of it.

use std::collections::BTreeMap;
use std::sync::Arc;

/// The objects of one kind, and every change of them in order.
pub(super) struct Table<T> {
    now: BTreeMap<u32, Arc<T>>,
    log: Vec<(u32, Option<Arc<T>>)>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { now: BTreeMap::new(), log: Vec::new() }
    }
}

impl<T> Table<T> {
    pub(super) fn get(&self, id: u32) -> Option<&Arc<T>> {
        self.now.get(&id)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (u32, &Arc<T>)> {
        self.now.iter().map(|(id, object)| (*id, object))
    }

    /// Puts an object in its place, or with `None` removes it.
    pub(super) fn put(&mut self, id: u32, object: Option<Arc<T>>) {
        match &object {
            Some(object) => drop(self.now.insert(id, Arc::clone(object))),
            None => drop(self.now.remove(&id)),
        }
        self.log.push((id, object));
    }

    /// How many changes there were.
    pub(super) fn version(&self) -> usize {
        self.log.len()
    }
}

/// What one process knows of a kind: the changes up to a point, and beyond it its own writes, as `watchkeeper_client` has
/// it.
pub(super) struct Cached<T> {
    shown: BTreeMap<u32, Arc<T>>,
    position: usize,
    own: BTreeMap<u32, (usize, Option<Arc<T>>)>,
}

impl<T> Cached<T> {
    /// As after a list: everything there is.
    pub(super) fn of(table: &Table<T>) -> Self {
        Self { shown: table.now.clone(), position: table.version(), own: BTreeMap::new() }
    }

    /// Hears of the next change, if there is one.
    pub(super) fn deliver(&mut self, table: &Table<T>) -> bool {
        let Some((id, object)) = table.log.get(self.position) else { return false };
        match object {
            Some(object) => drop(self.shown.insert(*id, Arc::clone(object))),
            None => drop(self.shown.remove(id)),
        }
        self.position += 1;
        self.own.retain(|_, (version, _)| *version > self.position);
        true
    }

    /// Takes note of what a write has made of an object: the newest change of the table.
    pub(super) fn note(&mut self, table: &Table<T>) {
        if let Some((id, object)) = table.log.last()
            && table.version() > self.position
        {
            self.own.insert(*id, (table.version(), object.clone()));
        }
    }

    pub(super) fn all(&self) -> BTreeMap<u32, Arc<T>> {
        let mut all = self.shown.clone();
        for (id, (_, object)) in &self.own {
            match object {
                Some(object) => drop(all.insert(*id, Arc::clone(object))),
                None => drop(all.remove(id)),
            }
        }
        all
    }

    pub(super) fn get(&self, id: u32) -> Option<Arc<T>> {
        match self.own.get(&id) {
            Some((_, object)) => object.clone(),
            None => self.shown.get(&id).cloned(),
        }
    }
}
