//! From stored bytes to what clients see.

use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;
use watchkeeper_storage::{Entry, Revision};
use watchkeeper_table::Partial;

use super::{Nature, Resource};
use crate::crd::{self, Conversion};
use crate::object::order::Order;
use crate::object::record::{self, Record};
use crate::status_error::StatusError;

/// The fingerprint of every built-in object: their schemas change only with the program.
const BUILTIN: u64 = 1;

/// An object of which all else is passed over.
#[derive(serde::Deserialize)]
struct OnlyMetadata<T> {
    metadata: T,
}

/// What the metadata of an object is served as, up to the metadata.
const PARTIAL: &[u8] = br#"{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":"#;

/// A stored object that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{key} cannot be read: {reason}")]
pub(crate) struct Unreadable {
    key: String,
    reason: String,
}

impl Unreadable {
    /// A stored object that is not of the types that its kind wants.
    pub(crate) fn misfit(key: &str) -> Self {
        unreadable(key, "it has a value of another type than its kind wants")
    }
}

impl From<Unreadable> for StatusError {
    fn from(unreadable: Unreadable) -> Self {
        Self::internal(unreadable.to_string())
    }
}

impl Resource {
    /// The stored form of an object, in this version.
    pub(crate) fn encode(&self, object: &Value) -> bytes::Bytes {
        match &self.nature {
            Nature::Builtin(kind) if kind.stored_as.is_some() => {
                record::encode(&kind.to_stored(object.clone()), BUILTIN)
            }
            Nature::Builtin(_) => record::encode(object, BUILTIN),
            Nature::Custom(installed, index) => {
                record::encode(object, installed.definition.versions[*index].fingerprint)
            }
        }
    }

    /// Whether the stored bytes are what this version serves, but for the `apiVersion`.
    fn serves(&self, record: &Record<'_>) -> bool {
        match &self.nature {
            Nature::Builtin(kind) => kind.stored_as.is_none(),
            Nature::Custom(installed, index) => {
                record.fingerprint == installed.definition.versions[*index].fingerprint
                    && (!self.converts_by_webhook() || self.is_stored_in(record))
            }
        }
    }

    /// Whether a webhook converts its objects from version to version.
    pub(crate) fn converts_by_webhook(&self) -> bool {
        let Nature::Custom(installed, _) = &self.nature else { return false };
        matches!(installed.definition.conversion, Conversion::Webhook(_))
    }

    /// Whether a webhook has to convert a stored object before it can be read as this version.
    pub(crate) fn needs_webhook(&self, entry: &Entry) -> bool {
        self.converts_by_webhook() && Record::read(entry).is_ok_and(|record| !self.is_stored_in(&record))
    }

    fn is_stored_in(&self, record: &Record<'_>) -> bool {
        record.api_version() == Some(self.api_version.as_str())
    }

    /// Whether a stored object may not be what its definition would store now: of another version, or under another schema.
    pub(crate) fn is_outdated(&self, entry: &Entry) -> bool {
        let Nature::Custom(installed, _) = &self.nature else { return false };
        let definition = &installed.definition;
        let (Ok(record), Some(storage)) = (Record::read(entry), definition.storage()) else { return false };
        record.fingerprint != storage.fingerprint
            || record.api_version() != Some(definition.api_version(storage).as_str())
    }

    /// The resource in the version in which an object is stored; `None` if that version is not known any more.
    pub(crate) fn as_stored(&self, entry: &Entry) -> Option<Arc<Self>> {
        let Nature::Custom(installed, _) = &self.nature else { return None };
        let definition = &installed.definition;
        let record = Record::read(entry).ok()?;
        let stored = record.api_version()?;
        let index = definition.versions.iter().position(|known| definition.api_version(known) == stored)?;
        Some(Arc::new(Self::custom(installed, index)))
    }

    /// Writes a stored object as this version serves it, as of a revision.
    pub(crate) fn write_json(
        &self,
        entry: &Entry,
        revision: Revision,
        out: &mut Vec<u8>,
    ) -> Result<(), Unreadable> {
        let record = self.record(entry)?.at(revision);
        let is_builtin = self.builtin_kind().is_some();
        if self.serves(&record) {
            match is_builtin {
                true => record.write_kind_first(&self.api_version, out),
                false => record.write_as(&self.api_version, out),
            }
            return Ok(());
        }
        let object = self.convert(&record, &entry.key)?;
        if is_builtin {
            Order::of(&object).write(&object, out);
        } else {
            // Writing a value to a vector cannot fail.
            let _ = serde_json::to_writer(out, &object);
        }
        Ok(())
    }

    /// Writes a stored object as an item of a list.
    pub(crate) fn write_item(&self, entry: &Entry, out: &mut Vec<u8>) -> Result<(), Unreadable> {
        if self.builtin_kind().is_none() {
            return self.write_json(entry, entry.modified, out);
        }
        let record = self.record(entry)?;
        if self.serves(&record) {
            record.write_untyped(out);
            return Ok(());
        }
        let mut object = self.convert(&record, &entry.key)?;
        let fields = crate::object::meta::fields(&mut object);
        fields.remove("kind");
        fields.remove("apiVersion");
        // Writing a value to a vector cannot fail.
        let _ = serde_json::to_writer(out, &object);
        Ok(())
    }

    /// Writes the metadata of a stored object, as of a revision, as a `PartialObjectMetadata`.
    pub(crate) fn write_partial(
        &self,
        entry: &Entry,
        revision: Revision,
        out: &mut Vec<u8>,
    ) -> Result<(), Unreadable> {
        let record = self.record(entry)?.at(revision);
        if !self.serves(&record) {
            let object = self.convert(&record, &entry.key)?;
            // Writing a value to a vector cannot fail.
            let _ = serde_json::to_writer(out, &Partial(&object));
            return Ok(());
        }
        let json = record.json();
        let only: OnlyMetadata<&RawValue> =
            serde_json::from_slice(&json).map_err(|error| unreadable(&entry.key, error))?;
        out.extend_from_slice(PARTIAL);
        out.extend_from_slice(only.metadata.get().as_bytes());
        out.push(b'}');
        Ok(())
    }

    /// A stored object as this version.
    pub(crate) fn read(&self, entry: &Entry) -> Result<Value, Unreadable> {
        self.read_at(entry, entry.modified)
    }

    /// A stored object as this version, as of a revision.
    pub(crate) fn read_at(&self, entry: &Entry, revision: Revision) -> Result<Value, Unreadable> {
        let record = self.record(entry)?.at(revision);
        if !self.serves(&record) {
            return self.convert(&record, &entry.key);
        }
        let mut json = Vec::with_capacity(record.size() + self.api_version.len());
        record.write_as(&self.api_version, &mut json);
        serde_json::from_slice(&json).map_err(|error| unreadable(&entry.key, error))
    }

    /// A stored object as this version, of which only the metadata is wanted.
    pub(crate) fn read_metadata(&self, entry: &Entry) -> Result<Value, Unreadable> {
        self.read_metadata_at(entry, entry.modified)
    }

    /// A stored object as this version and as of a revision, of which only the metadata is wanted.
    pub(crate) fn read_metadata_at(&self, entry: &Entry, revision: Revision) -> Result<Value, Unreadable> {
        let record = self.record(entry)?.at(revision);
        if !self.serves(&record) {
            return self.convert(&record, &entry.key);
        }
        let only: OnlyMetadata<Value> =
            serde_json::from_slice(&record.json()).map_err(|error| unreadable(&entry.key, error))?;
        Ok(Value::Object([("metadata".to_owned(), only.metadata)].into_iter().collect()))
    }

    /// A stored object of which only the metadata is wanted, in the version in which it is stored.
    pub(crate) fn read_stored_metadata(&self, entry: &Entry) -> Result<Value, Unreadable> {
        let record = self.record(entry)?;
        let only: OnlyMetadata<Value> =
            serde_json::from_slice(&record.json()).map_err(|error| unreadable(&entry.key, error))?;
        Ok(Value::Object([("metadata".to_owned(), only.metadata)].into_iter().collect()))
    }

    fn record<'a>(&self, entry: &'a Entry) -> Result<Record<'a>, Unreadable> {
        Record::read(entry).map_err(|error| unreadable(&entry.key, error))
    }

    /// Reads an object that was written as another version or under another schema.
    fn convert(&self, record: &Record<'_>, key: &str) -> Result<Value, Unreadable> {
        let mut object = record.object().map_err(|error| unreadable(key, error))?;
        match &self.nature {
            Nature::Builtin(kind) => object = kind.from_stored(object),
            Nature::Custom(installed, index) => {
                if self.converts_by_webhook() && !self.is_stored_in(record) {
                    let stored = record.api_version().unwrap_or_default();
                    return Err(unreadable(key, format!("it is stored as {stored} and was not converted")));
                }
                let known = &installed.definition.versions;
                let stored =
                    record.api_version().and_then(|text| text.rsplit('/').next()).unwrap_or_default();
                if let Some(version) = known.iter().find(|version| version.name == stored) {
                    version.schema.prune(&mut object);
                    version.schema.default(&mut object);
                }
                crd::object::convert(&mut object, &self.api_version);
                let version = &known[*index];
                // Its defaults are for those who write it.
                if version.name != stored {
                    version.schema.prune(&mut object);
                }
            }
        }
        Ok(object)
    }
}

fn unreadable(key: &str, reason: impl ToString) -> Unreadable {
    Unreadable { key: key.into(), reason: reason.to_string() }
}
