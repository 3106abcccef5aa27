//! Who owns what.

use std::collections::{HashMap, HashSet};

use memchr::memmem;
use serde::Deserialize;
use watchkeeper_storage::Entry;

use crate::object::record::Record;
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
struct Stored {
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
    /// Whether an object can say anything that matters here, without reading it.
    pub(super) fn may_matter(entry: &Entry) -> bool {
        let says = |field: &str| memmem::find(&entry.value, field.as_bytes()).is_some();
        says(r#""ownerReferences""#) || says(r#""deletionTimestamp""#)
    }

    /// Reads a stored object; `None` if it is none.
    pub(super) fn read(entry: &Entry) -> Option<Self> {
        let record = Record::read(entry).ok()?;
        let Stored { metadata } = serde_json::from_slice(&record.json()).ok()?;
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

    /// Whether the object is deleted only after its dependents are, and does not let go of them before.
    fn waits_for_deletions(&self) -> bool {
        self.is_deleted_in_foreground() && !self.finalizers.iter().any(|name| name == ORPHAN)
    }

    /// Whether the object is deleted only after its dependents are.
    pub(super) fn is_deleted_in_foreground(&self) -> bool {
        self.is_deleting && self.finalizers.iter().any(|name| name == FOREGROUND)
    }
}

/// Who owns what. Only objects that name owners, and owners that wait for their dependents, are in it.
#[derive(Default)]
pub(super) struct Graph {
    /// By the uid of an owner, whether that exists or not.
    dependents: HashMap<Box<str>, Dependents>,
    /// By key.
    objects: HashMap<Box<str>, Object>,
    /// The keys of the owners that wait for their dependents, by uid, and whether they wait for them to be deleted.
    waiting: HashMap<Box<str>, (Box<str>, bool)>,
    /// The keys of objects that were found to wait for themselves.
    circular: HashSet<Box<str>>,
    /// How many objects were looked at in search of circles.
    #[cfg(test)]
    cost: std::cell::Cell<usize>,
}

/// The keys of the dependents of an owner, and whether they keep it from being deleted.
#[derive(Default)]
struct Dependents {
    keys: HashMap<Box<str>, bool>,
    blocking: usize,
}

struct Object {
    uid: Box<str>,
    owners: Vec<(Box<str>, bool)>,
}

/// What is new about an object.
#[derive(Debug, Default)]
pub(super) struct Change {
    /// It names other owners than before.
    pub(super) has_other_owners: bool,
    /// It did not wait for its dependents before, and does now.
    pub(super) begins_to_wait: bool,
    /// The keys of owners that waited for it and for nothing else.
    pub(super) released: Vec<Box<str>>,
}

impl Graph {
    /// Whether an object is in it.
    pub(super) fn has(&self, key: &str) -> bool {
        self.objects.contains_key(key)
    }

    /// Takes in an object.
    pub(super) fn put(&mut self, key: &str, facts: &Facts) -> Change {
        let waits = facts.waits_for_dependents();
        let how = (key.into(), facts.waits_for_deletions());
        let begins_to_wait = waits && self.waiting.get(facts.uid.as_str()) != Some(&how);
        if begins_to_wait {
            self.waiting.insert(facts.uid.as_str().into(), how);
        } else if !waits {
            self.waiting.remove(facts.uid.as_str());
        }
        let owners: Vec<(Box<str>, bool)> = facts
            .owners
            .iter()
            .map(|owner| (owner.uid.as_str().into(), owner.block_owner_deletion))
            .collect();
        let known = self.objects.get(key);
        let is_known = known.is_some_and(|known| *known.uid == *facts.uid && known.owners == owners);
        if is_known || (known.is_none() && owners.is_empty() && !waits) {
            self.look_for_circle(key, begins_to_wait);
            return Change { begins_to_wait, ..Change::default() };
        }
        let uids =
            |owners: &[(Box<str>, bool)]| owners.iter().map(|(uid, _)| uid.clone()).collect::<Vec<_>>();
        let has_other_owners = known.is_none_or(|known| uids(&known.owners) != uids(&owners));
        let before = self.unlink(key);
        for (owner, blocks) in &owners {
            let dependents = self.dependents.entry(owner.clone()).or_default();
            // An owner that is named twice is blocked if it is so once.
            let known = dependents.keys.entry(key.into()).or_default();
            dependents.blocking = dependents.blocking.saturating_add(usize::from(*blocks && !*known));
            *known |= *blocks;
        }
        if !owners.is_empty() || waits {
            self.objects.insert(key.into(), Object { uid: facts.uid.as_str().into(), owners });
        }
        self.look_for_circle(key, true);
        Change { has_other_owners, begins_to_wait, released: self.released(&before) }
    }

    /// Remembers an object that waits for itself, if something about it has changed that can make it so.
    fn look_for_circle(&mut self, key: &str, has_changed: bool) {
        let waits = self.objects.get(key).is_some_and(|object| self.is_in_foreground(&object.uid));
        if has_changed && waits && self.is_in_circle(key) {
            self.circular.insert(key.into());
        }
    }

    /// Forgets an object. Returns the keys of the owners that waited for it and for nothing else.
    pub(super) fn remove(&mut self, key: &str, last: &Facts) -> Vec<Box<str>> {
        self.waiting.remove(last.uid.as_str());
        self.circular.remove(key);
        let before = self.unlink(key);
        self.released(&before)
    }

    fn released(&self, owners: &[(Box<str>, bool)]) -> Vec<Box<str>> {
        let is_free = |uid: &str| self.dependents.get(uid).is_none_or(|dependents| dependents.blocking == 0);
        let owners = owners.iter().filter(|(uid, _)| is_free(uid));
        owners.filter_map(|(uid, _)| self.waiting.get(uid).map(|(key, _)| key.clone())).collect()
    }

    fn unlink(&mut self, key: &str) -> Vec<(Box<str>, bool)> {
        let owners = self.objects.remove(key).map(|object| object.owners).unwrap_or_default();
        for (owner, _) in &owners {
            let Some(dependents) = self.dependents.get_mut(owner) else { continue };
            if dependents.keys.remove(key) == Some(true) {
                dependents.blocking = dependents.blocking.saturating_sub(1);
            }
            if dependents.keys.is_empty() {
                self.dependents.remove(owner);
            }
        }
        owners
    }

    /// The keys of the objects that name this uid as an owner. In their order, for whoever works on many that lie beside each other
    /// in memory is faster than who jumps to and fro.
    pub(super) fn dependents(&self, uid: &str) -> Vec<Box<str>> {
        let Some(dependents) = self.dependents.get(uid) else { return Vec::new() };
        let mut keys: Vec<Box<str>> = dependents.keys.keys().cloned().collect();
        keys.sort_unstable();
        keys
    }

    /// The keys of the dependents of an object that has owners of its own or waits for them.
    pub(super) fn dependents_of(&self, key: &str) -> Vec<Box<str>> {
        self.objects.get(key).map(|object| self.dependents(&object.uid)).unwrap_or_default()
    }

    /// What the object under a key waits for.
    pub(super) fn waits_for(&mut self, key: &str) -> Waits {
        let Some(object) = self.objects.get(key) else { return Waits::Nothing };
        let is_blocked = self.dependents.get(&object.uid).is_some_and(|dependents| dependents.blocking > 0);
        if !is_blocked || !self.is_in_foreground(&object.uid) {
            return Waits::Nothing;
        }
        // A circle that was found may have been broken since.
        if self.circular.contains(key) && self.is_in_circle(key) {
            return Waits::Itself;
        }
        self.circular.remove(key);
        Waits::Dependents
    }

    fn is_in_foreground(&self, uid: &str) -> bool {
        self.waiting.get(uid).is_some_and(|(_, is_foreground)| *is_foreground)
    }

    /// Whether an owner waits, in the end, for itself: for a dependent that waits for one that waits for the owner.
    ///
    /// The search goes down to what the owner waits for and up to what waits for it, a little of this and a little of that, and
    /// ends where one of them does. A circle can only come about by a change of one of its members, which is when its
    /// search is made: in a tree, whose parts begin to wait in whatever order, the searches together cost little more
    /// than the tree is large.
    fn is_in_circle(&self, key: &str) -> bool {
        let (mut down, mut up) = (Search::from(key), Search::from(key));
        let is_found = loop {
            let goes_down = down.cost <= up.cost;
            let side = if goes_down { &mut down } else { &mut up };
            let Some(at) = side.open.pop() else { break false };
            let next = if goes_down { self.waited_for(at) } else { self.waiting_for(at) };
            if side.go_on(key, next) {
                break true;
            }
        };
        #[cfg(test)]
        self.cost.set(self.cost.get() + down.cost + up.cost);
        is_found
    }

    /// The dependents that an object waits for, `None` for those that do not wait themselves.
    fn waited_for(&self, key: &str) -> Vec<Option<&str>> {
        let dependents = self.objects.get(key).and_then(|object| self.dependents.get(&object.uid));
        let keys = dependents.into_iter().flat_map(|dependents| &dependents.keys);
        let waits = |dependent: &str| {
            self.objects.get(dependent).is_some_and(|object| self.is_in_foreground(&object.uid))
        };
        keys.map(|(key, blocks)| Some(&**key).filter(|key| *blocks && waits(key))).collect()
    }

    /// The owners that wait for an object, `None` for those that do not.
    fn waiting_for(&self, key: &str) -> Vec<Option<&str>> {
        let owners = self.objects.get(key).into_iter().flat_map(|object| &object.owners);
        owners
            .map(|(uid, blocks)| {
                let (key, is_foreground) = self.waiting.get(uid).filter(|_| *blocks)?;
                is_foreground.then_some(&**key)
            })
            .collect()
    }
}

/// What an object waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waits {
    /// It does not wait, or for nothing any more.
    Nothing,
    /// For dependents to be gone.
    Dependents,
    /// For dependents that wait for it.
    Itself,
}

/// A search through objects that wait for each other, in one direction.
struct Search<'a> {
    open: Vec<&'a str>,
    seen: HashSet<&'a str>,
    /// How many objects were looked at.
    cost: usize,
}

impl<'a> Search<'a> {
    fn from(key: &'a str) -> Self {
        Self { open: vec![key], seen: HashSet::new(), cost: 0 }
    }

    /// Takes in what comes next. Returns whether it is back where it began.
    fn go_on(&mut self, key: &str, next: Vec<Option<&'a str>>) -> bool {
        self.cost = self.cost.saturating_add(next.len()).saturating_add(1);
        for next in next.into_iter().flatten() {
            if next == key {
                return true;
            }
            if self.seen.insert(next) {
                self.open.push(next);
            }
        }
        false
    }
}

#[cfg(test)]
mod tests;
