use std::any::{Any, type_name};
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use watchkeeper_core::{Header, Key, Uid, Version};

use crate::codec::{Body, Codec};
use crate::metadata::Metadata;
use crate::store::Readable;

/// A decoded object without its type. The reader downcasts it.
pub type AnyValue = Arc<dyn Any + Send + Sync>;

/// Stands for a type that is not known at compile time, in handles such as `Object<Untyped>`.
///
/// Everything below the handles is compiled once, for this: a store, its writer and its subscribers move states around without
/// knowing what is in them. [`Object::untyped`] and [`Object::typed`] lead from one form of a handle to the other; both cost
/// nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Untyped {}

/// One state of one object in the store.
///
/// A handle: cloning it is a reference count, and the state behind it never changes. What identifies the object and
/// what most filters ask for is read without decoding anything; [`get`](Self::get) decodes the rest when it is needed,
/// at most once for as long as the value is in use or among the store's recently decoded ones.
///
/// ```
/// use serde_json::Value;
/// use watchkeeper_informer::{DecodeError, Object};
///
/// fn size(widget: &Object<Value>) -> Result<Option<u64>, DecodeError> {
///     println!("{} at {}", widget.key(), widget.version());
///     Ok(widget.get()?["spec"]["size"].as_u64())
/// }
/// ```
pub struct Object<K = Untyped> {
    record: Arc<Record>,
    kind: PhantomData<fn() -> K>,
}

pub(crate) struct Record {
    pub(crate) header: Header,
    pub(crate) body: Body,
    pub(crate) codec: Arc<Codec>,
}

/// The error of an object whose body does not match the type that it is read as.
///
/// The message names the object and the field, and says what was expected there; it never shows what was found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {detail}")]
#[non_exhaustive]
pub struct DecodeError {
    /// The key of the object.
    pub key: Key,
    /// The field, and what was expected there.
    pub detail: String,
}

impl Object {
    pub(crate) fn new(header: Header, body: Body, codec: Arc<Codec>) -> Self {
        Self { record: Arc::new(Record { header, body, codec }), kind: PhantomData }
    }

    /// This state, to be read as `K`. If its store was made for another type, [`Object::get`] fails.
    pub fn typed<K>(self) -> Object<K> {
        Object { record: self.record, kind: PhantomData }
    }
}

impl<K> Object<K> {
    pub(crate) fn record(&self) -> &Arc<Record> {
        &self.record
    }

    /// This state without its type.
    pub fn untyped(self) -> Object {
        Object { record: self.record, kind: PhantomData }
    }

    /// The key of the object.
    pub fn key(&self) -> &Key {
        &self.record.header.key
    }

    /// The uid of the object, if the source tells incarnations apart.
    pub fn uid(&self) -> Option<&Uid> {
        self.record.header.uid.as_ref()
    }

    /// The version of the state.
    pub fn version(&self) -> &Version {
        &self.record.header.version
    }

    /// Moves when the desired state moves; 0 if the object has none.
    pub fn generation(&self) -> i64 {
        self.record.header.generation
    }

    /// Whether its deletion was asked for and waits for finalizers.
    pub fn is_deleting(&self) -> bool {
        self.record.header.deleting
    }

    /// The uids of its owners.
    pub fn owners(&self) -> &[Uid] {
        &self.record.header.owners
    }

    /// The decoded object, as [`get`](Object::get) returns it, of the type that the store was made for.
    pub fn value(&self) -> Result<AnyValue, DecodeError> {
        self.record.codec.value(&self.record)
    }

    /// Labels, annotations and the rest of `metadata`, without decoding the rest of the object.
    pub fn metadata(&self) -> Result<Metadata, DecodeError> {
        self.record.codec.metadata(&self.record)
    }

    /// The object as JSON, if it is not held typed.
    pub fn json(&self) -> Option<Cow<'_, [u8]>> {
        self.record.codec.json(&self.record)
    }

    /// Whether both are the same incarnation of one object. Without uids, objects under one key are taken as the same.
    pub fn is_same_incarnation(&self, other: &Self) -> bool {
        same_incarnation(&self.record.header, &other.record.header)
    }

    /// Whether both are known to be the same state of one object.
    pub fn is_same_state(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.record, &other.record) || same_state(&self.record.header, &other.record.header)
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

impl<K: Readable> Object<K> {
    /// The decoded object. Decodes once at the most, and not at all if the object was decoded lately or is held typed.
    pub fn get(&self) -> Result<Arc<K>, DecodeError> {
        self.value()?.downcast().map_err(|_| DecodeError {
            key: self.key().clone(),
            detail: format!("its store holds values of another type than {}", type_name::<K>()),
        })
    }
}

impl<K> Clone for Object<K> {
    fn clone(&self) -> Self {
        Self { record: Arc::clone(&self.record), kind: PhantomData }
    }
}

/// Shows which state this is, never what is in it.
impl<K> fmt::Debug for Object<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.key(), self.version())
    }
}
