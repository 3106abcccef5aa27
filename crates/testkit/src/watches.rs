//! Watches that a test can end.

use futures_util::{StreamExt, stream};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use tokio::sync::watch;
use watchkeeper_apiserver::front::{Body, BodyError};

/// How the watches that are open end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// As when their time is over.
    Clean,
    /// In the middle, as when a connection breaks.
    Broken,
}

/// Ends watches.
pub(crate) struct Watches(watch::Sender<Cut>);

impl Watches {
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(Cut::Clean))
    }

    /// Ends those that are open.
    pub(crate) fn cut(&self, how: Cut) {
        self.0.send_replace(how);
    }

    /// A stream that ends with the next cut, or when nobody is left to cut it.
    pub(crate) fn guard(&self, body: Body) -> Body {
        let open = Some((body.into_data_stream(), self.0.subscribe()));
        Body::wrap(StreamBody::new(stream::unfold(open, |open| async move {
            let (mut pieces, mut cuts) = open?;
            tokio::select! {
                biased;
                changed = cuts.changed() => {
                    let broken = changed.is_ok() && *cuts.borrow() == Cut::Broken;
                    broken.then(|| (Err(BodyError::Interrupted("the connection was reset".into())), None))
                }
                piece = pieces.next() => piece.map(|piece| (piece.map(Frame::data), Some((pieces, cuts)))),
            }
        })))
    }
}
