//! Reading, writing and deleting keys.

use bytes::Bytes;
use watchkeeper_wire::protobuf::{Error, Writer};

use crate::keys::{Header, KeyValue, Keys};
use crate::message::{Decode, Encode, Fields as _, fields};

/// Asks for keys and their values, in the order of the keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    keys: Keys,
    limit: i64,
    revision: i64,
    keys_only: bool,
    count_only: bool,
    serializable: bool,
}

impl Range {
    /// All of these keys, as they are now.
    pub fn of(keys: Keys) -> Self {
        Self { keys, limit: 0, revision: 0, keys_only: false, count_only: false, serializable: false }
    }

    /// At most so many of them; [`Found::more`] says whether there are others. 0: all.
    #[must_use]
    pub fn limit(mut self, limit: i64) -> Self {
        self.limit = limit;
        self
    }

    /// As they were at this revision. 0: as they are now.
    #[must_use]
    pub fn at(mut self, revision: i64) -> Self {
        self.revision = revision;
        self
    }

    /// Without their values.
    #[must_use]
    pub fn keys_only(mut self) -> Self {
        self.keys_only = true;
        self
    }

    /// Only how many they are.
    #[must_use]
    pub fn count_only(mut self) -> Self {
        self.count_only = true;
        self
    }

    /// As the member that is asked knows them, which may be old, instead of as the cluster has agreed on.
    #[must_use]
    pub fn serializable(mut self) -> Self {
        self.serializable = true;
        self
    }
}

impl Encode for Range {
    fn encode(&self, writer: &mut Writer) {
        self.keys.encode(writer);
        writer.number(3, self.limit);
        writer.number(4, self.revision);
        writer.flag(7, self.serializable);
        writer.flag(8, self.keys_only);
        writer.flag(9, self.count_only);
    }
}

/// What a [`Range`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// When.
    pub header: Header,
    /// The keys.
    pub kvs: Vec<KeyValue>,
    /// Whether there are more than the limit.
    pub more: bool,
    /// How many there are, whatever the limit.
    pub count: i64,
}

impl Decode for Found {
    fn decode(message: &Bytes) -> Result<Self, Error> {
        let mut found = Self::default();
        fields(message, |number, value| {
            match number {
                1 => found.header = value.message()?,
                2 => found.kvs.push(value.message()?),
                3 => found.more = value.flag()?,
                4 => found.count = value.integer()?,
                _ => {}
            }
            Ok(())
        })?;
        Ok(found)
    }
}

/// Writes a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Put {
    key: Vec<u8>,
    value: Vec<u8>,
    lease: i64,
    previous: bool,
}

impl Put {
    /// This value under this key.
    pub fn new(key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) -> Self {
        Self { key: key.into(), value: value.into(), lease: 0, previous: false }
    }

    /// Has the key go when this lease does.
    #[must_use]
    pub fn lease(mut self, id: i64) -> Self {
        self.lease = id;
        self
    }

    /// Asks for what was there before.
    #[must_use]
    pub fn previous(mut self) -> Self {
        self.previous = true;
        self
    }
}

impl Encode for Put {
    fn encode(&self, writer: &mut Writer) {
        writer.some_bytes(1, &self.key);
        writer.some_bytes(2, &self.value);
        writer.number(3, self.lease);
        writer.flag(4, self.previous);
    }
}

/// A [`Put`] has happened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PutDone {
    /// When: its revision is that of the key.
    pub header: Header,
    /// What was there before, if that was asked for.
    pub previous: Option<KeyValue>,
}

impl Decode for PutDone {
    fn decode(message: &Bytes) -> Result<Self, Error> {
        let mut done = Self::default();
        fields(message, |number, value| {
            match number {
                1 => done.header = value.message()?,
                2 => done.previous = Some(value.message()?),
                _ => {}
            }
            Ok(())
        })?;
        Ok(done)
    }
}

/// Deletes keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delete {
    keys: Keys,
    previous: bool,
}

impl Delete {
    /// All of these.
    pub fn of(keys: Keys) -> Self {
        Self { keys, previous: false }
    }

    /// Asks for what was there.
    #[must_use]
    pub fn previous(mut self) -> Self {
        self.previous = true;
        self
    }
}

impl Encode for Delete {
    fn encode(&self, writer: &mut Writer) {
        self.keys.encode(writer);
        writer.flag(3, self.previous);
    }
}

/// A [`Delete`] has happened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deleted {
    /// When.
    pub header: Header,
    /// How many keys there were.
    pub count: i64,
    /// What they were, if that was asked for.
    pub previous: Vec<KeyValue>,
}

impl Decode for Deleted {
    fn decode(message: &Bytes) -> Result<Self, Error> {
        let mut deleted = Self::default();
        fields(message, |number, value| {
            match number {
                1 => deleted.header = value.message()?,
                2 => deleted.count = value.integer()?,
                3 => deleted.previous.push(value.message()?),
                _ => {}
            }
            Ok(())
        })?;
        Ok(deleted)
    }
}

/// Forgets the history before a revision.
pub(crate) struct Compaction {
    pub(crate) revision: i64,
    /// Whether to wait until it is gone from the disk.
    pub(crate) physical: bool,
}

impl Encode for Compaction {
    fn encode(&self, writer: &mut Writer) {
        writer.number(1, self.revision);
        writer.flag(2, self.physical);
    }
}

/// An answer of which only the header is of interest.
pub(crate) struct Done(pub(crate) Header);

impl Decode for Done {
    fn decode(message: &Bytes) -> Result<Self, Error> {
        let mut header = Header::default();
        fields(message, |number, value| {
            if number == 1 {
                header = value.message()?;
            }
            Ok(())
        })?;
        Ok(Self(header))
    }
}
