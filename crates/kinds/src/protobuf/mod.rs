//! The protobuf encoding of the built-in kinds, which typed clients speak unless they are told otherwise.
//!
//! [`decode`] and [`encode`] go between `application/vnd.kubernetes.protobuf` and the JSON of an object. They know every
//! kind of [`all`](crate::all), the lists of these, and what else goes over the wire beside them: `Status`,
//! `DeleteOptions`, `Scale`, `Eviction`, `TokenRequest`, `PartialObjectMetadata` and its list, `List`, and the documents of
//! discovery. Custom resources have no protobuf encoding.
//!
//! What [`decode`] gives is what Go writes as JSON after it has read the bytes; what [`encode`] gives is what Go writes, byte
//! for byte, after it has read the JSON. Protobuf does not tell an empty list or map from none at all, so neither comes
//! back.
//!
//! ```
//! use serde_json::json;
//! use watchkeeper_kinds::protobuf;
//!
//! let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"key": "value"}});
//! let bytes = protobuf::encode(&object).unwrap();
//! assert!(protobuf::is_envelope(&bytes));
//! assert_eq!(protobuf::decode(&bytes).unwrap(), object);
//! ```

mod clock;
mod list;
mod message;
mod read;
mod scalar;
mod write;

use crate::Error;
use read::Decoder;
use scalar::last_bytes;
use serde_json::Value;
use watchkeeper_wire::protobuf::Writer;

pub use list::List;

/// What every encoded object begins with.
const MAGIC: &[u8; 4] = b"k8s\0";

/// Whether these bytes begin as encoded objects do.
pub fn is_envelope(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// The JSON of an encoded object, with its `apiVersion` and `kind`.
///
/// Fields that would be empty are there or not as in the JSON of the Go type. Fields that this version of Kubernetes does
/// not know are passed over.
///
/// # Errors
///
/// [`Error::UnknownKind`] for a kind that has no protobuf encoding here, [`Error::Decode`] for bytes that are no object of
/// the kind they say. No bytes make this panic, recurse without end, or take memory out of proportion to their number.
pub fn decode(bytes: &[u8]) -> Result<Value, Error> {
    let Some(unknown) = bytes.strip_prefix(MAGIC) else {
        return Err(Error::Decode(
            "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]".into(),
        ));
    };
    if unknown.is_empty() {
        return Err(Error::Decode("empty body".into()));
    }
    let type_meta = last_bytes(unknown, 1)?.unwrap_or_default();
    let text = |field| last_bytes(type_meta, field).map(|text| scalar::text(text.unwrap_or_default()));
    let (api_version, kind) = (text(1)?, text(2)?);
    if kind.is_empty() || api_version.is_empty() {
        let missing = if kind.is_empty() { "Kind" } else { "apiVersion" };
        return Err(Error::Decode(format!(
            "Object '{missing}' is missing in 'runtime.TypeMeta{{APIVersion:{api_version:?}, Kind:{kind:?}}}'"
        )));
    }
    let Some(place) = message::of_kind(&api_version, &kind) else {
        return Err(Error::UnknownKind { api_version, kind });
    };
    let raw = last_bytes(unknown, 2)?.unwrap_or_default();
    let mut object = Decoder::new(raw).object(place, raw)?;
    object["apiVersion"] = api_version.into();
    object["kind"] = kind.into();
    Ok(object)
}

/// An object in protobuf, by its `apiVersion` and `kind`.
///
/// `None` if the kind has no protobuf encoding, as custom resources have none, or if a value is not of the type that the
/// kind wants, which [`Kind::coerce`](crate::Kind::coerce) finds out before an object is kept.
pub fn encode(object: &Value) -> Option<Vec<u8>> {
    let (api_version, kind) = (object["apiVersion"].as_str().unwrap_or_default(), object["kind"].as_str()?);
    let place = message::of_kind(api_version, kind)?;
    let mut message = Writer::default();
    write::fields(&mut message, place.message(), object.as_object()?)?;
    Some(envelope(api_version, kind, &message.bytes))
}

/// One event of a watch in protobuf, as a frame of the stream: the length in four bytes, then the event.
///
/// `None` where [`encode`] gives none.
pub fn watch_frame(event_type: &str, object: &Value) -> Option<Vec<u8>> {
    let object = encode(object)?;
    let mut event = Writer { bytes: vec![0; 4] };
    event.delimited(1, event_type.as_bytes());
    event.message(2, |writer| {
        writer.delimited(1, &object);
        Some(())
    })?;
    let length = u32::try_from(event.bytes.len() - 4).ok()?;
    event.bytes[..4].copy_from_slice(&length.to_be_bytes());
    Some(event.bytes)
}

/// What follows the object in its envelope: two fields about other encodings of it.
const END: &[u8] = &[0x1a, 0, 0x22, 0];

/// The outermost message, which says what is in it.
fn envelope(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let mut bytes = begin_envelope(api_version, kind, raw.len());
    bytes.reserve_exact(raw.len() + END.len());
    bytes.extend_from_slice(raw);
    bytes.extend_from_slice(END);
    bytes
}

/// The beginning of an envelope around so many bytes.
fn begin_envelope(api_version: &str, kind: &str, length: usize) -> Vec<u8> {
    let mut type_meta = Writer::default();
    type_meta.delimited(1, api_version.as_bytes());
    type_meta.delimited(2, kind.as_bytes());
    let mut writer = Writer::default();
    writer.bytes.extend_from_slice(MAGIC);
    writer.delimited(1, &type_meta.bytes);
    writer.begin(2, length);
    writer.bytes
}
