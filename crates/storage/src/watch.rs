use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::Stream;

use crate::{Error, Event, Revision};

/// A stream of changes; see [`Storage`](crate::Storage) for what it promises. Ends after its first error.
pub struct Watch(Box<dyn Watching>);

/// An item of a [`Watch`].
#[derive(Clone, Debug)]
pub enum Update {
    /// Something changed.
    Event(Arc<Event>),
    /// All changes up to this revision have been told; the answer to [`Watch::request_progress`].
    Progress(Revision),
}

/// The watch of a backend.
pub trait Watching: Send {
    /// As [`Stream::poll_next`].
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Update, Error>>>;

    /// As [`Watch::request_progress`].
    fn request_progress(&mut self);
}

impl Watch {
    /// A watch made by a backend.
    pub fn new(watching: impl Watching + 'static) -> Self {
        Self(Box::new(watching))
    }

    /// Asks for one [`Update::Progress`], which comes as soon as the watch has told everything that had happened by
    /// then. Asking again before the answer changes nothing.
    pub fn request_progress(&mut self) {
        self.0.request_progress();
    }
}

impl Stream for Watch {
    type Item = Result<Update, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_next(context)
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watch")
    }
}
