use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::{Entry, Error, Revision};

/// The most that the keys and values of one commit may amount to.
pub const MAX_COMMIT_BYTES: usize = 64 << 20;

/// A change to be made as a whole or not at all: preconditions on keys, and operations.
///
/// ```
/// use watchkeeper_storage::Commit;
/// let create = Commit::new().absent("/a").put("/a", "1");
/// let replace = Commit::new().unchanged("/a", 1).put("/a", "2");
/// let rename = Commit::new().unchanged("/a", 2).absent("/b").delete("/a").put("/b", "2");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Commit {
    pub(crate) preconditions: Vec<(Box<str>, Expected)>,
    pub(crate) operations: Vec<Operation>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    Absent,
    Modified(Revision),
}

#[derive(Clone, Debug)]
pub(crate) enum Operation {
    Put {
        key: Box<str>,
        value: Bytes,
        #[cfg_attr(not(feature = "etcd"), allow(dead_code, reason = "only etcd lets values expire"))]
        lifetime: Option<Duration>,
    },
    Delete {
        key: Box<str>,
    },
}

impl Operation {
    pub(crate) fn key(&self) -> &str {
        match self {
            Self::Put { key, .. } | Self::Delete { key } => key,
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Put { key, value, .. } => key.len() + value.len(),
            Self::Delete { key } => key.len(),
        }
    }
}

impl Commit {
    /// Nothing, on no condition.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a condition: the key does not exist.
    #[must_use]
    pub fn absent(mut self, key: impl Into<Box<str>>) -> Self {
        self.preconditions.push((key.into(), Expected::Absent));
        self
    }

    /// Adds a condition: the key exists and was last written at this revision.
    #[must_use]
    pub fn unchanged(mut self, key: impl Into<Box<str>>, modified: Revision) -> Self {
        self.preconditions.push((key.into(), Expected::Modified(modified)));
        self
    }

    /// Writes a value.
    #[must_use]
    pub fn put(mut self, key: impl Into<Box<str>>, value: impl Into<Bytes>) -> Self {
        self.operations.push(Operation::Put { key: key.into(), value: value.into(), lifetime: None });
        self
    }

    /// Writes a value that is not needed any more when `lifetime` has passed. A storage that [expires](crate::Storage::expires) values
    /// deletes it then or up to a minute later, as if somebody had, unless it was written again; others keep it.
    #[must_use]
    pub fn put_for(mut self, key: impl Into<Box<str>>, value: impl Into<Bytes>, lifetime: Duration) -> Self {
        let (key, value, lifetime) = (key.into(), value.into(), Some(lifetime));
        self.operations.push(Operation::Put { key, value, lifetime });
        self
    }

    /// For how long what is written is needed, if not for ever: the shortest of all operations.
    #[cfg(feature = "etcd")]
    pub(crate) fn lifetime(&self) -> Option<Duration> {
        let lifetimes = self.operations.iter().filter_map(|operation| match operation {
            Operation::Put { lifetime, .. } => *lifetime,
            Operation::Delete { .. } => None,
        });
        lifetimes.min()
    }

    /// Deletes a key. If it does not exist, this does nothing.
    #[must_use]
    pub fn delete(mut self, key: impl Into<Box<str>>) -> Self {
        self.operations.push(Operation::Delete { key: key.into() });
        self
    }

    /// What keys and values amount to.
    pub(crate) fn bytes(&self) -> usize {
        self.operations.iter().map(Operation::bytes).sum()
    }

    /// What no state of the storage could make sense of.
    pub(crate) fn validate(&self) -> Result<(), Error> {
        let mut keys: Vec<&str> = self.operations.iter().map(Operation::key).collect();
        keys.sort_unstable();
        if keys.is_empty() {
            return Err(Error::Invalid("a commit without operations".into()));
        }
        if keys[0].is_empty() {
            return Err(Error::Invalid("an empty key".into()));
        }
        if let Some(pair) = keys.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Error::Invalid(format!("two operations on {}", pair[0])));
        }
        match self.bytes() {
            bytes if bytes > MAX_COMMIT_BYTES => Err(Error::Invalid(format!(
                "a commit of {bytes} bytes; at most {MAX_COMMIT_BYTES} are accepted"
            ))),
            _ => Ok(()),
        }
    }
}

/// The result of a commit.
#[derive(Clone, Debug)]
pub struct Committed {
    /// The revision it became; if it changed nothing, the revision at which there was nothing to change.
    pub revision: Revision,
    /// For each operation, in order, the entry that was there before.
    pub previous: Vec<Option<Arc<Entry>>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_that_make_no_sense_are_refused() {
        let large = Bytes::from(vec![0; MAX_COMMIT_BYTES]);
        for (commit, reason) in [
            (Commit::new(), "without operations"),
            (Commit::new().absent("/a"), "without operations"),
            (Commit::new().put("", "1"), "empty key"),
            (Commit::new().put("/a", "1").put("/b", "1").delete("/a"), "two operations on /a"),
            (Commit::new().put("/a", large), "at most"),
        ] {
            let error = commit.validate().unwrap_err();
            assert!(error.to_string().contains(reason), "{error}");
        }
        assert!(Commit::new().put("/a", "").delete("/b").validate().is_ok());
    }
}
