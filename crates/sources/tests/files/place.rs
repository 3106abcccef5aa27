//! A directory to write to, in the ways that people and programs do.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

pub(crate) struct Place {
    directory: TempDir,
}

/// A Route with a value.
pub(crate) fn route(name: &str, value: u64) -> String {
    format!("apiVersion: example.com/v1\nkind: Route\nmetadata:\n  name: {name}\nspec:\n  value: {value}\n")
}

impl Place {
    pub(crate) fn new() -> Self {
        let place = Self { directory: tempfile::tempdir().unwrap() };
        fs::create_dir(place.root()).unwrap();
        place
    }

    /// What is watched.
    pub(crate) fn root(&self) -> PathBuf {
        self.aside("routes.d")
    }

    /// Something beside it, on the same file system.
    pub(crate) fn aside(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.root().join(name)
    }

    /// Truncates and writes.
    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    /// As programs do that want no reader to see half of it.
    pub(crate) fn replace(&self, name: &str, text: &str) {
        let temporary = self.path(format!(".{name}.tmp"));
        fs::write(&temporary, text).unwrap();
        fs::rename(temporary, self.path(name)).unwrap();
    }

    /// As vim does: a test file, the original moved away, a new one written, the backup removed.
    pub(crate) fn edit(&self, name: &str, text: &str) {
        let (path, backup) = (self.path(name), self.path(format!("{name}~")));
        fs::write(self.path("4913"), "").unwrap();
        fs::remove_file(self.path("4913")).unwrap();
        fs::rename(&path, &backup).unwrap();
        let mut file = File::create(&path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file.sync_all().unwrap();
        drop(file);
        fs::remove_file(backup).unwrap();
    }

    pub(crate) fn remove(&self, name: &str) {
        fs::remove_file(self.path(name)).unwrap();
    }
}
