use std::path::Path;
use std::thread;
use std::time::Duration;

use super::Snapshot;
use crate::embedded::{self, Directory};
use crate::{Error, Progress};

/// A directory that somebody writes to is read so often before it is said to be damaged.
const ATTEMPTS: usize = 10;

/// How long to wait in between.
const RETRY_INTERVAL: Duration = Duration::from_millis(50);

impl Snapshot {
    /// Reads the directory of an embedded storage without touching it, also while a server writes to it.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if there is no storage, [`Error::Corrupt`] if it is damaged.
    pub fn of_directory(path: &Path) -> Result<Self, Error> {
        let directory = Directory::new(path);
        let mut attempt = 1;
        loop {
            match embedded::look(&directory) {
                Ok(Some(tree)) => return Ok(Self { tree }),
                Ok(None) => {
                    return Err(Error::Io {
                        doing: format!("reading {}", path.display()),
                        reason: "no server keeps its objects there".into(),
                    });
                }
                Err(Error::Io { .. } | Error::Corrupt { .. }) if attempt < ATTEMPTS && path.is_dir() => {
                    attempt += 1;
                    thread::sleep(RETRY_INTERVAL);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Makes the directory of an embedded storage of it, which is created if it is not there, and reads it back. Revisions are kept, and the
    /// next commit has the one after.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] if a storage is there already, [`Error::Locked`] if a server has just begun one.
    pub fn to_directory(&self, path: &Path, progress: Progress<'_>) -> Result<(), Error> {
        embedded::create(path, &self.tree, &|done| {
            progress(done);
            true
        })?;
        let read = embedded::look(&Directory::new(path))?.map(|tree| Self { tree });
        match read.is_some_and(|read| read.is_same(self)) {
            true => Ok(()),
            false => Err(Error::Corrupt {
                file: path.into(),
                offset: 0,
                reason: "it is not read back as it was written".into(),
            }),
        }
    }
}
