use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::pack::{Pack, Place};
use crate::{Event, Limits, Revision, Window};

/// The events of the recent past, in order: those of some time ago in packs, then the others. Pure.
pub(crate) struct History {
    /// The oldest revision that can be asked for: all events after it are here.
    oldest: Revision,
    /// None is without events after `oldest`; the first may have others, too.
    packs: VecDeque<Arc<Pack>>,
    events: VecDeque<Kept>,
    /// What the packs, and the entries that were replaced by other events, amount to; entries that were not are in the tree anyway.
    bytes: usize,
}

struct Kept {
    event: Arc<Event>,
    at: Duration,
}

/// What nobody can ask for any more, to be freed where nobody waits.
#[derive(Default)]
pub(crate) struct Forgotten {
    events: Vec<Arc<Event>>,
    packs: Vec<Arc<Pack>>,
}

impl History {
    /// Nothing before this revision is known.
    pub(crate) fn since(oldest: Revision) -> Self {
        Self { oldest, packs: VecDeque::new(), events: VecDeque::new(), bytes: 0 }
    }

    pub(crate) fn oldest(&self) -> Revision {
        self.oldest
    }

    pub(crate) fn len(&self) -> usize {
        self.packed() + self.events.len()
    }

    /// How many events are packed.
    pub(crate) fn packed(&self) -> usize {
        self.packs.iter().map(|pack| pack.after(self.oldest)).sum()
    }

    pub(crate) fn push(&mut self, event: Arc<Event>, at: Duration) {
        self.bytes += replaced_bytes(&event);
        self.events.push_back(Kept { event, at });
    }

    /// The packs with events after a revision, which must not be older than the oldest. What [`after`](Self::after) gives comes after these.
    pub(crate) fn packs_after(&self, revision: Revision) -> impl Iterator<Item = &Arc<Pack>> {
        let start = self.packs.partition_point(|pack| pack.last() <= revision);
        self.packs.range(start..)
    }

    /// The events after a revision, which must not be older than the oldest, but for those that are packed.
    pub(crate) fn after(&self, revision: Revision) -> impl Iterator<Item = &Arc<Event>> {
        let start = self.events.partition_point(|kept| kept.event.revision <= revision);
        self.events.range(start..).map(|kept| &kept.event)
    }

    /// The newest event.
    #[cfg(feature = "etcd")]
    pub(crate) fn last(&self) -> Option<&Arc<Event>> {
        self.events.back().map(|kept| &kept.event)
    }

    /// The next events to be packed: whole revisions that are old and enough for a pack. The newest event is not among them.
    pub(crate) fn to_pack(&self, limits: &Limits, now: Duration) -> Option<Vec<(Arc<Event>, Duration)>> {
        let newest = self.events.back()?.event.revision;
        let is_old =
            |kept: &Kept| now.saturating_sub(kept.at) >= limits.pack_after && kept.event.revision < newest;
        let (mut count, mut bytes) = (0, 0);
        let mut events = self.events.iter().peekable();
        while let Some(kept) = events.next().filter(|kept| is_old(kept)) {
            (count, bytes) = (count + 1, bytes + plain_bytes(&kept.event));
            let ends = events.peek().is_some_and(|next| next.event.revision > kept.event.revision);
            if ends && bytes >= limits.pack_bytes {
                let packed = self.events.range(..count);
                return Some(packed.map(|kept| (Arc::clone(&kept.event), kept.at)).collect());
            }
        }
        None
    }

    /// Has a pack stand for its events. If some of these were forgotten meanwhile, so they stay; if this is another history by now, nothing happens.
    pub(crate) fn replace(&mut self, events: &[(Arc<Event>, Duration)], pack: Pack) -> Forgotten {
        let mut replaced = Forgotten::default();
        let forgotten = events.iter().take_while(|(event, _)| event.revision <= self.oldest).count();
        let left = &events[forgotten..];
        let same = left.iter().zip(&self.events).filter(|((event, _), kept)| Arc::ptr_eq(event, &kept.event));
        if left.is_empty() || same.count() < left.len() {
            return replaced;
        }
        replaced.events.extend(self.events.drain(..left.len()).map(|kept| kept.event));
        self.bytes -= replaced.events.iter().map(|event| replaced_bytes(event)).sum::<usize>();
        self.bytes += pack.bytes();
        self.packs.push_back(Arc::new(pack));
        replaced
    }

    /// Forgets what the window does not hold.
    pub(crate) fn trim(&mut self, window: &Window, current: Revision, now: Duration) -> Forgotten {
        let oldest = current.saturating_sub(window.revisions);
        let mut forgotten = Forgotten::default();
        while let Some(Place { revision, at }) = self.first() {
            let kept =
                revision > oldest && now.saturating_sub(at) <= window.age && self.bytes <= window.bytes;
            if kept {
                break;
            }
            self.forget(revision, &mut forgotten);
        }
        forgotten
    }

    /// Forgets everything up to a revision.
    pub(crate) fn compact(&mut self, to: Revision) -> Forgotten {
        let mut forgotten = Forgotten::default();
        self.forget(to, &mut forgotten);
        forgotten
    }

    /// Where the first event is.
    fn first(&self) -> Option<Place> {
        let packed = self.packs.front().and_then(|pack| pack.first_after(self.oldest));
        packed
            .or_else(|| self.events.front().map(|kept| Place { revision: kept.event.revision, at: kept.at }))
    }

    fn forget(&mut self, to: Revision, forgotten: &mut Forgotten) {
        while let Some(pack) = self.packs.pop_front_if(|pack| pack.last() <= to) {
            self.bytes -= pack.bytes();
            forgotten.packs.push(pack);
        }
        while let Some(Kept { event, .. }) = self.events.pop_front_if(|kept| kept.event.revision <= to) {
            self.bytes -= replaced_bytes(&event);
            forgotten.events.push(event);
        }
        self.oldest = self.oldest.max(to);
    }
}

fn replaced_bytes(event: &Event) -> usize {
    event.previous().map_or(0, |entry| entry.key.len() + entry.value.len())
}

/// What an event adds to a pack, as long as it is not compressed.
fn plain_bytes(event: &Event) -> usize {
    event.entry().or(event.previous()).map_or(0, |entry| entry.key.len() + entry.value.len())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::{Change, Entry};

    fn event(revision: Revision, bytes: usize) -> Arc<Event> {
        let entry = Entry {
            key: "/a".into(),
            value: Bytes::from(vec![0; bytes]),
            created: 1,
            modified: revision - 1,
        };
        Arc::new(Event { revision, change: Change::Deleted(Arc::new(entry)) })
    }

    fn window() -> Window {
        Window { revisions: 10, age: Duration::from_secs(60), bytes: 1100 }
    }

    fn filled(revisions: std::ops::RangeInclusive<Revision>, bytes: usize) -> History {
        let mut history = History::since(revisions.start() - 1);
        for revision in revisions {
            history.push(event(revision, bytes), Duration::from_secs(revision));
            history.push(event(revision, bytes), Duration::from_secs(revision));
        }
        history
    }

    #[test]
    fn whole_revisions_are_forgotten_by_count() {
        let mut history = filled(1..=15, 0);
        assert_eq!(history.trim(&window(), 15, Duration::ZERO).events.len(), 10);
        assert_eq!(history.oldest(), 5);
        assert_eq!(history.after(5).next().unwrap().revision, 6);
        assert_eq!(history.after(14).count(), 2);
    }

    #[test]
    fn whole_revisions_are_forgotten_by_age() {
        let mut history = filled(1..=5, 0);
        history.trim(&window(), 5, Duration::from_secs(62));
        assert_eq!(history.oldest(), 1);
        history.trim(&window(), 5, Duration::from_secs(1000));
        assert_eq!((history.oldest(), history.len()), (5, 0));
    }

    #[test]
    fn whole_revisions_are_forgotten_by_size() {
        let mut history = filled(1..=5, 150);
        // Half of the second revision would be enough.
        history.trim(&window(), 5, Duration::ZERO);
        assert_eq!((history.oldest(), history.len()), (2, 6));
    }

    /// What events after a revision there are, packed or not.
    fn told(history: &History, after: Revision) -> Vec<Revision> {
        let packed = history.packs_after(after).flat_map(|pack| pack.events().unwrap());
        let revisions = packed.map(|event| event.revision).filter(|revision| *revision > after);
        revisions.chain(history.after(after).map(|event| event.revision)).collect()
    }

    fn pack(history: &mut History, pack_after: u64, now: u64) -> bool {
        let limits =
            Limits { pack_after: Duration::from_secs(pack_after), pack_bytes: 400, ..Limits::default() };
        let Some(old) = history.to_pack(&limits, Duration::from_secs(now)) else { return false };
        let pack = Pack::of(&old).unwrap();
        !history.replace(&old, pack).events.is_empty()
    }

    #[test]
    fn whole_revisions_that_are_old_and_enough_are_packed_but_the_newest() {
        let mut history = filled(1..=5, 150);
        assert!(!pack(&mut history, 2, 3), "one old revision is not enough");
        assert!(pack(&mut history, 2, 4));
        assert_eq!((history.packs[0].last(), history.events.len(), history.len()), (2, 6, 10));
        assert!(pack(&mut history, 0, 9));
        assert_eq!((history.packs[1].last(), history.events.len(), history.len()), (4, 2, 10));
        assert!(!pack(&mut history, 0, 9));
        for after in 0..=5 {
            let wanted: Vec<_> = (after + 1..=5).flat_map(|revision| [revision, revision]).collect();
            assert_eq!(told(&history, after), wanted);
        }
    }

    #[test]
    fn what_is_packed_is_forgotten_as_what_is_not() {
        let mut history = filled(1..=8, 150);
        while pack(&mut history, 0, 9) {}
        assert_eq!(history.packs.len(), 3);
        history.compact(3);
        assert_eq!((history.oldest(), history.packs.len(), history.len()), (3, 2, 10));
        history.trim(&Window { bytes: usize::MAX, ..window() }, 14, Duration::ZERO);
        assert_eq!((history.oldest(), history.packs.len(), history.len()), (4, 1, 8));
        history.trim(&Window { bytes: usize::MAX, ..window() }, 14, Duration::from_secs(65));
        assert_eq!((history.oldest(), told(&history, 4)), (4, vec![5, 5, 6, 6, 7, 7, 8, 8]));
        history.trim(&Window { bytes: usize::MAX, ..window() }, 14, Duration::from_secs(66));
        assert_eq!((history.oldest(), told(&history, 5)), (5, vec![6, 6, 7, 7, 8, 8]));
        history.trim(&Window { bytes: 0, ..window() }, 14, Duration::ZERO);
        assert_eq!((history.oldest(), history.len(), history.bytes), (8, 0, 0));
    }

    #[test]
    fn what_was_forgotten_while_it_was_packed_stays_forgotten() {
        let limits = Limits { pack_after: Duration::ZERO, pack_bytes: 400, ..Limits::default() };
        let mut history = filled(1..=5, 150);
        let old = history.to_pack(&limits, Duration::from_secs(9)).unwrap();
        history.compact(1);
        assert_eq!(history.replace(&old, Pack::of(&old).unwrap()).events.len(), 2);
        assert_eq!((history.oldest(), history.len(), told(&history, 1).len()), (1, 8, 8));

        let old = history.to_pack(&limits, Duration::from_secs(9)).unwrap();
        history.compact(4);
        assert_eq!(history.replace(&old, Pack::of(&old).unwrap()).events.len(), 0);
        assert_eq!((history.oldest(), told(&history, 4)), (4, vec![5, 5]));

        let mut other = filled(1..=5, 150);
        assert_eq!(other.replace(&old, Pack::of(&old).unwrap()).events.len(), 0);
        assert_eq!((other.packs.len(), other.len()), (0, 10));
    }

    #[test]
    fn compaction_never_brings_the_past_back() {
        let mut history = filled(1..=5, 0);
        history.compact(4);
        history.compact(2);
        assert_eq!((history.oldest(), history.len()), (4, 2));
    }
}
