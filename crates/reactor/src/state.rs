//! The state file, which keeps deliveries over restarts.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use watchkeeper_core::Key;

use crate::error::Error;
use crate::print::Print;

/// One thing that was delivered: the state of an object, or that it is gone.
pub(crate) struct Record {
    pub(crate) reaction: String,
    pub(crate) key: Key,
    /// `None` if the object is gone.
    pub(crate) state: Option<Told>,
}

/// The state of an object that a reaction was told of.
pub(crate) struct Told {
    /// `None` if the reaction has begun, and it is not known what came of it.
    pub(crate) print: Option<Print>,
    /// Random, and another one for each delivery of an object; 0 if it is not known.
    pub(crate) nonce: u64,
    pub(crate) json: Option<Vec<u8>>,
}

/// The kinds of objects that reactions have applied, by the names of the reactions: `apiVersion` and `kind`.
pub(crate) type Kinds = BTreeMap<String, BTreeSet<(String, String)>>;

/// A file of records, a line each, of which the last one for a reaction and a key counts. Its first line has the kinds that were applied.
///
/// A record is written with one write at the end of the file, so that killing the process at any time leaves whole lines and at most
/// one torn line at the end, which is ignored. A part of a record that is left by a write that failed is cut off before the next one is
/// written. When more than half of the file is out of date it is replaced: the new one is written
/// beside it, synced, and renamed.
///
/// The file has the objects in it, and is readable by its owner only. A lock beside it keeps two processes from using one file.
pub(crate) struct StateFile {
    path: PathBuf,
    file: Arc<File>,
    bytes: u64,
    /// What the file would have if it were written anew.
    live: u64,
    dirty: bool,
    /// After `bytes` there may be a part of a record.
    torn: bool,
    /// Held as long as the file is in use.
    _lock: File,
}

const FORMAT: &str = "watchkeeper run";
const VERSION: u64 = 1;

/// How long a lock is waited for: a process that was killed while it began a command leaves its lock with that command for an instant.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);

/// So much may be out of date before it is worth writing the file anew.
const SLACK: u64 = 1 << 20;

impl StateFile {
    /// Takes the lock of a file. What is in it is read with [`load`], and written anew with [`replace`](Self::replace).
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let failed = |error: io::Error| Error::Running(format!("state file {}: {error}", path.display()));
        let lock =
            private(OpenOptions::new().write(true).create(true), &beside(path, "lock")).map_err(failed)?;
        let begun = Instant::now();
        while lock.try_lock().is_err() {
            if begun.elapsed() < LOCK_TIMEOUT {
                thread::sleep(LOCK_TIMEOUT / 40);
                continue;
            }
            return Err(Error::Running(format!(
                "state file {}: another process is using it",
                path.display()
            )));
        }
        let file = private(OpenOptions::new().append(true).create(true), path).map_err(failed)?;
        Ok(Self {
            path: path.to_owned(),
            file: Arc::new(file),
            bytes: 0,
            live: 0,
            dirty: false,
            torn: false,
            _lock: lock,
        })
    }

    /// Adds a record. `replaced` is the length of the one that it makes obsolete. Returns its length.
    pub(crate) fn append(&mut self, record: &Record, replaced: u32) -> io::Result<u32> {
        let line = line(record);
        self.mend()?;
        self.torn = true;
        if let Err(error) = (&*self.file).write_all(line.as_bytes()) {
            // If this fails, too, it is tried again before the next record.
            let _ = self.mend();
            return Err(error);
        }
        self.torn = false;
        self.dirty = true;
        self.bytes += line.len() as u64;
        self.live = self.live.saturating_sub(replaced.into());
        let length = u32::try_from(line.len()).unwrap_or(u32::MAX);
        if record.state.is_some() {
            self.live += u64::from(length);
        }
        Ok(length)
    }

    /// Cuts off what a write that failed has left.
    fn mend(&mut self) -> io::Result<()> {
        if self.torn {
            self.file.set_len(self.bytes)?;
            self.torn = false;
        }
        Ok(())
    }

    /// Whether most of the file is out of date.
    pub(crate) fn is_stale(&self) -> bool {
        self.bytes > 2 * self.live + SLACK
    }

    /// Writes the file anew, with these kinds and records. Returns the length of each record.
    pub(crate) fn replace(
        &mut self,
        kinds: &Kinds,
        records: impl Iterator<Item = Record>,
    ) -> io::Result<Vec<u32>> {
        let new = beside(&self.path, "new");
        let file = private(OpenOptions::new().write(true).create(true).truncate(true), &new)?;
        let mut writer = BufWriter::with_capacity(1 << 16, file);
        let head = format!("{}\n", json!({"format": FORMAT, "version": VERSION, "kinds": kinds}));
        writer.write_all(head.as_bytes())?;
        let (mut live, mut lengths) = (0, Vec::new());
        for record in records {
            let line = line(&record);
            writer.write_all(line.as_bytes())?;
            live += line.len() as u64;
            lengths.push(u32::try_from(line.len()).unwrap_or(u32::MAX));
        }
        let file = writer.into_inner().map_err(|error| error.into_error())?;
        file.sync_all()?;
        fs::rename(&new, &self.path)?;
        sync_directory(&self.path)?;
        self.file = Arc::new(OpenOptions::new().append(true).open(&self.path)?);
        (self.bytes, self.live, self.dirty, self.torn) = (live + head.len() as u64, live, false, false);
        Ok(lengths)
    }

    /// The file, if something in it may not be on the disk yet.
    pub(crate) fn unsynced(&mut self) -> Option<Arc<File>> {
        std::mem::take(&mut self.dirty).then(|| Arc::clone(&self.file))
    }
}

/// Reads all records of a file, and returns the kinds that were applied; none if there is no file.
pub(crate) fn load(path: &Path, mut take: impl FnMut(Record)) -> Result<Kinds, Error> {
    let shown = path.display();
    let failed = |error: io::Error| Error::Running(format!("state file {shown}: {error}"));
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Kinds::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut reader = BufReader::with_capacity(1 << 16, file);
    let (mut number, mut line, mut torn) = (0_u64, Vec::new(), None);
    let mut kinds = Kinds::new();
    loop {
        line.clear();
        if reader.read_until(b'\n', &mut line).map_err(failed)? == 0 {
            break;
        }
        number += 1;
        if let Some(number) = torn {
            return Err(Error::Input(format!(
                "state file {shown}: line {number} cannot be read; without the file, everything is delivered again"
            )));
        }
        let value = line.strip_suffix(b"\n").and_then(|line| serde_json::from_slice::<Value>(line).ok());
        match value {
            // The first line is never torn: it was there before the file had its name.
            value if number == 1 => kinds = head(&value.unwrap_or_default(), &shown)?,
            Some(value) => match record(value) {
                Some(record) => take(record),
                None => torn = Some(number),
            },
            // It may be the last one, which was torn when the process was killed.
            None => torn = Some(number),
        }
    }
    Ok(kinds)
}

/// The kinds in the first line.
fn head(value: &Value, shown: &dyn std::fmt::Display) -> Result<Kinds, Error> {
    if value["format"] != FORMAT {
        return Err(Error::Input(format!(
            "state file {shown}: is not one of watchkeeper run, and is left alone"
        )));
    }
    if value["version"] != VERSION {
        let version = &value["version"];
        return Err(Error::Input(format!(
            "state file {shown}: has version {version}, and this program reads {VERSION}"
        )));
    }
    match value.get("kinds") {
        // Written before there were any.
        None => Ok(Kinds::new()),
        Some(kinds) => serde_json::from_value(kinds.clone()).map_err(|_| {
            Error::Input(format!(
                "state file {shown}: line 1 cannot be read; without the file, everything is delivered again"
            ))
        }),
    }
}

fn line(record: &Record) -> String {
    let Record { reaction, key, state } = record;
    let mut head = Map::new();
    head.insert("r".into(), reaction.as_str().into());
    if let Some(namespace) = key.namespace() {
        head.insert("ns".into(), namespace.into());
    }
    head.insert("n".into(), key.name().into());
    match state {
        Some(Told { print: Some(print), .. }) => drop(head.insert("p".into(), print.hex().into())),
        Some(Told { print: None, .. }) => drop(head.insert("begun".into(), true.into())),
        None => {}
    }
    if let Some(Told { nonce, .. }) = state {
        head.insert("i".into(), (*nonce).into());
    }
    let mut line = Value::Object(head).to_string();
    line.pop();
    if let Some(Told { json: Some(object), .. }) = state {
        line.push_str(",\"o\":");
        line.push_str(&String::from_utf8_lossy(object));
    }
    line.push_str("}\n");
    line
}

fn record(value: Value) -> Option<Record> {
    let Value::Object(mut members) = value else { return None };
    let reaction = members.get("r")?.as_str()?.to_owned();
    let key = Key::new(members.get("ns").and_then(Value::as_str), members.get("n")?.as_str()?);
    let json = members.remove("o").map(|object| object.to_string().into_bytes());
    let nonce = members.get("i").and_then(Value::as_u64).unwrap_or_default();
    let state = match members.get("p") {
        Some(print) => Some(Told { print: Some(Print::from_hex(print.as_str()?)?), nonce, json }),
        None => members.contains_key("begun").then_some(Told { print: None, nonce, json }),
    };
    Some(Record { reaction, key, state })
}

pub(crate) fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".");
    name.push(end);
    path.with_file_name(name)
}

/// Opens a file that only its owner can read.
fn private(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    options.mode(0o600).open(path)
}

/// A renamed file is there after a power failure only once its directory is on the disk.
fn sync_directory(path: &Path) -> io::Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(directory)?.sync_all()
}
