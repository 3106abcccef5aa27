use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use watchkeeper_core::{Header, Key, Uid, Version};

use crate::codec::{Body, Codec};
use crate::metadata::Metadata;

/// One state of one object, as the store holds it.
///
/// A handle: cloning it is a reference count, and the state behind it never changes. What identifies the object and
/// what most filters ask for is read without decoding anything; [`get`](Self::get) decodes the rest when it is needed,
/// at most once for as long as the value is in use or among the store's recently decoded ones.
pub struct Object<K>(Arc<Record<K>>);

pub(crate) struct Record<K> {
    pub(crate) header: Header,
    pub(crate) body: Body<K>,
    pub(crate) codec: Arc<Codec<K>>,
}

/// An object whose body is well-formed but not what the type it is read as expects.
///
/// The message names the object and the field, and says what was expected there; it never shows what was found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {detail}")]
pub struct DecodeError {
    /// Which object.
    pub key: Key,
    /// Which field, and what was expected.
    pub detail: String,
}

impl<K> Object<K> {
    pub(crate) fn new(header: Header, body: Body<K>, codec: Arc<Codec<K>>) -> Self {
        Self(Arc::new(Record { header, body, codec }))
    }

    pub(crate) fn record(&self) -> &Arc<Record<K>> {
        &self.0
    }

    /// Which object.
    pub fn key(&self) -> &Key {
        &self.0.header.key
    }

    /// Which incarnation of it, if the source tells incarnations apart.
    pub fn uid(&self) -> Option<&Uid> {
        self.0.header.uid.as_ref()
    }

    /// Which state of it.
    pub fn version(&self) -> &Version {
        &self.0.header.version
    }

    /// Moves when the desired state moves; 0 if the object has none.
    pub fn generation(&self) -> i64 {
        self.0.header.generation
    }

    /// Whether its deletion was asked for and waits for finalizers.
    pub fn is_deleting(&self) -> bool {
        self.0.header.deleting
    }

    /// The uids of its owners.
    pub fn owners(&self) -> &[Uid] {
        &self.0.header.owners
    }

    /// Whether both are the same incarnation of one object. Without uids, objects under one key are taken as the same.
    pub fn is_same_incarnation(&self, other: &Self) -> bool {
        same_incarnation(&self.0.header, &other.0.header)
    }

    /// Whether both are known to be the same state of one object.
    pub fn is_same_state(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || same_state(&self.0.header, &other.0.header)
    }
}

pub(crate) fn same_incarnation(left: &Header, right: &Header) -> bool {
    left.key == right.key && (left.uid == right.uid || left.uid.is_none() || right.uid.is_none())
}

pub(crate) fn same_state(left: &Header, right: &Header) -> bool {
    left.key == right.key
        && left.uid == right.uid
        && left.version == right.version
        && !left.version.is_empty()
}

impl<K: DeserializeOwned + Send + Sync + 'static> Object<K> {
    /// The decoded object. Costs one decode at the most, none if it was decoded lately or is held typed.
    pub fn get(&self) -> Result<Arc<K>, DecodeError> {
        self.0.codec.value(&self.0)
    }

    /// Labels, annotations and the rest of `metadata`, without decoding the rest of the object.
    pub fn metadata(&self) -> Result<Metadata, DecodeError> {
        self.0.codec.metadata(&self.0)
    }

    /// The object as JSON, if it is not held typed.
    pub fn json(&self) -> Option<Cow<'_, [u8]>> {
        self.0.codec.json(&self.0)
    }
}

impl<K> Clone for Object<K> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// Shows which state this is, never what is in it.
impl<K> fmt::Debug for Object<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.key(), self.version())
    }
}
