//! The synchronous core of a feed: watches, the catalog and the schedule of scans. Every call may block on files.

use std::collections::{HashMap, HashSet, VecDeque};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use watchkeeper_core::{Error, Event, Key, Reason};

use super::agenda::{Agenda, SETTLE};
use super::ahead::Ahead;
use super::bundle::{self, Bundle};
use super::catalog::{Catalog, FileState, rejected};
use super::content::{self, Content};
use super::documents::{self, Fault, Object, Parsed};
use super::fingerprint::{Signature, identity};
use super::hints::Inbox;
use super::settings::{Form, Settings, path_key};
use super::walk::Watches;
use crate::print::Print;

/// The path that stands for all files of a directory, where they are one bundle.
const ALL: &str = "*";

pub(super) struct Tracker {
    pub(super) settings: Arc<Settings>,
    pub(super) inbox: Arc<Inbox>,
    pub(super) watches: Watches,
    pub(super) catalog: Catalog,
    pub(super) agenda: Agenda,
    /// How often to look at everything because nobody tells of changes.
    pub(super) polling: Option<Duration>,
    /// When everything is looked at next.
    pub(super) scan_at: Instant,
    /// Files that are said to be written to, since the round began.
    pub(super) written: HashSet<PathBuf>,
    /// Hints were lost: everything has to be looked at.
    pub(super) everything: bool,
    /// Files that a look at everything found changed, and that nobody has told of.
    pub(super) suspects: HashSet<PathBuf>,
    /// Files that the snapshot has still to read.
    pub(super) pending: VecDeque<PathBuf>,
    /// What is known already of the first of them.
    pub(super) ahead: Ahead,
    /// What was read and not told yet.
    pub(super) fresh: HashMap<PathBuf, HashMap<Key, Object>>,
    pub(super) affected: HashSet<Key>,
    pub(super) news: Vec<Event>,
}

/// What became of an attempt to read a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Missing,
    /// Somebody is writing to it.
    Unstable,
    /// Somebody began to write to it while it was read, and it will be read again.
    Superseded,
    /// It was just written: it is to be read again after this time.
    Young(Duration),
    /// It was just written and has lost objects: maybe it is not written to the end.
    Doubtful,
    Same,
    Changed,
}

impl Tracker {
    pub(super) fn new(settings: Arc<Settings>, inbox: Arc<Inbox>) -> Self {
        Self {
            settings,
            inbox,
            watches: Watches::default(),
            catalog: Catalog::default(),
            agenda: Agenda::default(),
            polling: None,
            scan_at: Instant::now(),
            written: HashSet::new(),
            everything: false,
            suspects: HashSet::new(),
            pending: VecDeque::new(),
            ahead: Ahead::new(),
            fresh: HashMap::new(),
            affected: HashSet::new(),
            news: Vec::new(),
        }
    }

    /// The path under which a file is read: its own, or that of its bundle.
    pub(super) fn unit(&self, file: &Path) -> PathBuf {
        match self.settings.form {
            Form::Bundles => file.parent().unwrap_or(Path::new("")).join(ALL),
            Form::Directory | Form::File => file.to_path_buf(),
        }
    }

    pub(super) fn is_bundle(&self, path: &Path) -> bool {
        self.settings.form == Form::Bundles && path.file_name() == Some(OsStr::new(ALL))
    }

    /// The file system that the root is on, or why there is nothing to be read.
    pub(super) fn root(&self) -> Result<u64, Error> {
        let settings = &self.settings;
        let path = if settings.form == Form::File { &settings.path } else { settings.root() };
        let shown = path.display();
        match std::fs::metadata(path) {
            Ok(metadata) if settings.form != Form::File && !metadata.is_dir() => {
                Err(Error::Missing(format!("{shown} is not a directory")))
            }
            Ok(metadata) => Ok(identity(&metadata).0),
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                Err(Error::Denied(format!("{shown}: permission denied")))
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Err(Error::Missing(format!("{shown} does not exist")))
            }
            Err(error) => Err(Error::Unavailable { answered: false, reason: format!("{shown}: {error}") }),
        }
    }

    /// Whether an empty directory is only the place where another file system belongs.
    pub(super) fn is_unmounted(&self, device: u64) -> bool {
        self.settings.form != Form::File
            && self.settings.shared.lock().device.is_some_and(|known| known != device)
    }

    pub(super) fn unmounted(&self) -> Error {
        let shown = self.settings.root().display();
        Error::Missing(format!("{shown} is empty and on another file system than before: is it mounted?"))
    }

    /// Reads a file, takes over what it says and gathers what the reader may have to be told. With `again`, even if it is as it was.
    pub(super) fn read(&mut self, path: &Path, again: bool) -> Outcome {
        self.read_if(path, again, |_| None)
    }

    /// The same, unless a file is too young: then nothing is taken over. `young` says for how long it still is. Bundles are never too young.
    pub(super) fn read_if(
        &mut self,
        path: &Path,
        again: bool,
        young: impl FnOnce(&content::Bytes) -> Option<Duration>,
    ) -> Outcome {
        let before = self.catalog.file(path).map(|file| file.content);
        let (parsed, content, looked) = if self.is_bundle(path) {
            let directory = path.parent().unwrap_or(Path::new(""));
            match bundle::read(&self.settings, directory) {
                Bundle::Missing => return Outcome::Missing,
                Bundle::Unstable => return Outcome::Unstable,
                Bundle::Read(parsed) => {
                    let content = parsed.objects.first().map(|object| object.print).unwrap_or_default();
                    if before == Some(content) && content != Print::default() && !again {
                        self.catalog.doubt(path, false);
                        return Outcome::Same;
                    }
                    (parsed, content, None)
                }
            }
        } else {
            let (content, known) = self.ahead.take(path).unwrap_or_else(|| {
                (content::read(&self.settings.root().join(path), self.settings.max_file_bytes), None)
            });
            match content {
                Content::Missing | Content::NoFile => return Outcome::Missing,
                Content::Unstable => return Outcome::Unstable,
                Content::Unreadable(why) => {
                    (self.unreadable(path, Reason::Unreadable, &why), Print::default(), None)
                }
                Content::TooLarge(size) => {
                    let why =
                        format!("{size} bytes, more than the {} that are read", self.settings.max_file_bytes);
                    (self.unreadable(path, Reason::TooLarge, &why), Print::default(), None)
                }
                Content::Bytes(found) => {
                    if let Some(wait) = young(&found) {
                        return Outcome::Young(wait);
                    }
                    let content::Bytes { signature, read, age, bytes } = found;
                    let (content, parsed) = match known {
                        Some((content, parsed)) => (content, Some(parsed)),
                        None => (Print::of(&bytes), None),
                    };
                    if before == Some(content) && !again {
                        self.catalog.unchanged(path, signature, read);
                        return Outcome::Same;
                    }
                    let parsed = parsed.unwrap_or_else(|| documents::parse(&self.settings, path, &bytes));
                    if self.pending.is_empty() && !again {
                        self.take_hints(Instant::now());
                        if self.written.contains(path) {
                            return Outcome::Superseded;
                        }
                        if age.is_some_and(|age| age < SETTLE) && self.would_lose(path, &parsed) {
                            return Outcome::Doubtful;
                        }
                    }
                    (parsed, content, Some((signature, read)))
                }
            }
        };
        self.take_over(path, parsed, content, looked);
        Outcome::Changed
    }

    /// Whether a file lacks an object that it had.
    fn would_lose(&self, path: &Path, parsed: &Parsed) -> bool {
        let has = |key: &Key| parsed.objects.iter().any(|object| object.document.header.key == *key);
        self.catalog.file(path).is_some_and(|file| file.objects.iter().any(|(key, _)| !has(key)))
    }

    /// Notes that a file cannot be read.
    pub(super) fn unreadable(&self, path: &Path, reason: Reason, why: &str) -> Parsed {
        let detail = format!("{}: {why}", self.settings.shown(path));
        Parsed { faults: vec![Fault { key: path_key(path, 1), reason, detail }], ..Parsed::default() }
    }

    pub(super) fn take_over(
        &mut self,
        path: &Path,
        parsed: Parsed,
        content: Print,
        looked: Option<(Signature, SystemTime)>,
    ) {
        let known = self.catalog.file(path).map(|file| file.faults.as_slice()).unwrap_or_default();
        let new = parsed.faults.iter().filter(|fault| !known.contains(fault)).cloned();
        self.news.extend(new.map(rejected));
        let mended: Vec<Key> = known
            .iter()
            .filter(|fault| !parsed.faults.contains(fault))
            .map(|fault| fault.key.clone())
            .collect();
        self.mended(mended, &parsed);
        let mut file = FileState { content, ..FileState::of(&parsed) };
        (file.signature, file.read) = looked.unzip();
        let mut memory = self.settings.shared.lock();
        let remembered = memory.held.remove(path);
        self.affected.extend(self.catalog.set(path, file, &remembered));
        if let Some(file) = self.catalog.file(path) {
            let keys = file.objects.iter().map(|(key, _)| key).chain(&file.kept).cloned().collect();
            memory.held.insert(path, keys);
        }
        drop(memory);
        let objects = parsed.objects.into_iter().map(|object| (object.document.header.key.clone(), object));
        self.fresh.insert(path.to_path_buf(), objects.collect());
    }

    /// Tells that faults are no longer there. Under their keys, which are places in files, there are no objects; if there is one, it is told of.
    fn mended(&mut self, keys: Vec<Key>, parsed: &Parsed) {
        let is_free =
            |key: &Key| !self.catalog.is_known(key) && !parsed.faults.iter().any(|fault| fault.key == *key);
        let gone = keys.into_iter().filter(is_free).map(|key| Event::Gone { key, position: None });
        self.news.extend(gone.collect::<Vec<_>>());
    }

    /// Forgets a file that is gone.
    pub(super) fn forget(&mut self, path: &Path) {
        let faults = self.catalog.file(path).map(|file| file.faults.as_slice()).unwrap_or_default();
        let keys = faults.iter().map(|fault| fault.key.clone()).collect();
        self.mended(keys, &Parsed::default());
        self.affected.extend(self.catalog.remove(path));
        self.settings.shared.lock().held.remove(path);
    }
}
