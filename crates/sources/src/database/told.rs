//! The rows that a feed has reported, and the difference to those just read. Without I/O.

use std::collections::{HashMap, HashSet};

use watchkeeper_core::{Document, Event, Key, Reason, Rejection, Version};

use super::{Count, Extent, Found, Scope};
use crate::print::Print;

/// What was told: a few bytes for each row, whatever is in it.
#[derive(Debug, Default)]
pub(crate) struct Told {
    rows: HashMap<Key, Row>,
    /// Which read this is.
    round: u32,
    /// What was rejected in this read and in the one before it.
    rejected: Rejections,
    rejected_before: Rejections,
}

/// Rejections by their keys. A key hardly ever has more than one, but many can have none.
type Rejections = HashMap<Option<Key>, HashSet<Rejection>>;

#[derive(Clone, Copy, Debug)]
struct Row {
    /// What it was told to be; nothing that any row can be, if it could not be told.
    print: Option<Print>,
    /// The last read that it was in.
    round: u32,
}

/// What there is to do when a read has come to its end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Settled {
    /// Nothing.
    Done,
    /// Some rows are gone, and only the keys of all can tell which.
    ReadKeys,
}

impl Told {
    /// A read begins.
    pub(crate) fn begin(&mut self, scope: Scope) {
        self.round = self.round.wrapping_add(1);
        self.rejected_before = match scope {
            Scope::All => std::mem::take(&mut self.rejected),
            // What is not read again stays rejected.
            _ => self.rejected.clone(),
        };
    }

    /// What a row of the snapshot is to the reader: all of them are told.
    pub(crate) fn item(&mut self, found: Found) -> Option<Event> {
        match self.take(found)? {
            News::Row(document) | News::Known(document) => Some(Event::Item(document)),
            News::Rejected(rejection) => Some(self.reject(rejection)),
        }
    }

    /// What a row is to a reader who was told before.
    pub(crate) fn news(&mut self, found: Found) -> Option<Event> {
        match self.take(found)? {
            News::Row(document) => Some(Event::Put { document, position: None }),
            News::Known(_) => None,
            News::Rejected(rejection) => {
                // Once is enough.
                let known =
                    self.rejected_before.get(&rejection.key).is_some_and(|known| known.contains(&rejection));
                let event = self.reject(rejection);
                (!known).then_some(event)
            }
        }
    }

    fn reject(&mut self, rejection: Rejection) -> Event {
        self.rejected.entry(rejection.key.clone()).or_default().insert(rejection.clone());
        Event::Rejected(rejection)
    }

    /// The read is over: says what is gone.
    pub(crate) fn end(&mut self, extent: Extent) -> (Vec<Event>, Settled) {
        let round = self.round;
        let mut gone: Vec<Key> = match extent {
            Extent::All => {
                let gone = self.rows.extract_if(|_, row| row.round != round);
                gone.map(|(key, _)| key).collect()
            }
            Extent::Of(keys) => {
                let missing = |key: &Key| self.rows.get(key).is_some_and(|row| row.round != round);
                let gone: Vec<Key> = keys.into_iter().filter(missing).collect();
                gone.into_iter().filter(|key| self.rows.remove(key).is_some()).collect()
            }
            Extent::Changed(count) => {
                let all = u64::try_from(self.rows.len()).unwrap_or(u64::MAX);
                let complete = matches!(count, Count::Unknown) || count == Count::Exactly(all);
                return (Vec::new(), if complete { Settled::Done } else { Settled::ReadKeys });
            }
        };
        gone.sort();
        (gone.into_iter().map(|key| Event::Gone { key, position: None }).collect(), Settled::Done)
    }

    /// What tells this state of the table from others.
    pub(crate) fn version(&self) -> Version {
        let all = self.rows.iter().filter_map(|(key, row)| Some((key, row.print?)));
        all.fold(Print::default(), |set, (key, print)| set.with(key.to_string().as_bytes(), print)).version()
    }

    fn take(&mut self, found: Found) -> Option<News> {
        let round = self.round;
        match found {
            Found::Key(key) => {
                // A row that is new since the last read comes with the next one.
                if let Some(row) = self.rows.get_mut(&key) {
                    row.round = round;
                }
                None
            }
            Found::Rejected(rejection) => {
                if let Some(key) = &rejection.key {
                    let row = self.rows.entry(key.clone()).or_insert(Row { print: None, round });
                    row.round = round;
                }
                Some(News::Rejected(rejection))
            }
            Found::Row(key, body) => {
                let print = Print::of(&body);
                let known = self.rows.insert(key.clone(), Row { print: Some(print), round });
                match known {
                    Some(row) if row.round == round => {
                        self.rows.insert(key.clone(), row);
                        let detail = "another row has the same key";
                        let reason = Reason::Conflict;
                        Some(News::Rejected(Rejection::new(Some(key), reason, detail)))
                    }
                    known => {
                        if !self.rejected.is_empty() {
                            self.rejected.remove(&Some(key.clone()));
                        }
                        let document = Document::named(key, print.version(), body);
                        let same = known.is_some_and(|row| row.print == Some(print));
                        Some(if same { News::Known(document) } else { News::Row(document) })
                    }
                }
            }
        }
    }
}

enum News {
    Row(Document),
    Known(Document),
    Rejected(Rejection),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, value: u64) -> Found {
        Found::Row(Key::new(None, name), format!(r#"{{"value":{value}}}"#).into_bytes())
    }

    fn rejected(name: &str) -> Found {
        let key = Some(Key::new(None, name));
        let reason = Reason::TooLarge;
        Found::Rejected(Rejection::new(key, reason, "too large"))
    }

    fn show(events: impl IntoIterator<Item = Event>) -> Vec<String> {
        let show = |event: Event| match event {
            Event::Item(document) => format!("item {}", document.header.key),
            Event::Put { document, .. } => format!("put {}", document.header.key),
            Event::Gone { key, .. } => format!("gone {key}"),
            Event::Rejected(rejection) => format!("rejected {}", rejection.key.unwrap()),
            other => format!("{other:?}"),
        };
        events.into_iter().map(show).collect()
    }

    fn round(told: &mut Told, rows: Vec<Found>, extent: Extent) -> (Vec<String>, Settled) {
        told.begin(if extent == Extent::All { Scope::All } else { Scope::Changed });
        let mut events: Vec<Event> = rows.into_iter().filter_map(|found| told.news(found)).collect();
        let (gone, settled) = told.end(extent);
        events.extend(gone);
        (show(events), settled)
    }

    fn told(rows: Vec<Found>) -> Told {
        let mut told = Told::default();
        told.begin(Scope::All);
        for found in rows {
            told.item(found);
        }
        told.end(Extent::All);
        told
    }

    #[test]
    fn only_what_differs_is_told() {
        let mut told = told(vec![row("a", 1), row("b", 1), row("c", 1)]);
        let version = told.version();
        assert_eq!(
            round(&mut told, vec![row("c", 1), row("b", 1), row("a", 1)], Extent::All),
            (vec![], Settled::Done)
        );
        assert_eq!(told.version(), version);
        let (events, _) = round(&mut told, vec![row("a", 2), row("b", 1), row("d", 1)], Extent::All);
        assert_eq!(events, ["put a", "put d", "gone c"]);
        assert_ne!(told.version(), version);
    }

    #[test]
    fn a_count_that_is_too_small_says_that_something_is_gone_and_the_keys_say_what() {
        let mut told = told(vec![row("a", 1), row("b", 1)]);
        let changed = |count| Extent::Changed(Count::Exactly(count));
        assert_eq!(round(&mut told, vec![row("c", 1)], changed(3)), (vec!["put c".into()], Settled::Done));
        // One came and one went.
        assert_eq!(
            round(&mut told, vec![row("d", 1)], changed(3)),
            (vec!["put d".into()], Settled::ReadKeys)
        );
        let keys = ["a", "c", "d", "new"].map(|name| Found::Key(Key::new(None, name))).to_vec();
        assert_eq!(round(&mut told, keys, Extent::All), (vec!["gone b".into()], Settled::Done));
    }

    #[test]
    fn of_what_was_asked_for_what_did_not_come_is_gone() {
        let mut told = told(vec![row("a", 1), row("b", 1), row("c", 1)]);
        let asked = ["a", "b", "never"].map(|name| Key::new(None, name)).to_vec();
        assert_eq!(round(&mut told, vec![row("a", 5)], Extent::Of(asked)).0, ["put a", "gone b"]);
    }

    #[test]
    fn what_is_rejected_stays_as_it_was_and_is_said_once() {
        let mut told = told(vec![row("a", 1), row("b", 1)]);
        let all = || Extent::All;
        assert_eq!(
            round(&mut told, vec![row("a", 1), rejected("b"), rejected("n")], all()).0,
            ["rejected b", "rejected n"]
        );
        assert!(round(&mut told, vec![row("a", 1), rejected("b"), rejected("n")], all()).0.is_empty());
        let changed = Extent::Changed(Count::Exactly(3));
        assert_eq!(round(&mut told, vec![], changed), (vec![], Settled::Done), "they count");
        assert!(round(&mut told, vec![row("a", 1), rejected("b"), rejected("n")], all()).0.is_empty());
        let (events, _) = round(&mut told, vec![row("a", 1), row("b", 1), row("n", 1)], all());
        assert_eq!(events, ["put n"], "b is what it was");
    }

    #[test]
    fn of_two_rows_with_one_key_the_first_is_told() {
        let mut told = told(vec![]);
        assert_eq!(round(&mut told, vec![row("a", 1), row("a", 2)], Extent::All).0, ["put a", "rejected a"]);
        assert!(round(&mut told, vec![row("a", 1), row("a", 2)], Extent::All).0.is_empty());
    }

    #[test]
    fn a_hundred_thousand_rows_that_are_rejected_take_no_longer_than_others() {
        let nameless = |number: u64| {
            let reason = Reason::Unreadable;
            Found::Rejected(Rejection::new(None, reason, format!("row {number}")))
        };
        let all = || (0..100_000).flat_map(|number| [rejected(&number.to_string()), nameless(number)]);
        let began = std::time::Instant::now();
        let mut told = told(all().collect());
        assert!(round(&mut told, all().collect(), Extent::All).0.is_empty());
        let mended = (0..100_000).map(|number| row(&number.to_string(), 1)).collect();
        assert_eq!(round(&mut told, mended, Extent::All).0.len(), 100_000);
        // With a look at all for each, it is minutes.
        assert!(began.elapsed().as_secs() < 30, "{:?}", began.elapsed());
    }
}
