//! Walks a directory tree; each directory is watched before it is read.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::fingerprint::{Signature, identity};
use super::hints::{Refused, Watcher};
use super::names;
use super::settings::{Form, Settings};

/// Links may lead this deep, in case that a loop is not recognised.
const MAX_DEPTH: usize = 64;

/// What there is below a directory. All paths are below the root.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// With what tells them apart, if that was asked for; `None` also of files that are to be read anyway.
    pub(super) files: BTreeMap<PathBuf, Option<Signature>>,
    pub(super) directories: BTreeSet<PathBuf>,
    /// Files and directories that cannot be read, and why.
    pub(super) unreadable: BTreeMap<PathBuf, String>,
}

/// Which directories are watched, and what for.
#[derive(Debug, Default)]
pub(super) struct Watches {
    watcher: Option<Box<dyn Watcher>>,
    /// By the path that the system knows.
    roles: HashMap<PathBuf, BTreeSet<Role>>,
    refused: Option<String>,
}

/// Why a directory is watched.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Role {
    /// It is this directory below the root.
    Directory(PathBuf),
    /// Links in this directory lead there.
    Links(PathBuf),
    /// The root is in it, under this name.
    Root(OsString),
}

/// What an event is about.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum About {
    /// A path below the root.
    Path(PathBuf),
    /// Anything in this directory below the root.
    Directory(PathBuf),
}

impl Watches {
    pub(super) fn new(watcher: Option<Box<dyn Watcher>>) -> Self {
        Self { watcher, ..Self::default() }
    }

    /// Why events cannot be relied on, once that is so.
    pub(super) fn refused(&self) -> Option<&str> {
        self.refused.as_deref()
    }

    /// Begins anew: directories that are not added again will be forgotten.
    pub(super) fn begin(&mut self) -> HashSet<PathBuf> {
        std::mem::take(&mut self.roles).into_keys().collect()
    }

    /// Forgets directories of before that were not added again.
    pub(super) fn end(&mut self, before: HashSet<PathBuf>) {
        if let Some(watcher) = &mut self.watcher {
            before
                .iter()
                .filter(|real| !self.roles.contains_key(*real))
                .for_each(|real| watcher.unwatch(real));
        }
    }

    pub(super) fn add_root(&mut self, root: &Path) {
        if let (Some(name), Some(parent)) = (root.file_name(), root.parent()) {
            let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
            if let Ok(real) = fs::canonicalize(parent) {
                self.add(real, Role::Root(name.into()));
            }
        }
    }

    fn add(&mut self, real: PathBuf, role: Role) {
        let again = matches!(role, Role::Directory(_));
        let roles = self.roles.entry(real.clone()).or_default();
        let new = roles.is_empty();
        roles.insert(role);
        // What was watched may have been another directory of this name.
        if let Some(watcher) = self.watcher.as_mut().filter(|_| new || again)
            && let Err(Refused::Impossible(reason)) = watcher.watch(&real)
        {
            self.refused = Some(reason);
            self.watcher = None;
        }
    }

    /// What an event at this path, as the system knows it, is about.
    pub(super) fn about(&self, path: &Path) -> Vec<About> {
        let mut about = Vec::new();
        for role in self.roles.get(path).into_iter().flatten() {
            if let Role::Directory(below) = role {
                about.push(About::Directory(below.clone()));
            }
        }
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return about };
        for role in self.roles.get(parent).into_iter().flatten() {
            match role {
                Role::Directory(below) => about.push(About::Path(below.join(name))),
                Role::Links(below) => about.push(About::Directory(below.clone())),
                Role::Root(root) if root == name => about.push(About::Directory(PathBuf::new())),
                Role::Root(_) => {}
            }
        }
        about
    }
}

/// Looks at a directory below the root and at all below it.
pub(super) fn walk(
    settings: &Settings,
    watches: &mut Watches,
    below: &Path,
    look: Look,
) -> io::Result<Found> {
    let mut walk = Walk { settings, watches, look, found: Found::default() };
    let mut ancestors = Vec::new();
    let mut path = settings.root().to_path_buf();
    for name in below.iter() {
        ancestors.extend(fs::metadata(&path).ok().map(|metadata| identity(&metadata)));
        path.push(name);
    }
    walk.directory(below, &mut ancestors)?;
    Ok(walk.found)
}

/// What a walk is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// All files are read then: nothing has to be known of them but that they are there.
    ToRead,
    /// Files are compared with what is known of them.
    ToCompare,
}

struct Walk<'a> {
    settings: &'a Settings,
    watches: &'a mut Watches,
    look: Look,
    found: Found,
}

impl Walk<'_> {
    fn directory(&mut self, below: &Path, ancestors: &mut Vec<(u64, u64)>) -> io::Result<()> {
        let path = self.settings.root().join(below);
        let this = identity(&fs::metadata(&path)?);
        if ancestors.contains(&this) || ancestors.len() > MAX_DEPTH {
            self.found.unreadable.insert(below.into(), "the link leads back to a directory above it".into());
            return Ok(());
        }
        self.watches.add(fs::canonicalize(&path)?, Role::Directory(below.into()));
        self.found.directories.insert(below.into());
        ancestors.push(this);
        for entry in fs::read_dir(&path)? {
            let entry = entry?;
            let below = below.join(entry.file_name());
            // What vanishes while we look was not there.
            if let Ok(kind) = entry.file_type() {
                self.entry(&below, kind, ancestors);
            }
        }
        ancestors.pop();
        Ok(())
    }

    fn entry(&mut self, below: &Path, kind: fs::FileType, ancestors: &mut Vec<(u64, u64)>) {
        let enters = self.settings.form != Form::File
            && !below.file_name().is_some_and(|name| names::is_hidden(name.as_ref()));
        let wants = self.settings.wants(below);
        if !enters && !wants {
            return;
        }
        if kind.is_file() && self.look == Look::ToRead {
            if wants {
                self.found.files.insert(below.into(), None);
            }
            return;
        }
        let path = self.settings.root().join(below);
        let metadata = match fs::metadata(&path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound && !kind.is_symlink() => return,
            Err(error) => {
                if wants {
                    self.found.unreadable.insert(below.into(), why(&error, kind));
                }
                return;
            }
        };
        if metadata.is_dir() {
            if enters
                && let Err(error) = self.directory(below, ancestors)
                && error.kind() != io::ErrorKind::NotFound
            {
                self.found.unreadable.insert(below.into(), why(&error, kind));
            }
        } else if metadata.is_file() && wants {
            self.found.files.insert(below.into(), Some(Signature::of(&metadata)));
            if kind.is_symlink()
                && let Some(target) = fs::canonicalize(&path).ok().as_deref().and_then(Path::parent)
            {
                let directory = below.parent().unwrap_or(Path::new("")).to_path_buf();
                self.watches.add(target.to_path_buf(), Role::Links(directory));
            }
        }
    }
}

fn why(error: &io::Error, kind: fs::FileType) -> String {
    match error.kind() {
        io::ErrorKind::NotFound if kind.is_symlink() => "the link leads nowhere".into(),
        io::ErrorKind::PermissionDenied => "permission denied".into(),
        _ => error.to_string(),
    }
}
