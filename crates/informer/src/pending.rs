//! What waits for one subscriber: at most one entry per key, in the order in which the keys changed first.
//!
//! An entry remembers what the subscriber knows of the key, not what has happened since; the newest state is read from
//! the store when the entry is taken. So a subscriber that is slow costs one entry per key, however much changes.

use std::collections::VecDeque;
use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};
use watchkeeper_core::{Change, Delivery, Key};

use crate::object::Object;

/// What the subscriber knows of a key that has changed.
enum Entry {
    /// Nothing: it has not seen this object yet.
    Unseen(Key),
    /// This state.
    Seen(Object),
    /// A state of an incarnation that is gone; this was its last one.
    Gone(Object),
}

impl Entry {
    fn key(&self) -> &Key {
        match self {
            Self::Unseen(key) => key,
            Self::Seen(object) | Self::Gone(object) => object.key(),
        }
    }
}

/// Up to where the entries belong to what was there when the subscriber came.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Initial {
    /// The store itself is not complete yet.
    Open,
    /// Entries before this number.
    Before(u64),
    /// All seen.
    Over,
}

pub(crate) struct Pending {
    /// Entry number `n` is at `n - first`. A hole is an entry that became moot.
    entries: VecDeque<Option<(Entry, u32)>>,
    first: u64,
    /// Numbers of the entries that are not holes, by key.
    by_key: HashTable<u64>,
    hasher: DefaultHashBuilder,
    initial: Initial,
}

/// Holes are tolerated up to this many more than there are entries.
const SPARE_HOLES: usize = 64;

impl Pending {
    pub(crate) fn new() -> Self {
        Self {
            entries: VecDeque::new(),
            first: 0,
            by_key: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            initial: Initial::Open,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.by_key.len()
    }

    /// An object was put; `old` is the state before, if there was one. Says whether this joined a waiting entry.
    pub(crate) fn put(&mut self, new: &Object, old: Option<&Object>, stamp: u32) -> bool {
        let recreated = old.is_some_and(|old| !old.is_same_incarnation(new));
        let Some(entry) = self.find(new.key()) else {
            self.push(
                match old {
                    None => Entry::Unseen(new.key().clone()),
                    Some(old) if recreated => Entry::Gone(old.clone()),
                    Some(old) => Entry::Seen(old.clone()),
                },
                stamp,
            );
            return false;
        };
        if let (Entry::Seen(_), true, Some(old)) = (&*entry, recreated, old) {
            *entry = Entry::Gone(old.clone());
        }
        true
    }

    /// An object is gone; `last` is the last state that is known of it. Says whether this joined a waiting entry.
    pub(crate) fn delete(&mut self, last: &Object, stamp: u32) -> bool {
        match self.find(last.key()) {
            None => {
                self.push(Entry::Gone(last.clone()), stamp);
                return false;
            }
            Some(Entry::Unseen(_)) => self.forget(last.key()),
            // What came after this incarnation was never seen.
            Some(Entry::Gone(gone)) if !gone.is_same_incarnation(last) => {}
            Some(entry) => *entry = Entry::Gone(last.clone()),
        }
        true
    }

    /// The object is to be shown again though it has not changed.
    pub(crate) fn show_again(&mut self, object: &Object, stamp: u32) {
        if self.find(object.key()).is_none() {
            self.push(Entry::Seen(object.clone()), stamp);
        }
    }

    /// Everything that was there when the subscriber came is among the entries now.
    pub(crate) fn initial_complete(&mut self) {
        if self.initial == Initial::Open {
            self.initial = Initial::Before(self.first + self.entries.len() as u64);
        }
    }

    /// Whether the subscriber has taken everything that was there when it came.
    pub(crate) fn initial_over(&mut self) -> bool {
        self.drop_leading_holes();
        if let Initial::Before(end) = self.initial
            && (self.entries.is_empty() || self.first >= end)
        {
            self.initial = Initial::Over;
        }
        self.initial == Initial::Over
    }

    /// Takes the oldest entry as a change, with the store's current state of its key, and the stamp it was made with.
    pub(crate) fn take(&mut self, current: impl Fn(&Key) -> Option<Object>) -> Option<(Change<Object>, u32)> {
        loop {
            self.drop_leading_holes();
            let initial = match self.initial {
                Initial::Open => true,
                Initial::Before(end) => self.first < end,
                Initial::Over => false,
            };
            let (entry, stamp) = self.pop()?;
            let now = current(entry.key());
            let delivery = if initial { Delivery::Initial } else { Delivery::Live };
            let change = |old: Option<Object>, new: Option<Object>, delivery| {
                let key = new.as_ref().or(old.as_ref()).map(|object| object.key().clone())?;
                Some((Change { key, old, new, delivery }, stamp))
            };
            return match (entry, now) {
                // Moot: it came and went. `delete` removes such entries, so this is not reached.
                (Entry::Unseen(_), None) => continue,
                (Entry::Unseen(_), now) => change(None, now, delivery),
                (Entry::Seen(old), Some(now)) if old.is_same_state(&now) => {
                    change(Some(old), Some(now), Delivery::Resync)
                }
                (Entry::Gone(old), Some(now)) if !old.is_same_incarnation(&now) => {
                    self.push_front(Entry::Unseen(now.key().clone()), stamp);
                    change(Some(old), None, Delivery::Live)
                }
                (Entry::Seen(old) | Entry::Gone(old), now) => change(Some(old), now, Delivery::Live),
            };
        }
    }

    fn hash(&self, key: &Key) -> u64 {
        self.hasher.hash_one(key)
    }

    fn find(&mut self, key: &Key) -> Option<&mut Entry> {
        let hash = self.hash(key);
        let at = *self.by_key.find(hash, |&number| entry(&self.entries, self.first, number).key() == key)?;
        self.entries.get_mut((at - self.first) as usize)?.as_mut().map(|(entry, _)| entry)
    }

    fn push(&mut self, new: Entry, stamp: u32) {
        let number = self.first + self.entries.len() as u64;
        let hash = self.hash(new.key());
        self.entries.push_back(Some((new, stamp)));
        self.index(hash, number);
    }

    fn push_front(&mut self, new: Entry, stamp: u32) {
        // An entry was just popped, so there is a number before `first`.
        self.first -= 1;
        let hash = self.hash(new.key());
        self.entries.push_front(Some((new, stamp)));
        self.index(hash, self.first);
    }

    fn index(&mut self, hash: u64, number: u64) {
        let Self { entries, first, by_key, hasher, .. } = self;
        by_key.insert_unique(hash, number, |&number| hasher.hash_one(entry(entries, *first, number).key()));
    }

    fn pop(&mut self) -> Option<(Entry, u32)> {
        let key = self.entries.front()?.as_ref()?.0.key().clone();
        self.unindex(&key);
        self.first += 1;
        self.entries.pop_front().flatten()
    }

    fn forget(&mut self, key: &Key) {
        if let Some(number) = self.unindex(key) {
            self.entries[(number - self.first) as usize] = None;
        }
        self.close_holes();
    }

    fn unindex(&mut self, key: &Key) -> Option<u64> {
        let hash = self.hash(key);
        let found = self
            .by_key
            .find_entry(hash, |&number| entry(&self.entries, self.first, number).key() == key)
            .ok()?;
        Some(found.remove().0)
    }

    fn drop_leading_holes(&mut self) {
        while matches!(self.entries.front(), Some(None)) {
            self.entries.pop_front();
            self.first += 1;
        }
        if self.entries.is_empty() && self.entries.capacity() > SPARE_HOLES {
            self.entries = VecDeque::new();
            self.by_key = HashTable::new();
        }
    }

    /// Renumbers the entries if most are holes, so that a key that comes and goes for ever costs nothing.
    fn close_holes(&mut self) {
        if self.entries.len() <= 2 * self.by_key.len() + SPARE_HOLES {
            return;
        }
        if let Initial::Before(end) = self.initial {
            let initial = end.saturating_sub(self.first) as usize;
            let kept = self.entries.iter().take(initial).flatten().count();
            self.initial = Initial::Before(self.first + kept as u64);
        }
        self.entries = std::mem::take(&mut self.entries).into_iter().flatten().map(Some).collect();
        self.by_key.clear();
        for at in 0..self.entries.len() {
            let number = self.first + at as u64;
            let hash = self.hash(entry(&self.entries, self.first, number).key());
            self.index(hash, number);
        }
    }
}

/// The entry with a number that is in the index.
fn entry(entries: &VecDeque<Option<(Entry, u32)>>, first: u64, number: u64) -> &Entry {
    match &entries[(number - first) as usize] {
        Some((entry, _)) => entry,
        None => unreachable!("a hole is not in the index"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde::de::IgnoredAny;
    use watchkeeper_core::{Document, Projection};

    use super::*;
    use crate::codec::{Codec, Policy, decode_any};
    use crate::metrics::InformerMetrics;

    type Item = Object;

    fn codec() -> Arc<Codec> {
        Arc::new(Codec::new(
            Policy::Packed,
            false,
            decode_any::<IgnoredAny>,
            None,
            0,
            Arc::new(InformerMetrics::default().informer("test")),
        ))
    }

    fn object(codec: &Arc<Codec>, name: usize, version: u64) -> Item {
        let json = format!(r#"{{"metadata":{{"name":"n{name}","uid":"u","resourceVersion":"{version}"}}}}"#);
        codec.pack(Document::read(json.as_bytes(), &Projection::default()).unwrap()).unwrap()
    }

    #[test]
    fn keys_that_come_and_go_unseen_leave_nothing_behind() {
        let codec = codec();
        let mut pending = Pending::new();
        let stays = object(&codec, 0, 1);
        pending.put(&stays, None, 0);
        for name in 1..10_000 {
            let object = object(&codec, name, 1);
            pending.put(&object, None, 0);
            pending.delete(&object, 0);
        }
        assert_eq!(pending.len(), 1);
        assert!(pending.entries.len() <= SPARE_HOLES + 3, "{} entries", pending.entries.len());
        assert_eq!(pending.take(|_| Some(stays.clone())).unwrap().0.key, *stays.key());
        assert!(pending.take(|_| None).is_none());
    }

    #[test]
    fn closing_holes_does_not_move_the_end_of_what_is_initial() {
        let codec = codec();
        let mut pending = Pending::new();
        let all: Vec<Item> = (0..1_000).map(|name| object(&codec, name, 1)).collect();
        for object in &all[..500] {
            pending.put(object, None, 0);
        }
        pending.initial_complete();
        for object in &all[500..] {
            pending.put(object, None, 0);
        }
        // Every tenth stays.
        for (_, object) in all.iter().enumerate().filter(|(at, _)| at % 10 != 0) {
            pending.delete(object, 0);
        }
        assert!(pending.entries.len() < 500);
        let current = |key: &Key| all.iter().find(|object| object.key() == key).cloned();
        let mut initial = 0;
        while let Some((change, _)) = pending.take(current) {
            assert_eq!(pending.initial_over(), initial >= 49, "after {initial}");
            initial += usize::from(change.delivery == Delivery::Initial);
        }
        assert_eq!(initial, 50);
    }

    #[test]
    fn memory_is_given_back_when_nothing_waits() {
        let codec = codec();
        let mut pending = Pending::new();
        let all: Vec<Item> = (0..2_000).map(|name| object(&codec, name, 1)).collect();
        for object in &all {
            pending.put(object, None, 0);
        }
        while pending.take(|key| all.iter().find(|object| object.key() == key).cloned()).is_some() {}
        pending.initial_over();
        assert!(pending.entries.capacity() <= SPARE_HOLES && pending.by_key.capacity() <= SPARE_HOLES);
    }
}
