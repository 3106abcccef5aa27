//! Everything that a storage holds, taken from one place to another.

#[cfg(feature = "etcd")]
mod cluster;
mod directory;
mod file;

use std::sync::Arc;

use crate::tree::Tree;
use crate::{Entry, Revision};

/// Everything that a storage held at one revision: keys, values, and the revisions that wrote them.
///
/// It is read from a directory ([`of_directory`](Self::of_directory)), a file ([`of_file`](Self::of_file)) or an etcd cluster (`of_etcd`), also
/// while servers write there, and written to another one of these. What was acknowledged before reading began is in it, and a commit is in
/// it as a whole or not at all. All of it is in memory, as it is in the memory of a server.
///
/// # What becomes of revisions
///
/// A file and a directory keep them: clients of a server that is started on the directory go on watching where they were. etcd numbers
/// what is written to it by itself, so there every entry gets a new revision. They are written in the order of their
/// revisions: what was newer is newer.
///
/// # What it does not hold
///
/// The past. Whoever watches from a revision before that of the snapshot has to read everything again.
#[derive(Clone, Default)]
pub struct Snapshot {
    tree: Tree,
}

impl Snapshot {
    /// These entries, as of a revision. Of several with the same key, the last one counts.
    pub fn new(revision: Revision, entries: impl IntoIterator<Item = Arc<Entry>>) -> Self {
        Self { tree: Tree::gather(revision, entries.into_iter().collect()) }
    }

    /// The revision that it stands for.
    pub fn revision(&self) -> Revision {
        self.tree.revision()
    }

    /// The number of keys.
    pub fn len(&self) -> usize {
        self.tree.len()
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The entries, in the order of their keys' bytes.
    pub fn entries(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.tree.iter()
    }

    /// The bytes of all keys and values.
    pub fn bytes(&self) -> u64 {
        self.entries().map(|entry| (entry.key.len() + entry.value.len()) as u64).sum()
    }

    /// Keeps only the keys for which the function is true.
    #[must_use]
    pub fn retain(&self, keep: impl Fn(&str) -> bool) -> Self {
        let entries = self.entries().filter(|entry| keep(&entry.key)).cloned();
        Self { tree: Tree::restore(self.revision(), entries) }
    }

    /// Whether two have the same entries, with the same revisions, as of the same revision.
    fn is_same(&self, other: &Self) -> bool {
        self.revision() == other.revision() && self.entries().eq(other.entries())
    }

    pub(crate) fn into_tree(self) -> Tree {
        self.tree
    }
}
