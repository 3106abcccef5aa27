use hashbrown::HashTable;

/// Which slot a key has. Keys are in the slots only; the index holds a part of each key's hash beside the slot's
/// number, so that it can grow, and let go of a key, without looking at slots, which would be a cache miss each.
#[derive(Debug, Default)]
pub(crate) struct Index(HashTable<Entry>);

#[derive(Clone, Copy, Debug)]
struct Entry {
    hash: u32,
    slot: u32,
}

impl Index {
    #[inline]
    pub(crate) fn find(&self, hash: u32, is_key: impl Fn(u32) -> bool) -> Option<u32> {
        let found = self.0.find(spread(hash), |entry| entry.hash == hash && is_key(entry.slot));
        found.map(|entry| entry.slot)
    }

    /// Adds a slot whose key is not there yet.
    #[inline]
    pub(crate) fn insert(&mut self, hash: u32, slot: u32) {
        self.0.insert_unique(spread(hash), Entry { hash, slot }, |entry| spread(entry.hash));
    }

    #[inline]
    pub(crate) fn remove(&mut self, hash: u32, slot: u32) {
        if let Ok(entry) = self.0.find_entry(spread(hash), |entry| entry.slot == slot) {
            entry.remove();
        }
    }

    pub(crate) fn rename(&mut self, hash: u32, from: u32, to: u32) {
        if let Some(entry) = self.0.find_mut(spread(hash), |entry| entry.slot == from) {
            entry.slot = to;
        }
    }

    pub(crate) fn shrink(&mut self) {
        self.0.shrink_to(2 * self.0.len(), |entry| spread(entry.hash));
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    #[cfg(test)]
    pub(crate) fn capacity(&self) -> usize {
        self.0.capacity()
    }
}

/// The table takes its bits from both ends of a hash.
fn spread(hash: u32) -> u64 {
    u64::from(hash) << 32 | u64::from(hash)
}
