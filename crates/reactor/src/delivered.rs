//! The state of each object that a reaction delivered last.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use watchkeeper_core::Key;
use watchkeeper_informer::Object;

use crate::error::Error;
use crate::print::Print;
use crate::state::{self, Kinds, Record, StateFile, Told};

/// The state that each reaction was told last of each object, in memory and, if there is a file, in the file.
///
/// It has as many entries as there are live objects, for each reaction. An entry shares its state with the informer's store, so that an
/// object is in memory a second time only while a change of it waits.
pub(crate) struct Delivered {
    names: Vec<Arc<str>>,
    inner: Mutex<Inner>,
}

struct Inner {
    /// One map for each reaction.
    entries: Vec<HashMap<Key, Entry>>,
    kinds: Kinds,
    file: Option<StateFile>,
}

struct Entry {
    last: Last,
    /// How long its record is in the file.
    length: u32,
}

/// The state of an object that was delivered last.
#[derive(Clone)]
pub(crate) struct Last {
    /// `None` if it is not known whether it was delivered: the reaction had begun, or has left something behind.
    pub(crate) print: Option<Print>,
    /// Random, so that an object that comes back to a state it had before is told from the same change sent twice.
    pub(crate) nonce: u64,
    state: State,
}

#[derive(Clone)]
enum State {
    /// As the store has it, or had it.
    Object(Object<Value>),
    /// From the file.
    Json(Arc<[u8]>),
    Unknown,
}

impl Last {
    pub(crate) fn of(object: Object<Value>, print: Print) -> Self {
        Self { print: Some(print), nonce: fastrand::u64(..), state: State::Object(object) }
    }

    fn unknown(state: State) -> Self {
        Self { print: None, nonce: fastrand::u64(..), state }
    }

    /// The state, as far as it is known.
    pub(crate) fn value(&self) -> Option<Arc<Value>> {
        match &self.state {
            State::Object(object) => object.get().ok(),
            State::Json(json) => serde_json::from_slice(json).ok().map(Arc::new),
            State::Unknown => None,
        }
    }

    fn json(&self) -> Option<Vec<u8>> {
        match &self.state {
            State::Object(object) => match object.json() {
                Some(json) => Some(json.into_owned()),
                None => serde_json::to_vec(&*object.get().ok()?).ok(),
            },
            State::Json(json) => Some(json.to_vec()),
            State::Unknown => None,
        }
    }
}

impl Delivered {
    /// Reads what the file says of these reactions, and writes it anew unless it is only to be read.
    pub(crate) fn open(names: Vec<Arc<str>>, file: Option<&Path>, read_only: bool) -> Result<Self, Error> {
        let mut entries: Vec<HashMap<Key, Entry>> = names.iter().map(|_| HashMap::new()).collect();
        let lock = match file.filter(|_| !read_only) {
            Some(path) => Some(StateFile::open(path)?),
            None => None,
        };
        let mut kinds = Kinds::new();
        if let Some(path) = file {
            kinds = state::load(path, |record| {
                // What was delivered to a reaction that is no longer there is forgotten.
                let Some(at) = names.iter().position(|name| **name == *record.reaction) else { return };
                match record.state {
                    Some(Told { print, nonce, json }) => {
                        let state = json.map_or(State::Unknown, |json| State::Json(json.into()));
                        entries[at]
                            .insert(record.key, Entry { last: Last { print, nonce, state }, length: 0 });
                    }
                    None => drop(entries[at].remove(&record.key)),
                }
            })?;
            kinds.retain(|reaction, _| names.iter().any(|name| **name == *reaction));
        }
        let mut inner = Inner { entries, kinds, file: lock };
        inner
            .write_anew(&names)
            .map_err(|error| Error::Running(format!("the state file cannot be written: {error}")))?;
        Ok(Self { names, inner: Mutex::new(inner) })
    }

    pub(crate) fn get(&self, reaction: usize, key: &Key) -> Option<Last> {
        self.inner.lock().entries[reaction].get(key).map(|entry| entry.last.clone())
    }

    pub(crate) fn keys(&self, reaction: usize) -> Vec<Key> {
        self.inner.lock().entries[reaction].keys().cloned().collect()
    }

    /// Notes that there was an object of which nothing else is known.
    pub(crate) fn note(&self, reaction: usize, key: Key) {
        let unknown = || Entry { last: Last::unknown(State::Unknown), length: 0 };
        self.inner.lock().entries[reaction].entry(key).or_insert_with(unknown);
    }

    /// Writes down that a reaction to an object of which nothing was delivered yet is about to begin: if the process is killed and the
    /// object goes away meanwhile, it is told so.
    pub(crate) fn begin(&self, reaction: usize, key: &Key, object: Object<Value>) -> io::Result<()> {
        self.set(reaction, key, Some(Last::unknown(State::Object(object))))
    }

    /// What tells the next delivery of an object from all others, as long as it has not succeeded. 0 if nothing is known of the object.
    pub(crate) fn nonce(&self, reaction: usize, key: &Key) -> u64 {
        self.inner.lock().entries[reaction].get(key).map_or(0, |entry| entry.last.nonce)
    }

    /// The kinds of objects that a reaction may have applied.
    pub(crate) fn kinds(&self, reaction: usize) -> BTreeSet<(String, String)> {
        self.inner.lock().kinds.get(&*self.names[reaction]).cloned().unwrap_or_default()
    }

    /// Notes which kinds of objects a reaction may have applied. Those that are new are in the file when this returns.
    pub(crate) fn set_kinds(&self, reaction: usize, kinds: BTreeSet<(String, String)>) -> io::Result<()> {
        let mut inner = self.inner.lock();
        let name = self.names[reaction].to_string();
        let grows = match inner.kinds.get(&name) {
            Some(known) => !kinds.is_subset(known),
            None => !kinds.is_empty(),
        };
        inner.kinds.insert(name, kinds);
        if grows { inner.write_anew(&self.names) } else { Ok(()) }
    }

    /// Notes that an object is in the store as it was delivered, so that its state is not kept twice.
    pub(crate) fn same(&self, reaction: usize, key: &Key, object: Object<Value>) {
        if let Some(entry) = self.inner.lock().entries[reaction].get_mut(key) {
            entry.last.state = State::Object(object);
        }
    }

    /// Writes down what was delivered; `None` that the object is gone. An error says that it is not in the file: it will be delivered
    /// again after a restart.
    pub(crate) fn set(&self, reaction: usize, key: &Key, last: Option<Last>) -> io::Result<()> {
        let mut inner = self.inner.lock();
        let Inner { entries, file, .. } = &mut *inner;
        let before = entries[reaction].get(key);
        let replaced = before.map_or(0, |entry| entry.length);
        let mut written = Ok(0);
        if let Some(file) = file
            && (last.is_some() || before.is_some())
        {
            written = file.append(&record(&self.names[reaction], key, last.as_ref()), replaced);
        }
        match last {
            Some(last) => {
                let length = *written.as_ref().unwrap_or(&0);
                entries[reaction].insert(key.clone(), Entry { last, length });
            }
            None => drop(entries[reaction].remove(key)),
        }
        written?;
        if inner.file.as_ref().is_some_and(StateFile::is_stale) {
            inner.write_anew(&self.names)?;
        }
        Ok(())
    }

    /// The file, if something in it may not be on the disk yet.
    pub(crate) fn unsynced(&self) -> Option<Arc<File>> {
        self.inner.lock().file.as_mut().and_then(StateFile::unsynced)
    }

    /// How many objects there are, over all reactions.
    pub(crate) fn len(&self) -> usize {
        self.inner.lock().entries.iter().map(HashMap::len).sum()
    }
}

impl Inner {
    fn write_anew(&mut self, names: &[Arc<str>]) -> io::Result<()> {
        let Inner { entries, kinds, file: Some(file) } = self else { return Ok(()) };
        let all = entries.iter().zip(names);
        let all = all.flat_map(|(entries, name)| entries.iter().map(move |(key, entry)| (name, key, entry)));
        let lengths =
            file.replace(kinds, all.map(|(name, key, entry)| record(name, key, Some(&entry.last))))?;
        let all = entries.iter_mut().flat_map(HashMap::values_mut);
        all.zip(lengths).for_each(|(entry, length)| entry.length = length);
        Ok(())
    }
}

fn record(reaction: &str, key: &Key, last: Option<&Last>) -> Record {
    let state = last.map(|last| Told { print: last.print, nonce: last.nonce, json: last.json() });
    Record { reaction: reaction.to_owned(), key: key.clone(), state }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn last(text: &str) -> Last {
        let value = serde_json::json!({ "text": text });
        let state = State::Json(value.to_string().into_bytes().into());
        Last { print: Some(Print::of(&value)), nonce: fastrand::u64(..), state }
    }

    fn open(path: &Path) -> Delivered {
        Delivered::open(vec!["one".into(), "two".into()], Some(path), false).unwrap()
    }

    fn text(delivered: &Delivered, reaction: usize, key: &Key) -> Option<String> {
        Some(delivered.get(reaction, key)?.value()?["text"].as_str()?.to_owned())
    }

    #[test]
    fn what_was_delivered_is_there_after_a_restart_also_with_a_torn_line() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state");
        let (a, b) = (Key::new(Some("x"), "a"), Key::new(None, "x/b"));
        let delivered = open(&path);
        delivered.set(0, &a, Some(last("1"))).unwrap();
        delivered.set(0, &a, Some(last("2"))).unwrap();
        delivered.set(1, &b, Some(last("3"))).unwrap();
        delivered.set(1, &a, Some(last("4"))).unwrap();
        delivered.set(1, &a, None).unwrap();
        let c = Key::new(None, "c");
        let begun = Last { print: None, ..last("5") };
        delivered.set(1, &c, Some(begun)).unwrap();
        drop(delivered);
        File::options().append(true).open(&path).unwrap().write_all(b"{\"r\":\"one\",\"n\":\"torn").unwrap();
        for _ in 0..2 {
            let delivered = open(&path);
            assert_eq!(text(&delivered, 0, &a).as_deref(), Some("2"));
            assert_eq!(text(&delivered, 1, &b).as_deref(), Some("3"));
            // It is known that it was begun, and not that it was delivered.
            assert_eq!(text(&delivered, 1, &c).as_deref(), Some("5"));
            assert_eq!(delivered.get(1, &c).unwrap().print, None);
            assert_eq!(delivered.len(), 3);
        }
        let mode = std::os::unix::fs::PermissionsExt::mode(&path.metadata().unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_file_grows_with_the_objects_and_not_with_the_changes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state");
        let delivered = open(&path);
        let filler = "x".repeat(500);
        for at in 0..20_000 {
            let key = Key::new(None, &format!("object-{}", at % 10));
            delivered.set(0, &key, (at % 3 > 0).then(|| last(&format!("{at}{filler}")))).unwrap();
        }
        let bytes = path.metadata().unwrap().len();
        assert!(bytes < 2 << 20, "{bytes}");
        drop(delivered);
        assert_eq!(open(&path).len(), 7);
    }

    #[test]
    fn a_file_that_is_damaged_or_not_ours_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state");
        for (content, expected) in [
            ("precious", "is not one of watchkeeper run, and is left alone"),
            ("{\"a\":1}\n", "is not one of watchkeeper run, and is left alone"),
            ("{\"format\":\"watchkeeper run\",\"version\":9}\n", "has version 9, and this program reads 1"),
            (
                "{\"format\":\"watchkeeper run\",\"version\":1}\nx\n{\"r\":\"one\",\"n\":\"a\"}\n",
                "line 2 cannot be read; without the file, everything is delivered again",
            ),
        ] {
            std::fs::write(&path, content).unwrap();
            let error = Delivered::open(vec!["one".into()], Some(&path), false).err().unwrap().to_string();
            assert_eq!(error, format!("state file {}: {expected}", path.display()));
            assert_eq!(std::fs::read_to_string(&path).unwrap(), content);
        }
    }

    #[test]
    fn one_process_uses_a_file_at_a_time() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state");
        let first = open(&path);
        let second = Delivered::open(vec!["one".into()], Some(&path), false).err().unwrap();
        assert!(second.to_string().ends_with("another process is using it"), "{second}");
        drop(first);
        open(&path);
    }
}
