//! Events are forgotten some time after they were last written.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::StreamExt;
use watchkeeper_storage::{Commit, Entry, Error, Range, Revision, Storage, Update};

use crate::following::until_closed;
use crate::object::time::after;
use crate::resource::prefix;
use crate::server::Server;

/// What the task is called.
pub(super) const TASK: &str = "event-expiry";

/// How long the task sleeps at most: the clock of objects may run otherwise than the one that wakes it.
const NAP: Duration = Duration::from_secs(10);

/// How many events are forgotten in one commit.
const BATCH: usize = 500;

/// What will expire, in the order in which it does: whatever is written later expires later. An event that is written again
/// is in here twice, and the first time its revision is no longer the newest.
type Queue = VecDeque<(SystemTime, Box<str>, Revision)>;

/// Forgets events, until the storage is closed.
pub(super) async fn run(server: Arc<Server>, lifetime: Duration) {
    until_closed("the events", || follow(&server, lifetime)).await;
}

async fn follow(server: &Server, lifetime: Duration) -> Result<(), Error> {
    let prefix = prefix("", "events");
    let page = server.storage.range(Range::prefix(&prefix)).await?;
    let mut watch = server.storage.watch(&prefix, page.revision).await?;
    let now = server.options.clock.now();
    let known = page.entries.iter().map(|entry| {
        let written = server.supervisor.caught(TASK, &entry.key, || written(server, entry)).flatten();
        (after(written.unwrap_or(now).min(now), lifetime), entry.key.clone(), entry.modified)
    });
    let mut queue: Vec<_> = known.collect();
    queue.sort_unstable_by_key(|(time, ..)| *time);
    let mut queue = Queue::from(queue);
    drop(page);
    loop {
        let wait = expire(server, &mut queue).await?;
        tokio::select! {
            () = tokio::time::sleep(wait.min(NAP)), if !queue.is_empty() => {}
            update = watch.next() => match update {
                None => return Ok(()),
                Some(Err(error)) => return Err(error),
                Some(Ok(Update::Progress(_))) => {}
                Some(Ok(Update::Event(event))) => {
                    if let Some(entry) = event.entry() {
                        let time = after(server.options.clock.now(), lifetime);
                        queue.push_back((time, entry.key.clone(), entry.modified));
                    }
                }
            },
        }
    }
}

/// When an event was last written, as far as it says so itself.
fn written(server: &Server, entry: &Entry) -> Option<SystemTime> {
    let event = server.registry().find("", "v1", "events")?.read(entry).ok()?;
    let texts = [
        &event["metadata"]["creationTimestamp"],
        &event["lastTimestamp"],
        &event["series"]["lastObservedTime"],
    ];
    texts.into_iter().filter_map(|text| crate::object::time::parse(text.as_str()?)).max()
}

/// Forgets what has expired. Returns how long it is until something else will.
async fn expire(server: &Server, queue: &mut Queue) -> Result<Duration, Error> {
    loop {
        let now = server.options.clock.now();
        let due = queue.iter().take(BATCH).take_while(|(time, ..)| *time <= now).count();
        if due == 0 {
            let next = queue.front().and_then(|(time, ..)| time.duration_since(now).ok());
            return Ok(next.unwrap_or(NAP));
        }
        for (_, key, revision) in queue.drain(..due) {
            // One that was written again, or deleted, is left alone.
            let commit = Commit::new().unchanged(key.clone(), revision).delete(key);
            match server.storage.commit(commit).await {
                Ok(_) | Err(Error::Conflict { .. }) => {}
                Err(error) => return Err(error),
            }
        }
    }
}
