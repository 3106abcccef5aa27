//! Lists in protobuf, written one object at a time.

use super::message::{self, Field, Message};
use super::{END, begin_envelope, write};
use serde_json::Value;
use watchkeeper_wire::protobuf::Writer;

/// Writes lists of a kind in protobuf, piece by piece, so that neither all objects nor their whole encoding have to be in
/// memory: [`begin`](Self::begin), then every [`item`](Self::item), then [`END`](Self::END).
///
/// The first bytes contain the length of the whole list, so the length of the items must be known before the first of them is sent.
///
/// ```
/// use serde_json::json;
/// use watchkeeper_kinds::protobuf::{List, decode};
///
/// let list = List::new("v1", "NamespaceList").unwrap();
/// let mut items = Vec::new();
/// assert!(list.item(&json!({"metadata": {"name": "a"}}), &mut items));
/// let mut bytes = list.begin(&json!({"resourceVersion": "7"}), items.len()).unwrap();
/// bytes.extend(items);
/// bytes.extend(List::END);
/// assert_eq!(decode(&bytes).unwrap()["items"][0]["metadata"]["name"], "a");
/// ```
pub struct List {
    api_version: String,
    kind: String,
    message: &'static Message,
    items: &'static Field,
}

impl List {
    /// The bytes after the last item.
    pub const END: &[u8] = END;

    /// A kind of lists; `None` if it has no protobuf encoding.
    pub fn new(api_version: &str, kind: &str) -> Option<Self> {
        let message = message::of_kind(api_version, kind)?.message();
        let items = message.field_named("items")?;
        Some(Self { api_version: api_version.to_owned(), kind: kind.to_owned(), message, items })
    }

    /// The bytes before `items` bytes of items: the type, and the metadata of the list, an object or null. `None` if a value in
    /// the metadata has a wrong type.
    pub fn begin(&self, metadata: &Value, items: usize) -> Option<Vec<u8>> {
        let mut raw = Writer::default();
        write::field(&mut raw, self.message.field_named("metadata")?, Some(metadata))?;
        let mut bytes = begin_envelope(&self.api_version, &self.kind, raw.bytes.len() + items);
        bytes.extend_from_slice(&raw.bytes);
        Some(bytes)
    }

    /// Writes an object, of which the list does not keep `apiVersion` and `kind`. `false` if a value is not of the type that
    /// the kind wants; nothing is written then.
    #[must_use]
    pub fn item(&self, item: &Value, out: &mut Vec<u8>) -> bool {
        let before = out.len();
        let mut writer = Writer { bytes: std::mem::take(out) };
        let is_written = write::element(&mut writer, self.items, item).is_some();
        *out = writer.bytes;
        if !is_written {
            out.truncate(before);
        }
        is_written
    }
}
