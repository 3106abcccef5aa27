/// How a [`Files`](super::Files) source is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// How it learns of changes.
    pub watching: Watching,
    /// How many changes it found that nobody had told it of. Stays 0 unless events get lost or the links lead elsewhere.
    pub drift: u64,
    /// Notes for operators: a file that is a mount of its own and does not follow its origin.
    pub notes: Vec<String>,
}

/// How a source learns of changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Watching {
    /// No feed was opened yet.
    #[default]
    NotYet,
    /// The operating system tells.
    Events,
    /// It looks from time to time.
    Polling {
        /// Why.
        reason: String,
    },
}
