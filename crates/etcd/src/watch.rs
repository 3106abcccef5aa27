//! What is asked of a watch stream, and what it says.

use bytes::Bytes;
use watchkeeper_wire::protobuf::{Error, Writer};

use crate::keys::{Header, KeyValue, Keys};
use crate::message::{Decode, Encode, Fields as _, Nothing, fields};

/// Names one watch of a [`Watcher`](crate::Watcher).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WatchId(pub(crate) i64);

/// Asks to be told of changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watch {
    keys: Keys,
    from: i64,
    previous: bool,
    progress: bool,
}

impl Watch {
    /// All changes of these keys from now on.
    pub fn of(keys: Keys) -> Self {
        Self { keys, from: 0, previous: false, progress: false }
    }

    /// Beginning with the changes of this revision. One that was compacted is [cancelled](Notice::Cancelled). For one that is still to
    /// come, etcd waits and says nothing: who resumes after a restored backup has to look first.
    #[must_use]
    pub fn from(mut self, revision: i64) -> Self {
        self.from = revision;
        self
    }

    /// With what was there before, unless that was compacted meanwhile.
    #[must_use]
    pub fn previous(mut self) -> Self {
        self.previous = true;
        self
    }

    /// Is told from time to time how far it is (by default every ten minutes) while there are no changes.
    #[must_use]
    pub fn progress(mut self) -> Self {
        self.progress = true;
        self
    }
}

/// What is sent on a watch stream.
pub(crate) enum Command<'a> {
    Create(WatchId, &'a Watch),
    Cancel(WatchId),
    Progress,
}

impl Encode for Command<'_> {
    fn encode(&self, writer: &mut Writer) {
        match self {
            Self::Create(id, watch) => writer.nested(1, &Create(*id, watch)),
            Self::Cancel(id) => writer.nested(2, &Cancel(*id)),
            Self::Progress => writer.nested(3, &Nothing),
        }
    }
}

struct Create<'a>(WatchId, &'a Watch);

impl Encode for Create<'_> {
    fn encode(&self, writer: &mut Writer) {
        let Self(id, watch) = self;
        watch.keys.encode(writer);
        writer.number(3, watch.from);
        writer.flag(4, watch.progress);
        writer.flag(6, watch.previous);
        writer.number(7, id.0);
        // Large answers come in parts.
        writer.flag(8, true);
    }
}

struct Cancel(WatchId);

impl Encode for Cancel {
    fn encode(&self, writer: &mut Writer) {
        writer.number(1, self.0.0);
    }
}

/// What a [`Watcher`](crate::Watcher) is told.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// The watch has begun.
    Created {
        /// Which one.
        id: WatchId,
        /// When.
        header: Header,
    },
    /// Something has changed.
    Changes {
        /// Which watch.
        id: WatchId,
        /// In the order of their revisions. Several keys may have changed at one revision.
        changes: Vec<Change>,
        /// Whether this is all. If not, the next notice of this watch has more, maybe of the last revision of this one.
        complete: bool,
    },
    /// All changes up to this revision have been told.
    Progress {
        /// To which watch; to all, if nothing is said.
        id: Option<WatchId>,
        /// Up to which revision.
        revision: i64,
    },
    /// The watch is over.
    Cancelled {
        /// Which one.
        id: WatchId,
        /// Why. Empty if we asked for it.
        reason: String,
        /// If the changes it asked for have been compacted: the oldest revision that there is.
        compacted: Option<i64>,
    },
}

/// A key has changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// How.
    pub kind: ChangeKind,
    /// The key as it is now; of a deletion its name, and the revision of the deletion.
    pub kv: KeyValue,
    /// As it was before, if that was asked for and is still known.
    pub previous: Option<KeyValue>,
}

/// How a key has changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChangeKind {
    /// It was written.
    #[default]
    Put,
    /// It was deleted, by somebody or by the end of its lease.
    Delete,
}

impl Decode for Change {
    fn decode(message: &Bytes) -> Result<Self, Error> {
        let mut change = Self::default();
        fields(message, |number, value| {
            match number {
                1 if value.flag()? => change.kind = ChangeKind::Delete,
                2 => change.kv = value.message()?,
                3 => change.previous = Some(value.message()?),
                _ => {}
            }
            Ok(())
        })?;
        Ok(change)
    }
}

/// An answer as it comes.
#[derive(Default)]
pub(crate) struct Answer {
    pub(crate) header: Header,
    pub(crate) id: i64,
    pub(crate) created: bool,
    pub(crate) cancelled: bool,
    pub(crate) compact_revision: i64,
    pub(crate) reason: String,
    pub(crate) fragment: bool,
    pub(crate) changes: Vec<Change>,
}

impl Decode for Answer {
    fn decode(message: &Bytes) -> Result<Self, Error> {
        let mut answer = Self::default();
        fields(message, |number, value| {
            match number {
                1 => answer.header = value.message()?,
                2 => answer.id = value.integer()?,
                3 => answer.created = value.flag()?,
                4 => answer.cancelled = value.flag()?,
                5 => answer.compact_revision = value.integer()?,
                6 => answer.reason = value.text()?,
                7 => answer.fragment = value.flag()?,
                11 => answer.changes.push(value.message()?),
                _ => {}
            }
            Ok(())
        })?;
        Ok(answer)
    }
}
