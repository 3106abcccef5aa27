//! Changes as watchers are told of them, encoded once.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use parking_lot::Mutex;
use watchkeeper_storage::{Entry, Event, Revision};

use crate::resource::{Resource, Unreadable};

/// How many recent changes are kept encoded. Watchers that keep up are within a few changes of each other.
const RECENT: usize = 512;

/// How many bytes of recent changes are kept encoded.
const RECENT_BYTES: usize = 4 << 20;

/// What a watch event says happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Added,
    Modified,
    Deleted,
}

impl Told {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

/// The recent changes of a resource, each encoded at most once however many watchers there are.
#[derive(Default)]
pub(crate) struct Frames(Mutex<Recent>);

#[derive(Default)]
struct Recent {
    frames: VecDeque<Arc<Frame>>,
    bytes: usize,
}

/// One change, encoded by the first watcher that needs it.
pub(crate) struct Frame {
    event: Arc<Event>,
    added: OnceLock<Bytes>,
    modified: OnceLock<Bytes>,
    deleted: OnceLock<Bytes>,
}

impl Frames {
    /// The frame of an event.
    pub(crate) fn of(&self, event: &Arc<Event>) -> Arc<Frame> {
        let mut recent = self.0.lock();
        // Newest last: whoever keeps up finds it within a few steps.
        if let Some(frame) = recent.frames.iter().rev().find(|frame| Arc::ptr_eq(&frame.event, event)) {
            return Arc::clone(frame);
        }
        let frame = Arc::new(Frame {
            event: Arc::clone(event),
            added: OnceLock::new(),
            modified: OnceLock::new(),
            deleted: OnceLock::new(),
        });
        recent.bytes += frame.size();
        recent.frames.push_back(Arc::clone(&frame));
        while recent.frames.len() > RECENT || recent.bytes > RECENT_BYTES {
            let Some(oldest) = recent.frames.pop_front() else { break };
            recent.bytes -= oldest.size();
        }
        frame
    }

    /// Forgets everything: nobody is watching.
    pub(crate) fn clear(&self) {
        *self.0.lock() = Recent::default();
    }
}

impl Frame {
    fn size(&self) -> usize {
        let entry = self.event.entry().or(self.event.previous());
        entry.map_or(0, |entry| entry.value.len()) + 128
    }

    /// The line for watchers.
    pub(crate) fn line(&self, resource: &Resource, told: Told) -> Result<Bytes, Unreadable> {
        let slot = match told {
            Told::Added => &self.added,
            Told::Modified => &self.modified,
            Told::Deleted => &self.deleted,
        };
        if let Some(line) = slot.get() {
            return Ok(line.clone());
        }
        let Some(entry) = shown(&self.event, told) else { return Ok(Bytes::new()) };
        let line = line(resource, told, entry, self.event.revision)?;
        Ok(slot.get_or_init(|| line).clone())
    }
}

/// The object that a watcher is shown: the newest one, or the last one that it knew.
pub(crate) fn shown(event: &Event, told: Told) -> Option<&Arc<Entry>> {
    match told {
        Told::Added | Told::Modified => event.entry(),
        Told::Deleted => event.previous(),
    }
}

/// A line that says what happened to an object.
pub(crate) fn line(
    resource: &Resource,
    told: Told,
    entry: &Entry,
    revision: Revision,
) -> Result<Bytes, Unreadable> {
    let mut line = Vec::with_capacity(entry.value.len() + 64);
    line.extend_from_slice(br#"{"type":""#);
    line.extend_from_slice(told.name().as_bytes());
    line.extend_from_slice(br#"","object":"#);
    resource.write_json(entry, revision, &mut line)?;
    line.extend_from_slice(b"}\n");
    Ok(line.into())
}
