use std::io::{Read, Write};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;

use crate::{Change, Entry, Event, Revision};

/// Events of some whole revisions, in order, compressed together.
///
/// An object is changed a field at a time, so that its entries say nearly the same, and so do those of its neighbours: ordered by key, they
/// take about a tenth of what they take one by one. To read one event, all are unpacked; whether there is one is known without.
pub(crate) struct Pack {
    /// The revision and the time of each event; never empty.
    places: Box<[Place]>,
    /// In order, each once.
    keys: Box<[Box<str>]>,
    packed: Box<[u8]>,
    /// What comes out of `packed`.
    plain: usize,
}

/// Where an event is in the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) revision: Revision,
    pub(crate) at: Duration,
}

/// What an event is, before the numbers of its entries.
const CREATED: u8 = 0;
const UPDATED: u8 = 1;
const DELETED: u8 = 2;

impl Pack {
    /// Packs events, of which there has to be one, and reads them back: `None` if that does not give what it should, which would be a mistake here.
    pub(crate) fn of(events: &[(Arc<Event>, Duration)]) -> Option<Self> {
        let places: Box<[Place]> =
            events.iter().map(|(event, at)| Place { revision: event.revision, at: *at }).collect();
        let mut keys: Vec<&str> = events.iter().map(|(event, _)| event.key()).collect();
        keys.sort_unstable();
        keys.dedup();
        let plain = write(events.iter().map(|(event, _)| &**event), &keys);
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(&plain).ok()?;
        let packed = encoder.finish().ok()?;
        // A copy, so that no more is kept than is needed.
        let keys = keys.into_iter().map(Into::into).collect();
        let pack = Self { places, keys, packed: packed.as_slice().into(), plain: plain.len() };
        let same = pack.events()?.iter().eq(events.iter().map(|(event, _)| event));
        (same && !pack.places.is_empty()).then_some(pack)
    }

    /// The events; `None` if they cannot be read, which [`Pack::of`] has ruled out.
    pub(crate) fn events(&self) -> Option<Vec<Arc<Event>>> {
        let mut plain = Vec::with_capacity(self.plain);
        DeflateDecoder::new(&*self.packed).take(self.plain as u64).read_to_end(&mut plain).ok()?;
        read(&mut Reader(&plain), &self.keys, &self.places)
    }

    /// Whether one of the keys begins like this.
    pub(crate) fn concerns(&self, prefix: &[u8]) -> bool {
        let first = self.keys.partition_point(|key| key.as_bytes() < prefix);
        self.keys.get(first).is_some_and(|key| key.as_bytes().starts_with(prefix))
    }

    /// The revision of the last event.
    pub(crate) fn last(&self) -> Revision {
        self.places.last().map_or(0, |place| place.revision)
    }

    /// The place of the first event after a revision.
    pub(crate) fn first_after(&self, revision: Revision) -> Option<Place> {
        self.places.get(self.until(revision)).copied()
    }

    /// How many events there are after a revision.
    pub(crate) fn after(&self, revision: Revision) -> usize {
        self.places.len() - self.until(revision)
    }

    fn until(&self, revision: Revision) -> usize {
        self.places.partition_point(|place| place.revision <= revision)
    }

    /// How much memory it takes.
    pub(crate) fn bytes(&self) -> usize {
        let keys: usize = self.keys.iter().map(|key| key.len() + size_of::<Box<str>>()).sum();
        self.packed.len() + size_of_val(&*self.places) + keys
    }
}

/// All entries, each once, then what happened to them.
fn write<'a>(events: impl Iterator<Item = &'a Event> + Clone, keys: &[&str]) -> Vec<u8> {
    let mut entries: Vec<&Entry> = events
        .clone()
        .flat_map(|event| event.previous().into_iter().chain(event.entry()))
        .map(|entry| &**entry)
        .collect();
    entries.sort_unstable_by_key(|entry| name(entry));
    entries.dedup_by_key(|entry| name(entry));
    let mut out = Vec::new();
    number(&mut out, entries.len() as u64);
    for entry in &entries {
        number(&mut out, keys.partition_point(|key| *key < &*entry.key) as u64);
        number(&mut out, entry.created);
        number(&mut out, entry.modified);
        number(&mut out, entry.value.len() as u64);
        out.extend_from_slice(&entry.value);
    }
    let place = |entry: &Entry| entries.partition_point(|other| name(other) < name(entry)) as u64;
    for event in events {
        match &event.change {
            Change::Created(entry) => {
                out.push(CREATED);
                number(&mut out, place(entry));
            }
            Change::Updated { previous, entry } => {
                out.push(UPDATED);
                number(&mut out, place(previous));
                number(&mut out, place(entry));
            }
            Change::Deleted(entry) => {
                out.push(DELETED);
                number(&mut out, place(entry));
            }
        }
    }
    out
}

/// What no two entries have in common.
fn name(entry: &Entry) -> (&str, Revision) {
    (&entry.key, entry.modified)
}

fn number(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(&number.to_le_bytes());
}

fn read(plain: &mut Reader<'_>, keys: &[Box<str>], places: &[Place]) -> Option<Vec<Arc<Event>>> {
    let count = plain.size()?;
    let mut entries = Vec::new();
    for _ in 0..count {
        let key = keys.get(plain.size()?)?.clone();
        let (created, modified, size) = (plain.number()?, plain.number()?, plain.size()?);
        let value = Bytes::copy_from_slice(plain.take(size)?);
        entries.push(Arc::new(Entry { key, created, modified, value }));
    }
    let entry = |plain: &mut Reader<'_>| entries.get(plain.size()?).cloned();
    places
        .iter()
        .map(|place| {
            let change = match plain.take(1)?[0] {
                CREATED => Change::Created(entry(plain)?),
                UPDATED => Change::Updated { previous: entry(plain)?, entry: entry(plain)? },
                DELETED => Change::Deleted(entry(plain)?),
                _ => return None,
            };
            Some(Arc::new(Event { revision: place.revision, change }))
        })
        .collect()
}

/// What is left to read.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(size_of::<u64>())?.try_into().ok()?))
    }

    fn size(&mut self) -> Option<usize> {
        usize::try_from(self.number()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(key: &str, modified: Revision, value: &str) -> Arc<Entry> {
        Arc::new(Entry { key: key.into(), value: Bytes::from(value.to_owned()), created: 1, modified })
    }

    /// Two pods whose statuses change in turns, and end.
    fn events(count: u64) -> Vec<(Arc<Event>, Duration)> {
        let pod = |key: &str, modified| {
            entry(key, modified, &format!("{}{modified}", "\"name\":\"a\",\"image\":\"b\",".repeat(100)))
        };
        let mut revision = 0;
        let mut events = Vec::new();
        for number in 0..count {
            for key in ["/pods/a", "/pods/b"] {
                revision += 1;
                let previous = || pod(key, revision - 2);
                let change = match number {
                    0 => Change::Created(pod(key, revision)),
                    _ if number + 1 == count => Change::Deleted(previous()),
                    _ => Change::Updated { previous: previous(), entry: pod(key, revision) },
                };
                events.push((Arc::new(Event { revision, change }), Duration::from_secs(revision)));
            }
        }
        events
    }

    #[test]
    fn what_is_packed_comes_out_again_and_takes_a_tenth() {
        let events = events(20);
        let pack = Pack::of(&events).unwrap();
        let plain: usize =
            events.iter().filter_map(|(event, _)| event.previous()).map(|entry| entry.value.len()).sum();
        assert!(pack.bytes() * 10 < plain, "{} of {plain}", pack.bytes());
        let out = pack.events().unwrap();
        assert!(out.iter().eq(events.iter().map(|(event, _)| event)));
        // What one event wrote and the next one replaced is one entry, as it was.
        assert!(Arc::ptr_eq(out[0].entry().unwrap(), out[2].previous().unwrap()));
    }

    #[test]
    fn it_is_known_where_events_are_without_unpacking() {
        let pack = Pack::of(&events(3)).unwrap();
        assert_eq!((pack.last(), pack.after(0), pack.after(4), pack.after(6)), (6, 6, 2, 0));
        assert_eq!(pack.first_after(2), Some(Place { revision: 3, at: Duration::from_secs(3) }));
        assert_eq!(pack.first_after(6), None);
        assert!(["", "/pods/", "/pods/b"].iter().all(|prefix| pack.concerns(prefix.as_bytes())));
        assert!(
            ["/nodes/", "/pods/aa", "/pods/c", "/q"].iter().all(|prefix| !pack.concerns(prefix.as_bytes()))
        );
    }

    #[test]
    fn what_is_broken_is_noticed() {
        let mut pack = Pack::of(&events(3)).unwrap();
        pack.packed = pack.packed[..pack.packed.len() / 2].into();
        assert!(pack.events().is_none());
        assert!(Pack::of(&[]).is_none());
    }
}
