//! What was applied, so that applying it again can be spared.

use std::collections::HashMap;
use std::hash::RandomState;
use std::sync::Arc;

use serde_json::Value;
use watchkeeper_core::{Key, Uid, Version};

use crate::state::desired::{Part, fingerprint, fingerprint_of_shown};

/// So few entries are not worth sweeping.
const FEW: usize = 1024;

/// The last document that one manager applied to one part of an object, and where that led.
#[derive(Clone)]
pub(crate) struct Applied {
    pub(crate) manager: Arc<str>,
    pub(crate) part: Part,
    /// The fingerprint of the document.
    pub(crate) document: u64,
    /// The fingerprint of what the object showed of it.
    pub(crate) shown: u64,
    pub(crate) uid: Option<Uid>,
    pub(crate) version: Version,
}

/// What was applied to the objects of a kind.
///
/// Its size follows the cache: entries of objects that are gone are swept when they may be as many as all others.
#[derive(Default)]
pub(crate) struct Memory {
    hasher: RandomState,
    entries: HashMap<Key, Vec<Applied>>,
    sweep_at: usize,
}

impl Memory {
    pub(crate) fn hasher(&self) -> RandomState {
        self.hasher.clone()
    }

    pub(crate) fn recall(&self, key: &Key, manager: &str, part: Part) -> Option<Applied> {
        let entries = self.entries.get(key)?;
        entries.iter().find(|entry| *entry.manager == *manager && entry.part == part).cloned()
    }

    /// Says whether it is time to sweep.
    pub(crate) fn remember(&mut self, key: &Key, applied: Applied) -> bool {
        let entries = self.entries.entry(key.clone()).or_default();
        match entries.iter_mut().find(|entry| entry.manager == applied.manager && entry.part == applied.part)
        {
            Some(entry) => *entry = applied,
            None => entries.push(applied),
        }
        self.entries.len() > self.sweep_at.max(FEW)
    }

    pub(crate) fn sweep(&mut self, mut is_there: impl FnMut(&Key) -> bool) {
        self.entries.retain(|key, _| is_there(key));
        self.sweep_at = self.entries.len() * 2;
    }
}

/// A document with its fingerprint.
pub(crate) struct Fingerprinted {
    pub(crate) document: Value,
    pub(crate) fingerprint: u64,
    hasher: RandomState,
}

impl Fingerprinted {
    pub(crate) fn new(document: Value, hasher: RandomState) -> Self {
        Self { fingerprint: fingerprint(&document, &hasher), document, hasher }
    }

    pub(crate) fn shown_by(&self, object: &Value) -> u64 {
        fingerprint_of_shown(&self.document, object, &self.hasher)
    }
}
