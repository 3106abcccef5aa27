use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use watchkeeper_etcd::KeyValue;

use super::revision;
use crate::{Entry, Foreign};

/// The layout of keys and values in etcd.
#[derive(Clone, Default)]
pub enum Layout {
    /// As this storage writes them: the key after the prefix, the value as it is.
    #[default]
    Own,
    /// As somebody else does.
    Foreign(Arc<dyn Foreign>),
}

impl fmt::Debug for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Own => "Own",
            Self::Foreign(_) => "Foreign",
        })
    }
}

impl Layout {
    /// The key as the storage knows it.
    pub(super) fn key<'a>(&self, prefix: &str, key: &'a [u8]) -> Option<Cow<'a, str>> {
        match self {
            Self::Own => std::str::from_utf8(key.strip_prefix(prefix.as_bytes())?).ok().map(Cow::Borrowed),
            Self::Foreign(foreign) => foreign.key(prefix, key).map(Cow::Owned),
        }
    }

    /// The value as the storage keeps it.
    pub(super) fn value(&self, prefix: &str, key: &[u8], value: &Bytes) -> Option<Bytes> {
        match self {
            Self::Own => Some(value.clone()),
            Self::Foreign(foreign) => foreign.value(prefix, key, value),
        }
    }

    /// An entry as the storage keeps it.
    pub fn entry(&self, prefix: &str, pair: &KeyValue) -> Option<Entry> {
        Some(Entry {
            key: self.key(prefix, &pair.key)?.into(),
            value: match self {
                // A copy of its own: the value is a small part of a large answer, which it would keep alive.
                Self::Own => Bytes::copy_from_slice(&pair.value),
                Self::Foreign(foreign) => foreign.value(prefix, &pair.key, &pair.value)?,
            },
            created: revision(pair.create_revision),
            modified: revision(pair.mod_revision),
        })
    }
}
