use std::fmt;

use bytes::Bytes;

/// A point in the history of a storage: greater with every commit that changes something.
pub type Revision = u64;

/// The value of a key after one commit. Shared, never changed.
#[derive(Clone, PartialEq, Eq)]
pub struct Entry {
    /// The key, a path such as `/registry/example.com/widgets/default/a`.
    pub key: Box<str>,
    /// The value. Opaque.
    pub value: Bytes,
    /// The revision that brought the key into being. A delete ends that life; a later put begins another.
    pub created: Revision,
    /// The revision that wrote this value.
    pub modified: Revision,
}

/// The value's length stands for the value, which may be a secret.
impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, value, created, modified } = self;
        write!(f, "{key}@{created}..{modified} ({} bytes)", value.len())
    }
}
