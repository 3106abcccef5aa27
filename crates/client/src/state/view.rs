//! What a read sees: the cache, with what was written laid over it.

use std::cmp::Ordering as Than;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use watchkeeper_core::{Key, Order, Uid, Version};
use watchkeeper_informer::{AnyValue, Object};

use crate::error::Error;
use crate::kind::KindInfo;
use crate::state::overlay::{Held, Note, Overlay, Shown, Verdict};
use crate::state::{Declared, KindState};

/// One object, from the cache or from the answer to a write.
pub(crate) enum Seen {
    Stored(Object),
    Noted(Held),
}

/// What a read finds under a key.
pub(crate) enum ReadState {
    Found(Seen),
    Absent,
    /// Only the API knows.
    Live,
}

impl Seen {
    pub(crate) fn key(&self) -> &Key {
        match self {
            Self::Stored(object) => object.key(),
            Self::Noted(held) => &held.header.key,
        }
    }

    pub(crate) fn version(&self) -> &Version {
        match self {
            Self::Stored(object) => object.version(),
            Self::Noted(held) => &held.header.version,
        }
    }

    pub(crate) fn uid(&self) -> Option<&Uid> {
        match self {
            Self::Stored(object) => object.uid(),
            Self::Noted(held) => held.header.uid.as_ref(),
        }
    }

    /// The object, of this kind.
    pub(crate) fn value(&self, kind: &KindInfo) -> Result<AnyValue, Error> {
        match self {
            Self::Stored(object) => object
                .value()
                .map_err(|error| Error::Decode { object: kind.describe(&error.key), detail: error.detail }),
            Self::Noted(held) => Ok(Arc::clone(&held.value)),
        }
    }
}

impl KindState {
    /// The cache, if there is one.
    pub(crate) fn declared(&self) -> Result<&Declared, Error> {
        self.declared.get().ok_or_else(|| Error::NotDeclared { kind: self.info.kind.clone() })
    }

    /// The cache, if it is there and complete.
    pub(crate) fn ready(&self) -> Result<&Declared, Error> {
        let declared = self.declared()?;
        if declared.informer.is_synced() {
            return Ok(declared);
        }
        let reason = declared.informer.status().into_iter().find_map(|source| source.error);
        Err(Error::NotSynced { kind: self.info.kind.clone(), reason })
    }

    /// Waits until the cache is complete.
    pub(crate) async fn synced(&self) -> Result<(), Error> {
        let synced = self.declared()?.informer.synced();
        let failed = |error| Error::NotSynced { kind: self.info.kind.clone(), reason: Some(error) };
        synced.await.map_err(failed)
    }

    /// What is under a key.
    pub(crate) fn read(&self, key: &Key) -> Result<ReadState, Error> {
        let declared = self.ready()?;
        if !declared.is_responsible(key) {
            let namespace = key.namespace().unwrap_or_default().to_owned();
            return Err(Error::OutsideCache { kind: self.info.kind.clone(), namespace });
        }
        // The order matters. A note that is gone by now went because the cache had caught up, so the cache is asked after
        // the notes; and it shows at least what its position says, so it is asked after its position.
        let (note, floor) = self.notes_for(key);
        let Some(note) = note else {
            if let Some(floor) = floor
                && !self.is_past(declared, key, &floor)
            {
                return Ok(ReadState::Live);
            }
            return Ok(declared
                .store
                .get(key)
                .map_or(ReadState::Absent, |object| ReadState::Found(Seen::Stored(object))));
        };
        let position = declared.position(key);
        let stored = declared.store.get(key);
        Ok(match note.judge(shown(position.as_ref(), stored.as_ref())) {
            Verdict::Cache => {
                self.forget(key, &note);
                stored.map_or(ReadState::Absent, |object| ReadState::Found(Seen::Stored(object)))
            }
            Verdict::Live => ReadState::Live,
            Verdict::Note => match note {
                Note::At { object: Some(held), .. } => ReadState::Found(Seen::Noted(held)),
                _ => ReadState::Absent,
            },
        })
    }

    pub(crate) fn notes_for(&self, key: &Key) -> (Option<Note>, Option<Version>) {
        if !self.overlaid.load(Ordering::Acquire) {
            return (None, None);
        }
        let overlay = self.overlay.lock();
        (overlay.get(key), overlay.floor())
    }

    /// Whether the cache has reached a floor, wherever this key is watched.
    pub(crate) fn is_past(&self, declared: &Declared, key: &Key, floor: &Version) -> bool {
        declared.position(key).and_then(|at| Order::Total.compare(&at, floor)).is_some_and(Than::is_ge)
    }

    /// All notes, and the floor unless the whole cache is past it.
    pub(crate) fn all_notes(&self, declared: &Declared) -> (Vec<(Key, Note)>, Option<Version>) {
        if !self.overlaid.load(Ordering::Acquire) {
            return (Vec::new(), None);
        }
        let mut overlay = self.overlay.lock();
        if let Some(floor) = overlay.floor() {
            let reached = |position: &Option<Version>| {
                position.as_ref().and_then(|at| Order::Total.compare(at, &floor)).is_some_and(Than::is_ge)
            };
            if declared.store.positions().iter().all(reached) {
                overlay.clear_floor(&floor);
            }
        }
        (overlay.all(), overlay.floor())
    }

    pub(crate) fn forget(&self, key: &Key, note: &Note) {
        let mut overlay = self.overlay.lock();
        overlay.forget(key, note);
        if overlay.is_empty() {
            self.overlaid.store(false, Ordering::Release);
        }
    }

    /// Drops the notes that the cache has caught up with.
    pub(crate) fn sweep(&self, overlay: &mut Overlay) {
        let Some(declared) = self.declared.get() else { return };
        overlay.sweep(|key, note| self.is_obsolete(declared, key, note));
    }

    /// Whether the cache has caught up with a note.
    pub(crate) fn is_obsolete(&self, declared: &Declared, key: &Key, note: &Note) -> bool {
        let position = declared.position(key);
        let stored = declared.store.get(key);
        note.judge(shown(position.as_ref(), stored.as_ref())) == Verdict::Cache
    }
}

pub(crate) fn shown<'a>(position: Option<&'a Version>, stored: Option<&'a Object>) -> Shown<'a> {
    Shown { position, object: stored.map(|object| (object.uid(), object.version())) }
}
