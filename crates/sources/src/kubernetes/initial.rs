//! A streamed list (WatchList): the initial events of a watch.

use std::time::Duration;

use tokio::time::Instant;
use watchkeeper_core::{Error, Event, Freshness, Rejection, Version};

use super::entry::Entry;
use super::watch::{Filled, Watch};

/// How long we wait for the end of the initial entries when no more of them come. A server that knows what it was asked
/// for sends the end as soon as it has sent the last entry.
const END_TIMEOUT: Duration = Duration::from_secs(10);

/// A watch whose initial entries have not ended yet.
pub(super) struct Initial {
    watch: Watch,
    freshness: Freshness,
    /// The time spent waiting since the last object. Time in which nobody asked us for more does not count.
    waited: Duration,
}

/// What came next.
pub(super) enum Told {
    /// Something of the snapshot.
    Event(Event),
    /// The snapshot is complete at this version; the watch goes on.
    Complete(Version),
    /// The server does not do as it was asked: the list has to be taken in another way.
    Useless(&'static str),
    /// Something came by which any object may have been meant. A list in pages may be able to name it.
    Unidentified(Rejection),
    /// The server gave up.
    Failed(Error),
}

impl Initial {
    pub(super) fn new(watch: Watch, freshness: Freshness) -> Self {
        Self { watch, freshness, waited: Duration::ZERO }
    }

    pub(super) fn freshness(&self) -> &Freshness {
        &self.freshness
    }

    pub(super) fn into_watch(self) -> Watch {
        self.watch
    }

    /// The next thing. Fails if the connection breaks: then nothing is known of the server's abilities.
    pub(super) async fn next(&mut self) -> Result<Told, Error> {
        loop {
            if let Some(entry) = self.watch.ready() {
                return Ok(self.take(entry));
            }
            let timeout = END_TIMEOUT.saturating_sub(self.waited);
            if timeout.is_zero() {
                return Ok(Told::Useless("the end of the initial entries does not come"));
            }
            let before = Instant::now();
            let filled = self.watch.fill(timeout).await?;
            self.waited += before.elapsed();
            match filled {
                Filled::More | Filled::Silence => {}
                Filled::End => return Ok(Told::Useless("the watch ended before its initial entries did")),
            }
        }
    }

    fn take(&mut self, entry: Entry) -> Told {
        match entry {
            Entry::Put { document, added } => {
                if added {
                    self.waited = Duration::ZERO;
                }
                Told::Event(Event::Item(document))
            }
            Entry::Delete(document) => Told::Event(Event::Delete { document, position: None }),
            Entry::Bookmark { version, complete: true } => Told::Complete(version),
            Entry::Bookmark { complete: false, .. } => {
                Told::Useless("a bookmark that does not end the initial entries")
            }
            Entry::Failed(status) => Told::Failed(self.watch.answer().refused(&status)),
            // Before the end nothing is a position to go on from.
            Entry::Rejected(rejection) => {
                let rejection = rejection.at(None);
                match rejection.key {
                    Some(_) => Told::Event(Event::Rejected(rejection)),
                    None => Told::Unidentified(rejection),
                }
            }
        }
    }
}
