//! Several operations at one revision, on a condition.

use bytes::Bytes;
use watchkeeper_wire::protobuf::{Error, Writer};

use crate::keys::Header;
use crate::kv::{Delete, Deleted, Found, Put, PutDone, Range};
use crate::message::{Decode, Encode, Fields as _, fields};

/// A transaction: if all comparisons hold, some operations, otherwise others. etcd allows 128 operations unless told otherwise.
///
/// ```
/// use watchkeeper_etcd::{Compare, Keys, Put, Range, Txn};
/// // Creates a key, or says who was first.
/// let create = Txn::new()
///     .when(Compare::absent("/lock"))
///     .then(Put::new("/lock", "me"))
///     .otherwise(Range::of(Keys::one("/lock")));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Txn {
    compare: Vec<Compare>,
    success: Vec<Operation>,
    failure: Vec<Operation>,
}

impl Txn {
    /// A transaction that does nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// On this condition, too.
    #[must_use]
    pub fn when(mut self, compare: Compare) -> Self {
        self.compare.push(compare);
        self
    }

    /// Does this, too, if all conditions hold.
    #[must_use]
    pub fn then(mut self, operation: impl Into<Operation>) -> Self {
        self.success.push(operation.into());
        self
    }

    /// Does this, too, if a condition does not hold.
    #[must_use]
    pub fn otherwise(mut self, operation: impl Into<Operation>) -> Self {
        self.failure.push(operation.into());
        self
    }
}

impl Encode for Txn {
    fn encode(&self, writer: &mut Writer) {
        self.compare.iter().for_each(|compare| writer.nested(1, compare));
        self.success.iter().for_each(|operation| writer.nested(2, operation));
        self.failure.iter().for_each(|operation| writer.nested(3, operation));
    }
}

/// How two values relate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// The key's is the same.
    Equal,
    /// The key's is greater.
    Greater,
    /// The key's is less.
    Less,
    /// The key's is another one.
    NotEqual,
}

/// A condition on a key. A key that is not there has revisions and a version of 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compare {
    key: Vec<u8>,
    relation: Relation,
    target: Target,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Target {
    Version(i64),
    CreateRevision(i64),
    ModRevision(i64),
    Value(Vec<u8>),
    Lease(i64),
}

impl Compare {
    /// How often the key was changed since it was created.
    pub fn version(key: impl Into<Vec<u8>>, relation: Relation, version: i64) -> Self {
        Self { key: key.into(), relation, target: Target::Version(version) }
    }

    /// The revision that created the key.
    pub fn create_revision(key: impl Into<Vec<u8>>, relation: Relation, revision: i64) -> Self {
        Self { key: key.into(), relation, target: Target::CreateRevision(revision) }
    }

    /// The revision that changed the key last.
    pub fn mod_revision(key: impl Into<Vec<u8>>, relation: Relation, revision: i64) -> Self {
        Self { key: key.into(), relation, target: Target::ModRevision(revision) }
    }

    /// The value of the key.
    pub fn value(key: impl Into<Vec<u8>>, relation: Relation, value: impl Into<Vec<u8>>) -> Self {
        Self { key: key.into(), relation, target: Target::Value(value.into()) }
    }

    /// The lease of the key.
    pub fn lease(key: impl Into<Vec<u8>>, relation: Relation, lease: i64) -> Self {
        Self { key: key.into(), relation, target: Target::Lease(lease) }
    }

    /// There is no such key.
    pub fn absent(key: impl Into<Vec<u8>>) -> Self {
        Self::mod_revision(key, Relation::Equal, 0)
    }
}

impl Encode for Compare {
    fn encode(&self, writer: &mut Writer) {
        let relation = match self.relation {
            Relation::Equal => 0,
            Relation::Greater => 1,
            Relation::Less => 2,
            Relation::NotEqual => 3,
        };
        let target = match self.target {
            Target::Version(_) => 0,
            Target::CreateRevision(_) => 1,
            Target::ModRevision(_) => 2,
            Target::Value(_) => 3,
            Target::Lease(_) => 4,
        };
        writer.number(1, relation);
        writer.number(2, target);
        writer.some_bytes(3, &self.key);
        // One of several: written even if it says 0, or etcd would not know which it is.
        match &self.target {
            Target::Version(number) => writer.integer(4, *number),
            Target::CreateRevision(number) => writer.integer(5, *number),
            Target::ModRevision(number) => writer.integer(6, *number),
            Target::Value(value) => writer.delimited(7, value),
            Target::Lease(number) => writer.integer(8, *number),
        }
    }
}

/// A part of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Reads.
    Range(Range),
    /// Writes.
    Put(Put),
    /// Deletes.
    Delete(Delete),
}

impl From<Range> for Operation {
    fn from(range: Range) -> Self {
        Self::Range(range)
    }
}

impl From<Put> for Operation {
    fn from(put: Put) -> Self {
        Self::Put(put)
    }
}

impl From<Delete> for Operation {
    fn from(delete: Delete) -> Self {
        Self::Delete(delete)
    }
}

impl Encode for Operation {
    fn encode(&self, writer: &mut Writer) {
        match self {
            Self::Range(range) => writer.nested(1, range),
            Self::Put(put) => writer.nested(2, put),
            Self::Delete(delete) => writer.nested(3, delete),
        }
    }
}

/// A [`Txn`] has happened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TxnDone {
    /// When. If it wrote something, its revision is that of the keys.
    pub header: Header,
    /// Whether all conditions held.
    pub succeeded: bool,
    /// What became of the operations that were done, in their order.
    pub outcomes: Vec<Outcome>,
}

/// What became of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// It read.
    Range(Found),
    /// It wrote.
    Put(PutDone),
    /// It deleted.
    Delete(Deleted),
    /// etcd says nothing that is understood.
    Other,
}

impl Decode for Outcome {
    fn decode(message: &Bytes) -> Result<Self, Error> {
        let mut outcome = Self::Other;
        fields(message, |number, value| {
            outcome = match number {
                1 => Self::Range(value.message()?),
                2 => Self::Put(value.message()?),
                3 => Self::Delete(value.message()?),
                _ => return Ok(()),
            };
            Ok(())
        })?;
        Ok(outcome)
    }
}

impl Decode for TxnDone {
    fn decode(message: &Bytes) -> Result<Self, Error> {
        let mut done = Self::default();
        fields(message, |number, value| {
            match number {
                1 => done.header = value.message()?,
                2 => done.succeeded = value.flag()?,
                3 => done.outcomes.push(value.message()?),
                _ => {}
            }
            Ok(())
        })?;
        Ok(done)
    }
}
