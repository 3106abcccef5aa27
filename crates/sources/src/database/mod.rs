//! The common part of table sources: rows are read again and compared with those already reported.
//!
//! A database that can be polled is one file: an implementation of [`Database`]. Everything else (what a feed tells and in which order,
//! what is gone, what is told once only) is here and is the same for all of them.

#![cfg_attr(not(feature = "postgres"), allow(dead_code, reason = "not every database can do everything"))]

#[cfg(any(feature = "mysql", feature = "postgres"))]
mod address;
mod feed;
mod key;
mod object;
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod socket;
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod tls;
mod told;

use std::future::Future;

use watchkeeper_core::{Error, Key, Rejection};

#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) use address::{Address, Dialect, Secret, TlsMode};
pub(crate) use feed::open;
#[cfg(feature = "sqlite")]
pub(crate) use key::join;
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) use key::keyed;
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) use key::split;
pub(crate) use object::{Names, text};
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) use socket::{Socket, SocketError};

/// One connection to one table, in the hands of one feed. Dropping it ends whatever it does.
///
/// A read is [`begin`](Self::begin), [`next`](Self::next) until there is no more, [`end`](Self::end), all of one moment: what is
/// read is what was committed when it began. Between reads, [`wait`](Self::wait) says what to read next. An error ends the feed.
pub(crate) trait Database: Send + 'static {
    /// Begins to read.
    fn begin(&mut self, scope: Scope) -> impl Future<Output = Result<(), Error>> + Send;

    /// The next row.
    fn next(&mut self) -> impl Future<Output = Result<Option<Found>, Error>> + Send;

    /// All rows came: what does that mean for those that did not?
    fn end(&mut self) -> impl Future<Output = Result<Extent, Error>> + Send;

    /// Waits until there may be something new.
    fn wait(&mut self) -> impl Future<Output = Result<Scope, Error>> + Send;

    /// A read that no hint had asked for has found that these have changed.
    fn found_unasked(&mut self, _keys: Vec<Key>) {}
}

/// What is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Every row.
    All,
    /// Every row that may have changed since the last read of this scope or of all.
    Changed,
    /// The rows that somebody said to have changed. Only for databases whose `wait` gives this.
    Hinted,
    /// The keys of every row.
    Keys,
}

/// How many rows there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Count {
    /// The table has as many rows as this.
    Exactly(u64),
    /// Nobody counted.
    Unknown,
}

/// What the rows of a read are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// All there are: what was not among them is gone.
    All,
    /// Those that changed, and how many there are altogether. Every row that is new was among them.
    Changed(Count),
    /// Those with these keys: which of them were not among them are gone.
    Of(Vec<Key>),
}

/// A row.
#[derive(Clone, Debug)]
pub(crate) enum Found {
    /// As it is: its body is a JSON object.
    Row(Key, Vec<u8>),
    /// That it is there.
    Key(Key),
    /// That it cannot be read. It has a key.
    Rejected(Rejection),
}
