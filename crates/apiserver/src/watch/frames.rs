//! Changes as watchers are told of them, encoded once.

use std::collections::VecDeque;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::Value;
use watchkeeper_kinds::protobuf;
use watchkeeper_storage::{Entry, Event, Revision};

use crate::render::{Form, Shape};
use crate::request::media::Format;
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
pub(crate) struct Frames {
    recent: Mutex<Recent>,
    watchers: AtomicUsize,
}

#[derive(Default)]
struct Recent {
    /// By revision.
    frames: VecDeque<Arc<Frame>>,
    bytes: usize,
}

/// One change, encoded in each form by the first watcher that needs it.
pub(crate) struct Frame {
    event: Arc<Event>,
    slots: [OnceLock<Bytes>; FORMS * 3],
}

/// How many forms are kept.
const FORMS: usize = 4;

/// Which of the forms that are kept this is. Tables are not: few watch them, and what they say depends on the time.
fn place(form: Form) -> Option<usize> {
    let is_protobuf = usize::from(form.format == Format::Protobuf);
    match form.shape {
        Shape::Object => Some(is_protobuf),
        Shape::Partial => Some(2 + is_protobuf),
        Shape::Table(_) => None,
    }
}

impl Frames {
    /// The frame of an event.
    pub(crate) fn of(&self, event: &Arc<Event>) -> Arc<Frame> {
        let mut recent = self.recent.lock();
        let mut at = recent.frames.partition_point(|frame| frame.event.revision < event.revision);
        // Changes that were made together have one revision.
        while let Some(frame) = recent.frames.get(at).filter(|frame| frame.event.revision == event.revision) {
            if Arc::ptr_eq(&frame.event, event) {
                return Arc::clone(frame);
            }
            at += 1;
        }
        let frame = Arc::new(Frame { event: Arc::clone(event), slots: Default::default() });
        recent.bytes += frame.size();
        recent.frames.insert(at, Arc::clone(&frame));
        while recent.frames.len() > RECENT || recent.bytes > RECENT_BYTES {
            let Some(oldest) = recent.frames.pop_front() else { break };
            recent.bytes -= oldest.size();
        }
        frame
    }

    /// How many are watching.
    pub(crate) fn watchers(&self) -> usize {
        self.watchers.load(Relaxed)
    }

    /// One more is watching.
    pub(crate) fn enter(&self) {
        self.watchers.fetch_add(1, Relaxed);
    }

    /// One is not watching any more. With the last one, everything is forgotten.
    pub(crate) fn leave(&self) {
        if self.watchers.fetch_sub(1, Relaxed) == 1 {
            *self.recent.lock() = Recent::default();
        }
    }
}

impl Frame {
    fn size(&self) -> usize {
        let entry = self.event.entry().or(self.event.previous());
        entry.map_or(0, |entry| entry.value.len()) + 128
    }

    /// The bytes for watchers that want this form.
    pub(crate) fn bytes(
        &self,
        resource: &Resource,
        form: Form,
        told: Told,
        first: bool,
    ) -> Result<Bytes, Unreadable> {
        let slot = place(form).map(|place| &self.slots[place * 3 + told as usize]);
        if let Some(bytes) = slot.and_then(OnceLock::get) {
            return Ok(bytes.clone());
        }
        let Some(entry) = shown(&self.event, told) else { return Ok(Bytes::new()) };
        let bytes = encode(resource, form, told, entry, self.event.revision, first)?;
        Ok(slot.map_or(bytes.clone(), |slot| slot.get_or_init(|| bytes).clone()))
    }
}

/// The object that a watcher is shown: the newest one, or the last one that it knew.
pub(crate) fn shown(event: &Event, told: Told) -> Option<&Arc<Entry>> {
    match told {
        Told::Added | Told::Modified => event.entry(),
        Told::Deleted => event.previous(),
    }
}

/// What says what happened to an object. The first of a table names the columns.
pub(crate) fn encode(
    resource: &Resource,
    form: Form,
    told: Told,
    entry: &Entry,
    revision: Revision,
    first: bool,
) -> Result<Bytes, Unreadable> {
    let object = match (form.shape, form.format) {
        (Shape::Object, Format::Json | Format::Yaml) => {
            return line(told, entry, |out| resource.write_json(entry, revision, out));
        }
        (Shape::Partial, Format::Json | Format::Yaml) => {
            return line(told, entry, |out| resource.write_partial(entry, revision, out));
        }
        (Shape::Partial, _) => resource.read_metadata_at(entry, revision)?,
        _ => resource.read_at(entry, revision)?,
    };
    let shape = form.shape;
    let object = if first { shape.of_one(resource, object) } else { shape.of_next(resource, object) };
    frame(told.name(), &object, form.format).ok_or_else(|| Unreadable::misfit(&entry.key))
}

/// An event of a watch: in JSON, a line. `None` if the object has no encoding in this format.
pub(crate) fn frame(kind: &str, object: &Value, format: Format) -> Option<Bytes> {
    if format == Format::Protobuf {
        return protobuf::watch_frame(kind, object).map(Bytes::from);
    }
    let mut line = format!(r#"{{"type":"{kind}","object":"#).into_bytes();
    // Writing a value to a vector cannot fail.
    let _ = serde_json::to_writer(&mut line, object);
    line.extend_from_slice(b"}\n");
    Some(line.into())
}

/// The same for an object in JSON, which needs not be parsed for it.
fn line(
    told: Told,
    entry: &Entry,
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), Unreadable>,
) -> Result<Bytes, Unreadable> {
    let mut line = Vec::with_capacity(entry.value.len() + 64);
    line.extend_from_slice(br#"{"type":""#);
    line.extend_from_slice(told.name().as_bytes());
    line.extend_from_slice(br#"","object":"#);
    write(&mut line)?;
    line.extend_from_slice(b"}\n");
    Ok(line.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use watchkeeper_storage::Change;

    fn event(revision: Revision, bytes: usize) -> Arc<Event> {
        let (key, value) = (format!("/{revision}").into(), vec![0; bytes].into());
        let entry = Entry { key, value, created: revision, modified: revision };
        Arc::new(Event { revision, change: Change::Created(Arc::new(entry)) })
    }

    #[test]
    fn whoever_is_told_of_an_event_gets_the_same_frame_in_whatever_order_they_come() {
        let frames = Frames::default();
        // The second and the third were made together.
        let events = [event(5, 1), event(7, 1), event(7, 1), event(9, 1)];
        let first: Vec<_> = [2, 0, 3, 1].map(|number: usize| (number, frames.of(&events[number]))).into();
        for (number, frame) in first {
            assert!(Arc::ptr_eq(&frame.event, &events[number]));
            assert!(Arc::ptr_eq(&frames.of(&events[number]), &frame), "{number}");
        }
        assert_eq!(frames.recent.lock().frames.len(), 4);
    }

    #[test]
    fn the_oldest_are_forgotten_first_by_their_number_and_by_their_size() {
        let frames = Frames::default();
        let held =
            || frames.recent.lock().frames.iter().map(|frame| frame.event.revision).collect::<Vec<_>>();
        let count = RECENT as Revision;
        (1..=count + 2).for_each(|revision| drop(frames.of(&event(revision, 1))));
        assert_eq!((held().first(), held().len()), (Some(&3), RECENT));
        // Whoever is far behind does not take the place of what others are about to need.
        frames.of(&event(1, 1));
        assert_eq!((held().first(), held().len()), (Some(&3), RECENT));
        frames.of(&event(count + 3, RECENT_BYTES - 200));
        assert_eq!(held(), [count + 3]);
    }
}
