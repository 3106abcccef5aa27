use std::io::{self, Read};
use std::sync::Arc;

use bytes::Bytes;

use super::disk::Disk;
use super::header::{HEADER, Header, Kind};
use super::log::Log;
use super::segment::{self, Segment};
use super::{checkpoint, disk};
use crate::tree::Tree;
use crate::{Error, Event, Revision};

/// What was found in a directory.
pub(crate) struct Recovered {
    /// The state of the last checkpoint.
    pub(crate) base: Tree,
    /// The state after the log.
    pub(crate) tree: Tree,
    /// What the log did to the one to make it the other.
    pub(crate) events: Vec<Arc<Event>>,
    /// Where to go on writing; `None` in a new directory.
    pub(crate) log: Option<Log>,
    pub(crate) checkpoint_bytes: u64,
    pub(crate) log_bytes: u64,
}

/// Reads the newest checkpoint and the log after it, and leaves the directory so that writing can go on.
///
/// Nothing is removed, cut or written before everything has been read and found good. What a crash can leave is put
/// right: a file without its final name, a segment without a frame, a frame that is not complete at the end of the log,
/// files that a checkpoint has made superfluous. Anything else is damage, and refused.
pub(crate) fn recover(disk: &Arc<dyn Disk>) -> Result<Recovered, Error> {
    let files = Files::list(&**disk)?;
    let is_new = files.is_new();
    let (base, checkpoint_bytes, mut replay) = files.replay(&**disk)?;
    let log = match replay.last.take() {
        Some(segment) => Some(resume(disk, segment, replay.tree.revision())?),
        None if is_new => None,
        None => Some(begin(disk, replay.tree.revision())?),
    };
    for name in replay.superfluous.iter().filter(|name| Some(*name) != log.as_ref().map(|log| &log.name)) {
        disk.remove(name).map_err(failed(&**disk, "removing", name))?;
    }
    Ok(Recovered {
        base,
        tree: replay.tree,
        events: replay.events,
        log,
        checkpoint_bytes,
        log_bytes: replay.log_bytes,
    })
}

/// Reads the state of a directory without touching anything in it; `None` if nothing has been committed there.
///
/// Whoever writes to the directory meanwhile may replace a file that is about to be read, or be half-way through a frame: that looks like
/// damage, and is gone when it is read again.
pub(crate) fn look(disk: &dyn Disk) -> Result<Option<Tree>, Error> {
    let files = Files::list(disk)?;
    if files.is_new() {
        return Ok(None);
    }
    let (_, _, replay) = files.replay(disk)?;
    Ok(Some(replay.tree))
}

/// Whether a directory holds no storage yet.
pub(super) fn is_new(disk: &dyn Disk) -> Result<bool, Error> {
    Ok(Files::list(disk)?.is_new())
}

/// The files of a directory, by what they are for.
struct Files {
    checkpoint: Option<Revision>,
    segments: Vec<Revision>,
    superfluous: Vec<String>,
}

impl Files {
    fn list(disk: &dyn Disk) -> Result<Self, Error> {
        let names = disk.list().map_err(failed(disk, "listing", ""))?;
        let mut checkpoints: Vec<_> =
            names.iter().filter_map(|name| Kind::Checkpoint.revision(name)).collect();
        checkpoints.sort_unstable();
        let mut segments: Vec<_> = names.iter().filter_map(|name| Kind::Log.revision(name)).collect();
        segments.sort_unstable();
        let checkpoint = checkpoints.pop();
        let unfinished = names.into_iter().filter(|name| {
            let name = name.strip_suffix(".tmp");
            name.is_some_and(|name| Kind::Checkpoint.revision(name).is_some())
        });
        let older = checkpoints.into_iter().map(|revision| Kind::Checkpoint.name(revision));
        Ok(Self { checkpoint, segments, superfluous: unfinished.chain(older).collect() })
    }

    fn is_new(&self) -> bool {
        self.checkpoint.is_none() && self.segments.is_empty()
    }

    /// Reads them: the state of the checkpoint and its size in bytes, and what the log made of it.
    fn replay(self, disk: &dyn Disk) -> Result<(Tree, u64, Replay), Error> {
        let is_new = self.is_new();
        let (base, checkpoint_bytes) = match self.checkpoint {
            Some(revision) => checkpoint::read(disk, &Kind::Checkpoint.name(revision), Some(revision))?,
            None => (Tree::default(), 0),
        };
        let mut replay = Replay {
            tree: base.clone(),
            events: Vec::new(),
            superfluous: self.superfluous,
            log_bytes: 0,
            last: None,
        };
        let first = base.revision() + 1;
        if !is_new && !self.segments.contains(&first) {
            return Err(Error::Corrupt {
                file: disk.path(&Kind::Log.name(first)),
                offset: 0,
                reason: "this file of the log is missing".into(),
            });
        }
        replay.read_all(disk, &self.segments, first)?;
        Ok((base, checkpoint_bytes, replay))
    }
}

struct Replay {
    tree: Tree,
    events: Vec<Arc<Event>>,
    superfluous: Vec<String>,
    log_bytes: u64,
    /// The segment to go on in.
    last: Option<(Revision, Bytes, Segment)>,
}

impl Replay {
    /// Reads the segments from the one that begins with revision `first` on.
    fn read_all(&mut self, disk: &dyn Disk, segments: &[Revision], first: Revision) -> Result<(), Error> {
        let mut with_frames = Vec::new();
        for segment in segments {
            let name = Kind::Log.name(*segment);
            let length = disk.length(&name).map_err(failed(disk, "reading", &name))?;
            // A header is durable before the first frame is written: a short file never had one.
            match *segment >= first && length > HEADER as u64 {
                true => with_frames.push(*segment),
                false => self.superfluous.push(name),
            }
        }
        let last = with_frames.last().copied();
        for segment in with_frames {
            self.read(disk, segment, Some(segment) == last)?;
        }
        Ok(())
    }

    fn read(&mut self, disk: &dyn Disk, first: Revision, is_last: bool) -> Result<(), Error> {
        let name = Kind::Log.name(first);
        let corrupt =
            |offset: usize, reason| Error::Corrupt { file: disk.path(&name), offset: offset as u64, reason };
        let mut bytes = Vec::new();
        let read = disk.read(&name).and_then(|mut file| file.read_to_end(&mut bytes));
        read.map_err(failed(disk, "reading", &name))?;
        let bytes = Bytes::from(bytes);
        let header = Header::decode(Kind::Log, disk.path(&name), Some(first), &bytes)?;
        if first != self.tree.revision() + 1 {
            let reason = format!("the log before this file ends at revision {}", self.tree.revision());
            return Err(corrupt(0, reason));
        }
        let segment = segment::replay(&bytes, header.salt, is_last, &mut self.tree, &mut self.events)
            .map_err(|damage| corrupt(damage.offset, damage.reason))?;
        self.log_bytes += segment.end as u64;
        self.last = Some((first, bytes, segment));
        Ok(())
    }
}

/// Opens the last segment for writing: cuts off what is not complete, and makes durable what is.
///
/// What was read may be in the memory of the operating system only: because nobody got to sync it, or because a sync
/// failed and the pages count as clean since. So what no later frame vouches for is written once more, byte for byte in
/// its place, and then synced.
fn resume(
    disk: &Arc<dyn Disk>,
    (first, bytes, segment): (Revision, Bytes, Segment),
    written: Revision,
) -> Result<Log, Error> {
    let name = Kind::Log.name(first);
    let cut = bytes.len() - segment.end;
    if !segment::is_reserved(&bytes[segment.end..]) {
        tracing::warn!(
            file = %disk.path(&name).display(),
            offset = segment.end,
            bytes = cut,
            "log truncated at an incomplete write"
        );
    }
    let opened = disk.open(&name).and_then(|mut file| {
        if cut > 0 {
            file.truncate(segment.end as u64)?;
        }
        file.write_at(segment.vouched as u64, &bytes[segment.vouched..segment.end])?;
        file.sync()?;
        disk.sync_directory()?;
        Ok(file)
    });
    let file = opened.map_err(failed(&**disk, "making durable", &name))?;
    Ok(Log::resume(Arc::clone(disk), name, file, segment.salt, segment.end as u64, written))
}

pub(super) fn begin(disk: &Arc<dyn Disk>, after: Revision) -> Result<Log, Error> {
    let name = Kind::Log.name(after + 1);
    Log::create(Arc::clone(disk), after).map_err(failed(&**disk, "creating", &name))
}

pub(super) fn failed<'a>(
    disk: &'a dyn Disk,
    doing: &'a str,
    name: &'a str,
) -> impl FnOnce(io::Error) -> Error + 'a {
    move |error| match disk::is_full(&error) {
        true => Error::Full { reason: format!("{doing} {}: {error}", disk.path(name).display()) },
        false => {
            Error::Io { doing: format!("{doing} {}", disk.path(name).display()), reason: error.to_string() }
        }
    }
}
