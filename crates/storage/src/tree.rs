use std::borrow::Borrow;
use std::cmp::Ordering;
use std::sync::Arc;

use bytes::Bytes;
use imbl::OrdSet;

use crate::commit::{Expected, Operation};
use crate::{Change, Commit, Committed, Entry, Error, Event, Page, Range, Revision};

/// What a limit cuts off is counted up to this many entries; more would cost more than the page itself.
const COUNTED: usize = 10_000;

/// The state of a storage at one revision. Pure.
///
/// Cloning costs nothing: trees share all nodes that have not changed since, so that a reader works on its own tree
/// while the writer goes on. The set keeps one pointer per entry (the key lives in the entry), with sixteen to a node.
#[derive(Clone, Default)]
pub(crate) struct Tree {
    entries: OrdSet<Slot>,
    revision: Revision,
}

/// An entry, ordered by its key's bytes.
#[derive(Clone)]
struct Slot(Arc<Entry>);

impl Tree {
    /// A tree that was read from somewhere. The keys must be in order, without repetition.
    pub(crate) fn restore(revision: Revision, entries: impl IntoIterator<Item = Arc<Entry>>) -> Self {
        Self { entries: entries.into_iter().map(Slot).collect(), revision }
    }

    /// A tree of these entries, in any order. Of several with the same key, the last one counts.
    pub(crate) fn gather(revision: Revision, mut entries: Vec<Arc<Entry>>) -> Self {
        // Stable: of equal keys, the last one stays the last one.
        entries.sort_by(|one, other| one.key.as_bytes().cmp(other.key.as_bytes()));
        Self::restore(revision, entries)
    }

    pub(crate) fn revision(&self) -> Revision {
        self.revision
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.entries.iter().map(|slot| &slot.0)
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Arc<Entry>> {
        self.entries.get(key.as_bytes()).map(|slot| &slot.0)
    }

    /// What the range holds, whatever revision it asks for.
    pub(crate) fn page(&self, range: &Range) -> Page {
        let mut page = Page { entries: Vec::new(), revision: self.revision, more: false, remaining: Some(0) };
        let Some(bounds) = range.bounds() else {
            return page;
        };
        let mut rest = self.entries.range::<_, [u8]>(bounds);
        let wanted = rest.by_ref().take(range.limit.unwrap_or(usize::MAX));
        page.entries.extend(wanted.map(|slot| Arc::clone(&slot.0)));
        let remaining = rest.take(COUNTED + 1).count();
        page.more = remaining > 0;
        page.remaining = (remaining <= COUNTED).then_some(remaining);
        page
    }

    /// Makes a change as a whole, or none: one revision later if there was something to change.
    pub(crate) fn apply(&mut self, commit: &Commit) -> Result<(Committed, Vec<Arc<Event>>), Error> {
        self.judge(commit)?;
        let revision = self.revision + 1;
        let mut events = Vec::with_capacity(commit.operations.len());
        let mut previous = Vec::with_capacity(commit.operations.len());
        for operation in &commit.operations {
            let (before, event) = self.change(operation, revision);
            previous.push(before);
            events.extend(event);
        }
        if !events.is_empty() {
            self.revision = revision;
        }
        let committed = Committed { revision: self.revision, previous };
        Ok((committed, events))
    }

    /// Does what another storage did at a revision, which must not be older than this one's.
    #[cfg(feature = "etcd")]
    pub(crate) fn follow(&mut self, operation: &Operation, revision: Revision) -> Option<Arc<Event>> {
        self.revision = revision;
        self.change(operation, revision).1
    }

    /// Nothing changed up to this revision.
    #[cfg(feature = "etcd")]
    pub(crate) fn advance(&mut self, revision: Revision) {
        self.revision = revision;
    }

    fn change(
        &mut self,
        operation: &Operation,
        revision: Revision,
    ) -> (Option<Arc<Entry>>, Option<Arc<Event>>) {
        let (before, change) = match operation {
            Operation::Put { key, value, .. } => self.put(key, value, revision),
            Operation::Delete { key } => self.delete(key),
        };
        (before, change.map(|change| Arc::new(Event { revision, change })))
    }

    fn judge(&self, commit: &Commit) -> Result<(), Error> {
        for (key, expected) in &commit.preconditions {
            let current = self.get(key);
            let holds = match expected {
                Expected::Absent => current.is_none(),
                Expected::Modified(revision) => current.is_some_and(|entry| entry.modified == *revision),
            };
            if !holds {
                return Err(Error::Conflict {
                    key: key.to_string(),
                    current: current.cloned(),
                    revision: self.revision,
                });
            }
        }
        Ok(())
    }

    fn put(&mut self, key: &str, value: &Bytes, revision: Revision) -> (Option<Arc<Entry>>, Option<Change>) {
        let previous = self.get(key).cloned();
        let entry = Arc::new(Entry {
            key: key.into(),
            // A copy of its own: the value may be a small part of a large request, which it would keep alive.
            value: Bytes::copy_from_slice(value),
            created: previous.as_ref().map_or(revision, |previous| previous.created),
            modified: revision,
        });
        self.entries.insert(Slot(Arc::clone(&entry)));
        let change = match &previous {
            Some(previous) => Change::Updated { previous: Arc::clone(previous), entry },
            None => Change::Created(entry),
        };
        (previous, Some(change))
    }

    fn delete(&mut self, key: &str) -> (Option<Arc<Entry>>, Option<Change>) {
        let previous = self.entries.remove(key.as_bytes()).map(|slot| slot.0);
        let change = previous.clone().map(Change::Deleted);
        (previous, change)
    }

    /// Goes back to a revision, given all events after it.
    pub(crate) fn undo(&mut self, events: &[Arc<Event>], to: Revision) {
        for event in events.iter().rev() {
            match event.previous() {
                Some(previous) => self.entries.insert(Slot(Arc::clone(previous))),
                None => self.entries.remove(event.key().as_bytes()),
            };
        }
        self.revision = to;
    }
}

impl Borrow<[u8]> for Slot {
    fn borrow(&self) -> &[u8] {
        self.0.key.as_bytes()
    }
}

impl PartialEq for Slot {
    fn eq(&self, other: &Self) -> bool {
        self.0.key == other.0.key
    }
}

impl Eq for Slot {}

impl PartialOrd for Slot {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Slot {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.key.as_bytes().cmp(other.0.key.as_bytes())
    }
}
