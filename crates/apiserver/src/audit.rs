//! What is said about a request besides its answer. There is no audit log; it goes into the log of the server.

use std::fmt;
use std::sync::Arc;

use http::HeaderValue;
use parking_lot::Mutex;

/// The most annotations of one request that are kept.
const MOST: usize = 64;
/// The most characters of a key and of a value that others chose.
const KEY_CHARS: usize = 256;
const VALUE_CHARS: usize = 1024;

/// The audit annotations of a request, under upstream's keys. Clones share them.
///
/// Those of the server's own writes are nobody's, and are dropped. At the end of a request, they are one line of the log. It never has a
/// patch, nor anything of an object; only what a webhook chose to say about it, and of that no more than is bounded here.
#[derive(Clone, Default)]
pub(crate) struct Annotations(Option<Arc<Mutex<Found>>>);

#[derive(Default)]
struct Found {
    pairs: Vec<(String, String)>,
    /// Whether there is one that does not merely say that a webhook was asked.
    is_notable: bool,
    dropped: usize,
}

impl Annotations {
    /// Those of a request.
    pub(crate) fn of_request() -> Self {
        Self(Some(Arc::default()))
    }

    /// Notes that a webhook was asked.
    pub(crate) fn add(&self, key: String, value: String) {
        self.keep(key, value, false);
    }

    /// Notes what should not be overlooked: a webhook that was left out since it failed, or what it says itself.
    pub(crate) fn add_notable(&self, key: String, value: String) {
        self.keep(key, value, true);
    }

    /// The first one under a key stays, as in kube-apiserver.
    fn keep(&self, key: String, value: String, is_notable: bool) {
        let Some(found) = &self.0 else { return };
        let mut found = found.lock();
        let (key, value) = (cut(key, KEY_CHARS), cut(value, VALUE_CHARS));
        if found.pairs.iter().any(|(other, _)| *other == key) {
            return;
        }
        if found.pairs.len() >= MOST {
            found.dropped = found.dropped.saturating_add(1);
            return;
        }
        found.pairs.push((key, value));
        found.is_notable |= is_notable;
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.as_ref().is_none_or(|found| found.lock().pairs.is_empty())
    }

    /// Writes them into the log, with the `Audit-Id` that the client is told.
    pub(crate) fn log(&self, audit: Option<&HeaderValue>, verb: &str, path: &str) {
        let Some(found) = &self.0 else { return };
        let found = found.lock();
        if found.pairs.is_empty() {
            return;
        }
        let audit = audit.and_then(|audit| audit.to_str().ok()).unwrap_or_default();
        let (annotations, dropped) = (Pairs(&found.pairs), found.dropped);
        match found.is_notable {
            true => tracing::info!(audit, verb, path, ?annotations, dropped, "audit annotations"),
            false => tracing::debug!(audit, verb, path, ?annotations, dropped, "audit annotations"),
        }
    }
}

/// How many there are.
impl fmt::Debug for Annotations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.0.as_ref().map_or(0, |found| found.lock().pairs.len());
        f.debug_struct("Annotations").field("count", &count).finish()
    }
}

/// Escaped, since others chose the texts.
struct Pairs<'a>(&'a [(String, String)]);

impl fmt::Debug for Pairs<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.0.iter().map(|(key, value)| (key, value))).finish()
    }
}

fn cut(mut text: String, most: usize) -> String {
    if let Some((at, _)) = text.char_indices().nth(most) {
        text.truncate(at);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_say_is_bounded_and_the_first_under_a_key_stays() {
        let annotations = Annotations::of_request();
        assert!(annotations.is_empty());
        annotations.add_notable("a/x".into(), "é".repeat(5_000));
        annotations.add("a/x".into(), "again".into());
        for number in 0..200 {
            annotations.add(format!("b/{number}"), String::new());
        }
        let found = annotations.0.as_ref().unwrap().lock();
        assert_eq!((found.pairs.len(), found.dropped, found.is_notable), (MOST, 137, true));
        assert_eq!(found.pairs[0].1.chars().count(), VALUE_CHARS + 1);
    }

    #[test]
    fn those_of_the_servers_own_writes_are_dropped() {
        let annotations = Annotations::default();
        annotations.add_notable("a".into(), "b".into());
        assert!(annotations.is_empty());
    }

    #[test]
    fn texts_of_others_stay_on_one_line() {
        assert_eq!(format!("{:?}", Pairs(&[("k".into(), "a\nb".into())])), r#"{"k": "a\nb"}"#);
    }
}
