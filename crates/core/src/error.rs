use std::time::Duration;

/// The error of a feed, classified by what the reader can do about it.
///
/// A source classifies its failures once, here; nobody downstream looks at status codes. The text names the request
/// and the reason the other side gave. It never holds an object's body or a credential.
///
/// What is wrong with *one object* is not an error of the feed: see [`Event::Rejected`](crate::Event::Rejected).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The version asked for cannot be served (any more, or yet): take a new snapshot.
    #[error("the version is not available: {0}")]
    Expired(String),
    /// The source throttles its readers: wait, then retry.
    #[error("throttled: {reason}")]
    Throttled {
        /// The delay that the source asked for, if it did.
        after: Option<Duration>,
        /// The message of the source.
        reason: String,
    },
    /// The source cannot be reached or cannot answer now: wait, then retry.
    #[error("unavailable: {reason}")]
    Unavailable {
        /// Whether the source answered at all. If it keeps answering and keeps failing, asking for a snapshot
        /// instead may help; if it cannot be reached, it does not.
        answered: bool,
        /// The failure.
        reason: String,
    },
    /// The source denies access: report it, keep retrying, do not hold up anything else.
    #[error("denied: {0}")]
    Denied(String),
    /// The watched resource does not exist, yet or any more: report it, keep retrying.
    #[error("missing: {0}")]
    Missing(String),
    /// The request itself is wrong (a selector that does not parse, a verb that is not supported). Asking again is
    /// of little use unless somebody changes the other side.
    #[error("cannot be watched: {0}")]
    Fatal(String),
}

impl Error {
    /// A short stable word for metrics and conditions.
    pub fn class(&self) -> &'static str {
        match self {
            Self::Expired(_) => "expired",
            Self::Throttled { .. } => "throttled",
            Self::Unavailable { .. } => "unavailable",
            Self::Denied(_) => "denied",
            Self::Missing(_) => "missing",
            Self::Fatal(_) => "fatal",
        }
    }
}
