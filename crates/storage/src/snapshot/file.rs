use std::io::ErrorKind;
use std::path::Path;

use super::Snapshot;
use crate::embedded::{Directory, checkpoint, is_full};
use crate::{Error, Progress};

impl Snapshot {
    /// Reads a file that [`to_file`](Self::to_file) wrote.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] if it is not complete, was changed, or is another kind of file.
    pub fn of_file(path: &Path) -> Result<Self, Error> {
        let (directory, name) = split(path)?;
        let (tree, _) = checkpoint::read(&directory, &name, None)?;
        Ok(Self { tree })
    }

    /// Writes a file, readable by its owner only, and reads it back to see that it is what it should be. Gives its size in bytes. A file of
    /// this name is replaced once all of the new one is durable.
    ///
    /// # Errors
    ///
    /// [`Error::Full`] or [`Error::Io`] if it cannot be written, [`Error::Corrupt`] if it is read back differently.
    pub fn to_file(&self, path: &Path, progress: Progress<'_>) -> Result<u64, Error> {
        let (directory, name) = split(path)?;
        let go_on = |done| {
            progress(done);
            true
        };
        let size = checkpoint::write(&directory, &name, &self.tree, &go_on).map_err(|error| {
            let doing = format!("writing {}", path.display());
            match is_full(&error) {
                true => Error::Full { reason: format!("{doing}: {error}") },
                false => Error::Io { doing, reason: error.to_string() },
            }
        })?;
        match Self::of_file(path)?.is_same(self) {
            true => Ok(size),
            false => Err(Error::Corrupt {
                file: path.into(),
                offset: 0,
                reason: "it is not read back as it was written".into(),
            }),
        }
    }
}

/// The directory of a file, and its name.
fn split(path: &Path) -> Result<(Directory, String), Error> {
    let name = path.file_name().and_then(|name| name.to_str()).ok_or_else(|| Error::Io {
        doing: format!("opening {}", path.display()),
        reason: std::io::Error::from(ErrorKind::InvalidFilename).to_string(),
    })?;
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    Ok((Directory::new(parent.unwrap_or(Path::new("."))), name.to_owned()))
}
