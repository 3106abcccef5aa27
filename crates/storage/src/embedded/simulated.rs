use std::collections::BTreeMap;
use std::io::{self, Cursor, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;

use super::disk::{Disk, DiskFile};

/// A disk that forgets what was not synced, tears writes apart, and fails when told to. All of it follows from a seed.
#[derive(Clone)]
pub(crate) struct Simulated(Arc<Mutex<State>>);

struct State {
    files: BTreeMap<u64, Content>,
    names: BTreeMap<String, u64>,
    durable_names: BTreeMap<String, u64>,
    /// Changes of names that are not durable.
    pending_names: Vec<Naming>,
    next: u64,
    random: fastrand::Rng,
    /// So many calls until the fault.
    countdown: Option<(u64, Fault)>,
    struck: bool,
    /// How long a sync takes.
    delay: Duration,
    /// Who synced last: the name of the thread.
    synced_by: Option<String>,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The machine stops: the call and all after it fail, until [`Simulated::lose_power`].
    Crash,
    /// There is no space, for a number of calls that need some.
    Full(u64),
    /// One write fails.
    Write,
    /// One sync fails. What should have been synced counts as clean since, though it may never have been written.
    Sync,
    /// One sync finds a mistake in the code.
    Panic,
    /// The next checkpoint does.
    CheckpointPanic,
}

#[derive(Clone, Default)]
struct Content {
    visible: Vec<u8>,
    durable: Vec<u8>,
    pending: Vec<Operation>,
}

#[derive(Clone)]
enum Operation {
    Write(usize, Vec<u8>),
    Truncate(usize),
}

/// A change of names, as a whole.
#[derive(Clone)]
struct Naming {
    removed: Option<String>,
    added: Option<(String, u64)>,
}

impl Naming {
    fn apply(&self, names: &mut BTreeMap<String, u64>) {
        if let Some(name) = &self.removed {
            names.remove(name);
        }
        names.extend(self.added.clone());
    }
}

impl Operation {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Truncate(length) => bytes.resize(*length, 0),
            Self::Write(offset, content) => {
                let end = offset + content.len();
                bytes.resize(bytes.len().max(end), 0);
                bytes[*offset..end].copy_from_slice(content);
            }
        }
    }

    /// The pieces that a disk may write independently.
    fn pieces(&self) -> Vec<Self> {
        const SECTOR: usize = 64;
        match self {
            Self::Truncate(_) => vec![self.clone()],
            Self::Write(offset, content) => content
                .chunks(SECTOR)
                .enumerate()
                .map(|(number, piece)| Self::Write(offset + number * SECTOR, piece.to_vec()))
                .collect(),
        }
    }
}

impl Content {
    fn change(&mut self, operation: Operation) {
        operation.apply(&mut self.visible);
        self.pending.push(operation);
    }

    /// Some of what was not synced reaches the disk: all up to a byte, or any pieces.
    fn lose(&mut self, random: &mut fastrand::Rng) {
        let pending = std::mem::take(&mut self.pending);
        if random.bool() {
            let whole = random.usize(..=pending.len());
            pending[..whole].iter().for_each(|operation| operation.apply(&mut self.durable));
            if let Some(Operation::Write(offset, content)) = pending.get(whole) {
                let torn = content[..random.usize(..=content.len())].to_vec();
                Operation::Write(*offset, torn).apply(&mut self.durable);
            }
            return;
        }
        for piece in pending.iter().flat_map(Operation::pieces) {
            if random.bool() {
                piece.apply(&mut self.durable);
            }
        }
    }
}

impl Simulated {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(State {
            files: BTreeMap::new(),
            names: BTreeMap::new(),
            durable_names: BTreeMap::new(),
            pending_names: Vec::new(),
            next: 0,
            random: fastrand::Rng::with_seed(seed),
            countdown: None,
            struck: false,
            delay: Duration::ZERO,
            synced_by: None,
        })))
    }

    /// A sync takes so long from now on.
    pub(crate) fn slow_down(&self, delay: Duration) {
        self.0.lock().delay = delay;
    }

    /// The name of the thread that synced a file last.
    pub(crate) fn synced_by(&self) -> Option<String> {
        self.0.lock().synced_by.clone()
    }

    /// Something goes wrong after so many calls.
    pub(crate) fn arm(&self, calls: u64, fault: Fault) {
        let mut state = self.0.lock();
        state.countdown = Some((calls, fault));
        state.struck = false;
    }

    /// Whether something went wrong.
    pub(crate) fn has_struck(&self) -> bool {
        self.0.lock().struck
    }

    /// Nothing more goes wrong. Says whether anything did.
    pub(crate) fn disarm(&self) -> bool {
        let mut state = self.0.lock();
        state.countdown = None;
        state.struck
    }

    /// What was not synced is lost, or some of it.
    pub(crate) fn lose_power(&self) {
        let state = &mut *self.0.lock();
        // Names may become durable in any order.
        for naming in std::mem::take(&mut state.pending_names) {
            if state.random.bool() {
                naming.apply(&mut state.durable_names);
            }
        }
        state.names = state.durable_names.clone();
        for content in state.files.values_mut() {
            content.lose(&mut state.random);
            content.visible = content.durable.clone();
        }
        let named: Vec<_> = state.names.values().copied().collect();
        state.files.retain(|id, _| named.contains(id));
    }

    /// All files with their content.
    pub(crate) fn contents(&self) -> BTreeMap<String, Vec<u8>> {
        let state = self.0.lock();
        let files = state.names.iter();
        files.map(|(name, id)| (name.clone(), state.files[id].visible.clone())).collect()
    }

    /// Changes a byte of a file behind everybody's back.
    pub(crate) fn damage(&self, name: &str, position: usize, xor: u8) {
        let state = &mut *self.0.lock();
        let id = state.names[name];
        if let Some(content) = state.files.get_mut(&id) {
            content.visible[position] ^= xor;
            content.durable = content.visible.clone();
            content.pending.clear();
        }
    }
}

/// What a call asks of the disk, as far as faults care.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Call {
    Write,
    Sync,
    Other,
}

impl State {
    /// Counts the call and says whether it fails.
    fn call(&mut self, call: Call) -> io::Result<()> {
        let Some((calls, fault)) = &mut self.countdown else {
            return Ok(());
        };
        if *calls > 0 {
            *calls -= 1;
            return Ok(());
        }
        let failure = match fault {
            Fault::Crash => io::Error::other("the machine is down"),
            Fault::Full(more) if call == Call::Write => {
                *more = more.saturating_sub(1);
                if *more == 0 {
                    self.countdown = None;
                }
                io::ErrorKind::StorageFull.into()
            }
            Fault::Write if call == Call::Write => {
                self.countdown = None;
                io::Error::other("a bad sector")
            }
            Fault::Sync if call == Call::Sync => {
                self.countdown = None;
                io::Error::other("a bad sector")
            }
            Fault::Panic if call == Call::Sync => {
                self.countdown = None;
                panic!("a mistake");
            }
            Fault::CheckpointPanic if thread::current().name() == Some("storage-checkpoint") => {
                self.countdown = None;
                panic!("a mistake");
            }
            _ => return Ok(()),
        };
        self.struck = true;
        Err(failure)
    }

    fn is_down(&self) -> bool {
        self.struck && matches!(self.countdown, Some((_, Fault::Crash)))
    }

    fn name(&mut self, removed: Option<&str>, added: Option<(&str, u64)>) {
        let naming =
            Naming { removed: removed.map(Into::into), added: added.map(|(name, id)| (name.into(), id)) };
        naming.apply(&mut self.names);
        self.pending_names.push(naming);
    }
}

impl Disk for Simulated {
    fn path(&self, name: &str) -> PathBuf {
        PathBuf::from("/simulated").join(name)
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut state = self.0.lock();
        state.call(Call::Other)?;
        Ok(state.names.keys().cloned().collect())
    }

    fn length(&self, name: &str) -> io::Result<u64> {
        let mut state = self.0.lock();
        state.call(Call::Other)?;
        let id = state.names.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(state.files[id].visible.len() as u64)
    }

    fn read(&self, name: &str) -> io::Result<Box<dyn Read>> {
        let mut state = self.0.lock();
        state.call(Call::Other)?;
        let id = state.names.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(Box::new(Cursor::new(state.files[id].visible.clone())))
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let mut state = self.0.lock();
        state.call(Call::Write)?;
        state.next += 1;
        let id = state.next;
        state.files.insert(id, Content::default());
        state.name(None, Some((name, id)));
        Ok(Box::new(Handle(Arc::clone(&self.0), id)))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let mut state = self.0.lock();
        state.call(Call::Other)?;
        let id = *state.names.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(Box::new(Handle(Arc::clone(&self.0), id)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.0.lock();
        state.call(Call::Other)?;
        let id = *state.names.get(from).ok_or(io::ErrorKind::NotFound)?;
        state.name(Some(from), Some((to, id)));
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.0.lock();
        state.call(Call::Other)?;
        state.name(Some(name), None);
        Ok(())
    }

    fn sync_directory(&self) -> io::Result<()> {
        let mut state = self.0.lock();
        state.call(Call::Sync)?;
        state.durable_names = state.names.clone();
        state.pending_names.clear();
        Ok(())
    }
}

struct Handle(Arc<Mutex<State>>, u64);

impl DiskFile for Handle {
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let state = &mut *self.0.lock();
        if state.is_down() {
            return state.call(Call::Write);
        }
        let called = state.call(Call::Write);
        // A write that fails has written a part, never all.
        let written = match called {
            Ok(()) => bytes.len(),
            Err(_) => state.random.usize(..bytes.len().max(1)),
        };
        if let Some(content) = state.files.get_mut(&self.1) {
            content.change(Operation::Write(offset as usize, bytes[..written].to_vec()));
        }
        called
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        let state = &mut *self.0.lock();
        state.call(Call::Other)?;
        if let Some(content) = state.files.get_mut(&self.1) {
            content.change(Operation::Truncate(length as usize));
        }
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        let delay = self.0.lock().delay;
        thread::sleep(delay);
        let state = &mut *self.0.lock();
        state.synced_by = thread::current().name().map(Into::into);
        let called = state.call(Call::Sync);
        let crashed = state.is_down();
        let Some(content) = state.files.get_mut(&self.1) else {
            return called;
        };
        match called {
            Ok(()) => {
                let pending = std::mem::take(&mut content.pending);
                pending.iter().for_each(|operation| operation.apply(&mut content.durable));
            }
            Err(_) if crashed => {}
            Err(_) => content.lose(&mut state.random),
        }
        called
    }
}
