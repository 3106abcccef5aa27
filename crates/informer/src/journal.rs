//! The record of everything an informer sees, with nothing left out.

use std::collections::VecDeque;
use std::time::Duration;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::mpsc;
use watchkeeper_core::{Change, Delivery, Error, Key, Rejection, Start, Version};

use crate::object::{Object, Untyped};
use crate::plan::{End, Next};

/// One entry of an informer's [journal](crate::InformerBuilder::journal).
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
    /// An object changed. [`Delivery::Initial`] before the source has completed its first snapshot.
    Changed(Change<Object<K>>),
    /// A snapshot is complete. The changes since the last [`Interrupted`](Self::Interrupted), or since the beginning, are
    /// how it differs from what was known.
    Complete(Version),
    /// A log that was interrupted goes on where it stopped: nothing was missed. Entries that come with it may follow.
    Resumed,
    /// Something could not be understood, and is not in the store.
    Rejected(Rejection),
    /// The object of this key, which was [rejected](Self::Rejected), can be read now, or is gone. If that changed an object, there is an
    /// entry for it, too.
    Mended(Key),
    /// The source failed, or has to be asked for a snapshot again.
    Interrupted {
        /// The failure; `None` if a snapshot is due for another reason.
        error: Option<Error>,
        /// The delay before the informer opens the source again.
        wait: Duration,
        /// The beginning of the next feed.
        next: Start,
    },
}

/// The writer's side. Entries are noted while locks are held, and handed over when there is time to wait for the reader.
pub(crate) struct Journal {
    noted: Mutex<VecDeque<Entry<Untyped>>>,
    /// Held while entries are handed over, which keeps them in order if there are several reflectors.
    reader: tokio::sync::Mutex<Box<dyn Reader>>,
}

/// Who reads a journal, of whatever type.
trait Reader: Send {
    /// Waits until there is room for an entry, and gives the way to hand it over; `None` if nobody reads any more.
    fn ready(&self) -> BoxFuture<'_, Option<HandOver<'_>>>;
}

type HandOver<'a> = Box<dyn FnOnce(Entry<Untyped>) + Send + 'a>;

impl<K: 'static> Reader for mpsc::Sender<Entry<K>> {
    fn ready(&self) -> BoxFuture<'_, Option<HandOver<'_>>> {
        Box::pin(async {
            let permit = self.reserve().await.ok()?;
            Some(Box::new(|entry: Entry<Untyped>| permit.send(entry.typed())) as HandOver<'_>)
        })
    }
}

impl Entry<Untyped> {
    fn typed<K>(self) -> Entry<K> {
        match self {
            Self::Changed(change) => Entry::Changed(change.map(Object::typed)),
            Self::Complete(version) => Entry::Complete(version),
            Self::Resumed => Entry::Resumed,
            Self::Rejected(rejection) => Entry::Rejected(rejection),
            Self::Mended(key) => Entry::Mended(key),
            Self::Interrupted { error, wait, next } => Entry::Interrupted { error, wait, next },
        }
    }
}

impl Journal {
    pub(crate) fn new<K: 'static>(reader: mpsc::Sender<Entry<K>>) -> Self {
        Self { noted: Mutex::default(), reader: tokio::sync::Mutex::new(Box::new(reader)) }
    }

    pub(crate) fn note(&self, entry: Entry<Untyped>) {
        self.noted.lock().push_back(entry);
    }

    pub(crate) fn put(&self, new: Object, old: Option<Object>, delivery: Delivery) {
        let old = match old {
            Some(old) if !old.is_same_incarnation(&new) => {
                self.delete(old);
                None
            }
            old => old,
        };
        self.note(Entry::Changed(Change { key: new.key().clone(), old, new: Some(new), delivery }));
    }

    pub(crate) fn delete(&self, last: Object) {
        let change = Change { key: last.key().clone(), old: Some(last), new: None, delivery: Delivery::Live };
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
        while let Some(hand_over) = reader.ready().await {
            // Taken and sent without waiting in between, so that no entry gets lost.
            let Some(entry) = self.noted.lock().pop_front() else { return };
            hand_over(entry);
        }
        self.noted.lock().clear();
    }
}
