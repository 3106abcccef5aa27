/// The status of a [`Files`](super::Files) source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// The way in which the source notices changes.
    pub watching: Watching,
    /// Changes that were found without an event. Stays 0 unless events get lost or the links lead elsewhere.
    pub drift: u64,
    /// Notes for operators: a file that is a mount of its own and does not follow its origin.
    pub notes: Vec<String>,
}

/// The way in which a source notices changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Watching {
    /// No feed was opened yet.
    #[default]
    NotYet,
    /// By events of the operating system.
    Events,
    /// By polling.
    Polling {
        /// The reason for polling.
        reason: String,
    },
}
