use bytes::Bytes;
use watchkeeper_storage::{Commit, Revision};

/// An object that has to be written.
pub(super) struct Change {
    pub(super) key: String,
    /// The revision of what is replaced.
    pub(super) replaces: Option<Revision>,
    pub(super) value: Bytes,
}

impl Change {
    pub(super) fn add_to(self, commit: Commit) -> Commit {
        let commit = match self.replaces {
            Some(revision) => commit.unchanged(self.key.as_str(), revision),
            None => commit.absent(self.key.as_str()),
        };
        commit.put(self.key, self.value)
    }
}
