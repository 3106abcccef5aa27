use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use parking_lot::RwLock;
use serde::Serialize;
use serde::de::DeserializeOwned;
use watchkeeper_core::json::path_at;
use watchkeeper_core::{Document, Header, Projection};

use crate::dictionary::Dictionary;
use crate::metadata::Metadata;
use crate::metrics::StoreMetrics;
use crate::object::{AnyValue, DecodeError, Object, Record};
use crate::recent::Recent;
use crate::store::Readable;

/// The representation of objects in a store. Chosen per informer; reads are the same with each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Policy {
    /// The JSON bytes as they came, reduced by the source's projection. Decoded when read; the last few decoded values
    /// are kept. The right choice for most kinds: the memory is about that of the JSON.
    #[default]
    Packed,
    /// As [`Packed`](Self::Packed), compressed with a dictionary that is learned from the first objects of the kind.
    /// A fifth of the memory or less; a read costs a few microseconds more. For kinds with very many objects, most of
    /// which are seldom read. Until there are enough objects to learn from, they are held packed. Needs the feature
    /// `compressed`.
    #[cfg(feature = "compressed")]
    Compressed,
    /// Decoded on arrival and kept as an `Arc`. For small hot kinds. An object that cannot be decoded never
    /// replaces the last state that could.
    Typed,
    /// Only `metadata`, packed. For kinds of which only names, labels, owners or versions matter.
    Metadata,
}

impl Policy {
    /// Whether objects are compressed.
    pub(crate) fn compresses(self) -> bool {
        #[cfg(feature = "compressed")]
        return self == Self::Compressed;
        #[cfg(not(feature = "compressed"))]
        false
    }
}

/// How the body of a record is held.
pub(crate) enum Body {
    Typed {
        value: AnyValue,
        /// The JSON of `metadata`, so that it can be read without knowing the type.
        metadata: Box<[u8]>,
        json_bytes: u32,
    },
    Plain {
        json: Box<[u8]>,
        metadata: Range<u32>,
    },
    Compressed {
        bytes: Box<[u8]>,
        json_bytes: u32,
        metadata: Range<u32>,
        dictionary: Arc<Dictionary>,
    },
}

impl Body {
    /// Bytes held, as far as they can be known: of a typed value, the size of its JSON.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Typed { json_bytes, .. } => *json_bytes as usize,
            Self::Plain { json, .. } => json.len(),
            Self::Compressed { bytes, .. } => bytes.len(),
        }
    }
}

/// Makes a value of JSON. With [`Transform`], all that is compiled for each type.
pub(crate) type Decode = fn(&[u8]) -> Result<AnyValue, String>;

pub(crate) fn decode_any<K: Readable>(json: &[u8]) -> Result<AnyValue, String> {
    decode::<K>(json).map(|value| Arc::new(value) as AnyValue)
}

/// Makes something of JSON, or says why not.
type OfJson<T> = Box<dyn Fn(&[u8]) -> Result<T, String> + Send + Sync>;

/// A change made to every object before anyone sees it.
pub(crate) struct Transform {
    /// Decodes and changes.
    value: OfJson<AnyValue>,
    /// Decodes, changes and encodes.
    json: OfJson<Vec<u8>>,
}

impl Transform {
    pub(crate) fn new<K: Readable + Serialize>(change: impl Fn(&mut K) + Send + Sync + 'static) -> Self {
        let changed = Arc::new(move |json: &[u8]| {
            let mut value: K = decode(json)?;
            change(&mut value);
            Ok::<K, String>(value)
        });
        let value = Arc::clone(&changed);
        Self {
            value: Box::new(move |json| value(json).map(|value| Arc::new(value) as AnyValue)),
            json: Box::new(move |json| {
                serde_json::to_vec(&changed(json)?)
                    .map_err(|_| "cannot be encoded after the transform".into())
            }),
        }
    }
}

/// How far learning a dictionary has come.
enum Learned {
    NotYet,
    Dictionary(Arc<Dictionary>),
    /// The objects have too little in common.
    Nothing,
}

/// Turns documents into objects and objects into values, for one store.
pub(crate) struct Codec {
    pub(crate) policy: Policy,
    check: bool,
    decode: Decode,
    transform: Option<Transform>,
    recent: Recent,
    dictionary: RwLock<Learned>,
    metrics: Arc<StoreMetrics>,
}

impl Codec {
    pub(crate) fn new(
        policy: Policy,
        check: bool,
        decode: Decode,
        transform: Option<Transform>,
        recent: usize,
        metrics: Arc<StoreMetrics>,
    ) -> Self {
        Self {
            policy,
            check,
            decode,
            transform,
            recent: Recent::new(recent),
            dictionary: RwLock::new(Learned::NotYet),
            metrics,
        }
    }

    /// Makes an object of a document, as the policy says. This is the one place where a transform is applied.
    pub(crate) fn pack(self: &Arc<Self>, document: Document) -> Result<Object, DecodeError> {
        let Document { header, body, metadata, .. } = document;
        let body = match (self.policy, &self.transform) {
            (Policy::Typed, transform) => {
                let value = match transform {
                    Some(transform) => self.counted(&header, || (transform.value)(&body))?,
                    None => self.decode(&header, &body)?,
                };
                let span = metadata.start as usize..metadata.end as usize;
                Body::Typed {
                    value,
                    metadata: body.get(span).unwrap_or_default().into(),
                    json_bytes: body.len() as u32,
                }
            }
            (Policy::Metadata, None) => self.plain(&header, only_metadata(&body, &metadata))?,
            (_, None) => self.plain(&header, (body, metadata))?,
            (_, Some(transform)) => self.plain(&header, self.transformed(&header, &body, transform)?)?,
        };
        Ok(Object::new(header, body, Arc::clone(self)))
    }

    fn plain(&self, header: &Header, (json, metadata): (Box<[u8]>, Range<u32>)) -> Result<Body, DecodeError> {
        if self.check {
            self.decode(header, &json)?;
        }
        let body = Body::Plain { json, metadata };
        if !self.policy.compresses() {
            return Ok(body);
        }
        Ok(match &*self.dictionary.read() {
            Learned::Dictionary(dictionary) => compress(&body, dictionary).unwrap_or(body),
            Learned::NotYet | Learned::Nothing => body,
        })
    }

    fn transformed(
        &self,
        header: &Header,
        body: &[u8],
        transform: &Transform,
    ) -> Result<(Box<[u8]>, Range<u32>), DecodeError> {
        let failed = |detail: String| DecodeError { key: header.key.clone(), detail };
        let json = self.counted(header, || (transform.json)(body))?;
        let projection = match self.policy {
            Policy::Metadata => Projection::everything().metadata_only(),
            _ => Projection::everything(),
        };
        let document = Document::read(&json, &projection)
            .map_err(|unreadable| failed(format!("is no object after the transform: {unreadable}")))?;
        Ok((document.body, document.metadata))
    }

    /// The value of a record: from the record, from the recently decoded ones, or decoded now.
    pub(crate) fn value(&self, record: &Arc<Record>) -> Result<AnyValue, DecodeError> {
        if let Body::Typed { value, .. } = &record.body {
            return Ok(Arc::clone(value));
        }
        if let Some(value) = self.recent.get(record) {
            return Ok(value);
        }
        let json = self.json_of(record)?;
        let value = self.decode(&record.header, &json)?;
        self.recent.put(record, &value);
        Ok(value)
    }

    pub(crate) fn metadata(&self, record: &Record) -> Result<Metadata, DecodeError> {
        let json = self.json_of(record)?;
        let metadata = match &record.body {
            Body::Typed { .. } => &json[..],
            Body::Plain { metadata, .. } | Body::Compressed { metadata, .. } => {
                json.get(metadata.start as usize..metadata.end as usize).unwrap_or_default()
            }
        };
        decode(metadata).map_err(|detail| DecodeError { key: record.header.key.clone(), detail })
    }

    pub(crate) fn json<'r>(&self, record: &'r Record) -> Option<Cow<'r, [u8]>> {
        if matches!(record.body, Body::Typed { .. }) { None } else { self.json_of(record).ok() }
    }

    /// The bytes of the whole object; of a typed one, those of its metadata.
    fn json_of<'r>(&self, record: &'r Record) -> Result<Cow<'r, [u8]>, DecodeError> {
        match &record.body {
            Body::Typed { metadata, .. } => Ok(Cow::Borrowed(metadata)),
            Body::Plain { json, .. } => Ok(Cow::Borrowed(json)),
            Body::Compressed { bytes, json_bytes, dictionary, .. } => {
                dictionary.decompress(bytes, *json_bytes as usize).map(Cow::Owned).map_err(|_| {
                    self.metrics.decode_failures.inc();
                    DecodeError { key: record.header.key.clone(), detail: "cannot be decompressed".into() }
                })
            }
        }
    }

    fn decode(&self, header: &Header, json: &[u8]) -> Result<AnyValue, DecodeError> {
        self.counted(header, || (self.decode)(json))
    }

    fn counted<T>(
        &self,
        header: &Header,
        decode: impl FnOnce() -> Result<T, String>,
    ) -> Result<T, DecodeError> {
        self.metrics.decodes.inc();
        decode().map_err(|detail| {
            self.metrics.decode_failures.inc();
            DecodeError { key: header.key.clone(), detail }
        })
    }

    /// Whether there is a dictionary to be learned.
    pub(crate) fn wants_dictionary(&self) -> bool {
        self.policy.compresses() && matches!(*self.dictionary.read(), Learned::NotYet)
    }

    /// From now on new objects are compressed.
    pub(crate) fn install(&self, dictionary: Dictionary) {
        *self.dictionary.write() = Learned::Dictionary(Arc::new(dictionary));
    }

    /// The objects stay packed as they are.
    pub(crate) fn give_up_compression(&self) {
        *self.dictionary.write() = Learned::Nothing;
    }

    /// The same object, compressed, if it is held plain and compression pays.
    pub(crate) fn repack(self: &Arc<Self>, object: &Object) -> Option<Object> {
        let Learned::Dictionary(dictionary) = &*self.dictionary.read() else {
            return None;
        };
        let record = object.record();
        let body = compress(&record.body, dictionary)?;
        Some(Object::new(record.header.clone(), body, Arc::clone(self)))
    }
}

fn compress(body: &Body, dictionary: &Arc<Dictionary>) -> Option<Body> {
    let Body::Plain { json, metadata } = body else {
        return None;
    };
    let bytes = dictionary.compress(json)?;
    Some(Body::Compressed {
        bytes,
        json_bytes: json.len() as u32,
        metadata: metadata.clone(),
        dictionary: Arc::clone(dictionary),
    })
}

fn only_metadata(body: &[u8], metadata: &Range<u32>) -> (Box<[u8]>, Range<u32>) {
    const OPEN: &[u8] = br#"{"metadata":"#;
    let metadata = body.get(metadata.start as usize..metadata.end as usize).unwrap_or(b"{}");
    let json = [OPEN, metadata, b"}"].concat().into_boxed_slice();
    (json, OPEN.len() as u32..(OPEN.len() + metadata.len()) as u32)
}

/// Decodes JSON. The error names the field and what was expected there, never the value.
pub fn decode<T: DeserializeOwned>(json: &[u8]) -> Result<T, String> {
    serde_json::from_slice(json).map_err(|error| explain(&error, json))
}

/// Which field a decoder gave up at, and what it expected there. Only a failure pays for finding the field.
fn explain(error: &serde_json::Error, json: &[u8]) -> String {
    let message = error.to_string();
    if message.starts_with("trailing characters") {
        return "characters after the end".to_owned();
    }
    let before = json.split_inclusive(|byte| *byte == b'\n').take(error.line().saturating_sub(1));
    let offset = before.map(<[u8]>::len).sum::<usize>() + error.column();
    format!("{}: {}", path_at(json, offset), without_content(&message))
}

/// What a decoder's message says about the type, without what it says about the value.
fn without_content(message: &str) -> &str {
    match message.rfind(", expected ") {
        Some(at) => message[at + 2..].split(" at line ").next().unwrap_or_default(),
        None if message.starts_with("missing field") => {
            message.split_once(" at line ").map_or(message, |(message, _)| message)
        }
        None => "not as expected",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    #[allow(dead_code)]
    struct Sample {
        spec: Spec,
    }

    #[derive(Debug, Deserialize)]
    #[allow(dead_code)]
    struct Spec {
        replicas: u32,
        mode: Mode,
    }

    #[derive(Debug, Deserialize)]
    enum Mode {
        Fast,
    }

    #[test]
    fn a_decode_error_names_the_field_and_hides_the_value() {
        for (json, expected) in [
            (r#"{"spec":{"replicas":"hunter2"}}"#, "spec.replicas: expected u32"),
            (r#"{"spec":{"replicas":1,"mode":"hunter2"}}"#, "spec.mode: expected `Fast`"),
            (r#"{"spec":{"replicas":1}}"#, "spec: missing field `mode`"),
            (r#"{"spec":{"replicas":-1,"mode":"Fast"}}"#, "spec.replicas: expected u32"),
            (r#"{"spec":{"replicas":{"hunter2":1},"mode":"Fast"}}"#, "spec.replicas: expected u32"),
            ("{\n \"spec\": {\n  \"replicas\": [1],\n \"mode\": \"Fast\" } }", "spec.replicas: expected u32"),
            (r#"{"spec":null}"#, "spec: expected struct Spec"),
            (r#"{}"#, ".: missing field `spec`"),
            (r#"{"spec":{"replicas":1,"mode":"Fast"}} x"#, "characters after the end"),
            (r#"{"spec":"hunter2, expected nothing"}"#, "spec: expected struct Spec"),
        ] {
            let detail = decode::<Sample>(json.as_bytes()).unwrap_err();
            assert!(detail.starts_with(expected), "{detail}");
            assert!(!detail.contains("hunter2"), "{detail}");
        }
    }
}
