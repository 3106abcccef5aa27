use bytes::Bytes;
use watchkeeper_wire::protobuf::{Error, Writer};

use crate::message::{Decode, Fields as _, fields};

/// Which keys are meant: one, those with a prefix, those between two, or all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys {
    pub(crate) from: Vec<u8>,
    /// The first key that is not meant any more. Empty: `from` alone. A zero byte: there is no end.
    pub(crate) to: Vec<u8>,
}

impl Keys {
    /// One key.
    pub fn one(key: impl Into<Vec<u8>>) -> Self {
        Self { from: key.into(), to: Vec::new() }
    }

    /// All keys that begin with these bytes; all keys there are, if there are no bytes.
    ///
    /// ```
    /// use watchkeeper_etcd::Keys;
    /// assert_eq!(Keys::prefix("/routes/"), Keys::between("/routes/", "/routes0"));
    /// ```
    pub fn prefix(prefix: impl Into<Vec<u8>>) -> Self {
        let from = prefix.into();
        let mut to = from.clone();
        while to.last() == Some(&0xff) {
            to.pop();
        }
        match to.last_mut() {
            Some(last) => *last += 1,
            None => to.push(0),
        }
        let from = if from.is_empty() { vec![0] } else { from };
        Self { from, to }
    }

    /// The keys from one, which is meant, to another, which is not.
    pub fn between(from: impl Into<Vec<u8>>, to: impl Into<Vec<u8>>) -> Self {
        Self { from: from.into(), to: to.into() }
    }

    /// The keys of these that come after one of them.
    #[must_use]
    pub fn after(&self, key: &[u8]) -> Self {
        let from = [key, &[0]].concat();
        Self { from, to: self.to.clone() }
    }

    pub(crate) fn encode(&self, writer: &mut Writer) {
        writer.some_bytes(1, &self.from);
        writer.some_bytes(2, &self.to);
    }
}

/// A key with its value and its history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyValue {
    /// The key.
    pub key: Bytes,
    /// The value. Empty where only keys were asked for, and of a deletion.
    pub value: Bytes,
    /// The revision that created the key. Of a deletion 0.
    pub create_revision: i64,
    /// The revision that changed the key last.
    pub mod_revision: i64,
    /// How many times it was changed since it was created, beginning with 1. Of a deletion 0.
    pub version: i64,
    /// The lease that it goes with, or 0.
    pub lease: i64,
}

impl Decode for KeyValue {
    fn decode(message: &Bytes) -> Result<Self, Error> {
        let mut pair = Self::default();
        fields(message, |number, value| {
            match number {
                1 => pair.key = value.bytes()?,
                2 => pair.create_revision = value.integer()?,
                3 => pair.mod_revision = value.integer()?,
                4 => pair.version = value.integer()?,
                5 => pair.value = value.bytes()?,
                6 => pair.lease = value.integer()?,
                _ => {}
            }
            Ok(())
        })?;
        Ok(pair)
    }
}

/// Where and when an answer was given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Which cluster. A cluster that was made anew, or restored from a backup, has another one.
    pub cluster: u64,
    /// Which member.
    pub member: u64,
    /// The revision of the store.
    pub revision: i64,
    /// Which term of which leader.
    pub term: u64,
}

impl Decode for Header {
    fn decode(message: &Bytes) -> Result<Self, Error> {
        let mut header = Self::default();
        fields(message, |number, value| {
            match number {
                1 => header.cluster = value.unsigned()?,
                2 => header.member = value.unsigned()?,
                3 => header.revision = value.integer()?,
                4 => header.term = value.unsigned()?,
                _ => {}
            }
            Ok(())
        })?;
        Ok(header)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_ends_where_the_next_one_begins() {
        for (prefix, from, to) in [
            (&b"a"[..], &b"a"[..], &b"b"[..]),
            (b"a\xff", b"a\xff", b"b"),
            (b"\xff\xff", b"\xff\xff", b"\0"),
            (b"", b"\0", b"\0"),
        ] {
            assert_eq!(Keys::prefix(prefix), Keys::between(from, to), "{prefix:?}");
        }
        assert_eq!(Keys::prefix("a").after(b"ab"), Keys::between("ab\0", "b"));
    }
}
