//! The settings of a file source, and the state that its feeds share.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use watchkeeper_core::Key;

use super::held::Held;
use super::hints::{Connect, connect};
use super::names;
use super::status::Status;

/// If more than this share of all objects would be gone at once, a second look has to confirm it.
pub(super) const SHRINK: f32 = 0.5;

#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// As the user wrote it.
    pub(super) path: PathBuf,
    pub(super) name: String,
    pub(super) form: Form,
    pub(super) identity: Identity,
    pub(super) poll: Option<Duration>,
    pub(super) rescan: Duration,
    pub(super) max_file_bytes: u64,
    /// Where the statuses of objects go.
    pub(super) status_directory: Option<PathBuf>,
    /// How to be told of changes.
    pub(super) connect: Connect,
    pub(super) shared: Arc<Shared>,
}

/// What a path is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Directory,
    File,
    Bundles,
}

/// How objects are told apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Identity {
    /// By kind, namespace and name.
    Object,
    /// By namespace and name, of one kind.
    Kind(String, String),
    /// By where they are.
    Path,
}

/// What outlives a feed.
#[derive(Debug, Default)]
pub(super) struct Shared(Mutex<Memory>);

#[derive(Debug, Default)]
pub(super) struct Memory {
    /// The objects that each file had when it could be read.
    pub(super) held: Held,
    /// The file system that the directory was on when there was something in it.
    pub(super) device: Option<u64>,
    pub(super) status: Status,
}

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, Memory> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn status(&self) -> Status {
        self.lock().status.clone()
    }
}

impl Settings {
    pub(super) fn new(path: PathBuf, form: Form) -> Self {
        Self {
            name: path.display().to_string(),
            path,
            form,
            identity: Identity::Object,
            poll: None,
            rescan: Duration::from_secs(60),
            max_file_bytes: 16 << 20,
            status_directory: None,
            connect,
            shared: Arc::default(),
        }
    }

    /// The directory that is watched.
    pub(super) fn root(&self) -> &Path {
        match self.form {
            Form::Directory | Form::Bundles => &self.path,
            Form::File => match self.path.parent() {
                Some(parent) if !parent.as_os_str().is_empty() => parent,
                _ => Path::new("."),
            },
        }
    }

    /// Whether a file of this name, given by its path below the root, is one to be read.
    pub(super) fn wants(&self, below: &Path) -> bool {
        match self.form {
            Form::Directory => names::is_document(below),
            Form::Bundles => names::is_member(below),
            Form::File => Some(below.as_os_str()) == self.path.file_name(),
        }
    }

    /// The name of a file in messages.
    pub(super) fn shown(&self, below: &Path) -> String {
        match self.form {
            Form::File => self.path.display().to_string(),
            _ => self.path.join(below).display().to_string(),
        }
    }

    /// Everything that decides what is delivered, as text.
    pub(super) fn identity(&self) -> String {
        let Self { path, form, identity, max_file_bytes, .. } = self;
        format!("{path:?} {form:?} {identity:?} {max_file_bytes}")
    }
}

/// The key of what can be named by its path only.
pub(super) fn path_key(below: &Path, number: usize) -> Key {
    let path = below.to_string_lossy();
    match number {
        0 | 1 => Key::new(None, &path),
        number => Key::new(None, &format!("{path}#{number}")),
    }
}
