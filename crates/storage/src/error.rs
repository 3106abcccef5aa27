use std::path::PathBuf;
use std::sync::Arc;

use crate::{Entry, Revision};

/// The error of a storage, classified by what the caller can do about it.
///
/// The text names keys, files and offsets. It never holds a value.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A precondition did not hold, and nothing was committed: decide again on the entry as it is now.
    #[error("{key} {}", match current {
        Some(entry) => format!("is at revision {}", entry.modified),
        None => "does not exist".to_owned(),
    })]
    Conflict {
        /// The first key whose precondition did not hold.
        key: String,
        /// What is there now.
        current: Option<Arc<Entry>>,
        /// The revision at which this was so.
        revision: Revision,
    },
    /// The revision asked for has been forgotten: read the present state.
    #[error("the revision is compacted; the oldest available one is {oldest}")]
    Compacted {
        /// The oldest revision that can be asked for.
        oldest: Revision,
    },
    /// The revision asked for has not happened yet: wait, or ask for less.
    #[error("the revision is in the future; the current one is {current}")]
    Future {
        /// The newest revision.
        current: Revision,
    },
    /// The watcher was so slow that what it had to be told next has been forgotten: read the present state and watch
    /// from there.
    #[error("the watcher did not keep up; the oldest available revision is {oldest}")]
    Lagged {
        /// The oldest revision that can be asked for.
        oldest: Revision,
    },
    /// The request makes no sense and never will: fix the caller.
    #[error("invalid: {0}")]
    Invalid(String),
    /// The commit is larger than what a shared storage takes, and was not made: write less at once.
    #[error("too large: {0}")]
    TooLarge(String),
    /// There is no space left. Nothing was committed, and the storage goes on: free some space and try again.
    #[error("no space left, nothing was committed: {reason}")]
    Full {
        /// What the operating system said, about which file.
        reason: String,
    },
    /// What became of the commit is not known: it has happened or will happen as a whole, or not at all. Read before trying again. (The
    /// embedded storage knows after the next opening, and accepts no commits until then.)
    #[error("the commit may or may not have happened: {reason}")]
    Unknown {
        /// What the operating system said, about which file, or the cluster.
        reason: String,
    },
    /// The storage cannot be reached, or has not caught up. Nothing was committed: try again.
    #[error("the storage cannot be reached: {reason}")]
    Unavailable {
        /// Who said so, and why.
        reason: String,
    },
    /// An earlier failure made the storage stop accepting commits, so nothing was committed. Reads go on. Open it
    /// again once the cause is gone.
    #[error("no commits are accepted until the storage is opened again: {reason}")]
    Halted {
        /// The failure that stopped it.
        reason: String,
    },
    /// Somebody else has the directory open: stop them, or use another directory.
    #[error("{} is in use by {holder}", directory.display())]
    Locked {
        /// The directory.
        directory: PathBuf,
        /// Who has it, as far as they left their name.
        holder: String,
    },
    /// A file is damaged in a place that had been made durable. Nothing was changed: restore the file, or move the
    /// directory away to begin anew.
    #[error("{} is damaged at byte {offset}: {reason}", file.display())]
    Corrupt {
        /// The file.
        file: PathBuf,
        /// Where the damage was noticed.
        offset: u64,
        /// What was found.
        reason: String,
    },
    /// The files were written by another version of this software: use that one.
    #[error("{} has format {found}, this version reads format {supported}", file.display())]
    Format {
        /// The file.
        file: PathBuf,
        /// The format found.
        found: u32,
        /// The format that can be read.
        supported: u32,
    },
    /// The operating system refused something while opening: see what it says.
    #[error("{doing}: {reason}")]
    Io {
        /// What was attempted, on which file.
        doing: String,
        /// What the operating system said.
        reason: String,
    },
    /// The storage was closed; whether a commit that was under way has happened is for the next opening to say.
    #[error("the storage is closed")]
    Closed,
}
