use std::sync::Arc;

use watchkeeper_etcd::{Compare, Delete, Keys, Outcome, Put, Range, Relation, Txn, TxnDone};

use super::{Layout, number, revision};
use crate::commit::{Expected, Operation};
use crate::engine::Engine;
use crate::{Commit, Committed, Entry, Error};

/// A commit, as etcd understands it.
pub(super) struct Transaction {
    pub(super) txn: Txn,
    prefix: Arc<str>,
    pub(super) commit: Commit,
    /// For each operation, what was there before if the transaction succeeds.
    before: Vec<Before>,
}

enum Before {
    /// A condition says so.
    Known(Option<Arc<Entry>>),
    /// etcd is asked.
    Told,
}

impl Transaction {
    /// `lease` is for what has a lifetime.
    pub(super) fn new(prefix: &Arc<str>, commit: Commit, lease: i64, engine: &Engine) -> Self {
        let tree = engine.now();
        let full = |key: &str| [prefix.as_bytes(), key.as_bytes()].concat();
        let mut txn = Txn::new();
        for (key, expected) in &commit.preconditions {
            let modified = match expected {
                Expected::Absent => 0,
                // A key that is there was modified later than this; one that is not would be taken for it.
                Expected::Modified(0) => -1,
                Expected::Modified(revision) => number(*revision),
            };
            txn = txn
                .when(Compare::mod_revision(full(key), Relation::Equal, modified))
                .otherwise(Range::of(Keys::one(full(key))));
        }
        let mut before = Vec::with_capacity(commit.operations.len());
        for operation in &commit.operations {
            let key = operation.key();
            let expected = commit.preconditions.iter().find(|(condition, _)| **condition == *key);
            let known = match expected {
                Some((_, Expected::Absent)) => Some(None),
                Some((_, Expected::Modified(modified))) => {
                    tree.get(key).filter(|entry| entry.modified == *modified).cloned().map(Some)
                }
                None => None,
            };
            let tell = known.is_none();
            txn = match operation {
                Operation::Put { key, value, lifetime } => {
                    let put = Put::new(full(key), value.to_vec());
                    let put = if lifetime.is_some() { put.lease(lease) } else { put };
                    txn.then(if tell { put.previous() } else { put })
                }
                Operation::Delete { key } => {
                    let delete = Delete::of(Keys::one(full(key)));
                    txn.then(if tell { delete.previous() } else { delete })
                }
            };
            before.push(known.map_or(Before::Told, Before::Known));
        }
        Self { txn, prefix: Arc::clone(prefix), commit, before }
    }

    /// What etcd's answer means.
    pub(super) fn outcome(&self, done: TxnDone) -> Result<Committed, Error> {
        let at = revision(done.header.revision);
        if done.succeeded {
            let told = done.outcomes.iter().map(|outcome| {
                let pair = match outcome {
                    Outcome::Put(put) => put.previous.as_ref(),
                    Outcome::Delete(deleted) => deleted.previous.first(),
                    _ => None,
                };
                pair.and_then(|pair| Layout::Own.entry(&self.prefix, pair)).map(Arc::new)
            });
            let previous = self.before.iter().zip(told).map(|(before, told)| match before {
                Before::Known(entry) => entry.clone(),
                Before::Told => told,
            });
            return Ok(Committed { revision: at, previous: previous.collect() });
        }
        for ((key, expected), outcome) in self.commit.preconditions.iter().zip(done.outcomes) {
            let Outcome::Range(found) = outcome else { continue };
            let current =
                found.kvs.first().and_then(|pair| Layout::Own.entry(&self.prefix, pair)).map(Arc::new);
            let holds = match expected {
                Expected::Absent => current.is_none(),
                Expected::Modified(modified) => {
                    current.as_ref().is_some_and(|entry| entry.modified == *modified)
                }
            };
            if !holds {
                return Err(Error::Conflict { key: key.to_string(), current, revision: at });
            }
        }
        Err(Error::Unknown { reason: "etcd says that a condition does not hold, and not which".into() })
    }

    /// What the transaction did, if the state shows that it has happened: everything that it wrote is there, written at one revision that is
    /// later than what it expected. Who wrote the same at that moment wrote it as well for us.
    pub(super) fn recognise(&self, engine: &Engine) -> Option<Committed> {
        let tree = engine.now();
        let mut at = None;
        for operation in &self.commit.operations {
            match operation {
                Operation::Put { key, value, .. } => {
                    let entry = tree.get(key).filter(|entry| entry.value == value)?;
                    if at.replace(entry.modified).is_some_and(|other| other != entry.modified) {
                        return None;
                    }
                }
                Operation::Delete { key } if tree.get(key).is_some() => return None,
                Operation::Delete { .. } => {}
            }
        }
        // A deletion alone leaves nothing to recognise it by.
        let at = at?;
        let is_later = self.commit.preconditions.iter().all(|(_, expected)| match expected {
            Expected::Absent => true,
            Expected::Modified(modified) => at > *modified,
        });
        let previous = self.before.iter().map(|before| match before {
            Before::Known(entry) => entry.clone(),
            Before::Told => None,
        });
        // Without a condition, the value may have been there before.
        let is_ours = is_later && !self.commit.preconditions.is_empty();
        is_ours.then(|| Committed { revision: at, previous: previous.collect() })
    }
}
