use std::future::pending;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use futures_util::{FutureExt, StreamExt};
use kube_client::core::WatchEvent;
use serde_json::Value;
use tokio::time::{Instant, sleep_until};

use crate::lease::Lease;
use crate::requests::Requests;

type Events = BoxStream<'static, Option<Lease>>;

/// The lease as a watch shows it. What it misses, the next look finds: it only makes things faster.
pub(crate) enum Sightings {
    /// Nobody looks.
    Closed,
    /// The watch is being opened.
    Opening(BoxFuture<'static, Option<Events>>),
    /// There is a watch.
    Open(Events),
    /// There was none to be had; not to be tried again before this.
    Failed(Instant),
}

impl Sightings {
    /// The next sighting: the lease, or that it was deleted. May be dropped and called again.
    pub(crate) async fn next(&mut self, requests: &Requests, pause: Duration) -> Option<Lease> {
        loop {
            match self {
                Self::Closed => *self = Self::open(requests),
                Self::Failed(until) => {
                    sleep_until(*until).await;
                    *self = Self::open(requests);
                }
                Self::Opening(opening) => match opening.await {
                    Some(events) => *self = Self::Open(events),
                    None => *self = Self::Failed(Instant::now() + pause),
                },
                Self::Open(events) => match events.next().await {
                    Some(sighting) => return sighting,
                    None => *self = Self::Failed(Instant::now() + pause),
                },
            }
        }
    }

    pub(crate) fn close(&mut self) {
        *self = Self::Closed;
    }

    fn open(requests: &Requests) -> Self {
        let Some((client, request)) = requests.watch() else { return Self::Opening(pending().boxed()) };
        Self::Opening(Box::pin(async move {
            let events = client.request_events::<Value>(request).await;
            let events =
                events.inspect_err(|error| tracing::debug!(%error, "the lease is not watched")).ok()?;
            // Both errors and bookmarks end in another look at the next poll.
            let sightings = events.filter_map(|event| async {
                match event.ok()? {
                    WatchEvent::Added(lease) | WatchEvent::Modified(lease) => Some(Some(Lease::new(lease))),
                    WatchEvent::Deleted(_) => Some(None),
                    WatchEvent::Bookmark(_) | WatchEvent::Error(_) => None,
                }
            });
            Some(sightings.boxed())
        }))
    }
}
