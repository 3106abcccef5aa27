//! Reads a source a second time before missing objects count as deleted.

use std::collections::HashSet;

use futures_util::StreamExt as _;
use watchkeeper_core::{Error, Event, Freshness, Key, Source, Start};

/// Whether so many missing objects have to be confirmed.
pub(crate) fn is_needed(source: &dyn Source, known: usize, missing: usize) -> bool {
    let Some(share) = source.capabilities().confirm_shrink else { return false };
    missing >= known || missing as f32 > share * known as f32
}

/// The keys of all objects that a source has, from a snapshot of its own. What is there and cannot be read counts as there.
///
/// # Errors
///
/// Those of the source; and [`Unavailable`](Error::Unavailable) if there is something that cannot even be named.
pub(crate) async fn keys(source: &dyn Source) -> Result<HashSet<Key>, Error> {
    let mut feed = source.open(Start::Snapshot(Freshness::Newest));
    let mut keys = HashSet::new();
    while let Some(event) = feed.next().await {
        match event? {
            Event::Begin => keys.clear(),
            Event::Item(document) | Event::Put { document, .. } => {
                keys.insert(document.header.key);
            }
            Event::Delete { document, .. } => drop(keys.remove(&document.header.key)),
            Event::Gone { key, .. } => drop(keys.remove(&key)),
            Event::Rejected(rejection) => match rejection.key {
                Some(key) => drop(keys.insert(key)),
                None => {
                    return Err(Error::Unavailable { answered: true, reason: rejection.to_string() });
                }
            },
            Event::Complete(_) => return Ok(keys),
            _ => {}
        }
    }
    Err(Error::Unavailable {
        answered: true,
        reason: "the source ended before it had told everything".into(),
    })
}
