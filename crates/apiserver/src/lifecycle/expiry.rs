//! Events are forgotten some time after they were last written.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::StreamExt;
use watchkeeper_storage::{self as storage, Commit, Entry, Error, Followed, Page, Revision, Storage};

use crate::object::time::after;
use crate::resource::prefix;
use crate::server::Server;

/// What the task is called.
pub(super) const TASK: &str = "event-expiry";

/// How long the task sleeps at most: the clock of objects may run otherwise than the one that wakes it.
const MAX_SLEEP: Duration = Duration::from_secs(10);

/// How much longer events are left to a storage that [expires](Storage::expires) them itself. It has not for all of them: some were copied
/// into it, or written when they were to be kept longer.
const GRACE: Duration = Duration::from_secs(120);

/// How many events are forgotten in one commit: etcd takes no more than 128 operations.
const BATCH: usize = 100;

/// What will expire, in the order in which it does: whatever is written later expires later. An event that is written again
/// is in here twice, and the first time its revision is no longer the newest.
type Queue = VecDeque<(SystemTime, Box<str>, Revision)>;

/// Forgets events, until the storage is closed.
pub(super) async fn run(server: Arc<Server>) {
    let lifetime = match server.storage.expires() {
        true => server.options.event_lifetime.saturating_add(GRACE),
        false => server.options.event_lifetime,
    };
    let prefix = prefix("", "events");
    let mut following = storage::follow(&*server.storage, "events", &prefix);
    let mut queue = Queue::new();
    loop {
        let wait = match expire(&server, &mut queue).await {
            Ok(wait) => wait,
            Err(error) => {
                following.failed(&error);
                queue.clear();
                MAX_SLEEP
            }
        };
        tokio::select! {
            () = tokio::time::sleep(wait.min(MAX_SLEEP)), if !queue.is_empty() => {}
            followed = following.next() => match followed {
                None => return,
                Some(Followed::Snapshot(page)) => queue = known(&server, &page, lifetime),
                Some(Followed::Event(event)) => {
                    if let Some(entry) = event.entry() {
                        let time = after(server.options.clock.now(), lifetime);
                        queue.push_back((time, entry.key.clone(), entry.modified));
                    }
                }
                Some(Followed::Progress(_)) => {}
            },
        }
    }
}

/// When what there is will expire.
fn known(server: &Server, page: &Page, lifetime: Duration) -> Queue {
    let now = server.options.clock.now();
    let known = page.entries.iter().map(|entry| {
        let written = server.supervisor.caught(TASK, &entry.key, || written(server, entry)).flatten();
        (after(written.unwrap_or(now).min(now), lifetime), entry.key.clone(), entry.modified)
    });
    let mut queue: Vec<_> = known.collect();
    queue.sort_unstable_by_key(|(time, ..)| *time);
    Queue::from(queue)
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
            return Ok(next.unwrap_or(MAX_SLEEP));
        }
        // Of one that is there twice, the later revision.
        let expired = queue.drain(..due).map(|(_, key, revision)| (key, revision)).collect();
        forget(&*server.storage, expired).await?;
    }
}

/// Forgets events as they were at their revisions, in as few commits as possible. One that was written again, or deleted, is left alone.
async fn forget(storage: &dyn Storage, mut expired: BTreeMap<Box<str>, Revision>) -> Result<(), Error> {
    while !expired.is_empty() {
        let commit = expired.iter().fold(Commit::new(), |commit, (key, revision)| {
            commit.unchanged(key.clone(), *revision).delete(key.clone())
        });
        match storage.commit(commit).await {
            Ok(_) => return Ok(()),
            Err(Error::Conflict { key, .. }) => {
                if expired.remove(&*key).is_none() {
                    return Err(Error::Invalid(format!(
                        "a conflict about {key}, which is not to be deleted"
                    )));
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use watchkeeper_storage::{Memory, Options, Range};

    use super::*;

    #[tokio::test]
    async fn events_go_together_and_those_that_were_written_again_stay() {
        let storage = Memory::new(Options::default());
        let mut expired = BTreeMap::new();
        for number in 0..BATCH {
            let key = format!("/events/{number:03}");
            let made = storage.commit(Commit::new().put(&*key, "1")).await.unwrap();
            expired.insert(key.into_boxed_str(), made.revision);
        }
        storage.commit(Commit::new().put("/events/007", "2")).await.unwrap();
        storage.commit(Commit::new().delete("/events/042")).await.unwrap();
        let before = storage.stats().commits;
        forget(&storage, expired).await.unwrap();
        let left = storage.range(Range::prefix("/events/")).await.unwrap().entries;
        let left: Vec<&str> = left.iter().map(|entry| &*entry.key).collect();
        assert_eq!(left, ["/events/007"]);
        assert_eq!(storage.stats().commits, before + 1, "one commit for all that could go");
    }
}
