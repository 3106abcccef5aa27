//! Notifications of the operating system, collected until the next scan.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use notify::event::{AccessKind, AccessMode, CreateKind, ModifyKind, RenameMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::Notify;

use super::agenda::Hint;

/// Beyond this many, it is quicker to look at everything.
const MANY: usize = 10_000;

/// Makes something that tells of changes.
pub(super) type Connect = fn(Arc<Inbox>) -> Result<Box<dyn Watcher>, String>;

/// Tells of changes in directories, until it is dropped.
pub(super) trait Watcher: Send {
    /// Begins to tell of what is directly in a directory. Again for one that is told of already, it makes sure of it.
    fn watch(&mut self, directory: &Path) -> Result<(), Refused>;

    fn unwatch(&mut self, directory: &Path);
}

impl fmt::Debug for dyn Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watcher")
    }
}

/// Why a directory is not watched.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// It is not there any more, which will be noticed elsewhere.
    Gone,
    /// It cannot be watched.
    Impossible(String),
}

/// Hints that nobody has looked at yet.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    waiting: Mutex<Waiting>,
    arrival: Notify,
}

#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// In the order in which they came, by paths as the system knows them.
    pub(super) hints: Vec<(PathBuf, Hint)>,
    /// Hints were lost: anything may have changed.
    pub(super) everything: bool,
}

impl Inbox {
    pub(super) fn take(&self) -> Waiting {
        std::mem::take(&mut self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) async fn arrival(&self) {
        self.arrival.notified().await;
    }

    pub(super) fn put(&self, path: PathBuf, hint: Hint) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.hints.len() < MANY {
            waiting.hints.push((path, hint));
        } else {
            waiting.everything = true;
        }
        drop(waiting);
        self.arrival.notify_one();
    }

    pub(super) fn lost(&self) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).everything = true;
        self.arrival.notify_one();
    }

    fn receive(&self, told: notify::Result<Event>) {
        let Ok(event) = told else { return self.lost() };
        if event.need_rescan() {
            return self.lost();
        }
        let Some(hint) = hint(&event.kind) else { return };
        for path in event.paths {
            self.put(path, hint);
        }
    }
}

/// What an event means; `None` if it says nothing about contents.
fn hint(kind: &EventKind) -> Option<Hint> {
    Some(match kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => Hint::Ready,
        // Our own reading among them.
        EventKind::Access(_) => return None,
        EventKind::Create(CreateKind::Folder) => Hint::Ready,
        EventKind::Create(_) => Hint::Created,
        EventKind::Modify(ModifyKind::Name(RenameMode::To)) => Hint::Ready,
        EventKind::Modify(ModifyKind::Name(RenameMode::From)) => Hint::Away,
        // Told before, as two.
        EventKind::Modify(ModifyKind::Name(RenameMode::Both)) => return None,
        EventKind::Modify(ModifyKind::Name(_)) => Hint::Created,
        EventKind::Modify(ModifyKind::Metadata(_)) => Hint::Touched,
        EventKind::Modify(_) => Hint::Writing,
        EventKind::Remove(_) => Hint::Gone,
        EventKind::Any | EventKind::Other => Hint::Touched,
    })
}

/// The events of the operating system.
pub(super) fn connect(inbox: Arc<Inbox>) -> Result<Box<dyn Watcher>, String> {
    let receive = move |told| inbox.receive(told);
    let watcher = notify::recommended_watcher(receive).map_err(|error| error.to_string())?;
    Ok(Box::new(System(watcher)))
}

struct System(RecommendedWatcher);

impl Watcher for System {
    fn watch(&mut self, directory: &Path) -> Result<(), Refused> {
        // Directories below are watched one by one, each before it is read, so that nothing falls in between.
        self.0.watch(directory, RecursiveMode::NonRecursive).map_err(|error| match error.kind {
            notify::ErrorKind::PathNotFound => Refused::Gone,
            notify::ErrorKind::Io(error) if error.kind() == std::io::ErrorKind::NotFound => Refused::Gone,
            notify::ErrorKind::MaxFilesWatch => Refused::Impossible(
                "no more directories can be watched; raise fs.inotify.max_user_watches".into(),
            ),
            kind => Refused::Impossible(format!("{kind:?}")),
        })
    }

    fn unwatch(&mut self, directory: &Path) {
        // It may be gone, and its watch with it.
        let _ = self.0.unwatch(directory);
    }
}
