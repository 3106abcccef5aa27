use std::future::pending;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use futures_util::{FutureExt, StreamExt, stream};
use http_body_util::BodyExt as _;
use serde_json::Value;
use tokio::time::{Instant, sleep_until};
use watchkeeper_connection::Body;

use crate::lease::Lease;
use crate::requests::Requests;

/// How long an entry of the watch may be. Nobody has a lease of this size.
const MAX_LINE: usize = 4 * 1024 * 1024;

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
        let Some((connection, request)) = requests.watch() else { return Self::Opening(pending().boxed()) };
        Self::Opening(Box::pin(async move {
            let answer = match connection.send(request).await {
                Ok(answer) if answer.status().is_success() => answer,
                Ok(answer) => {
                    tracing::debug!(code = answer.status().as_u16(), "lease cannot be watched; it is polled");
                    return None;
                }
                Err(error) => {
                    tracing::debug!(%error, "lease cannot be watched; it is polled");
                    return None;
                }
            };
            let lines = stream::unfold((answer.into_body(), Vec::new()), |(mut body, mut rest)| async {
                let line = next_line(&mut body, &mut rest).await?;
                Some((line, (body, rest)))
            });
            Some(lines.filter_map(|line| async move { sighting(&line) }).boxed())
        }))
    }
}

/// The next line of a body. `rest` is what has come of the lines after it. `None` when the body ends or breaks.
async fn next_line(body: &mut Body, rest: &mut Vec<u8>) -> Option<Vec<u8>> {
    let mut searched = 0;
    loop {
        if let Some(end) = rest[searched..].iter().position(|byte| *byte == b'\n') {
            let after = rest.split_off(searched + end + 1);
            return Some(std::mem::replace(rest, after));
        }
        searched = rest.len();
        if let Ok(data) = body.frame().await?.ok()?.into_data() {
            rest.extend_from_slice(&data);
        }
        if rest.len() > MAX_LINE {
            return None;
        }
    }
}

/// What an entry of the watch shows. Both errors and bookmarks end in another look at the next poll.
fn sighting(line: &[u8]) -> Option<Option<Lease>> {
    let mut entry: Value = serde_json::from_slice(line).ok()?;
    match entry["type"].as_str()? {
        "ADDED" | "MODIFIED" => Some(Some(Lease::new(entry["object"].take()))),
        "DELETED" => Some(None),
        _ => None,
    }
}
