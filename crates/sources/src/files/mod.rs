//! Files as a source: a directory of YAML and JSON documents, one such file, or directories whose files belong together.
//!
//! The operating system's word that something changed is a hint. What is there is found by reading it. That covers the traps of
//! watching files, each of which is a test in `tests/files`:
//!
//! | trap | what is done about it |
//! |---|---|
//! | 1. editors replace a file by renaming | directories are watched, not files; a file has to be missing for 20 ms to be gone if it was deleted, for 100 ms if it was moved away |
//! | 2. a file is read while it is written | it is read after it was closed, or has been left alone for two seconds |
//! | 3. `..data` of a mounted ConfigMap | a link that is exchanged makes its directory be read again |
//! | 4. a file that is a mount never changes | it is polled, and [`Status::notes`] says so |
//! | 5. a new directory is filled before it is watched | it is watched before it is read |
//! | 6. too many changes at once | everything is read again |
//! | 7. no more watches | polling, and [`Status::watching`] says so |
//! | 8. file systems without events | polling, and [`Status::watching`] says so |
//! | 9. a directory that is gone, empty or not mounted | nothing is deleted before it is certain |
//! | 10. changes that size and time do not show | contents are compared |
//! | 11. two files with one object; renamed files | the first path wins, the other one is rejected; a rename changes nothing |
//! | 12. files that belong together | [`Files::bundles`] reads them as one object |
//! | 13. one bad document among others | it alone is rejected, with file, line and column |
//! | 14. hidden, temporary and backup files | are not read |
//! | 15. loops of links, permissions, CRLF, byte-order marks | a file that cannot be read is rejected and keeps its objects |

mod agenda;
mod ahead;
mod bundle;
mod catalog;
mod content;
mod documents;
mod feed;
mod fingerprint;
mod held;
mod hints;
mod mounts;
mod names;
mod round;
mod settings;
mod snapshot;
mod status;
#[cfg(test)]
mod tests;
mod tracker;
mod walk;
mod write_status;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use watchkeeper_core::{Capabilities, Feed, Follow, ObjectStatus, Order, Source, Start, StatusWritten};

use settings::{Form, Identity, Settings};
pub use status::{Status, Watching};

/// The documents of a directory or of a file as objects.
///
/// ```
/// use std::time::Duration;
/// use watchkeeper_sources::files::Files;
///
/// // Kubernetes objects of one kind in all files below a directory.
/// let routes = Files::directory("routes.d").kind("example.com/v1", "Route");
/// // Documents of any shape, named after their files.
/// let settings = Files::file("settings.yaml").by_path();
/// // A certificate and its key, as one object for each directory.
/// let certificates = Files::bundles("certificates").poll(Duration::from_secs(5));
/// ```
///
/// # What is read
///
/// Files whose names end in `.yaml`, `.yml` or `.json`, in the directory and all directories below it, but not those whose
/// names begin with a dot. YAML is read as Kubernetes reads it, with any number of documents in a file. A JSON file holds any number of
/// values, one after the other. A `List` stands for its items. Links to files and directories are followed.
///
/// # What objects are called
///
/// - With [`kind`](Self::kind), by `metadata.namespace` and `metadata.name`. Documents of other kinds are passed over.
/// - Without it, the kind is part of the name, as kubectl writes it: `Route.example.com/shop`.
/// - With [`by_path`](Self::by_path), by the path of the file below the directory. The second document of `a.yaml` is
///   `a.yaml#2`. Such documents need neither a kind nor a name.
///
/// # What it promises beyond [`Source`]
///
/// - Versions say what is in a document: moving it to another file, another layout or another comment is no change.
/// - A document that cannot be read is rejected with its place, as `routes.d/a.yaml:12:3: document 2: ...`. The objects that its
///   file had before stay as they were, until it can be read again or is gone.
/// - A directory that does not exist is [`Missing`](watchkeeper_core::Error::Missing), and one that is empty because it is
///   not mounted is too: this deletes nothing.
/// - A file is not read between the start and the end of a write in place, as far as the operating system tells.
///
/// # What it does not promise
///
/// Files in one directory are not read as of one moment: for that, they have to be a [bundle](Self::bundles) or be exchanged by a
/// link. What was in a file that is broken when the process starts is not known.
#[derive(Clone, Debug)]
pub struct Files {
    settings: Arc<Settings>,
}

impl Files {
    /// A source of all documents in a directory and the directories below it.
    pub fn directory(path: impl Into<PathBuf>) -> Self {
        Self::new(path.into(), Form::Directory)
    }

    /// A source of all documents in one file, whatever its name. The file may be JSON if its name ends so.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self::new(path.into(), Form::File)
    }

    /// A source of directories with files, at `path` or below it, each as one object: `{"data": {"tls.crt": "..."}, "binaryData": {}}`, as in a
    /// ConfigMap. Its name is the path of the directory below `path`, or `.`.
    ///
    /// A bundle is read when none of its files has changed for a quarter of a second, and read again if one changed meanwhile.
    pub fn bundles(path: impl Into<PathBuf>) -> Self {
        Self::new(path.into(), Form::Bundles).by_path()
    }

    /// Limits the source to objects of a kind.
    #[must_use]
    pub fn kind(self, api_version: &str, kind: &str) -> Self {
        self.with(|settings| settings.identity = Identity::Kind(api_version.into(), kind.into()))
    }

    /// Limits the source to objects of a kind that is known at compile time.
    #[cfg(feature = "kubernetes")]
    #[must_use]
    pub fn of<K: kube_core::Resource<DynamicType = ()>>(self) -> Self {
        self.kind(&K::api_version(&()), &K::kind(&()))
    }

    /// Names objects after their files.
    #[must_use]
    pub fn by_path(self) -> Self {
        self.with(|settings| settings.identity = Identity::Path)
    }

    /// Polls for changes at this interval instead of waiting for events of the operating system.
    #[must_use]
    pub fn poll(self, interval: Duration) -> Self {
        self.with(|settings| settings.poll = Some(interval))
    }

    /// Sets how often all files are checked, in case that an event was lost. Default: a minute. What is found only by this is
    /// counted in [`Status::drift`].
    #[must_use]
    pub fn rescan(self, interval: Duration) -> Self {
        self.with(|settings| settings.rescan = interval)
    }

    /// Sets the maximum size of a file. Default: 16 MiB. Larger ones are rejected.
    #[must_use]
    pub fn max_file_bytes(self, bytes: u64) -> Self {
        self.with(|settings| settings.max_file_bytes = bytes)
    }

    /// Sets the directory that the statuses of objects are written to, as `NAMESPACE/NAME.json`. It is outside of what is watched, or its name
    /// begins with a dot. The status of an object that is deleted stays there.
    #[must_use]
    pub fn status_directory(self, path: impl Into<PathBuf>) -> Self {
        self.with(|settings| settings.status_directory = Some(path.into()))
    }

    /// The status of the source: how changes are noticed, and what is wrong. Of the feed that was opened last.
    pub fn status(&self) -> Status {
        self.settings.shared.status()
    }

    fn new(path: PathBuf, form: Form) -> Self {
        Self { settings: Arc::new(Settings::new(path, form)) }
    }

    fn with(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        let settings = Arc::make_mut(&mut self.settings);
        settings.shared = Arc::default();
        change(settings);
        self
    }

    /// The path that was given.
    pub fn path(&self) -> &Path {
        &self.settings.path
    }
}

impl Source for Files {
    fn name(&self) -> &str {
        &self.settings.name
    }

    fn identity(&self) -> String {
        self.settings.identity()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new(Order::Opaque, Follow::Hints)
            .confirm_shrink(settings::SHRINK)
            .status_write_back(self.settings.status_directory.is_some())
    }

    fn open(&self, start: Start) -> Feed {
        feed::open(Arc::clone(&self.settings), start)
    }

    fn drift(&self) -> u64 {
        self.settings.shared.lock().status.drift
    }

    /// To a file in the directory that was named for it, which is replaced. The object's own file is read before, so that a status is only written
    /// for the state that it is about; a status that is what it was is not written.
    fn write_status(&self, status: ObjectStatus) -> StatusWritten {
        Box::pin(write_status::write(Arc::clone(&self.settings), status))
    }
}
