use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// What the embedded storage needs of a file system, and no more: so that tests can put one in its place that fails
/// and forgets as real ones do.
///
/// Nothing is durable before it is synced: the content of a file by [`DiskFile::sync`], its name by
/// [`Disk::sync_directory`].
pub(crate) trait Disk: Send + Sync + 'static {
    /// How to call a file when talking to a person.
    fn path(&self, name: &str) -> PathBuf;
    fn list(&self) -> io::Result<Vec<String>>;
    fn length(&self, name: &str) -> io::Result<u64>;
    fn read(&self, name: &str) -> io::Result<Box<dyn Read>>;
    /// A new, empty file, in place of what had this name.
    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>>;
    /// A file that is there, to be written to.
    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>>;
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    fn remove(&self, name: &str) -> io::Result<()>;
    fn sync_directory(&self) -> io::Result<()>;
}

/// A file being written.
pub(crate) trait DiskFile: Send {
    /// Writes all of it, or fails having written any part of it.
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;
    fn truncate(&mut self, length: u64) -> io::Result<()>;
    fn sync(&mut self) -> io::Result<()>;
}

/// Whether an error says that there is no room: the one failure of a write that goes away by itself.
pub(crate) fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

/// A directory of the operating system.
pub(crate) struct Directory {
    path: PathBuf,
}

impl Directory {
    pub(crate) fn new(path: &Path) -> Self {
        Self { path: path.into() }
    }
}

impl Disk for Directory {
    fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let names = fs::read_dir(&self.path)?.map(|entry| Ok(entry?.file_name().into_string().ok()));
        names.filter_map(io::Result::transpose).collect()
    }

    fn length(&self, name: &str) -> io::Result<u64> {
        Ok(fs::metadata(self.path(name))?.len())
    }

    fn read(&self, name: &str) -> io::Result<Box<dyn Read>> {
        Ok(Box::new(File::open(self.path(name))?))
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let mut options = File::options();
        // Nobody else's to read: values may be secrets.
        options.create(true).truncate(true).write(true).mode(0o600);
        let file = options.open(self.path(name))?;
        Ok(Box::new(OpenFile { file, resized: false }))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let file = File::options().write(true).open(self.path(name))?;
        Ok(Box::new(OpenFile { file, resized: false }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path(from), self.path(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path(name))
    }

    fn sync_directory(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }
}

struct OpenFile {
    file: File,
    /// A file that was cut has more to sync than what is needed to read its data.
    resized: bool,
}

impl DiskFile for OpenFile {
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.resized = true;
        self.file.set_len(length)
    }

    fn sync(&mut self) -> io::Result<()> {
        if self.resized {
            self.file.sync_all()?;
            self.resized = false;
            return Ok(());
        }
        self.file.sync_data()
    }
}
