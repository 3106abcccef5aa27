//! The state of one kind in a client: its cache, and what was written through the client.

pub(crate) mod applied;
pub(crate) mod desired;
pub(crate) mod overlay;
mod recent;
pub(crate) mod view;

use std::any::Any;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use serde_json::Value;
use watchkeeper_core::{Document, Key, Projection, Uid, Version};
use watchkeeper_informer::{AnyValue, Store};

use crate::Informer;
use crate::kind::KindInfo;
use crate::selector::Selector;
use crate::state::applied::Memory;
use crate::state::overlay::{Held, Note, Overlay};
use crate::state::recent::Recent;

/// The state of one kind: what it is, how it is cached if it is, and what was written of it.
pub(crate) struct KindState {
    pub(crate) info: KindInfo,
    pub(crate) declared: OnceLock<Declared>,
    pub(crate) overlay: Mutex<Overlay>,
    /// Whether there may be something in the overlay; spares most reads its lock.
    pub(crate) overlaid: AtomicBool,
    pub(crate) recent: Mutex<Recent>,
    pub(crate) applied: Mutex<Memory>,
}

/// The cache of a kind.
pub(crate) struct Declared {
    pub(crate) identity: String,
    pub(crate) informer: Informer,
    pub(crate) store: Store,
    pub(crate) projection: Projection,
    /// Whether objects are held decoded.
    pub(crate) typed: bool,
    pub(crate) selector: Option<Selector>,
    /// Whether something of the objects is left out that a change of them may be about.
    pub(crate) partial: bool,
    /// The label selector and the field selector, as the server reads them.
    pub(crate) selectors: (Option<String>, Option<String>),
    /// None: all.
    pub(crate) namespaces: Option<Vec<String>>,
    /// User indexes by name.
    pub(crate) indexes: Mutex<HashMap<String, Arc<dyn Any + Send + Sync>>>,
}

impl KindState {
    pub(crate) fn new(info: KindInfo) -> Self {
        Self {
            info,
            declared: OnceLock::new(),
            overlay: Mutex::default(),
            overlaid: AtomicBool::new(false),
            recent: Mutex::default(),
            applied: Mutex::default(),
        }
    }

    /// Takes note of an answer that is the object. What it says is visible to every read that begins after this.
    pub(crate) fn note_object(&self, body: &[u8]) {
        let Some(declared) = self.declared.get() else {
            return self.note_version(body);
        };
        let Ok(document) = Document::read(body, &declared.projection) else {
            return;
        };
        let header = document.header;
        self.recent.lock().put(&header.key, &header.version);
        if !declared.is_responsible(&header.key) {
            return;
        }
        if is_gone(body)
            && let Some(uid) = header.uid
        {
            return self.note(header.key, Note::Gone { uid, known: header.version });
        }
        let (key, version) = (header.key.clone(), header.version.clone());
        let note = match self.info.decode(&document.body, &self.info.describe(&key)) {
            Ok(value) => {
                let object = self.is_selected(declared, &value).then_some(Held { header, value });
                Note::At { version, object }
            }
            // It was written, and the reader who asks for it shall be told what is wrong with it.
            Err(_) => Note::Doubt { at: Some(version) },
        };
        self.note(key, note);
    }

    /// Whether the cache's label selector lets an object be in it.
    pub(crate) fn is_selected(&self, declared: &Declared, value: &AnyValue) -> bool {
        let Some(selector) = &declared.selector else { return true };
        selector.matches(self.info.meta(&**value).labels.as_ref())
    }

    /// Takes note of an answer that says at which version something was written, but not what.
    pub(crate) fn note_doubt(&self, key: &Key, at: Option<Version>) {
        if let Some(version) = &at {
            self.recent.lock().put(key, version);
        }
        if self.declared.get().is_some_and(|declared| declared.is_responsible(key)) {
            self.note(key.clone(), Note::Doubt { at });
        }
    }

    /// Takes note of a delete that took effect at once. `known` is a version at which this incarnation was there.
    pub(crate) fn note_gone(&self, key: &Key, uid: Option<Uid>, known: Option<Version>) {
        if !self.declared.get().is_some_and(|declared| declared.is_responsible(key)) {
            return;
        }
        let note = match (uid, known) {
            (Some(uid), Some(known)) => Note::Gone { uid, known },
            _ => Note::Doubt { at: None },
        };
        self.note(key.clone(), note);
    }

    fn note_version(&self, body: &[u8]) {
        if let Ok(document) = Document::read(body, &Projection::everything().metadata_only()) {
            self.recent.lock().put(&document.header.key, &document.header.version);
        }
    }

    /// Reads go to the API until the cache has reached this version.
    pub(crate) fn doubt_before(&self, version: Version) {
        let mut overlay = self.overlay.lock();
        self.overlaid.store(true, Ordering::Release);
        overlay.raise_floor(version);
    }

    pub(crate) fn note(&self, key: Key, note: Note) {
        let mut overlay = self.overlay.lock();
        self.overlaid.store(true, Ordering::Release);
        if overlay.put(key, note) {
            self.sweep(&mut overlay);
        }
    }
}

impl Declared {
    /// Whether the cache watches where this key is.
    pub(crate) fn is_responsible(&self, key: &Key) -> bool {
        self.watches(key.namespace().unwrap_or_default())
    }

    pub(crate) fn watches(&self, namespace: &str) -> bool {
        self.namespaces.as_ref().is_none_or(|names| names.iter().any(|name| name == namespace))
    }

    /// How far the watch that is responsible for a key has come.
    pub(crate) fn position(&self, key: &Key) -> Option<Version> {
        let positions = self.store.positions();
        let at = match &self.namespaces {
            None => 0,
            Some(names) => names.iter().position(|name| Some(name.as_str()) == key.namespace())?,
        };
        positions.into_iter().nth(at).flatten()
    }
}

/// Whether an answer shows the last state of an object that nothing holds any more.
pub(crate) fn is_gone(body: &[u8]) -> bool {
    let Ok(value) = serde_json::from_slice::<Value>(body) else { return false };
    let metadata = &value["metadata"];
    let holds = |list: &Value| list.as_array().is_some_and(|list| !list.is_empty());
    !metadata["deletionTimestamp"].is_null()
        && !holds(&metadata["finalizers"])
        // A namespace keeps what holds it elsewhere.
        && !holds(&value["spec"]["finalizers"])
        && metadata["deletionGracePeriodSeconds"].as_i64().unwrap_or_default() == 0
}
