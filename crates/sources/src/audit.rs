//! Finds changes that a log did not report, by comparing it with a fresh read. Without I/O.
//!
//! A read and a log are never at the same place. So what differs is only a suspicion at first: it is dropped if the log tells of the object
//! before it has come to where the read was taken. What is still different then was never told, and never will be.

use std::collections::{HashMap, HashSet};

use watchkeeper_core::{Document, Event, Key, Version};

/// What the reader of a feed was told, and what a read that is under way has found.
#[derive(Debug, Default)]
pub(crate) struct Audit {
    told: HashMap<Key, Told>,
    /// The snapshot that is being told, if one is.
    snapshot: bool,
    round: u32,
    read: Option<Read>,
}

#[derive(Debug)]
struct Told {
    version: Version,
    /// The last snapshot or read that it was in.
    round: u32,
}

#[derive(Debug, Default)]
struct Read {
    /// What it says otherwise than was told; `None` for what is not there.
    suspects: HashMap<Key, Option<Document>>,
    /// What the log has told since the read began.
    excused: HashSet<Key>,
    /// What cannot be read, and so says nothing.
    unreadable: HashSet<Key>,
}

impl Audit {
    /// Notes what the reader is told.
    pub(crate) fn note(&mut self, event: &Event) {
        match event {
            Event::Begin => {
                self.snapshot = true;
                self.round += 1;
                // All of it is told anew.
                self.read = None;
            }
            Event::Item(document) | Event::Put { document, .. } => {
                let told = Told { version: document.header.version.clone(), round: self.round };
                self.told.insert(document.header.key.clone(), told);
                self.excuse(&document.header.key);
            }
            Event::Gone { key, .. } => {
                self.told.remove(key);
                self.excuse(key);
            }
            Event::Delete { document, .. } => {
                self.told.remove(&document.header.key);
                self.excuse(&document.header.key);
            }
            Event::Complete(_) if std::mem::take(&mut self.snapshot) => {
                let round = self.round;
                self.told.retain(|_, told| told.round == round);
            }
            // Whatever the reader makes of it: it may keep what it has.
            Event::Rejected(rejection) => {
                if let Some(key) = &rejection.key {
                    self.told.remove(key);
                    self.excuse(key);
                }
            }
            _ => {}
        }
    }

    fn excuse(&mut self, key: &Key) {
        if let Some(read) = &mut self.read {
            read.suspects.remove(key);
            read.excused.insert(key.clone());
        }
    }

    /// Whether all was told that there is, rather than a part of it.
    pub(crate) fn is_complete(&self) -> bool {
        !self.snapshot
    }

    /// A read begins. What the log tells from here on may be newer than what is read.
    pub(crate) fn begin(&mut self) {
        self.round += 1;
        self.read = Some(Read::default());
    }

    /// An object that was read.
    pub(crate) fn found(&mut self, document: Document) {
        let Some(read) = &mut self.read else { return };
        let key = &document.header.key;
        let same = self.told.get_mut(key).is_some_and(|told| {
            told.round = self.round;
            told.version == document.header.version
        });
        if !same && !read.excused.contains(key) {
            read.suspects.insert(key.clone(), Some(document));
        }
    }

    /// Something is there under this key, but cannot be read.
    pub(crate) fn unreadable(&mut self, key: Key) {
        if let Some(read) = &mut self.read {
            read.unreadable.insert(key);
        }
    }

    /// All was read: what was told and is not among it is suspect, too.
    pub(crate) fn end(&mut self) {
        let Some(read) = &mut self.read else { return };
        let round = self.round;
        for (key, _) in self.told.iter().filter(|(_, told)| told.round != round) {
            if !read.excused.contains(key) && !read.unreadable.contains(key) {
                read.suspects.insert(key.clone(), None);
            }
        }
    }

    /// The read has failed, and says nothing.
    pub(crate) fn abandon(&mut self) {
        self.read = None;
    }

    /// The log has come to where the read was taken: what the reader has to be told, in the order of the keys. Each event is a difference that no
    /// change has told.
    pub(crate) fn settle(&mut self) -> Vec<Event> {
        let mut suspects: Vec<_> = self.read.take().unwrap_or_default().suspects.into_iter().collect();
        suspects.sort_by(|(a, _), (b, _)| a.cmp(b));
        let corrected = suspects.into_iter().map(|(key, state)| match state {
            Some(document) => Event::Put { document, position: None },
            None => Event::Gone { key, position: None },
        });
        corrected.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(name: &str, version: u64) -> Document {
        Document::named(Key::new(None, name), Version::from(version), b"{}".to_vec())
    }

    fn put(name: &str, version: u64) -> Event {
        Event::Put { document: document(name, version), position: None }
    }

    fn said(events: &[Event]) -> Vec<String> {
        let line = |event: &Event| match event {
            Event::Put { document, .. } => format!("{} {}", document.header.key, document.header.version),
            Event::Gone { key, .. } => format!("{key} gone"),
            other => format!("{other:?}"),
        };
        events.iter().map(line).collect()
    }

    fn told(names: &[(&str, u64)]) -> Audit {
        let mut audit = Audit::default();
        audit.note(&Event::Begin);
        for (name, version) in names {
            audit.note(&Event::Item(document(name, *version)));
        }
        audit.note(&Event::Complete(Version::from(1)));
        audit
    }

    #[test]
    fn what_no_entry_of_the_log_has_told_is_told() {
        let mut audit = told(&[("same", 1), ("changed", 1), ("gone", 1), ("broken", 1)]);
        audit.begin();
        for (name, version) in [("same", 1), ("changed", 2), ("new", 1)] {
            audit.found(document(name, version));
        }
        audit.unreadable(Key::new(None, "broken"));
        audit.end();
        let corrections = audit.settle();
        assert_eq!(said(&corrections), ["changed 2", "gone gone", "new 1"]);
        // The reader knows it now.
        corrections.iter().for_each(|event| audit.note(event));
        audit.begin();
        for (name, version) in [("same", 1), ("changed", 2), ("new", 1), ("broken", 1)] {
            audit.found(document(name, version));
        }
        audit.end();
        assert!(audit.settle().is_empty());
    }

    #[test]
    fn what_the_log_tells_meanwhile_is_no_drift_whichever_came_first() {
        let mut audit = told(&[("a", 1), ("b", 1), ("c", 1), ("d", 1)]);
        audit.begin();
        audit.found(document("a", 2));
        // Told before it is read, while it is read, and after all was read.
        audit.note(&put("a", 2));
        audit.note(&put("b", 3));
        audit.found(document("b", 2));
        audit.note(&Event::Gone { key: Key::new(None, "d"), position: None });
        audit.end();
        audit.note(&Event::Gone { key: Key::new(None, "c"), position: None });
        assert!(audit.settle().is_empty());
    }

    #[test]
    fn a_new_snapshot_ends_a_read_and_forgets_what_is_not_in_it() {
        let mut audit = told(&[("a", 1), ("b", 1)]);
        audit.begin();
        audit.found(document("a", 2));
        audit.note(&Event::Begin);
        audit.note(&Event::Item(document("a", 2)));
        audit.note(&Event::Complete(Version::from(2)));
        audit.end();
        assert!(audit.settle().is_empty());
        audit.begin();
        audit.found(document("a", 2));
        audit.end();
        assert!(audit.settle().is_empty(), "b is known to be gone");
    }
}
