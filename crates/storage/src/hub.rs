use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;
use std::task::Waker;

use parking_lot::Mutex;

use crate::{Event, Revision};

/// Who wants to know of which keys.
///
/// Watchers are indexed by the prefix they watch. For the key of an event, the prefixes that it begins with are found
/// by walking down the order of prefixes, each step a search: so many steps as there are such prefixes, plus at most
/// one for each place where the order of prefixes branches off the key. How many watchers there are does not
/// matter. The other design, a shared log that every watcher reads with a cursor, lets each of ten thousand watchers
/// step over the events of all others.
#[derive(Default)]
pub(crate) struct Hub {
    prefixes: BTreeMap<Box<[u8]>, BTreeMap<u64, Arc<Mailbox>>>,
    next: u64,
    watchers: usize,
}

/// What waits for one watcher: bounded, and then only a note of where it has to read on.
pub(crate) struct Mailbox {
    pub(crate) inner: Mutex<Inner>,
    capacity: usize,
}

#[derive(Default)]
pub(crate) struct Inner {
    pub(crate) events: VecDeque<Arc<Event>>,
    /// The first revision that did not fit. Nothing from there on is in `events`.
    pub(crate) missed: Option<Revision>,
    pub(crate) closed: bool,
    /// What comes next cannot be told any more.
    pub(crate) lost: bool,
    pub(crate) waker: Option<Waker>,
}

impl Mailbox {
    /// Closed until its watcher has read everything up to the present.
    pub(crate) fn new(capacity: usize, after: Revision) -> Self {
        let inner = Inner { missed: Some(after + 1), ..Inner::default() };
        Self { inner: Mutex::new(inner), capacity: capacity.max(1) }
    }

    /// A revision is put in as a whole or not at all, so that reading on from a revision repeats nothing. Nothing comes after what was lost: who was told of
    /// it would believe to have been told of everything before.
    fn push(&self, event: &Arc<Event>) -> Option<Waker> {
        let mut inner = self.inner.lock();
        if inner.missed.is_some() || inner.lost {
            return None;
        }
        let continued = inner.events.back().is_some_and(|last| last.revision == event.revision);
        if inner.events.len() >= self.capacity && !continued {
            inner.missed = Some(event.revision);
        } else {
            inner.events.push_back(Arc::clone(event));
        }
        inner.waker.take()
    }
}

impl Hub {
    pub(crate) fn watchers(&self) -> usize {
        self.watchers
    }

    pub(crate) fn add(&mut self, prefix: &[u8], mailbox: Arc<Mailbox>) -> u64 {
        self.next += 1;
        self.watchers += 1;
        let watchers = self.prefixes.entry(prefix.into()).or_default();
        watchers.insert(self.next, mailbox);
        self.next
    }

    pub(crate) fn remove(&mut self, prefix: &[u8], id: u64) {
        let Some(watchers) = self.prefixes.get_mut(prefix) else {
            return;
        };
        self.watchers -= usize::from(watchers.remove(&id).is_some());
        if watchers.is_empty() {
            self.prefixes.remove(prefix);
        }
    }

    /// Tells those who are interested. Wakers are handed out, to be woken when no lock is held.
    pub(crate) fn tell(&self, event: &Arc<Event>, wakers: &mut Vec<Waker>) {
        let key = event.key().as_bytes();
        let mut bound = Bound::Included(key);
        let below = |bound| self.prefixes.range::<[u8], _>((Bound::Unbounded, bound)).next_back();
        while let Some((prefix, watchers)) = below(bound) {
            let common = key.iter().zip(prefix.iter()).take_while(|(a, b)| a == b).count();
            if common == prefix.len() {
                wakers.extend(watchers.values().filter_map(|mailbox| mailbox.push(event)));
                bound = Bound::Excluded(&key[..common]);
            } else {
                bound = Bound::Included(&key[..common]);
            }
        }
    }

    /// Tells everybody that they have missed something.
    #[cfg(feature = "etcd")]
    pub(crate) fn lose(&self, wakers: &mut Vec<Waker>) {
        for mailbox in self.prefixes.values().flat_map(BTreeMap::values) {
            let mut inner = mailbox.inner.lock();
            inner.lost = true;
            wakers.extend(inner.waker.take());
        }
    }

    /// Tells everybody that nothing more will come.
    pub(crate) fn close(&self, wakers: &mut Vec<Waker>) {
        for mailbox in self.prefixes.values().flat_map(BTreeMap::values) {
            let mut inner = mailbox.inner.lock();
            inner.closed = true;
            wakers.extend(inner.waker.take());
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use proptest::prelude::*;

    use super::*;
    use crate::{Change, Entry};

    fn event(key: &str, revision: Revision) -> Arc<Event> {
        let entry = Entry { key: key.into(), value: Bytes::new(), created: revision, modified: revision };
        Arc::new(Event { revision, change: Change::Created(Arc::new(entry)) })
    }

    fn open(capacity: usize) -> Mailbox {
        let mailbox = Mailbox::new(capacity, 0);
        mailbox.inner.lock().missed = None;
        mailbox
    }

    proptest! {
        #[test]
        fn exactly_the_watchers_of_prefixes_of_the_key_are_told(
            prefixes in proptest::collection::vec("[a-c/]{0,5}", 0..30),
            key in "[a-c/]{1,6}",
        ) {
            let mut hub = Hub::default();
            let mailboxes: Vec<_> = prefixes
                .iter()
                .map(|prefix| {
                    let mailbox = Arc::new(open(10));
                    hub.add(prefix.as_bytes(), Arc::clone(&mailbox));
                    mailbox
                })
                .collect();
            hub.tell(&event(&key, 1), &mut Vec::new());
            for (prefix, mailbox) in prefixes.iter().zip(mailboxes) {
                let told = mailbox.inner.lock().events.len();
                prop_assert_eq!(told, usize::from(key.starts_with(prefix)), "{} of {}", prefix, key);
            }
        }
    }

    #[cfg(feature = "etcd")]
    #[test]
    fn nothing_is_told_after_something_was_lost() {
        let mut hub = Hub::default();
        let mailbox = Arc::new(open(10));
        hub.add(b"/", Arc::clone(&mailbox));
        hub.tell(&event("/a", 1), &mut Vec::new());
        hub.lose(&mut Vec::new());
        hub.tell(&event("/a", 9), &mut Vec::new());
        let inner = mailbox.inner.lock();
        let kept: Vec<_> = inner.events.iter().map(|event| event.revision).collect();
        assert_eq!((kept, inner.lost), (vec![1], true));
    }

    #[test]
    fn a_full_mailbox_keeps_whole_revisions_and_the_place_to_read_on() {
        let mailbox = open(2);
        for (key, revision) in [("/a", 1), ("/b", 2), ("/c", 2), ("/d", 3), ("/e", 3), ("/f", 4)] {
            mailbox.push(&event(key, revision));
        }
        let inner = mailbox.inner.lock();
        let kept: Vec<_> = inner.events.iter().map(|event| event.revision).collect();
        assert_eq!((kept, inner.missed), (vec![1, 2, 2], Some(3)));
    }
}
