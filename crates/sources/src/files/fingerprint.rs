//! Fingerprints of files from their metadata, without reading them.

use std::fs::Metadata;
use std::time::{Duration, SystemTime};

/// What the file system says about a file without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Signature {
    file: (u64, u64),
    size: u64,
    modified: Option<SystemTime>,
    /// When anything about the file changed, which nobody can set.
    changed: (i64, i64),
}

/// File systems may count time in steps as long as this. Changes within one step look the same.
const STEP: Duration = Duration::from_secs(2);

impl Signature {
    pub(super) fn of(metadata: &Metadata) -> Self {
        let modified = metadata.modified().ok();
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            Self {
                file: (metadata.dev(), metadata.ino()),
                size: metadata.size(),
                modified,
                changed: (metadata.ctime(), metadata.ctime_nsec()),
            }
        }
        #[cfg(not(unix))]
        Self { file: (0, 0), size: metadata.len(), modified, changed: (0, 0) }
    }

    /// Whether a change after `read` would show, if the file had this signature then.
    pub(super) fn would_show_changes_since(&self, read: SystemTime) -> bool {
        let changed = match self.changed {
            (0, 0) => None,
            (seconds, _) => {
                u64::try_from(seconds).ok().map(|at| SystemTime::UNIX_EPOCH + Duration::from_secs(at))
            }
        };
        let newest = changed.max(self.modified);
        newest.is_some_and(|newest| read.duration_since(newest).is_ok_and(|age| age > STEP))
    }

    /// How long ago the file was written; `None` if that cannot be said.
    pub(super) fn age(&self, now: SystemTime) -> Option<Duration> {
        self.modified.and_then(|modified| now.duration_since(modified).ok())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.size == 0
    }

    pub(super) fn size(&self) -> u64 {
        self.size
    }
}

/// Which directory or file it is, however it is called.
pub(super) fn identity(metadata: &Metadata) -> (u64, u64) {
    Signature::of(metadata).file
}
