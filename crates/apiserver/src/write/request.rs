//! A write, as it travels through the pipeline.

use std::sync::Arc;
use std::time::SystemTime;

use serde_json::Value;
use tokio::time::Instant;
use watchkeeper_storage::{Entry, Revision};

use super::operation::Operation;
use super::{Reservation, Subresource};
use crate::audit::Annotations;
use crate::authentication::Identity;
use crate::conversion::Conversions;
use crate::registry::Registry;
use crate::request::write_options::FieldValidation;
use crate::resource::ObjectRef;

/// The author of a write.
#[derive(Clone, Debug, Default)]
pub(crate) enum Author {
    /// An authenticated client.
    Client(Arc<Identity>),
    /// The server itself: roles, policies and webhooks do not apply to it.
    #[default]
    Server,
}

impl Author {
    /// The identity of a client.
    pub(crate) fn client(&self) -> Option<&Identity> {
        match self {
            Self::Client(identity) => Some(identity),
            Self::Server => None,
        }
    }
}

/// Options and author of a write.
#[derive(Clone, Debug, Default)]
pub(crate) struct WriteContext {
    /// Whether everything is done but the commit.
    pub(crate) dry_run: bool,
    /// The manager that is recorded as the owner of the fields that are written.
    pub(crate) manager: String,
    /// Whether the client named the manager, rather than its program.
    pub(crate) names_manager: bool,
    /// Whether a collection is deleted: reviews of its objects do not name them, as kube-apiserver has it.
    pub(crate) of_collection: bool,
    /// Whether unknown and repeated fields are ignored, warned about or refused.
    pub(crate) field_validation: FieldValidation,
    pub(crate) author: Author,
    /// When the request has to be answered.
    pub(crate) deadline: Option<Instant>,
    /// What is said about the request besides its answer.
    pub(crate) annotations: Annotations,
}

impl WriteContext {
    /// Whether it is too late for an answer.
    pub(crate) fn is_late(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// A write of the server itself, under the name of one of its parts.
    pub(crate) fn of_server(manager: &str) -> Self {
        Self { manager: manager.into(), ..Self::default() }
    }
}

/// A write: which object, what is to become of it, by whom.
pub(crate) struct WriteRequest<'a> {
    pub(crate) target: ObjectRef,
    pub(crate) subresource: Subresource,
    pub(crate) operation: Operation<'a>,
    pub(crate) context: &'a WriteContext,
}

impl<'a> WriteRequest<'a> {
    /// A write of the object itself.
    pub(crate) fn new(target: ObjectRef, operation: Operation<'a>, context: &'a WriteContext) -> Self {
        Self { target, subresource: Subresource::Main, operation, context }
    }
}

/// The stored state that a write is based on, and that its commit depends on.
#[derive(Default)]
pub(super) struct Current {
    /// The object in the version of the request; `None` if it does not exist.
    pub(super) object: Option<Value>,
    /// The entry that the object was read from.
    pub(super) entry: Option<Arc<Entry>>,
    /// The namespace of an object or a subresource that is to be created.
    pub(super) namespace: NamespaceState,
    /// Other entries that must not change before the commit: the namespace and the CRD of a new object.
    pub(super) guards: Vec<Guard>,
}

/// An entry that a commit depends on, and the revision at which it was read.
pub(super) struct Guard {
    pub(super) key: String,
    pub(super) modified: Revision,
}

/// The namespace in which an object or a subresource is created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum NamespaceState {
    /// Nothing is created, or its resource is cluster-scoped.
    #[default]
    Irrelevant,
    Active,
    Terminating,
    Missing,
}

/// What a write wants, before it is laid into the stored object.
pub(crate) struct Draft {
    /// The object of the request. It is of the resource itself, or the Scale, Binding or Eviction of a subresource; null if an
    /// object is deleted.
    pub(crate) object: Value,
    /// Warnings for the client.
    pub(crate) warnings: Vec<String>,
    /// Whether a webhook has changed the object, so that it may have fields that its schema does not know.
    pub(crate) is_hooked: bool,
    /// If so, the `managedFields` before.
    pub(crate) owners: Option<Value>,
}

impl Draft {
    pub(super) fn of(object: Value) -> Self {
        Self::new(object, Vec::new())
    }

    pub(super) fn new(object: Value, warnings: Vec<String>) -> Self {
        Self { object, warnings, is_hooked: false, owners: None }
    }
}

/// The outcome of a write as it was worked out, before it is committed.
pub(super) struct Planned {
    /// The next state of the object, or its last one if it is removed.
    pub(super) object: Value,
    /// The Binding or the Eviction as admission completed it; null for everything else.
    pub(super) asked: Value,
    pub(super) intent: Intent,
    /// Cluster IPs and node ports held for a Service.
    pub(super) reservation: Option<Reservation>,
    /// Warnings for the client.
    pub(super) warnings: Vec<String>,
}

/// What is to be done with the stored object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Intent {
    /// It is created or replaced.
    Put,
    /// It is removed.
    Remove,
    /// It stays as it is.
    Keep,
}

/// The outcome of one attempt to commit.
pub(super) enum Outcome {
    Written(Written),
    /// Another writer was faster. If it changed the namespace or the CRD of a new object, this is the revision.
    Superseded(Option<Revision>),
}

/// The result of a write.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) object: Value,
    /// The revision of the commit; `None` if nothing was committed.
    pub(crate) revision: Option<Revision>,
    pub(crate) created: bool,
    /// Whether a deletion removed the object, rather than marking it.
    pub(crate) removed: bool,
    /// Warnings for the client.
    pub(crate) warnings: Vec<String>,
}

/// The surroundings of one attempt: everything that a pure step may look at besides the request.
pub(super) struct Moment {
    pub(super) registry: Arc<Registry>,
    pub(super) now: SystemTime,
    /// The time as objects carry it.
    pub(super) stamp: String,
    /// Objects in other versions.
    pub(super) conversions: Conversions,
}
