//! Temporary files of a command.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;

/// A directory that only this user can look into, and that goes with this value.
pub(crate) struct Scratch {
    path: PathBuf,
    next: AtomicU64,
}

/// A file that goes with this value.
pub(crate) struct ScratchFile {
    path: PathBuf,
}

impl Scratch {
    pub(crate) fn new() -> io::Result<Self> {
        let name = format!("watchkeeper-run-{}-{:08x}", std::process::id(), fastrand::u32(..));
        let path = std::env::temp_dir().join(name);
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self { path, next: AtomicU64::new(0) })
    }

    /// Writes a value into a file.
    pub(crate) fn file(&self, value: &Value) -> io::Result<ScratchFile> {
        let path = self.path.join(format!("{}.json", self.next.fetch_add(1, Ordering::Relaxed)));
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        let made = ScratchFile { path };
        file.write_all(value.to_string().as_bytes())?;
        Ok(made)
    }
}

impl Scratch {
    /// Bytes to be read, as a file that nobody else finds. Whoever has it can read all of it, also if this process is killed.
    pub(crate) fn input(&self, bytes: &[u8]) -> io::Result<File> {
        let path = self.path.join(format!("{}.input", self.next.fetch_add(1, Ordering::Relaxed)));
        let mut file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
        fs::remove_file(&path)?;
        file.write_all(bytes)?;
        file.rewind()?;
        Ok(file)
    }
}

impl ScratchFile {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ScratchFile {
    fn drop(&mut self) {
        // If it is gone already, so much the better.
        let _ = fs::remove_file(&self.path);
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}
