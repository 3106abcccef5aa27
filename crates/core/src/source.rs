use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::Stream;
use futures_util::future::{BoxFuture, ready};

use crate::{Document, Error, Key, Order, Version};

/// Anything whose objects can be watched: a kind in a Kubernetes API server, a directory, a table.
///
/// A source hands out [`Feed`]s. A feed opened with [`Start::Snapshot`] first delivers one complete keyed set and the
/// version it stands for, then follows the source as its [`Capabilities::follow`] says. A feed opened with
/// [`Start::Resume`] continues a log where another feed stopped.
///
/// # What a source promises
///
/// - **A snapshot is complete or it does not end.** [`Event::Complete`] comes only when every object that existed at
///   that version was delivered or [rejected](Event::Rejected). A rejection without a key says that something may be
///   lacking, and the reader deletes nothing then. A feed that fails in the middle of a snapshot implies nothing about
///   objects it has not mentioned.
/// - **Nothing falls between snapshot and follow-up.** What changed after the snapshot's version appears in the log;
///   a source that works with hints subscribes before it takes the snapshot and takes another one after every
///   resubscription. Hints are the source's own affair: they never leave it as state. What leaves it is what the source then
///   read: another snapshot, or only what differs from the one before, as [`Put`](Event::Put) and [`Gone`](Event::Gone) without
///   a position. If more would be gone than [`Capabilities::confirm_shrink`] allows, it is a snapshot.
/// - **Log entries come in the order in which the changes happened**, each exactly once per feed. A resumed feed starts
///   with the first change after the given version, or fails with [`Error::Expired`].
/// - **Equal key, uid and version mean equal state.** A changed object has another version.
/// - **One bad object does not end a feed.** It is reported as [`Event::Rejected`], the feed goes on.
/// - **A feed ends after its first error.** A feed that ends without an error was closed in good order; if the source can
///   resume, resuming is the way to go on.
/// - **Dropping a feed releases everything behind it.** No task, connection or subscription outlives it.
/// - **A status that was written wakes nobody.** No feed tells of it as a change of the object, unless the source keeps statuses inside its
///   objects and moves a [generation](crate::Header::generation) that tells both apart, as Kubernetes does.
///
/// # What it does not promise
///
/// No consistency across objects during a snapshot that is taken in pages, no delivery of intermediate states unless
/// it follows by log, no comparison of versions unless it declares [`Order::Total`].
///
/// The suite in [`contract`](crate::contract) checks these promises for any source.
pub trait Source: Send + Sync + 'static {
    /// What is watched, in a user's words: for logs, metrics and error messages (`pods`, `routes.d`).
    fn name(&self) -> &str;

    /// What exactly is watched: two sources with equal identities deliver the same objects in the same form, so that one
    /// may stand in for the other. Default: the name.
    fn identity(&self) -> String {
        self.name().to_owned()
    }

    /// What this source can do. Does not change over its life.
    fn capabilities(&self) -> Capabilities;

    /// Opens a feed. Returns at once; all waiting and all failures are in the feed.
    fn open(&self, start: Start) -> Feed;

    /// The name of the source that an object came from, told by the version of one of its states. Sources that are made of others
    /// say which of them it was. Default: none, for it is this source.
    fn origin(&self, version: &Version) -> Option<Arc<str>> {
        let _ = version;
        None
    }

    /// How many differences a look at everything has found that no change had told of before. Sources that never look twice have none.
    /// Everything but 0 is a mistake somewhere: events that got lost, a log that lacks entries.
    fn drift(&self) -> u64 {
        0
    }

    /// Figures of the moment, for metrics, which are asked for them at every scrape: how far it is behind, what is kept for it elsewhere. Does no
    /// I/O. Default: none.
    fn gauges(&self) -> Vec<SourceGauge> {
        Vec::new()
    }

    /// Writes the status of an object back to where the object came from, if [`Capabilities::status_write_back`] says that this is
    /// possible. A status is written for the state that it is about or not at all: an object that has changed meanwhile is
    /// [`Expired`](Error::Expired), and will be told of; one that is gone is [`Missing`](Error::Missing).
    ///
    /// Default: [`Fatal`](Error::Fatal).
    fn write_status(&self, status: ObjectStatus) -> StatusWritten {
        let error =
            Error::Fatal(format!("{}: the status of {} cannot be written here", self.name(), status.key));
        Box::pin(ready(Err(error)))
    }
}

/// A figure of a source that goes up and down.
///
/// ```
/// use watchkeeper_core::SourceGauge;
/// // What `Source::gauges` of a source with a log returns.
/// let gauge = SourceGauge::new("orders", "replication_lag_bytes", "Bytes of the log that were not read yet", 512.0);
/// assert_eq!((&*gauge.source, gauge.value), ("orders", 512.0));
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SourceGauge {
    /// The [name](Source::name) of the source; of a union, that of the member.
    pub source: Arc<str>,
    /// The name of the metric: `replication_lag_bytes`.
    pub name: &'static str,
    /// The help text of the metric.
    pub help: &'static str,
    /// The value.
    pub value: f64,
}

impl SourceGauge {
    /// A figure of a source.
    pub fn new(source: &str, name: &'static str, help: &'static str, value: f64) -> Self {
        Self { source: source.into(), name, help, value }
    }
}

/// The status of an object, to be [written back](Source::write_status).
///
/// ```
/// use watchkeeper_core::{Error, Key, ObjectStatus, Source, Version};
/// /// Writes that an order was shipped, unless the order has changed since `version`.
/// async fn shipped(orders: &dyn Source, key: Key, version: Version) -> Result<(), Error> {
///     orders.write_status(ObjectStatus::new(key, version, r#"{"shipped": true}"#)).await
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ObjectStatus {
    /// The key of the object.
    pub key: Key,
    /// The version of the object that the status is about.
    pub version: Version,
    /// The status as JSON.
    pub json: Vec<u8>,
}

impl ObjectStatus {
    /// The status, as JSON, of this version of an object.
    pub fn new(key: Key, version: Version, json: impl Into<Vec<u8>>) -> Self {
        Self { key, version, json: json.into() }
    }
}

/// Whether a status was written.
pub type StatusWritten = BoxFuture<'static, Result<(), Error>>;

/// A shared source is a source.
impl<S: Source + ?Sized> Source for Arc<S> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn identity(&self) -> String {
        (**self).identity()
    }

    fn capabilities(&self) -> Capabilities {
        (**self).capabilities()
    }

    fn open(&self, start: Start) -> Feed {
        (**self).open(start)
    }

    fn origin(&self, version: &Version) -> Option<Arc<str>> {
        (**self).origin(version)
    }

    fn drift(&self) -> u64 {
        (**self).drift()
    }

    fn gauges(&self) -> Vec<SourceGauge> {
        (**self).gauges()
    }

    fn write_status(&self, status: ObjectStatus) -> StatusWritten {
        (**self).write_status(status)
    }
}

/// The events of a [`Source`]: a lazy, owned stream that ends after its first error.
pub type Feed = Pin<Box<dyn Stream<Item = Result<Event, Error>> + Send>>;

/// The beginning of a feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start {
    /// With a complete set.
    Snapshot(Freshness),
    /// After this position of the log. Only for sources whose [`Capabilities::follow`] is [`Follow::Log`].
    Resume(Version),
}

/// The required freshness of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Freshness {
    /// Any state, whichever is cheapest for the source; may be old.
    Any,
    /// Not older than this version.
    NotOlderThan(Version),
    /// The newest committed state. It overrules everything that was known before.
    Newest,
}

/// One item of a [`Feed`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// A snapshot begins. A feed that was opened with [`Start::Snapshot`] begins with this; a source that follows by
    /// hints or by polling inside its feed may begin another one at any time.
    Begin,
    /// An object of the snapshot that has begun.
    Item(Document),
    /// The snapshot is complete: an object that was not in it is gone.
    Complete(Version),
    /// An object was created or changed.
    Put {
        /// The new state.
        document: Document,
        /// The log's position after this entry, if it moves.
        position: Option<Version>,
    },
    /// An object was deleted.
    Delete {
        /// The last state, as far as the log has it. The header's uid says which incarnation is gone.
        document: Document,
        /// The log's position after this entry, if it moves.
        position: Option<Version>,
    },
    /// As [`Delete`](Self::Delete), from a source that keeps no last states: the reader's own is the last one. Whatever is under
    /// the key is gone, whichever incarnation it is.
    Gone {
        /// The key of the object.
        key: Key,
        /// The log's position after this entry, if it moves.
        position: Option<Version>,
    },
    /// Nothing changed, but the log has reached this position.
    Position(Version),
    /// Something could not be understood; the feed goes on.
    Rejected(Rejection),
}

/// An entry of a feed that could not be read, with its identity as far as it is known and without its content.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Rejection {
    /// The key of the object, if it could be read. `None` means that any object may have been meant: what the feed
    /// says is then no longer the whole truth, and the reader should take a new snapshot in due time.
    pub key: Option<Key>,
    /// Sets the position of the log after the rejected entry, if it could be read.
    pub position: Option<Version>,
    /// The class of the error.
    pub reason: Reason,
    /// The details for a person: where in the bytes, what was expected. Never the content of the object.
    pub detail: String,
}

/// The reason of a rejection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// Not well-formed: broken syntax, invalid UTF-8, nested too deeply, cut off.
    Malformed,
    /// Larger than the source accepts.
    TooLarge,
    /// An object of another kind than the one watched.
    WrongKind,
    /// An object without a name, or an entry without an object.
    Nameless,
    /// An entry of a type that is not known.
    UnknownEntry,
    /// The object is well-formed and does not match the type of the reader.
    Undecodable,
    /// Another source of the same store, or another part of this source, has an object of this key.
    Conflict,
    /// The object exists and cannot be read: a file with a mistake in it, or without permission to read it.
    Unreadable,
}

impl Reason {
    /// Whether the object itself is to blame, so that a new snapshot would have to reject it again. Otherwise what was
    /// said got lost on the way.
    pub fn is_object_fault(self) -> bool {
        match self {
            Self::TooLarge | Self::Undecodable | Self::Conflict | Self::Unreadable => true,
            Self::Malformed | Self::WrongKind | Self::Nameless | Self::UnknownEntry => false,
        }
    }

    /// A short stable word for metrics and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::TooLarge => "too_large",
            Self::WrongKind => "wrong_kind",
            Self::Nameless => "nameless",
            Self::UnknownEntry => "unknown_entry",
            Self::Undecodable => "undecodable",
            Self::Conflict => "conflict",
            Self::Unreadable => "unreadable",
        }
    }
}

impl Rejection {
    /// A rejection that does not move the log. Without a key, it may be about any object.
    pub fn new(key: Option<Key>, reason: Reason, detail: impl Into<String>) -> Self {
        Self { key, position: None, reason, detail: detail.into() }
    }

    /// Sets the reason and its details.
    #[must_use]
    pub fn because(mut self, reason: Reason, detail: impl Into<String>) -> Self {
        (self.reason, self.detail) = (reason, detail.into());
        self
    }

    /// Sets the position of the log after the rejected entry, if it could be read.
    #[must_use]
    pub fn at(mut self, position: Option<Version>) -> Self {
        self.position = position;
        self
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.key {
            Some(key) => write!(f, "{key}: {} ({})", self.reason.as_str(), self.detail),
            None => write!(f, "an unknown object: {} ({})", self.reason.as_str(), self.detail),
        }
    }
}

/// The abilities of a [`Source`].
///
/// ```
/// # use std::time::Duration;
/// # use watchkeeper_core::{Capabilities, Follow, Order};
/// // A list behind a URL: asked every minute, and not believed at once if half of it is gone.
/// let polled = Capabilities::new(Order::Opaque, Follow::Poll(Duration::from_secs(60))).confirm_shrink(0.5);
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Capabilities {
    /// The order of the source's versions.
    pub order: Order,
    /// The way in which the source follows changes after a snapshot.
    pub follow: Follow,
    /// If a snapshot drops more than this share of the objects known so far (or all of them), it has to be confirmed
    /// by a second one before anything is deleted. `None` where the source can be trusted, as Kubernetes can; set
    /// for directories that may not be mounted yet and HTTP services that answer errors with an empty list.
    pub confirm_shrink: Option<f32>,
    /// Whether the status of an object can be written back.
    pub status_write_back: bool,
}

impl Capabilities {
    /// The capabilities of a source whose snapshots are trusted and whose objects have no status that can be written.
    pub const fn new(order: Order, follow: Follow) -> Self {
        Self { order, follow, confirm_shrink: None, status_write_back: false }
    }

    /// Has a snapshot confirmed that drops more than this share of the objects known so far.
    #[must_use]
    pub const fn confirm_shrink(mut self, share: f32) -> Self {
        self.confirm_shrink = Some(share);
        self
    }

    /// Sets whether the status of an object can be written back.
    #[must_use]
    pub const fn status_write_back(mut self, possible: bool) -> Self {
        self.status_write_back = possible;
        self
    }
}

/// The way in which a source follows changes after a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Follow {
    /// By polling: the feed ends, and another snapshot is due after this time.
    Poll(Duration),
    /// By hints that may be lost: the source reads again and delivers the differences in the same feed.
    Hints,
    /// By an ordered log that can be resumed.
    Log,
}
