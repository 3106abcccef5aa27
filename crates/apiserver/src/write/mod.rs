//! Changing objects.
//!
//! Every change is a loop: read the object, make the next one of it, commit on the condition that nobody else was faster.
//! What the client insists on (a version, an id) is checked inside of it.

mod apply;
mod create;
mod delete;
mod incoming;
mod patch;
mod scale;
mod update;

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;
use watchkeeper_storage::{Entry, Revision};

pub(crate) use apply::Applying;
pub(crate) use delete::{FOREGROUND, ORPHAN};
pub(crate) use incoming::{Incoming, decode};
pub(crate) use patch::Patch;
pub(crate) use scale::ScaleChange;
pub(crate) use watchkeeper_kinds::Write as Part;

use crate::definition::Definition;
use crate::failure::Failure;
use crate::front::MAX_REQUEST_BYTES;
use crate::request::write_options::FieldValidation;
use crate::resource::Resource;

/// How often a change is tried when others are faster. Everybody else made progress each time.
const ATTEMPTS: usize = 100;

/// An object, or the place where one will be.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) resource: Arc<Resource>,
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
}

impl Place {
    pub(crate) fn key(&self) -> String {
        self.resource.key(self.namespace.as_deref(), &self.name)
    }

    pub(crate) fn not_found(&self) -> Failure {
        Failure::not_found(self.resource.subject(), &self.name)
    }
}

/// How a change is to be made.
#[derive(Clone, Debug, Default)]
pub(crate) struct Manner {
    /// Everything is done but the change itself.
    pub(crate) dry_run: bool,
    /// Who is said to manage the fields that are written.
    pub(crate) manager: String,
    /// What is done about fields that are unknown or given twice.
    pub(crate) field_validation: FieldValidation,
    /// Whether the fields that are written were worked out already.
    pub(crate) is_apply: bool,
}

/// What a change led to.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) object: Value,
    /// The revision it was committed at; `None` if nothing was committed.
    pub(crate) revision: Option<Revision>,
    pub(crate) created: bool,
    /// What the client should be told, although it succeeded.
    pub(crate) warnings: Vec<String>,
}

/// An entry that was there when a change was decided on, and has to be there still when it is made.
struct Guard {
    key: String,
    modified: Revision,
}

/// The stored form of an object, refused if it is too large for any request to bring it back.
fn encode(resource: &Resource, object: &Value) -> Result<Bytes, Failure> {
    let bytes = resource.encode(object);
    if bytes.len() > 2 * MAX_REQUEST_BYTES {
        return Err(Failure::too_large(&format!("limit is {MAX_REQUEST_BYTES}")));
    }
    Ok(bytes)
}

/// What the writer of an object should know although it was accepted.
fn remarks(resource: &Resource, object: &Value) -> Vec<String> {
    if !resource.is_definitions() {
        return Vec::new();
    }
    Definition::read(object).map(|definition| definition.warnings()).unwrap_or_default()
}

/// The version of an entry, as objects say it.
fn version(entry: &Entry) -> String {
    entry.modified.to_string()
}
