//! What this client wrote and the cache has not shown yet: pure bookkeeping, no I/O.

use std::cmp::Ordering;
use std::collections::HashMap;

use watchkeeper_core::{Header, Key, Order, Uid, Version};
use watchkeeper_informer::AnyValue;

/// So many notes, and the oldest half is given up for a floor.
const MAX_NOTES: usize = 4096;
/// So many notes are not worth sweeping.
const FEW_NOTES: usize = 64;

/// An object as a write answered it, reduced as the cache reduces its objects.
#[derive(Clone)]
pub(crate) struct Held {
    pub(crate) header: Header,
    pub(crate) value: AnyValue,
}

/// What is known about one key beyond the cache.
#[derive(Clone)]
pub(crate) enum Note {
    /// As of this version the object was so, or (as far as the cache is concerned) was not there.
    At { version: Version, object: Option<Held> },
    /// This incarnation is gone for good. `known` is a version at which it still was there.
    Gone { uid: Uid, known: Version },
    /// Something was written, but not what: it is not known at which version, or it is known but the state is not.
    Doubt { at: Option<Version> },
}

/// What the cache shows under a key, as far as a note asks for it. The position must have been read first: then the cache
/// shows everything up to it.
#[derive(Clone, Copy)]
pub(crate) struct Shown<'a> {
    pub(crate) position: Option<&'a Version>,
    pub(crate) object: Option<(Option<&'a Uid>, &'a Version)>,
}

/// What a read should say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// What the cache says: the note is obsolete.
    Cache,
    /// What the note says.
    Note,
    /// What the API says.
    Live,
}

impl Note {
    /// Whether the note or the cache is newer.
    pub(crate) fn judge(&self, shown: Shown<'_>) -> Verdict {
        match self {
            Self::At { version, .. } => newer(shown, version).unwrap_or(Verdict::Live),
            Self::Gone { uid, known } => match shown.object {
                Some((Some(stored), _)) if stored == uid => Verdict::Note,
                Some(_) => newer(shown, known).unwrap_or(Verdict::Live),
                // Absent either way; the question is only for how long to remember it.
                None => newer(shown, known).unwrap_or(Verdict::Note),
            },
            Self::Doubt { at: None } => Verdict::Live,
            Self::Doubt { at: Some(version) } => match newer(shown, version) {
                Some(Verdict::Cache) => Verdict::Cache,
                _ => Verdict::Live,
            },
        }
    }

    fn version(&self) -> Option<&Version> {
        match self {
            Self::At { version, .. } | Self::Gone { known: version, .. } => Some(version),
            Self::Doubt { at } => at.as_ref(),
        }
    }

    /// Whether another note about the same key, which came later, replaces this one.
    fn yields_to(&self, other: &Self) -> bool {
        match (self, other) {
            // A uid that is gone does not come back; answers may overtake each other.
            (Self::Gone { uid, .. }, Self::At { object: Some(held), .. }) => {
                held.header.uid.as_ref() != Some(uid)
            }
            (Self::At { version: old, .. }, Self::At { version: new, .. }) => {
                compare(old, new) != Some(Ordering::Greater)
            }
            // What was written is newer than the doubt about a part of it.
            (Self::At { version: old, .. }, Self::Doubt { at: Some(new) }) => {
                compare(old, new) != Some(Ordering::Greater)
            }
            (Self::At { version, object: Some(held) }, Self::Gone { uid, known }) => {
                held.header.uid.as_ref() == Some(uid) || compare(version, known) != Some(Ordering::Greater)
            }
            _ => true,
        }
    }
}

fn compare(left: &Version, right: &Version) -> Option<Ordering> {
    if left == right && !left.is_empty() { Some(Ordering::Equal) } else { Order::Total.compare(left, right) }
}

/// Whether the cache is known to show a version, or known not to; `None` where versions cannot be compared.
fn newer(shown: Shown<'_>, version: &Version) -> Option<Verdict> {
    let reached = |seen: &Version| compare(seen, version).map(Ordering::is_ge);
    let by_object = shown.object.map(|(_, seen)| reached(seen));
    let by_position = shown.position.map(reached);
    match (by_object, by_position) {
        (Some(Some(true)), _) | (_, Some(Some(true))) => Some(Verdict::Cache),
        (Some(None), _) | (_, Some(None)) => None,
        _ => Some(Verdict::Note),
    }
}

/// All notes of a kind.
///
/// The memory is bounded. Notes are swept when they have become many; if the cache does not catch up for so long that there
/// are too many, the oldest half is forgotten and a floor remains: as long as the cache is below it, reads go to the API.
pub(crate) struct Overlay {
    notes: HashMap<Key, (u64, Note)>,
    floor: Option<Version>,
    next: u64,
    sweep_at: usize,
}

impl Default for Overlay {
    fn default() -> Self {
        Self { notes: HashMap::new(), floor: None, next: 0, sweep_at: FEW_NOTES }
    }
}

impl Overlay {
    pub(crate) fn is_empty(&self) -> bool {
        self.notes.is_empty() && self.floor.is_none()
    }

    pub(crate) fn get(&self, key: &Key) -> Option<Note> {
        self.notes.get(key).map(|(_, note)| note.clone())
    }

    pub(crate) fn all(&self) -> Vec<(Key, Note)> {
        self.notes.iter().map(|(key, (_, note))| (key.clone(), note.clone())).collect()
    }

    /// The version that the cache has to reach before it may be believed about keys without a note.
    pub(crate) fn floor(&self) -> Option<Version> {
        self.floor.clone()
    }

    /// Forgets everything for a floor: reads go to the API until the cache has reached it.
    pub(crate) fn raise_floor(&mut self, floor: Version) {
        self.notes.clear();
        self.floor = Some(floor);
    }

    pub(crate) fn clear_floor(&mut self, reached: &Version) {
        if self.floor.as_ref() == Some(reached) {
            self.floor = None;
        }
    }

    /// Takes a note. Says whether it is time to sweep.
    pub(crate) fn put(&mut self, key: Key, note: Note) -> bool {
        self.next += 1;
        let next = self.next;
        match self.notes.get_mut(&key) {
            Some((_, old)) if !old.yields_to(&note) => {}
            Some(entry) => *entry = (next, note),
            None => drop(self.notes.insert(key, (next, note))),
        }
        self.notes.len() >= self.sweep_at
    }

    /// Removes a note, unless it was replaced since it was read.
    pub(crate) fn forget(&mut self, key: &Key, judged: &Note) {
        let same = |note: &Note| match (note, judged) {
            (Note::Gone { uid, .. }, Note::Gone { uid: other, .. }) => uid == other,
            (Note::At { version, .. }, Note::At { version: other, .. }) => version == other,
            (Note::Doubt { at }, Note::Doubt { at: other }) => at == other,
            _ => false,
        };
        if self.notes.get(key).is_some_and(|(_, note)| same(note)) {
            self.notes.remove(key);
        }
    }

    /// Drops the notes that are obsolete, and if there are still too many, the oldest.
    pub(crate) fn sweep(&mut self, mut is_obsolete: impl FnMut(&Key, &Note) -> bool) {
        self.notes.retain(|key, (_, note)| !is_obsolete(key, note));
        if self.notes.len() >= MAX_NOTES {
            let mut ages: Vec<u64> = self.notes.values().map(|(age, _)| *age).collect();
            let (_, &mut median, _) = ages.select_nth_unstable(MAX_NOTES / 2);
            let mut floor = self.floor.take();
            self.notes.retain(|_, (age, note)| {
                // Without a version there is nothing that a floor could remember in its place.
                let Some(version) = note.version().filter(|_| *age <= median) else { return true };
                if floor.as_ref().is_none_or(|floor| compare(floor, version) != Some(Ordering::Greater)) {
                    floor = Some(version.clone());
                }
                false
            });
            self.floor = floor;
        }
        let twice = (self.notes.len() * 2).max(FEW_NOTES);
        self.sweep_at = if self.notes.len() < MAX_NOTES { twice.min(MAX_NOTES) } else { twice };
    }
}

#[cfg(test)]
mod tests;
