//! What the storage tells a watcher, with objects in the version that it watches.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, Stream, StreamExt as _};
use watchkeeper_storage::{Change, Entry, Error, Event, Revision, Update, Watch};

use crate::conversion::Converter;
use crate::resource::Resource;
use crate::status_error::StatusError;

/// How many changes are converted at once.
const TOGETHER: usize = 250;

/// The changes of a resource in the order in which they were made.
pub(super) struct Feed {
    watch: Watch,
    /// For resources whose objects a webhook converts.
    converting: Option<Converting>,
}

/// An item of a [`Feed`].
pub(super) enum WatchUpdate {
    Change(Changed),
    /// All changes up to this revision have been sent.
    Progress(Revision),
}

/// A change, and what is shown of it.
pub(super) struct Changed {
    /// As it was stored.
    pub(super) event: Arc<Event>,
    /// In the version of the watcher, if that took a webhook.
    converted: Option<Event>,
}

/// Why a [`Feed`] ends.
pub(super) enum Failed {
    Storage(Error),
    /// A change could not be converted.
    Conversion(StatusError),
}

type Outcome = Result<WatchUpdate, Failed>;

struct Converting {
    converter: Arc<Converter>,
    resource: Arc<Resource>,
    /// Whether the states before changes are shown or compared.
    needs_previous: bool,
    running: Option<BoxFuture<'static, VecDeque<Outcome>>>,
    done: VecDeque<Outcome>,
    is_over: bool,
}

impl Changed {
    /// The change as it is shown.
    pub(super) fn shown(&self) -> &Event {
        self.converted.as_ref().unwrap_or(&self.event)
    }
}

impl Feed {
    /// What a watch tells about a resource.
    pub(super) fn new(
        watch: Watch,
        converter: &Arc<Converter>,
        resource: &Arc<Resource>,
        needs_previous: bool,
    ) -> Self {
        let converting = resource.converts_by_webhook().then(|| Converting {
            converter: Arc::clone(converter),
            resource: Arc::clone(resource),
            needs_previous,
            running: None,
            done: VecDeque::new(),
            is_over: false,
        });
        Self { watch, converting }
    }

    /// As [`Watch::request_progress`].
    pub(super) fn request_progress(&mut self) {
        self.watch.request_progress();
    }
}

impl Stream for Feed {
    type Item = Outcome;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Outcome>> {
        let this = &mut *self;
        match &mut this.converting {
            Some(converting) => converting.poll_next(&mut this.watch, context),
            None => this.watch.poll_next_unpin(context).map(|update| Some(unconverted(update?))),
        }
    }
}

fn unconverted(update: Result<Update, Error>) -> Outcome {
    match update {
        Ok(Update::Event(event)) => Ok(WatchUpdate::Change(Changed { event, converted: None })),
        Ok(Update::Progress(revision)) => Ok(WatchUpdate::Progress(revision)),
        Err(error) => Err(Failed::Storage(error)),
    }
}

impl Converting {
    fn poll_next(&mut self, watch: &mut Watch, context: &mut Context<'_>) -> Poll<Option<Outcome>> {
        loop {
            if let Some(outcome) = self.done.pop_front() {
                return Poll::Ready(Some(outcome));
            }
            if let Some(running) = &mut self.running {
                self.done = ready!(running.poll_unpin(context));
                self.running = None;
                continue;
            }
            if self.is_over {
                return Poll::Ready(None);
            }
            let first = ready!(watch.poll_next_unpin(context));
            self.convert(first, watch, context);
        }
    }

    /// Begins to convert a change and what else has happened by now.
    fn convert(
        &mut self,
        first: Option<Result<Update, Error>>,
        watch: &mut Watch,
        context: &mut Context<'_>,
    ) {
        let (mut updates, mut last, mut next) = (Vec::new(), None, first);
        loop {
            match next {
                Some(Ok(update)) => updates.push(update),
                Some(Err(error)) => {
                    last = Some(Failed::Storage(error));
                    self.is_over = true;
                }
                None => self.is_over = true,
            }
            if self.is_over || updates.len() >= TOGETHER {
                break;
            }
            match watch.poll_next_unpin(context) {
                Poll::Ready(update) => next = update,
                Poll::Pending => break,
            }
        }
        let (converter, resource) = (Arc::clone(&self.converter), Arc::clone(&self.resource));
        let needs_previous = self.needs_previous;
        let converting = async move {
            let mut outcomes = converted(&converter, &resource, updates, needs_previous).await;
            outcomes.extend(last.map(Err));
            outcomes
        };
        self.running = Some(converting.boxed());
    }
}

/// Changes in the version of a resource, in their order, up to the first that cannot be converted.
async fn converted(
    converter: &Converter,
    resource: &Resource,
    updates: Vec<Update>,
    needs_previous: bool,
) -> VecDeque<Outcome> {
    let entries = |updates: &[Update]| -> Vec<Arc<Entry>> {
        updates.iter().flat_map(|update| shown(update, needs_previous)).collect()
    };
    let several = updates.len() > 1;
    match converter.entries(resource, entries(&updates)).await {
        Ok(entries) => return with_entries(updates, entries, needs_previous),
        Err(failure) if !several => return VecDeque::from([Err(Failed::Conversion(failure))]),
        Err(_) => {}
    }
    // Those before the one that fails are told.
    let mut outcomes = VecDeque::new();
    for update in updates {
        match converter.entries(resource, shown(&update, needs_previous).collect()).await {
            Ok(entries) => outcomes.extend(with_entries(vec![update], entries, needs_previous)),
            Err(failure) => {
                outcomes.push_back(Err(Failed::Conversion(failure)));
                break;
            }
        }
    }
    outcomes
}

/// The entries of a change that a watcher has to see in its version: the newest one, and the one before if that is needed.
fn shown(update: &Update, needs_previous: bool) -> impl Iterator<Item = Arc<Entry>> {
    let event = match update {
        Update::Event(event) => Some(event),
        Update::Progress(_) => None,
    };
    let entry = event.and_then(|event| event.entry().cloned());
    let previous = event
        .filter(|event| needs_previous || event.entry().is_none())
        .and_then(|event| event.previous().cloned());
    entry.into_iter().chain(previous)
}

/// Updates with these entries in them, as [`shown`] lists them.
fn with_entries(updates: Vec<Update>, entries: Vec<Arc<Entry>>, needs_previous: bool) -> VecDeque<Outcome> {
    let mut entries = entries.into_iter();
    let mut convert = |update: Update| match update {
        Update::Progress(revision) => WatchUpdate::Progress(revision),
        Update::Event(event) => {
            let mut next = |stored: &Arc<Entry>| entries.next().unwrap_or_else(|| Arc::clone(stored));
            let change = match &event.change {
                Change::Created(entry) => Change::Created(next(entry)),
                Change::Updated { previous, entry } => {
                    let entry = next(entry);
                    let previous = if needs_previous { next(previous) } else { Arc::clone(previous) };
                    Change::Updated { previous, entry }
                }
                Change::Deleted(previous) => Change::Deleted(next(previous)),
            };
            let converted = Some(Event { revision: event.revision, change });
            WatchUpdate::Change(Changed { event, converted })
        }
    };
    updates.into_iter().map(|update| Ok(convert(update))).collect()
}
