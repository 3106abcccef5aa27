//! The record of everything an informer sees, with nothing left out.

use std::collections::VecDeque;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::mpsc;
use watchkeeper_core::{Cause, Change, Error, Rejection, Start, Version};

use crate::object::Object;
use crate::plan::{End, Next};

/// One entry of an informer's [journal](crate::Builder::journal).
///
/// # What a journal promises
///
/// - Every change that the store sees is an entry, in the order in which the store sees them: nothing is coalesced,
///   nothing comes twice. What a log says is one entry for each of its entries; what a snapshot says is one for each object
///   that differs from what was known. A delete and a re-create are two entries, even if only the re-creation was seen.
/// - Between the entries stands what is needed to judge them: where snapshots end, where the source failed, where it goes on.
/// - Who reads slowly slows the informer down, and with it the source. That is the price of completeness; a
///   [`Subscription`](crate::Subscription) is for those who do not want to pay it.
///
/// An informer with several sources writes one journal; entries of different sources are in no order.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Entry<K> {
    /// An object changed. [`Cause::Initial`] before the source has completed its first snapshot.
    Changed(Change<Object<K>>),
    /// A snapshot is complete. The changes since the last [`Interrupted`](Self::Interrupted), or since the beginning, are
    /// how it differs from what was known.
    Complete(Version),
    /// A log that was interrupted goes on where it stopped: nothing was missed. Entries that come with it may follow.
    Resumed,
    /// Something could not be understood, and is not in the store.
    Rejected(Rejection),
    /// The source failed, or has to be asked for a snapshot again.
    Interrupted {
        /// What failed; `None` if a snapshot is due for another reason.
        error: Option<Error>,
        /// How long the informer waits before it asks again.
        wait: Duration,
        /// What it will ask for.
        next: Start,
    },
}

/// The writer's side. Entries are noted while locks are held, and handed over when there is time to wait for the reader.
pub(crate) struct Journal<K> {
    noted: Mutex<VecDeque<Entry<K>>>,
    /// Held while entries are handed over, which keeps them in order if there are several reflectors.
    reader: tokio::sync::Mutex<mpsc::Sender<Entry<K>>>,
}

impl<K> Journal<K> {
    pub(crate) fn new(reader: mpsc::Sender<Entry<K>>) -> Self {
        Self { noted: Mutex::default(), reader: tokio::sync::Mutex::new(reader) }
    }

    pub(crate) fn note(&self, entry: Entry<K>) {
        self.noted.lock().push_back(entry);
    }

    pub(crate) fn put(&self, new: Object<K>, old: Option<Object<K>>, cause: Cause) {
        let old = match old {
            Some(old) if !old.is_same_incarnation(&new) => {
                self.delete(old);
                None
            }
            old => old,
        };
        self.note(Entry::Changed(Change { key: new.key().clone(), old, new: Some(new), cause }));
    }

    pub(crate) fn delete(&self, last: Object<K>) {
        let change = Change { key: last.key().clone(), old: Some(last), new: None, cause: Cause::Live };
        self.note(Entry::Changed(change));
    }

    /// A feed has ended. One that was closed in good order and is resumed is not worth an entry.
    pub(crate) fn interrupted(&self, end: End, next: &Next) {
        let error = match end {
            End::Failed(error) => Some(error),
            End::Closed | End::Left if matches!(next.start, Start::Resume(_)) => return,
            End::Closed | End::Left => None,
        };
        self.note(Entry::Interrupted { error, wait: next.wait, next: next.start.clone() });
    }

    /// Hands over what was noted; waits for the reader. Cancel-safe: an entry is handed over or stays.
    pub(crate) async fn write(&self) {
        if self.noted.lock().is_empty() {
            return;
        }
        let reader = self.reader.lock().await;
        while let Ok(permit) = reader.reserve().await {
            // Taken and sent without waiting in between, so that no entry gets lost.
            let Some(entry) = self.noted.lock().pop_front() else { return };
            permit.send(entry);
        }
        self.noted.lock().clear();
    }
}
