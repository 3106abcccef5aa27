//! Who owns what.

use std::collections::{HashMap, HashSet};

use serde::Deserialize;
use watchkeeper_storage::Entry;

use crate::record::Record;
use crate::write::{FOREGROUND, ORPHAN};

/// What an object says about itself that matters here.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub(super) uid: String,
    pub(super) owners: Vec<OwnerReference>,
    pub(super) finalizers: Vec<String>,
    pub(super) is_deleting: bool,
}

/// An entry of `metadata.ownerReferences`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct OwnerReference {
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) block_owner_deletion: bool,
}

#[derive(Deserialize)]
struct Object {
    metadata: Metadata,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    uid: String,
    owner_references: Vec<OwnerReference>,
    finalizers: Vec<String>,
    deletion_timestamp: Option<String>,
}

impl Facts {
    /// Reads a stored object; `None` if it is none.
    pub(super) fn read(entry: &Entry) -> Option<Self> {
        let record = Record::read(entry).ok()?;
        let Object { metadata } = serde_json::from_slice(&record.json()).ok()?;
        Some(Self {
            uid: metadata.uid,
            owners: metadata.owner_references,
            finalizers: metadata.finalizers,
            is_deleting: metadata.deletion_timestamp.is_some(),
        })
    }

    /// Whether the object is deleted only after something happened to its dependents.
    pub(super) fn waits_for_dependents(&self) -> bool {
        self.is_deleting && self.finalizers.iter().any(|name| name == FOREGROUND || name == ORPHAN)
    }

    /// Whether the object is deleted only after its dependents are.
    pub(super) fn is_deleted_in_foreground(&self) -> bool {
        self.is_deleting && self.finalizers.iter().any(|name| name == FOREGROUND)
    }
}

/// Who owns what. Only objects that name owners, and owners that wait for their dependents, are in it.
#[derive(Default)]
pub(super) struct Graph {
    /// The keys of the dependents by the uid of an owner.
    dependents: HashMap<Box<str>, HashSet<Box<str>>>,
    /// The uids of the owners by the key of a dependent.
    owners: HashMap<Box<str>, Vec<Box<str>>>,
    /// The keys of the owners that wait for their dependents, by uid.
    waiting: HashMap<Box<str>, Box<str>>,
}

impl Graph {
    /// Takes in an object. Tells whether its owners are others than before.
    pub(super) fn put(&mut self, key: &str, facts: &Facts) -> bool {
        if facts.waits_for_dependents() {
            self.waiting.insert(facts.uid.as_str().into(), key.into());
        }
        let owners: Vec<Box<str>> = facts.owners.iter().map(|owner| owner.uid.as_str().into()).collect();
        if self.owners.get(key).map_or(&[][..], Vec::as_slice) == owners {
            return false;
        }
        self.unlink(key);
        for owner in &owners {
            self.dependents.entry(owner.clone()).or_default().insert(key.into());
        }
        if !owners.is_empty() {
            self.owners.insert(key.into(), owners);
        }
        true
    }

    /// Forgets an object. Returns the keys of its owners that wait for their dependents.
    pub(super) fn remove(&mut self, key: &str, last: &Facts) -> Vec<Box<str>> {
        self.waiting.remove(last.uid.as_str());
        let owners = self.unlink(key);
        owners.iter().filter_map(|uid| self.waiting.get(uid).cloned()).collect()
    }

    fn unlink(&mut self, key: &str) -> Vec<Box<str>> {
        let owners = self.owners.remove(key).unwrap_or_default();
        for owner in &owners {
            if let Some(dependents) = self.dependents.get_mut(owner) {
                dependents.remove(key);
                if dependents.is_empty() {
                    self.dependents.remove(owner);
                }
            }
        }
        owners
    }

    /// The keys of the objects that name this uid as an owner.
    pub(super) fn dependents(&self, uid: &str) -> Vec<Box<str>> {
        self.dependents.get(uid).into_iter().flatten().cloned().collect()
    }

    /// The keys of the dependents of an owner that waits for them.
    pub(super) fn dependents_of(&self, key: &str) -> Vec<Box<str>> {
        let uids = self.waiting.iter().filter(|(_, owner)| &***owner == key).map(|(uid, _)| uid);
        uids.flat_map(|uid| self.dependents(uid)).collect()
    }
}
