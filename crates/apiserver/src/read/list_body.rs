//! The body of a list, encoded one object at a time: objects that the client has not read yet are held by the storage only.

use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use serde_json::Value;
use watchkeeper_kinds::protobuf;
use watchkeeper_schema::yaml;
use watchkeeper_storage::Entry;
use watchkeeper_table::{Include, PartialList, Row, Table};

use crate::front::Body;
use crate::read::list::Listed;
use crate::read::render::{Form, Shape};
use crate::request::media::Format;
use crate::resource::{Resource, Unreadable};
use crate::status_error::StatusError;

/// How many bytes of a long list are put together to be sent at once.
const CHUNK: usize = 128 << 10;

/// How many bytes of a list in protobuf are kept while its length is found out. What is beyond is encoded twice.
const KEPT: usize = 4 << 20;

/// How many objects are encoded before others get their turn.
const TURN: usize = 64;

impl Listed {
    /// The list as it is sent. Objects are written as the client takes them.
    pub(crate) async fn body(self, resource: Arc<Resource>, form: Form) -> Result<Body, StatusError> {
        let metadata = self.metadata(&resource);
        let items = match (form.shape, form.format) {
            (Shape::Object, Format::Protobuf) => {
                Items::protobuf(&resource.api_version, &resource.list_kind, false)?
            }
            (Shape::Partial, Format::Protobuf) => {
                Items::protobuf("meta.k8s.io/v1", "PartialObjectMetadataList", true)?
            }
            (Shape::Object, _) => Items::Objects,
            (Shape::Partial, _) => Items::Partial,
            (Shape::Table(include), _) => Items::Rows(include, SystemTime::now()),
        };
        let mut pieces = Pieces { resource, items, entries: self.entries.into_iter(), first: true };
        if let Items::Protobuf(..) = pieces.items {
            return pieces.measured(&metadata).await;
        }
        let mut head = pieces.head(&metadata);
        if form.format == Format::Yaml {
            pieces.fill(&mut head, usize::MAX)?;
            let list = serde_json::from_slice::<Value>(&head)
                .map_err(|error| StatusError::internal(error.to_string()))?;
            return Ok(Body::whole(yaml::encode(&list)));
        }
        let bytes = pieces.stored_bytes();
        if bytes <= CHUNK {
            head.reserve(bytes + 64);
            pieces.fill(&mut head, usize::MAX)?;
            return Ok(Body::whole(head));
        }
        Ok(Body::stream(stream::iter([Bytes::from(head)]).chain(pieces.into_stream())))
    }
}

/// In which form the items of a list are written.
enum Items {
    /// The objects, in JSON.
    Objects,
    /// Their metadata, in JSON.
    Partial,
    /// A row for each, in JSON.
    Rows(Include, SystemTime),
    /// Objects, or their metadata if that is all that is wanted, in protobuf.
    Protobuf(protobuf::List, bool),
}

impl Items {
    fn protobuf(api_version: &str, list_kind: &str, is_partial: bool) -> Result<Self, StatusError> {
        let list = protobuf::List::new(api_version, list_kind);
        // Only built-in resources are listed in protobuf, and all of them have an encoding.
        let list =
            list.ok_or_else(|| StatusError::internal(format!("{list_kind} has no protobuf encoding")))?;
        Ok(Self::Protobuf(list, is_partial))
    }
}

/// What of a list has not been sent yet.
struct Pieces {
    resource: Arc<Resource>,
    items: Items,
    entries: std::vec::IntoIter<Arc<Entry>>,
    first: bool,
}

impl Pieces {
    fn stored_bytes(&self) -> usize {
        self.entries.as_slice().iter().map(|entry| entry.value.len()).sum()
    }

    /// What a list in JSON begins with, up to the first item.
    fn head(&self, metadata: &Value) -> Vec<u8> {
        let resource = &self.resource;
        let empty = match &self.items {
            Items::Partial => serde_json::to_vec(&PartialList { objects: &[], metadata }),
            Items::Rows(include, now) => serde_json::to_vec(&Table {
                printer: resource.printer(),
                objects: &[],
                metadata,
                include: *include,
                headers: true,
                now: *now,
            }),
            Items::Objects | Items::Protobuf(..) => {
                let (kind, version) = (&resource.list_kind, &resource.api_version);
                let head =
                    format!(r#"{{"kind":"{kind}","apiVersion":"{version}","metadata":{metadata},"items":["#);
                return head.into_bytes();
            }
        };
        // Writing to a vector cannot fail: there is no I/O, and all keys are strings.
        let mut empty = empty.unwrap_or_default();
        empty.truncate(empty.len().saturating_sub(2));
        empty
    }

    /// Adds objects until there are `enough` bytes or no more objects; tells whether the latter.
    fn fill(&mut self, out: &mut Vec<u8>, enough: usize) -> Result<bool, Unreadable> {
        let is_protobuf = matches!(self.items, Items::Protobuf(..));
        while out.len() < enough {
            let Some(entry) = self.entries.next() else {
                out.extend_from_slice(if is_protobuf { protobuf::List::END } else { b"]}\n" });
                return Ok(true);
            };
            if !std::mem::take(&mut self.first) && !is_protobuf {
                out.push(b',');
            }
            self.write(&entry, out)?;
        }
        Ok(false)
    }

    fn write(&self, entry: &Entry, out: &mut Vec<u8>) -> Result<(), Unreadable> {
        let resource = &self.resource;
        let written = match &self.items {
            Items::Objects => return resource.write_item(entry, out),
            Items::Partial => return resource.write_partial(entry, entry.modified, out),
            Items::Rows(include, now) => {
                let (printer, object) = (resource.printer(), &resource.read(entry)?);
                serde_json::to_writer(out, &Row { printer, include: *include, object, now: *now })
            }
            Items::Protobuf(list, is_partial) => {
                let object =
                    if *is_partial { resource.read_metadata(entry)? } else { resource.read(entry)? };
                return match list.item(&object, out) {
                    true => Ok(()),
                    false => Err(Unreadable::misfit(&entry.key)),
                };
            }
        };
        // Writing to a vector cannot fail.
        let _ = written;
        Ok(())
    }

    /// A list in protobuf, which begins with its length.
    async fn measured(mut self, metadata: &Value) -> Result<Body, StatusError> {
        let (mut kept, mut beyond, mut is_full) = (Vec::new(), 0, false);
        let mut count = 0;
        for (index, entry) in self.entries.as_slice().iter().enumerate() {
            let before = kept.len();
            self.write(entry, &mut kept)?;
            is_full |= kept.len() > KEPT;
            if is_full {
                beyond += kept.len() - before;
                kept.truncate(before);
            } else {
                count = index + 1;
            }
            if index % TURN == TURN - 1 {
                tokio::task::yield_now().await;
            }
        }
        let Items::Protobuf(list, _) = &self.items else { return Ok(Body::empty()) };
        let head = list.begin(metadata, kept.len() + beyond);
        let mut head =
            head.ok_or_else(|| StatusError::internal("the metadata of a list does not fit its type"))?;
        if kept.len() <= CHUNK && !is_full {
            head.append(&mut kept);
            head.extend_from_slice(protobuf::List::END);
            return Ok(Body::whole(head));
        }
        self.entries.by_ref().take(count).for_each(drop);
        let known = stream::iter([Bytes::from(head), Bytes::from(kept)]);
        Ok(Body::stream(known.chain(self.into_stream())))
    }

    fn into_stream(self) -> impl Stream<Item = Bytes> + Send + 'static {
        stream::unfold(Some(self), |pieces| async move {
            let mut pieces = pieces?;
            let mut chunk = Vec::with_capacity(CHUNK + CHUNK / 4);
            match pieces.fill(&mut chunk, CHUNK) {
                Ok(true) => Some((Bytes::from(chunk), None)),
                Ok(false) => Some((Bytes::from(chunk), Some(pieces))),
                // The status has been sent; a list that is cut off cannot be read, and the client sees that.
                Err(error) => {
                    tracing::error!(%error, "list aborted: an object could not be encoded");
                    None
                }
            }
        })
    }
}
