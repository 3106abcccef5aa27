//! Lists in protobuf, written one object at a time.

use super::message::{self, Field, Message};
use super::wire::Writer;
use super::{envelope, write};
use serde_json::Value;

/// A list in protobuf that takes its objects one by one, so that they need not all be there as JSON at once.
///
/// ```
/// use serde_json::json;
/// use watchkeeper_kinds::protobuf::{List, decode};
///
/// let mut list = List::new("v1", "NamespaceList").unwrap();
/// assert!(list.push(&json!({"metadata": {"name": "a"}})));
/// let bytes = list.finish(&json!({"resourceVersion": "7"})).unwrap();
/// assert_eq!(decode(&bytes).unwrap()["items"][0]["metadata"]["name"], "a");
/// ```
pub struct List {
    api_version: String,
    kind: String,
    message: &'static Message,
    items: &'static Field,
    writer: Writer,
}

impl List {
    /// A list without objects; `None` if the kind of lists has no protobuf encoding.
    pub fn new(api_version: &str, kind: &str) -> Option<Self> {
        let message = message::of_kind(api_version, kind)?.message();
        let items = message.field_named("items")?;
        let (api_version, kind) = (api_version.to_owned(), kind.to_owned());
        Some(Self { api_version, kind, message, items, writer: Writer::default() })
    }

    /// Adds an object, of which the list does not keep `apiVersion` and `kind`. `false` if a value is not of the type that
    /// the kind wants; the list is then as it was before.
    #[must_use]
    pub fn push(&mut self, item: &Value) -> bool {
        let before = self.writer.bytes.len();
        let is_written = write::element(&mut self.writer, self.items, item).is_some();
        if !is_written {
            self.writer.bytes.truncate(before);
        }
        is_written
    }

    /// The list with its metadata, an object or null.
    pub fn finish(self, metadata: &Value) -> Option<Vec<u8>> {
        let mut raw = Writer { bytes: Vec::with_capacity(self.writer.bytes.len() + 64) };
        write::field(&mut raw, self.message.field_named("metadata")?, Some(metadata))?;
        raw.bytes.extend_from_slice(&self.writer.bytes);
        Some(envelope(&self.api_version, &self.kind, &raw.bytes))
    }
}
