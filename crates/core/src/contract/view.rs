//! What a reader of a feed knows, as the contract has it.

use std::collections::{BTreeMap, BTreeSet};

use super::Seen;
use crate::{Document, Event, Key};

/// The objects that a feed has told of.
#[derive(Debug, Default)]
pub(super) struct View {
    pub(super) seen: Seen,
    pub(super) keys: BTreeMap<String, Key>,
    pub(super) generations: BTreeMap<String, i64>,
    /// How many snapshots were complete.
    pub(super) complete: usize,
    /// How many objects of the snapshot that has begun were mentioned.
    pub(super) mentioned: usize,
    /// How often something was rejected.
    pub(super) rejections: usize,
    /// The snapshot that has begun: which objects it has mentioned, and whether it has rejected something without a name.
    listing: Option<(BTreeSet<String>, bool)>,
    /// The objects that were told as changed, and what their generations were before.
    pub(super) put: Vec<(String, Option<i64>, i64)>,
}

impl View {
    /// Takes an event over, as any reader would.
    pub(super) fn take(&mut self, event: Event) {
        match event {
            Event::Begin => {
                self.listing = Some(Default::default());
                self.mentioned = 0;
            }
            Event::Item(document) => {
                self.mention(document.header.key.name());
                self.put(&document);
            }
            Event::Put { document, .. } => self.put(&document),
            Event::Delete { document, .. } => self.gone(document.header.key.name()),
            Event::Gone { key, .. } => self.gone(key.name()),
            Event::Rejected(rejection) => {
                self.rejections += 1;
                match rejection.key {
                    Some(key) => self.mention(key.name()),
                    None => self.listing.iter_mut().for_each(|(_, lossy)| *lossy = true),
                }
            }
            Event::Complete(_) => {
                self.complete += 1;
                if let Some((listed, false)) = self.listing.take() {
                    let missing: Vec<String> =
                        self.seen.keys().filter(|name| !listed.contains(*name)).cloned().collect();
                    missing.iter().for_each(|name| self.gone(name));
                }
            }
            Event::Position(_) => {}
        }
    }

    fn mention(&mut self, name: &str) {
        if let Some((listed, _)) = &mut self.listing {
            listed.insert(name.to_owned());
            self.mentioned += 1;
        }
    }

    fn put(&mut self, document: &Document) {
        let header = &document.header;
        let name = header.key.name().to_owned();
        let state = (header.uid.clone(), header.version.clone());
        let generation = self.generations.insert(name.clone(), header.generation);
        self.keys.insert(name.clone(), header.key.clone());
        if self.seen.insert(name.clone(), state.clone()) != Some(state) {
            self.put.push((name, generation, header.generation));
        }
    }

    fn gone(&mut self, name: &str) {
        self.seen.remove(name);
    }
}
