//! A snapshot of the keys, in pages of one revision.

use watchkeeper_core::{Error, Event, Freshness, Reason, Rejection};
use watchkeeper_etcd::{Client, Error as EtcdError, Found, KeyValue, Keys, Range};

use super::documents::{self, Said};
use super::names::Named;
use super::settings::Settings;

/// A snapshot that is being read.
pub(super) struct Pages {
    keys: Keys,
    /// How many keys to ask for at once.
    size: u32,
    most: u32,
    /// The revision of the first page; 0 before it was read.
    pub(super) revision: i64,
    done: bool,
}

impl Pages {
    pub(super) fn new(settings: &Settings) -> Self {
        Self { keys: settings.keys(), size: settings.page, most: settings.page, revision: 0, done: false }
    }

    /// The events of the next page; `None` after the last.
    pub(super) async fn next(
        &mut self,
        settings: &Settings,
        client: &Client,
        freshness: &Freshness,
    ) -> Result<Option<Vec<Event>>, Error> {
        if self.done {
            return Ok(None);
        }
        let first = self.revision == 0;
        let (found, large) = self.read(client).await.map_err(|error| settings.failure(error))?;
        if first {
            accept(settings, &found, freshness)?;
            self.revision = found.header.revision;
        }
        self.done = !found.more;
        if let Some(last) = found.kvs.last() {
            self.keys = self.keys.after(&last.key);
        }
        let mut events: Vec<Event> = Vec::with_capacity(found.kvs.len());
        for pair in &found.kvs {
            events.extend(match large {
                Some(bytes) => too_large(settings, pair, bytes),
                None => item(settings, pair),
            });
        }
        Ok(Some(events))
    }

    /// Reads a page. If it is too large, a smaller one; if one key is too large, that key without its value, and how large it is.
    async fn read(&mut self, client: &Client) -> Result<(Found, Option<usize>), EtcdError> {
        loop {
            let range = Range::of(self.keys.clone()).limit(self.size.into()).at(self.revision);
            match client.range(&range).await {
                Ok(found) => return Ok((found, None)),
                Err(EtcdError::TooLarge { bytes, .. }) if self.size == 1 => {
                    let found = client.range(&range.keys_only()).await?;
                    // It was this key that made the pages small.
                    self.size = self.most;
                    return Ok((found, Some(bytes)));
                }
                Err(EtcdError::TooLarge { .. }) => self.size = (self.size / 4).max(1),
                Err(error) => return Err(error),
            }
        }
    }
}

/// Whether a snapshot of this revision is what was asked for.
fn accept(settings: &Settings, found: &Found, freshness: &Freshness) -> Result<(), Error> {
    let revision = found.header.revision;
    if let Freshness::NotOlderThan(version) = freshness {
        let name = &settings.name;
        if !settings.is_known(found.header) {
            return Err(Error::Expired(format!("{name}: this is another cluster than that of {version}")));
        }
        if version.number().is_none_or(|number| number > revision.unsigned_abs()) {
            return Err(Error::Expired(format!(
                "{name}: {version} was not reached yet, etcd is at {revision}"
            )));
        }
    }
    settings.remember(found.header);
    Ok(())
}

fn item(settings: &Settings, pair: &KeyValue) -> Option<Event> {
    match documents::read(settings, pair) {
        Said::Object(document) => Some(Event::Item(*document)),
        Said::Rejected(rejection) => Some(Event::Rejected(rejection)),
        Said::Nothing => None,
    }
}

fn too_large(settings: &Settings, pair: &KeyValue, bytes: usize) -> Option<Event> {
    match settings.named(&pair.key) {
        Named::Object(key) | Named::Unreadable(key) => {
            let detail = format!("an answer of {bytes} bytes, more than max_message_bytes");
            Some(Event::Rejected(Rejection::new(Some(key), Reason::TooLarge, detail)))
        }
        Named::Status => None,
    }
}
