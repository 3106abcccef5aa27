//! Object states from deliveries, laid over those of the other source. Without I/O.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use serde_json::Value;
use watchkeeper_core::{Document, Event, Key};

use crate::print::Print;

/// A state that the other source does not show is believed for this long: it may be behind.
pub(super) const BELIEVED: Duration = Duration::from_secs(3);

/// The versions of at least so many objects that are gone are remembered.
const REMEMBERED: usize = 1000;

/// The state of an object in the payload of a webhook: JSON pointers to its parts. Key and version must be at the same places in the
/// objects of the other source.
///
/// A delivery counts as a state if it has an object with a key and a version, which has to be a number that grows with every change of
/// the object. After any other delivery, the other source is read. A state that is older than the known one is ignored, so that deliveries may come in
/// any order and more than once. The other source has the last word: it is read three seconds after a state was delivered, and the states that it
/// shows then replace those that were delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payload {
    /// The pointer to the object: `/data`.
    pub object: String,
    /// The pointer to the key, within the object: `/id`.
    pub key: String,
    /// The pointer to the version, within the object: `/version`.
    pub version: String,
    /// The pointer to a value that is `true` if the object was deleted: `/deleted`. The version of the object is then that of the deletion.
    pub deleted: Option<String>,
}

/// What is known of versions, and the states that are newer than what the other source showed.
#[derive(Debug, Default)]
pub(super) struct States {
    known: HashMap<Key, u64>,
    newer: HashMap<Key, Newer>,
    /// What the snapshot that is being taken has listed.
    listed: HashSet<Key>,
}

#[derive(Debug)]
struct Newer {
    since: Instant,
    version: u64,
    /// `None` if it is gone.
    document: Option<Document>,
}

impl Newer {
    fn is_believed(&self, now: Instant) -> bool {
        now.duration_since(self.since) < BELIEVED
    }
}

/// What a delivery is.
#[derive(Debug)]
pub(super) enum Delivered {
    /// A newer state of this object.
    News(Key),
    /// What is known already, or older.
    Old,
    /// A reason to look.
    Hint,
}

impl States {
    /// Takes a delivery.
    pub(super) fn delivered(&mut self, payload: &Payload, body: &[u8], now: Instant) -> Delivered {
        let Some((key, version, document)) = read(payload, body) else { return Delivered::Hint };
        let known = self.known.get(&key).copied().max(self.newer.get(&key).map(|newer| newer.version));
        if known.is_some_and(|known| version <= known) {
            return Delivered::Old;
        }
        self.newer.insert(key.clone(), Newer { since: now, version, document });
        Delivered::News(key)
    }

    pub(super) fn begin(&mut self) {
        self.listed.clear();
    }

    /// Takes what the other source lists; gives what is to be listed instead.
    pub(super) fn listed(&mut self, payload: &Payload, document: Document, now: Instant) -> Option<Document> {
        let key = document.header.key.clone();
        let version = version(payload, &document.body);
        self.listed.insert(key.clone());
        match self.newer.get(&key) {
            Some(newer)
                if newer.is_believed(now) && version.is_some_and(|version| version < newer.version) =>
            {
                newer.document.clone()
            }
            _ => {
                self.newer.remove(&key);
                self.known.extend(version.map(|version| (key, version)));
                Some(document)
            }
        }
    }

    /// The states that the other source does not list yet, at the end of its snapshot.
    pub(super) fn unlisted(&mut self, now: Instant) -> Vec<Document> {
        let (listed, known) = (&self.listed, &mut self.known);
        // What was known of objects that are gone keeps late deliveries from bringing them back.
        self.newer.retain(|key, newer| {
            let believed = newer.is_believed(now);
            if !believed {
                let known = known.entry(key.clone()).or_default();
                *known = newer.version.max(*known);
            }
            believed
        });
        if self.known.len() > 2 * listed.len() + REMEMBERED {
            self.known.retain(|key, _| listed.contains(key));
        }
        let unlisted = self.newer.iter().filter(|(key, _)| !listed.contains(*key));
        unlisted.filter_map(|(_, newer)| newer.document.clone()).collect()
    }

    /// The state of an object that was delivered, as long as it is newer than what the other source has listed.
    pub(super) fn newest(&self, key: &Key) -> Option<Event> {
        Some(event(key, self.newer.get(key)?.document.clone()))
    }

    /// Whether there are states that the other source has still to confirm.
    pub(super) fn is_unconfirmed(&self) -> bool {
        !self.newer.is_empty()
    }
}

fn event(key: &Key, document: Option<Document>) -> Event {
    match document {
        Some(document) => Event::Put { document, position: None },
        None => Event::Gone { key: key.clone(), position: None },
    }
}

fn read(payload: &Payload, body: &[u8]) -> Option<(Key, u64, Option<Document>)> {
    let delivery: Value = serde_json::from_slice(body).ok()?;
    let object = delivery.pointer(&payload.object)?;
    let name = match object.pointer(&payload.key)? {
        Value::String(name) if !name.is_empty() => name.clone(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    let version = object.pointer(&payload.version)?.as_u64()?;
    let key = Key::new(None, &name);
    let deleted = payload.deleted.as_ref().and_then(|pointer| delivery.pointer(pointer)?.as_bool());
    let document = (deleted != Some(true)).then(|| {
        let body = object.to_string().into_bytes();
        Document::named(key.clone(), Print::of(&body).version(), body)
    });
    Some((key, version, document))
}

fn version(payload: &Payload, body: &[u8]) -> Option<u64> {
    serde_json::from_slice::<Value>(body).ok()?.pointer(&payload.version)?.as_u64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn payload() -> Payload {
        Payload {
            object: "/data".into(),
            key: "/id".into(),
            version: "/v".into(),
            deleted: Some("/gone".into()),
        }
    }

    fn document(id: u64, version: u64) -> Document {
        let body = json!({"id": id, "v": version}).to_string().into_bytes();
        Document::named(Key::new(None, &id.to_string()), Print::of(&body).version(), body)
    }

    fn deliver(states: &mut States, delivery: &Value, now: Instant) -> String {
        match states.delivered(&payload(), delivery.to_string().as_bytes(), now) {
            Delivered::News(key) => match states.newest(&key) {
                Some(Event::Put { document, .. }) => format!("put {}", document.header.key),
                Some(Event::Gone { key, .. }) => format!("gone {key}"),
                other => format!("{other:?}"),
            },
            Delivered::Old => "old".into(),
            Delivered::Hint => "hint".into(),
        }
    }

    #[test]
    fn the_newest_version_wins_in_whatever_order_it_comes() {
        let (mut states, now) = (States::default(), Instant::now());
        let state = |id: u64, version: u64| json!({"data": {"id": id, "v": version}});
        assert_eq!(deliver(&mut states, &state(1, 5), now), "put 1");
        assert_eq!(deliver(&mut states, &state(1, 5), now), "old");
        assert_eq!(deliver(&mut states, &state(1, 4), now), "old");
        let gone = |version: u64| json!({"data": {"id": 1, "v": version}, "gone": true});
        assert_eq!(deliver(&mut states, &gone(4), now), "old");
        assert_eq!(deliver(&mut states, &gone(6), now), "gone 1");
        assert_eq!(deliver(&mut states, &state(1, 5), now), "old");
        assert_eq!(deliver(&mut states, &state(1, 7), now), "put 1");
        for nonsense in [
            json!({}),
            json!({"data": {"id": 1}}),
            json!({"data": {"v": 9}}),
            json!({"data": {"id": 1, "v": "9"}}),
        ] {
            assert_eq!(deliver(&mut states, &nonsense, now), "hint");
        }
    }

    #[test]
    fn a_list_that_is_behind_is_not_told_and_one_that_is_not_has_the_last_word() {
        let (mut states, now) = (States::default(), Instant::now());
        states.listed(&payload(), document(1, 1), now);
        deliver(&mut states, &json!({"data": {"id": 1, "v": 3}}), now);
        deliver(&mut states, &json!({"data": {"id": 2, "v": 1}}), now);
        deliver(&mut states, &json!({"data": {"id": 3, "v": 2}, "gone": true}), now);
        states.begin();
        let listed = |states: &mut States, id, version| {
            states
                .listed(&payload(), document(id, version), now)
                .map(|document| String::from_utf8(document.body.into()).unwrap())
        };
        assert_eq!(listed(&mut states, 1, 2).as_deref(), Some(r#"{"id":1,"v":3}"#));
        assert_eq!(listed(&mut states, 3, 1), None);
        assert_eq!(states.unlisted(now).len(), 1, "the second is believed for a while");
        states.begin();
        assert_eq!(listed(&mut states, 1, 4).as_deref(), Some(r#"{"id":1,"v":4}"#));
        assert!(states.unlisted(now + BELIEVED).is_empty());
        assert_eq!(deliver(&mut states, &json!({"data": {"id": 1, "v": 4}}), now), "old");
    }
    #[test]
    fn what_was_believed_in_vain_is_not_brought_back_by_what_is_late() {
        let (mut states, now) = (States::default(), Instant::now());
        let state = |version: u64, gone: bool| json!({"data": {"id": 1, "v": version}, "gone": gone});
        assert_eq!(deliver(&mut states, &state(3, false), now), "put 1");
        assert_eq!(deliver(&mut states, &state(5, true), now), "gone 1");
        states.begin();
        assert!(states.unlisted(now + BELIEVED).is_empty());
        for late in [state(3, false), state(4, false), state(5, false)] {
            assert_eq!(deliver(&mut states, &late, now + BELIEVED), "old");
        }
        assert_eq!(deliver(&mut states, &state(6, false), now + BELIEVED), "put 1");
    }

    #[test]
    fn what_was_delivered_is_the_newest_state_until_a_newer_one_is_listed() {
        let (mut states, now) = (States::default(), Instant::now());
        deliver(&mut states, &json!({"data": {"id": 1, "v": 5}}), now);
        states.begin();
        states.listed(&payload(), document(1, 4), now);
        assert!(states.newest(&Key::new(None, "1")).is_some());
        states.listed(&payload(), document(1, 6), now);
        assert!(states.newest(&Key::new(None, "1")).is_none());
    }
}
