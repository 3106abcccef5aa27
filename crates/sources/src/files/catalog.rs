//! The objects of each file, precedence among files with the same object, and the events of the feed. Without I/O.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use watchkeeper_core::{Document, Event, Key, Reason, Rejection};

use super::documents::{Fault, Parsed};
use super::fingerprint::Signature;
use crate::print::Print;

/// What is known of one file.
#[derive(Debug, Default)]
pub(super) struct FileState {
    pub(super) signature: Option<Signature>,
    pub(super) read: Option<SystemTime>,
    pub(super) content: Print,
    pub(super) objects: Vec<(Key, Print)>,
    /// Objects that it had when it could be read, and that may be in what cannot be read now.
    pub(super) kept: Vec<Key>,
    pub(super) faults: Vec<Fault>,
    /// It is said to be gone, but that has to be seen.
    pub(super) doubtful: bool,
}

/// All files, and what was told of them.
#[derive(Debug, Default)]
pub(super) struct Catalog {
    files: BTreeMap<PathBuf, FileState>,
    /// The files that have or keep an object.
    holders: HashMap<Key, Vec<PathBuf>>,
    told: HashMap<Key, Told>,
    /// Which file's object lost against which print.
    conflicts: HashSet<(Key, PathBuf)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    State(Print),
    /// That it cannot be read, and that the reader should keep what it has.
    Kept,
}

/// What has to be done for the reader to know an object as it is.
#[derive(Debug)]
pub(super) enum Step {
    Nothing,
    Put(Print),
    Gone,
    /// Its state is in this file, which is not at hand.
    Read(PathBuf),
}

impl Catalog {
    pub(super) fn file(&self, path: &Path) -> Option<&FileState> {
        self.files.get(path)
    }

    /// The paths at or below a directory.
    pub(super) fn below(&self, directory: &Path) -> Vec<PathBuf> {
        let all = self.files.range(directory.to_path_buf()..);
        let is_root = directory.as_os_str().is_empty();
        all.map(|(path, _)| path).take_while(|path| is_root || path.starts_with(directory)).cloned().collect()
    }

    pub(super) fn objects(&self) -> usize {
        self.told.len()
    }

    /// The print of all files.
    pub(super) fn print(&self) -> Print {
        self.files.iter().fold(Print::default(), |print, (path, file)| {
            print.with(path.as_os_str().as_encoded_bytes(), file.content)
        })
    }

    pub(super) fn doubt(&mut self, path: &Path, doubtful: bool) {
        if let Some(file) = self.files.get_mut(path) {
            file.doubtful = doubtful;
        }
    }

    /// The file was looked at and is as it was.
    pub(super) fn unchanged(&mut self, path: &Path, signature: Signature, read: SystemTime) {
        if let Some(file) = self.files.get_mut(path) {
            file.signature = Some(signature);
            file.read = Some(read);
            file.doubtful = false;
        }
    }

    /// Takes over what a file says now. `remembered` are objects it had before this catalog.
    pub(super) fn set(&mut self, path: &Path, mut file: FileState, remembered: &[Key]) -> HashSet<Key> {
        let mut affected = self.remove(path);
        if !file.faults.is_empty() {
            let has = |key: &Key| file.objects.iter().any(|(object, _)| object == key);
            let mut before: Vec<Key> =
                affected.iter().chain(remembered).filter(|key| !has(key)).cloned().collect();
            before.sort();
            before.dedup();
            file.kept = before;
        }
        for key in file.objects.iter().map(|(key, _)| key).chain(&file.kept) {
            // With room for one: there are as many of these as objects, and hardly ever more than one for each.
            let holders = self.holders.entry(key.clone()).or_insert_with(|| Vec::with_capacity(1));
            holders.push(path.to_path_buf());
            affected.insert(key.clone());
        }
        self.files.insert(path.to_path_buf(), file);
        affected
    }

    /// Forgets a file; gives the objects it had or kept.
    pub(super) fn remove(&mut self, path: &Path) -> HashSet<Key> {
        let Some(file) = self.files.remove(path) else { return HashSet::new() };
        let keys: HashSet<Key> = file.objects.into_iter().map(|(key, _)| key).chain(file.kept).collect();
        for key in &keys {
            if let Some(holders) = self.holders.get_mut(key) {
                holders.retain(|holder| holder != path);
                if holders.is_empty() {
                    self.holders.remove(key);
                }
            }
            self.conflicts.remove(&(key.clone(), path.to_path_buf()));
        }
        keys
    }

    /// Whether a file has an object under this key, or the reader was told of one.
    pub(super) fn is_known(&self, key: &Key) -> bool {
        self.holders.contains_key(key) || self.told.contains_key(key)
    }

    /// The file whose object counts: the first by path, among those that are certain to be there.
    fn winner(&self, key: &Key) -> Option<(bool, &Path, Print)> {
        let holders = self.holders.get(key)?.iter();
        let having = holders.filter_map(|path| {
            let file = self.files.get(path)?;
            let (_, print) = file.objects.iter().find(|(object, _)| object == key)?;
            Some((file.doubtful, path.as_path(), *print))
        });
        having.min_by_key(|(doubtful, path, _)| (*doubtful, *path))
    }

    /// What the reader has to be told of an object, if its state is in one of the files at hand.
    pub(super) fn step(&self, key: &Key, at_hand: impl Fn(&Path) -> bool) -> Step {
        let told = self.told.get(key);
        match self.winner(key) {
            Some((_, _, print)) if told == Some(&Told::State(print)) => Step::Nothing,
            Some((_, path, print)) if at_hand(path) => Step::Put(print),
            Some((_, path, _)) => Step::Read(path.to_path_buf()),
            None if told.is_none() || self.holders.contains_key(key) => Step::Nothing,
            None => Step::Gone,
        }
    }

    /// Where the state of an object is.
    pub(super) fn winning_path(&self, key: &Key) -> Option<PathBuf> {
        self.winner(key).map(|(_, path, _)| path.to_path_buf())
    }

    pub(super) fn tell(&mut self, document: &Document, print: Print) {
        self.told.insert(document.header.key.clone(), Told::State(print));
    }

    pub(super) fn tell_gone(&mut self, key: &Key) {
        self.told.remove(key);
    }

    /// The objects of a file that only it could have, and that cannot be read: for a reader who is told everything anew.
    pub(super) fn keep(&mut self, path: &Path) -> Vec<Event> {
        let Some(file) = self.files.get(path) else { return Vec::new() };
        let detail = file.faults.first().map(|fault| fault.detail.clone()).unwrap_or_default();
        let kept: Vec<Key> = file.kept.iter().filter(|key| !self.told.contains_key(*key)).cloned().collect();
        kept.into_iter()
            .map(|key| {
                self.told.insert(key.clone(), Told::Kept);
                rejected(Fault { key, reason: Reason::Unreadable, detail: detail.clone() })
            })
            .collect()
    }

    /// Files whose object under this key loses against another one that says something else; each is told once.
    pub(super) fn conflicts(&mut self, key: &Key, shown: impl Fn(&Path) -> String) -> Vec<Event> {
        // As with nearly all objects.
        if self.conflicts.is_empty() && self.holders.get(key).is_none_or(|holders| holders.len() < 2) {
            return Vec::new();
        }
        let Some((_, winner, print)) = self.winner(key) else { return Vec::new() };
        let holders = self.holders.get(key).into_iter().flatten();
        let losers: Vec<PathBuf> = holders
            .filter(|path| {
                path.as_path() != winner
                    && self.files.get(*path).is_some_and(|file| {
                        !file.doubtful
                            && file.objects.iter().any(|(object, other)| object == key && *other != print)
                    })
            })
            .cloned()
            .collect();
        let winner = winner.to_path_buf();
        self.conflicts.retain(|(other, path)| other != key || losers.contains(path));
        let new = losers.into_iter().filter(|path| self.conflicts.insert((key.clone(), path.clone())));
        new.map(|path| {
            let detail =
                format!("{}: {} has this object, too, and comes first", shown(&path), shown(&winner));
            rejected(Fault { key: key.clone(), reason: Reason::Conflict, detail })
        })
        .collect()
    }
}

impl FileState {
    pub(super) fn of(parsed: &Parsed) -> Self {
        let objects = parsed.objects.iter().map(|object| (object.document.header.key.clone(), object.print));
        Self { objects: objects.collect(), faults: parsed.faults.clone(), ..Self::default() }
    }
}

pub(super) fn rejected(fault: Fault) -> Event {
    let Fault { key, reason, detail } = fault;
    Event::Rejected(Rejection::new(Some(key), reason, detail))
}
