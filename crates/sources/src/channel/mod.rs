//! A source that the program itself fills: glue to what has no source of its own, and tests.

mod state;

use std::fmt;
use std::sync::Arc;

use futures_util::stream::{self, StreamExt as _};
use serde::Serialize;
use watchkeeper_core::{
    Capabilities, Document, Error, Event, Feed, Follow, Freshness, Key, Order, Source, Start, Version,
};

use state::{Entry, State};

/// Makes a source and the sender that fills it.
///
/// ```
/// use watchkeeper_core::Key;
/// use watchkeeper_sources::channel::channel;
/// # #[derive(serde::Serialize)] struct Sensor { celsius: f32 }
/// # fn example() -> Result<(), serde_json::Error> {
/// let (sensors, source) = channel("sensors");
/// sensors.put(&Key::new(None, "attic"), &Sensor { celsius: 21.5 })?;
/// // Hand `source` to an informer or a controller, and go on:
/// sensors.put(&Key::new(None, "attic"), &Sensor { celsius: 22.0 })?;
/// sensors.remove(&Key::new(None, "attic"));
/// # Ok(()) }
/// ```
pub fn channel(name: &str) -> (Sender, Channel) {
    let state = Arc::new(State::default());
    (Sender { state: Arc::clone(&state) }, Channel { name: name.into(), state })
}

/// Fills a [`Channel`]. All clones fill the same one.
#[derive(Clone)]
pub struct Sender {
    state: Arc<State>,
}

impl Sender {
    /// Creates or changes an object. An equal object is no change.
    ///
    /// # Errors
    ///
    /// If the value cannot be written as JSON. Nothing changes then.
    pub fn put<T: Serialize + ?Sized>(&self, key: &Key, value: &T) -> Result<(), serde_json::Error> {
        self.state.put(key, serde_json::to_vec(value)?);
        Ok(())
    }

    /// Removes an object. Returns whether it was there.
    pub fn remove(&self, key: &Key) -> bool {
        self.state.remove(key)
    }

    /// Replaces all objects by these: others are removed.
    ///
    /// # Errors
    ///
    /// If a value cannot be written as JSON. Nothing changes then.
    pub fn replace<'a, T: Serialize + 'a>(
        &self,
        objects: impl IntoIterator<Item = (Key, &'a T)>,
    ) -> Result<(), serde_json::Error> {
        let objects: Result<Vec<_>, serde_json::Error> =
            objects.into_iter().map(|(key, value)| Ok((key, serde_json::to_vec(value)?))).collect();
        self.state.replace(objects?);
        Ok(())
    }
}

/// The objects that a program puts into a channel, as a source.
///
/// # What it promises beyond [`Source`]
///
/// - Versions are in [total order](Order::Total), for as long as the process runs.
/// - The log of the last changes is kept, so that a feed that was cut is resumed. A reader that is further behind than that
///   is [`Expired`](Error::Expired) and takes a new snapshot: a slow reader costs no memory.
/// - An object that is removed and put again is another one, with another uid.
///
/// If all [`Sender`]s are gone, it stays as it is.
#[derive(Clone)]
pub struct Channel {
    name: Arc<str>,
    state: Arc<State>,
}

impl Source for Channel {
    fn name(&self) -> &str {
        &self.name
    }

    /// No two channels are the same, whatever they are called.
    fn identity(&self) -> String {
        format!("{} {:p}", self.name, Arc::as_ptr(&self.state))
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new(Order::Total, Follow::Log)
    }

    fn open(&self, start: Start) -> Feed {
        let state = Arc::clone(&self.state);
        match begin(&state, start) {
            Err(error) => Box::pin(stream::once(async { Err(error) })),
            Ok((events, position)) => {
                let log = stream::unfold(Some((state, position)), follow).flat_map(stream::iter);
                Box::pin(stream::iter(events.into_iter().map(Ok)).chain(log))
            }
        }
    }
}

/// What a feed begins with, and the position it goes on from.
fn begin(state: &State, start: Start) -> Result<(Vec<Event>, u64), Error> {
    let here = |version: &Version| version.number().filter(|number| *number <= state.revision());
    match start {
        Start::Snapshot(Freshness::NotOlderThan(version)) if here(&version).is_none() => {
            Err(Error::Expired(format!("{version} was not reached yet")))
        }
        Start::Snapshot(_) => {
            let (documents, revision) = state.snapshot();
            let items = documents.into_iter().map(Event::Item);
            let end = Event::Complete(Version::from(revision));
            Ok((std::iter::once(Event::Begin).chain(items).chain([end]).collect(), revision))
        }
        Start::Resume(version) => {
            let position =
                here(&version).ok_or_else(|| Error::Expired(format!("{version} was not reached yet")))?;
            state.since(position).map_err(expired)?;
            // That it is there is told before there is anything to tell.
            Ok((vec![Event::Position(version)], position))
        }
    }
}

/// Where a feed goes on; nowhere after an error.
type At = Option<(Arc<State>, u64)>;

/// Waits for changes after a position.
async fn follow(at: At) -> Option<(Vec<Result<Event, Error>>, At)> {
    let (state, position) = at?;
    state.moved_beyond(position).await;
    match state.since(position) {
        Err(oldest) => Some((vec![Err(expired(oldest))], None)),
        Ok(entries) => {
            let reached = entries.last().map_or(position, |(revision, _)| *revision);
            let events = entries.into_iter().map(|(revision, entry)| {
                let position = Some(Version::from(revision));
                Ok(match entry {
                    Entry::Put(document) => Event::Put { document, position },
                    Entry::Gone(key) => Event::Gone { key, position },
                })
            });
            Some((events.collect(), Some((state, reached))))
        }
    }
}

fn expired(oldest: u64) -> Error {
    Error::Expired(format!("changes before {oldest} are not kept"))
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Channel").field("name", &self.name).finish_non_exhaustive()
    }
}

impl fmt::Debug for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").finish_non_exhaustive()
    }
}

/// A document of an object with a name, a version and a uid.
fn document(key: &Key, uid: u64, revision: u64, body: &[u8]) -> Document {
    let mut document = Document::named(key.clone(), Version::from(revision), body.to_vec());
    document.header.uid = Some(format!("{uid}").as_str().into());
    document
}
