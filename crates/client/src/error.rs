use std::time::Duration;

use watchkeeper_wire::StatusCause;

/// The error of a read or a write, classified by what the caller can do about it.
///
/// Messages name the kind and the object and say what to do. They hold what the server said, never an object's body.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A write to something that is not there (any more). For a controller this is mostly no failure: the next event says
    /// what has become of it.
    #[error("{object} does not exist")]
    NotFound {
        /// The object that was written to.
        object: String,
    },
    /// The object has changed since it was read: read it again, decide again, write again.
    #[error("{object} has changed since it was read, read it again and retry: {message}")]
    Conflict {
        /// The object that was written to.
        object: String,
        /// The message of the server.
        message: String,
    },
    /// An object of this name exists already.
    #[error("{object} exists already")]
    AlreadyExists {
        /// The object that was to be created.
        object: String,
    },
    /// The server rejects the content. A retry is of no use.
    #[error("{object} is not valid: {message}")]
    Invalid {
        /// The object that was written to.
        object: String,
        /// The message of the server.
        message: String,
        /// The fields it named.
        causes: Vec<StatusCause>,
    },
    /// A permission is missing.
    #[error("not allowed for {object}, check the roles of this program: {message}")]
    Denied {
        /// The object or the list that was asked for.
        object: String,
        /// The message of the server.
        message: String,
    },
    /// The program has not declared this request, and nothing was sent. The message has the line to add.
    #[error("{object} was not asked for: {message}")]
    Undeclared {
        /// The object or the list that was to be asked for.
        object: String,
        /// The declaration to add.
        message: String,
    },
    /// The [`Guard`](crate::Guard) refused the write, and nothing was sent.
    #[error("{object} was not written: this process may not write, it does not lead (any more)")]
    NotLeading {
        /// The object that was to be written.
        object: String,
    },
    /// The kind was never declared, so there is no cache to read from.
    #[error("{kind} is not declared: declare a Cache of it, or read it with live()")]
    NotDeclared {
        /// The kind.
        kind: String,
    },
    /// The cache of this kind watches other namespaces.
    #[error("the cache of {kind} does not watch namespace {namespace:?}: declare it, or read with live()")]
    OutsideCache {
        /// The kind.
        kind: String,
        /// The namespace that was asked for; empty for objects without one.
        namespace: String,
    },
    /// The kind was declared before, with other options.
    #[error("{kind} is declared already as [{declared}], which differs from [{wanted}]: declare it once")]
    DeclaredDifferently {
        /// The kind.
        kind: String,
        /// The options of the declared cache.
        declared: String,
        /// The options that were asked for now.
        wanted: String,
    },
    /// The cache has not seen everything yet, so that "absent" would be a guess. Wait for it, or retry later.
    #[error("the cache of {kind} is not complete yet{}", because(.reason.as_ref()))]
    NotSynced {
        /// The kind.
        kind: String,
        /// The error that keeps it from being complete, if that is known.
        reason: Option<watchkeeper_core::Error>,
    },
    /// The server throttles its clients. Nothing was done.
    #[error("{object}: the server asks to wait{}: {message}", of_time(.after.as_ref()))]
    Throttled {
        /// The object or the list that was asked for.
        object: String,
        /// The delay that the server asked for, if it did.
        after: Option<Duration>,
        /// The message of the server.
        message: String,
    },
    /// The server could not be reached, or could not answer. Nothing was changed: retry later.
    #[error("{object}: the server is not available: {message}")]
    Unavailable {
        /// The object or the list that was asked for.
        object: String,
        /// The reason.
        message: String,
    },
    /// A write was sent and its outcome is not known: it may have been done. Reads of the object go to the API until that is
    /// clear; decide again from what they say.
    #[error("{object}: the outcome of a write is not known, read it again: {message}")]
    Lost {
        /// The object that was written to.
        object: String,
        /// The reason.
        message: String,
    },
    /// An object, sent or received, does not match its type.
    #[error("{object} cannot be decoded: {detail}")]
    Decode {
        /// The object that was read.
        object: String,
        /// The field, and what was expected there.
        detail: String,
    },
    /// The object lacks a field that the call needs. Nothing was sent.
    #[error("{object}: {missing}")]
    Incomplete {
        /// The object.
        object: String,
        /// The part that it lacks, and the remedy.
        missing: &'static str,
    },
    /// A label selector cannot be parsed.
    #[error(transparent)]
    Selector(#[from] crate::SelectorError),
    /// An object of this name exists and has another controller. The object is left alone.
    #[error("{object} is controlled by {controller}: choose another name, or remove it")]
    Controlled {
        /// The object.
        object: String,
        /// The owner that controls it.
        controller: String,
    },
    /// An owner must be in the namespace of what it owns, or in none.
    #[error("{owner} cannot own {child}: an owner must be in the same namespace, or cluster-scoped")]
    CannotOwn {
        /// The owner.
        owner: String,
        /// The object that it should own.
        child: String,
    },
    /// The set of children names one object twice.
    #[error("{child} is twice in the set of children of {owner}")]
    Twice {
        /// The owner.
        owner: String,
        /// The child that is there twice.
        child: String,
    },
    /// The server refused the request for another reason.
    #[error("{object}: the server refused with {code}: {message}")]
    Refused {
        /// The object or the list that was asked for.
        object: String,
        /// The HTTP status code.
        code: u16,
        /// The message of the server.
        message: String,
    },
}

impl Error {
    /// Whether a retry may succeed, with nothing else changed.
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Conflict { .. }
                | Self::NotSynced { .. }
                | Self::Throttled { .. }
                | Self::Unavailable { .. }
                | Self::Lost { .. }
        )
    }

    /// The time after which the server asked for a retry, if it did.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Throttled { after, .. } => *after,
            _ => None,
        }
    }
}

fn because(reason: Option<&watchkeeper_core::Error>) -> String {
    reason.map_or_else(String::new, |reason| format!(": {reason}"))
}

fn of_time(after: Option<&Duration>) -> String {
    after.map_or_else(String::new, |after| format!(" {} s", after.as_secs()))
}
