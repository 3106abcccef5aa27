//! Entries of the replication log as events of a feed. Without I/O.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use watchkeeper_core::{Error, Event, Key, Rejection, Version};

use super::pgoutput::{Cell, Entry, Relation, Tuple};
use super::position::{Lsn, Origin, Position};
use super::row::{found, row_key};
use super::table::Table;
use crate::database::Found;
use crate::print::Print;

/// Follows the log of one table.
///
/// The last change of a transaction carries the position behind the transaction, all others carry none: whoever stops in the middle of one
/// gets it again from its beginning.
pub(super) struct Log {
    table: Arc<Table>,
    max_row_bytes: usize,
    origin: Origin,
    /// Up to here everything was told. Within a transaction, up to its beginning.
    reached: Lsn,
    /// Whether positions are told: somebody may come back to them.
    resumable: bool,
    in_transaction: bool,
    /// Where in an entry the columns of the table are.
    places: Option<Vec<usize>>,
    /// Waits for whether it is the last one of its transaction.
    held: Option<Event>,
    /// Something was told in this transaction, and the position has to be told at its end.
    told: bool,
    pub(super) changes: u64,
}

/// A row whose log entry lacks values that were too large for it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Incomplete {
    /// The values of its key.
    pub(super) key: Vec<Bytes>,
}

impl Log {
    pub(super) fn new(
        table: Arc<Table>,
        max_row_bytes: usize,
        origin: Origin,
        reached: Lsn,
        resumable: bool,
    ) -> Self {
        Self {
            table,
            max_row_bytes,
            origin,
            reached,
            resumable,
            in_transaction: false,
            places: None,
            held: None,
            told: false,
            changes: 0,
        }
    }

    pub(super) fn reached(&self) -> Lsn {
        self.reached
    }

    pub(super) fn version(&self) -> Version {
        Position { origin: self.origin.clone(), lsn: self.reached }.version()
    }

    pub(super) fn origin(&self) -> &Origin {
        &self.origin
    }

    /// The server has sent everything before this; `true` if that is news.
    pub(super) fn idle(&mut self, sent: Lsn) -> bool {
        let moves = !self.in_transaction && sent > self.reached;
        if moves {
            self.reached = sent;
        }
        moves
    }

    /// Takes the next entry. A row that it cannot complete has to be read, and given to [`complete`](Self::complete).
    pub(super) fn take(
        &mut self,
        entry: Entry,
        events: &mut VecDeque<Event>,
    ) -> Result<Option<Incomplete>, Error> {
        match entry {
            Entry::Begin => self.in_transaction = true,
            Entry::Commit { end } => {
                self.in_transaction = false;
                self.reached = self.reached.max(Lsn(end));
                self.commit(events);
            }
            Entry::Relation(relation) if relation.oid == self.table.oid => self.look_at(&relation)?,
            Entry::Insert { relation, new } if relation == self.table.oid => {
                return self.put(None, &new, events);
            }
            Entry::Update { relation, old, new } if relation == self.table.oid => {
                return self.put(old.as_ref(), &new, events);
            }
            Entry::Delete { relation, old } if relation == self.table.oid => {
                if let Ok(key) = self.key(&old)? {
                    self.tell(Event::Gone { key, position: None }, events);
                }
            }
            Entry::Truncate { relations } if relations.contains(&self.table.oid) => {
                // From here on there is nothing, but what this transaction adds.
                events.extend(self.held.take());
                events.extend([Event::Begin, Event::Complete(self.version())]);
                self.told = true;
                self.changes += 1;
            }
            _ => {}
        }
        Ok(None)
    }

    /// A row that was incomplete, as it is now; or that it is not there any more, which a later entry will say.
    pub(super) fn complete(&mut self, values: Option<&[Option<Bytes>]>, events: &mut VecDeque<Event>) {
        if let Some(values) = values {
            self.row(values, events);
        }
    }

    fn put(
        &mut self,
        old: Option<&Tuple>,
        new: &Tuple,
        events: &mut VecDeque<Event>,
    ) -> Result<Option<Incomplete>, Error> {
        let key = self.key(new)?;
        if let (Some(old), Ok(key)) = (old, &key)
            && let Ok(before) = self.key(old)?
            && before != *key
        {
            self.tell(Event::Gone { key: before, position: None }, events);
        }
        let places = self.places()?;
        let value = |at: usize| match (new.get(at), old.and_then(|old| old.get(at))) {
            (Some(Cell::Text(text)), _) | (Some(Cell::Unchanged), Some(Cell::Text(text))) => {
                Some(Some(text.clone()))
            }
            (Some(Cell::Null), _) => Some(None),
            _ => None,
        };
        let values: Option<Vec<Option<Bytes>>> = places.iter().map(|at| value(*at)).collect();
        match values {
            Some(values) => {
                self.row(&values, events);
                Ok(None)
            }
            None => {
                let key = self.table.key.iter().map(|at| value(places[*at]).flatten());
                Ok(key.collect::<Option<_>>().map(|key| Incomplete { key }))
            }
        }
    }

    fn row(&mut self, values: &[Option<Bytes>], events: &mut VecDeque<Event>) {
        let event = match found(&self.table, values, self.max_row_bytes) {
            Found::Row(key, body) => {
                let version = Print::of(&body).version();
                let document = watchkeeper_core::Document::named(key, version, body);
                Event::Put { document, position: None }
            }
            Found::Rejected(rejection) => Event::Rejected(rejection),
            Found::Key(_) => return,
        };
        self.tell(event, events);
    }

    fn tell(&mut self, event: Event, events: &mut VecDeque<Event>) {
        self.changes += 1;
        self.told = true;
        events.extend(self.held.replace(event));
    }

    /// The last change goes with the position behind its transaction.
    fn commit(&mut self, events: &mut VecDeque<Event>) {
        let told = std::mem::take(&mut self.told);
        let held = self.held.take();
        if !self.resumable {
            events.extend(held);
            return;
        }
        let position = Some(self.version());
        events.extend(match held {
            Some(Event::Put { document, .. }) => Some(Event::Put { document, position }),
            Some(Event::Gone { key, .. }) => Some(Event::Gone { key, position }),
            Some(Event::Rejected(rejection)) => Some(Event::Rejected(rejection.at(position))),
            Some(other) => Some(other),
            None if told => position.map(Event::Position),
            None => None,
        });
    }

    fn key(&self, tuple: &Tuple) -> Result<Result<Key, Rejection>, Error> {
        let places = self.places()?;
        let value = |at: &usize| match tuple.get(places[*at]) {
            Some(Cell::Text(text)) => Some(text),
            _ => None,
        };
        Ok(row_key(&self.table, self.table.key.iter().map(value)))
    }

    fn places(&self) -> Result<&Vec<usize>, Error> {
        self.places.as_ref().ok_or_else(|| {
            let reason = "the log has rows of a table before it has its columns".into();
            Error::Unavailable { answered: true, reason }
        })
    }

    /// The table has to be what it was when the feed began. Otherwise rows that were told and are not changed would now look different.
    fn look_at(&mut self, relation: &Relation) -> Result<(), Error> {
        let table = &self.table;
        let place = |name: &str, oid: u32| {
            relation.columns.iter().position(|(other, type_)| other == name && *type_ == oid)
        };
        let places: Option<Vec<usize>> =
            table.columns.iter().map(|column| place(&column.name, column.oid)).collect();
        let known = relation.columns.iter().all(|(name, _)| table.all.contains(name));
        match places {
            Some(places) if known => {
                self.places = Some(places);
                Ok(())
            }
            _ => Err(Error::Expired(format!("the columns of {} have changed", table.sql))),
        }
    }
}
