//! Converted objects that are kept, and those that are being converted.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use futures_util::future::{BoxFuture, Shared};
use watchkeeper_storage::{Entry, Revision};

use super::review::Failure;

/// How many bytes of converted objects are kept, of all kinds together.
pub(super) const MOST_BYTES: usize = 128 << 20;

/// What a kept object takes besides its key and its value.
const OVERHEAD: usize = 256;

/// One state of one object in one version, as one state of its definition has it converted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Id {
    pub(super) key: Arc<str>,
    /// The revision that wrote the object.
    pub(super) modified: Revision,
    /// Which of the versions of the definition.
    pub(super) version: usize,
    /// The revision that wrote the definition.
    pub(super) definition: Revision,
    /// The epoch of the storage, in which these revisions mean something.
    pub(super) epoch: u64,
}

/// A call for several objects, whose answer is given to everybody who waits for one of them.
pub(super) type Batch = Shared<BoxFuture<'static, Result<Arc<[Arc<Entry>]>, Failure>>>;

/// An object that is being converted: the call, and which of its objects it is.
#[derive(Clone)]
pub(super) struct Pending {
    pub(super) batch: Batch,
    pub(super) index: usize,
    /// Whether nothing else is asked for in the call.
    pub(super) is_alone: bool,
}

/// Converted objects, as many as there is room for. Those that were not used lately go first.
pub(super) struct Cache {
    kept: HashMap<Id, Kept>,
    /// In the order in which they came, or were last found to be in use when room was needed.
    order: VecDeque<Id>,
    bytes: usize,
    most_bytes: usize,
    pub(super) pending: HashMap<Id, Pending>,
}

struct Kept {
    entry: Arc<Entry>,
    is_used: bool,
}

impl Cache {
    pub(super) fn new(most_bytes: usize) -> Self {
        Self { kept: HashMap::new(), order: VecDeque::new(), bytes: 0, most_bytes, pending: HashMap::new() }
    }

    /// The converted object, if it is kept.
    pub(super) fn get(&mut self, id: &Id) -> Option<Arc<Entry>> {
        let kept = self.kept.get_mut(id)?;
        kept.is_used = true;
        Some(Arc::clone(&kept.entry))
    }

    /// Keeps a converted object.
    pub(super) fn insert(&mut self, id: Id, entry: Arc<Entry>) {
        self.bytes = self.bytes.saturating_add(size(&entry));
        match self.kept.insert(id.clone(), Kept { entry, is_used: false }) {
            Some(before) => self.bytes = self.bytes.saturating_sub(size(&before.entry)),
            None => self.order.push_back(id),
        }
        while self.bytes > self.most_bytes {
            let Some(oldest) = self.order.pop_front() else { break };
            match self.kept.get_mut(&oldest) {
                Some(kept) if kept.is_used => {
                    kept.is_used = false;
                    self.order.push_back(oldest);
                }
                _ => {
                    let removed = self.kept.remove(&oldest).map_or(0, |kept| size(&kept.entry));
                    self.bytes = self.bytes.saturating_sub(removed);
                }
            }
        }
    }
}

fn size(entry: &Entry) -> usize {
    // The key is there three times: in the entry, and shared by the table and the order.
    entry.value.len().saturating_add(entry.key.len().saturating_mul(2)).saturating_add(OVERHEAD)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u64) -> Id {
        Id { key: format!("/{number:02}").into(), modified: number, version: 0, definition: 1, epoch: 0 }
    }

    fn entry(number: u64) -> Arc<Entry> {
        let (key, value) = (format!("/{number:02}").into(), vec![0; 1000].into());
        Arc::new(Entry { key, value, created: number, modified: number })
    }

    #[test]
    fn what_is_kept_is_bounded_and_what_is_used_stays_longest() {
        let one = size(&entry(1));
        let mut cache = Cache::new(10 * one);
        for number in 0..10 {
            cache.insert(id(number), entry(number));
        }
        assert!((0..10).all(|number| cache.kept.contains_key(&id(number))));
        assert!(cache.get(&id(0)).is_some());
        for number in 10..15 {
            cache.insert(id(number), entry(number));
        }
        assert!(cache.bytes <= 10 * one && cache.kept.len() == 10 && cache.order.len() == 10);
        assert!(cache.get(&id(0)).is_some(), "it was in use");
        assert!((1..6).all(|number| cache.get(&id(number)).is_none()));
        // The same again takes no more room.
        cache.insert(id(0), entry(0));
        assert_eq!((cache.kept.len(), cache.order.len(), cache.bytes), (10, 10, 10 * one));
    }
}
