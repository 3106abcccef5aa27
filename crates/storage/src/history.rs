use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::{Event, Revision, Window};

/// The events of the recent past, in order. Pure.
pub(crate) struct History {
    /// The oldest revision that can be asked for: all events after it are here.
    oldest: Revision,
    events: VecDeque<Kept>,
    /// What the entries that were replaced amount to; those that were not are in the tree anyway.
    bytes: usize,
}

struct Kept {
    event: Arc<Event>,
    at: Duration,
}

impl History {
    /// Nothing before this revision is known.
    pub(crate) fn since(oldest: Revision) -> Self {
        Self { oldest, events: VecDeque::new(), bytes: 0 }
    }

    pub(crate) fn oldest(&self) -> Revision {
        self.oldest
    }

    pub(crate) fn len(&self) -> usize {
        self.events.len()
    }

    pub(crate) fn push(&mut self, event: Arc<Event>, at: Duration) {
        self.bytes += replaced_bytes(&event);
        self.events.push_back(Kept { event, at });
    }

    /// The events after a revision, which must not be older than the oldest.
    pub(crate) fn after(&self, revision: Revision) -> impl Iterator<Item = &Arc<Event>> {
        let start = self.events.partition_point(|kept| kept.event.revision <= revision);
        self.events.range(start..).map(|kept| &kept.event)
    }

    /// The newest event.
    #[cfg(feature = "etcd")]
    pub(crate) fn last(&self) -> Option<&Arc<Event>> {
        self.events.back().map(|kept| &kept.event)
    }

    /// Forgets what the window does not hold, and gives it to the caller to be freed where nobody waits.
    pub(crate) fn trim(&mut self, window: &Window, current: Revision, now: Duration) -> Vec<Arc<Event>> {
        let oldest = current.saturating_sub(window.revisions);
        let mut forgotten = Vec::new();
        while let Some(Kept { event, at }) = self.events.front() {
            let kept = event.revision > oldest
                && now.saturating_sub(*at) <= window.age
                && self.bytes <= window.bytes;
            if kept {
                break;
            }
            let revision = event.revision;
            self.forget(revision, &mut forgotten);
        }
        forgotten
    }

    /// Forgets everything up to a revision.
    pub(crate) fn compact(&mut self, to: Revision) -> Vec<Arc<Event>> {
        let mut forgotten = Vec::new();
        self.forget(to, &mut forgotten);
        forgotten
    }

    fn forget(&mut self, to: Revision, forgotten: &mut Vec<Arc<Event>>) {
        while self.events.front().is_some_and(|kept| kept.event.revision <= to) {
            if let Some(Kept { event, .. }) = self.events.pop_front() {
                self.bytes -= replaced_bytes(&event);
                forgotten.push(event);
            }
        }
        self.oldest = self.oldest.max(to);
    }
}

fn replaced_bytes(event: &Event) -> usize {
    event.previous().map_or(0, |entry| entry.key.len() + entry.value.len())
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
        assert_eq!(history.trim(&window(), 15, Duration::ZERO).len(), 10);
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

    #[test]
    fn compaction_never_brings_the_past_back() {
        let mut history = filled(1..=5, 0);
        history.compact(4);
        history.compact(2);
        assert_eq!((history.oldest(), history.len()), (4, 2));
    }
}
