//! Changes as watchers see them.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;
use watchkeeper_kinds::protobuf;
use watchkeeper_storage::{Entry, Event, Revision};

use crate::object::order::Order;
use crate::read::render::{Form, Shape};
use crate::request::media::Format;
use crate::resource::{Frame, Resource, Unreadable};

/// What a watch event says happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventType {
    Added,
    Modified,
    Deleted,
}

impl EventType {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

/// The number of an encoding that is kept. Tables are not: few watch them, and their ages depend on the time.
fn kept(form: Form, event_type: EventType) -> Option<usize> {
    let is_protobuf = usize::from(form.format == Format::Protobuf);
    let form = match form.shape {
        Shape::Object => is_protobuf,
        Shape::Partial => 2 + is_protobuf,
        Shape::Table(_) => return None,
    };
    Some(form * 3 + event_type as usize)
}

/// A change as watchers see it that asked for this form, encoded once for all of them.
pub(crate) fn encode_frame(
    frame: &Frame,
    event: &Event,
    resource: &Resource,
    form: Form,
    event_type: EventType,
    first: bool,
) -> Result<Bytes, Unreadable> {
    frame.bytes(kept(form, event_type), || match shown(event, event_type) {
        Some(entry) => encode(resource, form, event_type, entry, event.revision, first),
        None => Ok(Bytes::new()),
    })
}

/// The object that a watcher is shown: the newest one, or the last one that it knew.
pub(crate) fn shown(event: &Event, event_type: EventType) -> Option<&Arc<Entry>> {
    match event_type {
        EventType::Added | EventType::Modified => event.entry(),
        EventType::Deleted => event.previous(),
    }
}

/// What says what happened to an object. The first of a table names the columns.
pub(crate) fn encode(
    resource: &Resource,
    form: Form,
    event_type: EventType,
    entry: &Entry,
    revision: Revision,
    first: bool,
) -> Result<Bytes, Unreadable> {
    let object = match (form.shape, form.format) {
        (Shape::Object, Format::Json | Format::Yaml) => {
            return line(event_type, entry, |out| resource.write_json(entry, revision, out));
        }
        (Shape::Partial, Format::Json | Format::Yaml) => {
            return line(event_type, entry, |out| resource.write_partial(entry, revision, out));
        }
        (Shape::Partial, _) => resource.read_metadata_at(entry, revision)?,
        _ => resource.read_at(entry, revision)?,
    };
    let shape = form.shape;
    let object = if first { shape.of_one(resource, object) } else { shape.of_next(resource, object) };
    frame(event_type.name(), &object, form.format).ok_or_else(|| Unreadable::misfit(&entry.key))
}

/// An event of a watch: in JSON, a line. `None` if the object has no encoding in this format.
pub(crate) fn frame(kind: &str, object: &Value, format: Format) -> Option<Bytes> {
    if format == Format::Protobuf {
        return protobuf::watch_frame(kind, object).map(Bytes::from);
    }
    let mut line = format!(r#"{{"type":"{kind}","object":"#).into_bytes();
    Order::of(object).write(object, &mut line);
    line.extend_from_slice(b"}\n");
    Some(line.into())
}

/// Like [`frame`], for an object that is JSON already.
fn line(
    event_type: EventType,
    entry: &Entry,
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), Unreadable>,
) -> Result<Bytes, Unreadable> {
    let mut line = Vec::with_capacity(entry.value.len() + 64);
    line.extend_from_slice(br#"{"type":""#);
    line.extend_from_slice(event_type.name().as_bytes());
    line.extend_from_slice(br#"","object":"#);
    write(&mut line)?;
    line.extend_from_slice(b"}\n");
    Ok(line.into())
}
