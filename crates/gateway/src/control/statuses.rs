use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinHandle;
use tokio::time::sleep;
use watchkeeper_core::{Error, Key, ObjectStatus, Source};
use watchkeeper_go::Time;
use watchkeeper_informer::Object;
use watchkeeper_supervision::Supervisor;

use super::sources::Follower;
use crate::compile::Report;
use crate::kinds::standard;

/// The name of the task that writes statuses.
const TASK: &str = "statuses";
/// How many statuses are written at a time.
const AT_A_TIME: usize = 8;
/// After how long writing is tried again, first and at most. Each time takes twice as long.
const RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// Writes what became of objects back to where they came from, if that takes it.
pub(super) struct Statuses {
    sources: Vec<Arc<dyn Source>>,
    queue: Queue,
    writer: JoinHandle<()>,
}

/// A status that is to be written.
struct Written {
    follower: Follower,
    source: Arc<dyn Source>,
    status: ObjectStatus,
    /// Its number among all.
    number: u64,
}

/// Of each object, the number of the status that was queued last: those before are not tried any more.
type Newest = Arc<Mutex<HashMap<(Follower, Key), u64>>>;

/// The way to the writer.
struct Queue {
    statuses: mpsc::UnboundedSender<Written>,
    newest: Newest,
    count: u64,
}

impl Statuses {
    pub(super) fn start(sources: Vec<Arc<dyn Source>>, supervisor: &Supervisor) -> Self {
        let (queue, statuses) = Queue::new();
        let (newest, supervisor) = (Arc::clone(&queue.newest), supervisor.clone());
        let writer = tokio::spawn(async move {
            let state = (statuses, newest, supervisor.clone());
            supervisor
                .run_with(TASK, state, |(statuses, newest, supervisor)| {
                    Box::pin(write(statuses, newest, supervisor))
                })
                .await;
        });
        Self { sources, queue, writer }
    }

    fn source(&self, follower: Follower) -> Option<&Arc<dyn Source>> {
        let source = self.sources.get(follower.index())?;
        source.capabilities().status_write_back.then_some(source)
    }

    /// Writes what became of an object that an informer has, unless that is what its status says already.
    pub(super) fn tell(&mut self, report: &Report, follower: Follower, object: &Object<Value>) {
        let Some(source) = self.source(follower).filter(|_| report.id.kind.has_status()) else { return };
        // It could be decoded when it was told of.
        let Ok(value) = object.get() else { return };
        let before = &value["status"];
        let status = match &report.status {
            Some(wanted) => standard_status(wanted, before),
            None => status(report, before),
        };
        let Some(status) = status else { return };
        let json = status.to_string().into_bytes();
        let status = ObjectStatus::new(object.key().clone(), object.version().clone(), json);
        let source = Arc::clone(source);
        self.queue.push(follower, source, status);
    }
}

impl Queue {
    fn new() -> (Self, mpsc::UnboundedReceiver<Written>) {
        let (sender, statuses) = mpsc::unbounded_channel();
        (Self { statuses: sender, newest: Newest::default(), count: 0 }, statuses)
    }

    fn push(&mut self, follower: Follower, source: Arc<dyn Source>, status: ObjectStatus) {
        self.count += 1;
        self.newest.lock().insert((follower, status.key.clone()), self.count);
        // The writer lives as long as this.
        let _ = self.statuses.send(Written { follower, source, status, number: self.count });
    }
}

impl Drop for Statuses {
    fn drop(&mut self) {
        self.writer.abort();
    }
}

/// The status to write; `None` if it is there already.
fn status(report: &Report, before: &Value) -> Option<Value> {
    let now = Time::from(SystemTime::now()).rfc3339();
    let known = before["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut is_new = before["observedGeneration"].as_i64() != Some(report.generation);
    let conditions = report.conditions().map(|(name, condition)| {
        let word = if condition.is_true { "True" } else { "False" };
        let known = known.iter().find(|known| known["type"] == name);
        let same = |field: &str, value: &str| known.is_some_and(|known| known[field] == value);
        is_new |= !(same("status", word)
            && same("reason", condition.reason)
            && same("message", &condition.message));
        let since =
            known.filter(|_| same("status", word)).and_then(|known| known["lastTransitionTime"].as_str());
        json!({
            "type": name,
            "status": word,
            "reason": condition.reason,
            "message": condition.message,
            "observedGeneration": report.generation,
            "lastTransitionTime": since.unwrap_or(&now),
        })
    });
    // What others write there stays.
    let ours = report.conditions().map(|(name, _)| name);
    let others = known.iter().filter(|known| !ours.iter().any(|name| known["type"] == *name)).cloned();
    let conditions: Vec<Value> = conditions.into_iter().chain(others).collect();
    is_new.then(|| json!({"observedGeneration": report.generation, "conditions": conditions}))
}

/// The status of an object of Gateway API, with the times of transitions; `None` if it is there already.
///
/// What other controllers say of a route stays as it is.
fn standard_status(wanted: &Value, before: &Value) -> Option<Value> {
    let now = Time::from(SystemTime::now()).rfc3339();
    let mut status = wanted.clone();
    stamp(&mut status["conditions"], &before["conditions"], &now);
    let named = |list: &Value, fits: &dyn Fn(&Value) -> bool| {
        list.as_array().into_iter().flatten().find(|each| fits(each)).map(|each| each["conditions"].clone())
    };
    for listener in status["listeners"].as_array_mut().into_iter().flatten() {
        let known = named(&before["listeners"], &|known| known["name"] == listener["name"]);
        stamp(&mut listener["conditions"], &known.unwrap_or_default(), &now);
    }
    if let Some(parents) = status["parents"].as_array_mut() {
        let is_same = |one: &Value, other: &Value| {
            one["parentRef"] == other["parentRef"] && one["controllerName"] == other["controllerName"]
        };
        for parent in parents.iter_mut() {
            let known = named(&before["parents"], &|known| is_same(known, parent));
            stamp(&mut parent["conditions"], &known.unwrap_or_default(), &now);
        }
        // In the order in which they are: two controllers that each put theirs first would never come to an end.
        let mut merged = Vec::new();
        for known in before["parents"].as_array().into_iter().flatten() {
            match parents.iter().position(|parent| is_same(known, parent)) {
                Some(at) => merged.push(parents.remove(at)),
                None if known["controllerName"] != standard::CONTROLLER => merged.push(known.clone()),
                None => {}
            }
        }
        merged.append(parents);
        *parents = merged;
    }
    let fields = status.as_object_mut()?;
    fields.retain(|_, value| !value.is_null());
    let is_empty = |value: &Value| value.as_array().is_some_and(Vec::is_empty);
    let is_new = fields.iter().any(|(name, value)| {
        let known = &before[name.as_str()];
        known != value && !(known.is_null() && is_empty(value))
    });
    is_new.then_some(status)
}

/// Gives conditions the time of their last transition: that of before, if they are as they were.
fn stamp(conditions: &mut Value, before: &Value, now: &str) {
    for condition in conditions.as_array_mut().into_iter().flatten() {
        let before = before.as_array().into_iter().flatten();
        let mut known = before.filter(|known| known["type"] == condition["type"]);
        let since = known.find(|known| known["status"] == condition["status"]);
        let since = since.and_then(|known| known["lastTransitionTime"].as_str()).unwrap_or(now);
        condition["lastTransitionTime"] = since.into();
    }
}

/// Writes what is queued. A status gets a task when it is its turn, and none is left when all are written: of a task, more is kept than of what
/// waits.
async fn write(statuses: &mut mpsc::UnboundedReceiver<Written>, newest: &Newest, supervisor: &Supervisor) {
    let turns = Arc::new(Semaphore::new(AT_A_TIME));
    let mut tasks = tokio::task::JoinSet::new();
    loop {
        let written = tokio::select! {
            written = statuses.recv() => written,
            Some(_) = tasks.join_next() => continue,
        };
        let (Some(written), Ok(turn)) = (written, Arc::clone(&turns).acquire_owned().await) else { return };
        while tasks.try_join_next().is_some() {}
        let (turns, newest, supervisor) = (Arc::clone(&turns), Arc::clone(newest), supervisor.clone());
        tasks.spawn(async move {
            let key = written.status.key.clone();
            supervisor.caught_async(TASK, &key, write_one(&written, turn, &turns, &newest)).await;
            let mut newest = newest.lock();
            if newest.get(&(written.follower, key.clone())) == Some(&written.number) {
                newest.remove(&(written.follower, key));
            }
            if newest.is_empty() {
                newest.shrink_to_fit();
            }
        });
    }
}

/// Writes the status of one object, again and again if that fails, until a newer one is to be written.
async fn write_one(
    written: &Written,
    mut turn: OwnedSemaphorePermit,
    turns: &Arc<Semaphore>,
    newest: &Newest,
) {
    let Written { follower, source, status, number } = written;
    let mut wait = RETRY.0;
    loop {
        if newest.lock().get(&(*follower, status.key.clone())) != Some(number) {
            return;
        }
        let done = source.write_status(status.clone()).await;
        // Others have their turn while this one waits.
        drop(turn);
        match done {
            // Whoever has changed meanwhile is told of, and gets a status then.
            Ok(()) | Err(Error::Expired(_) | Error::Missing(_)) => return,
            Err(error) => {
                tracing::warn!(
                    "{}: the status of {} is not written: {error}; again in {wait:?}",
                    source.name(),
                    status.key
                );
            }
        }
        sleep(wait.mul_f64(0.75 + fastrand::f64() / 2.0)).await;
        wait = (wait * 2).min(RETRY.1);
        let Ok(again) = Arc::clone(turns).acquire_owned().await else { return };
        turn = again;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

    use watchkeeper_core::{Capabilities, Feed, Follow, Order, Start, StatusWritten, Version};

    use super::*;

    /// A source that takes statuses after it has refused some.
    struct Reluctant {
        refuses: AtomicU32,
        taken: Arc<Mutex<Vec<Vec<u8>>>>,
    }

    impl Source for Reluctant {
        fn name(&self) -> &str {
            "reluctant"
        }
        fn capabilities(&self) -> Capabilities {
            Capabilities::new(Order::Opaque, Follow::Log)
        }
        fn open(&self, _: Start) -> Feed {
            Box::pin(futures_util::stream::pending())
        }
        fn write_status(&self, status: ObjectStatus) -> StatusWritten {
            let left = self.refuses.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1));
            let done = match left {
                Ok(_) => Err(Error::Fatal("not now".to_owned())),
                Err(_) => {
                    self.taken.lock().push(status.json);
                    Ok(())
                }
            };
            Box::pin(std::future::ready(done))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_status_is_written_however_often_that_fails_and_only_the_newest() {
        let taken = Arc::<Mutex<Vec<Vec<u8>>>>::default();
        let source: Arc<dyn Source> =
            Arc::new(Reluctant { refuses: AtomicU32::new(20), taken: Arc::clone(&taken) });
        let (mut queue, mut statuses) = Queue::new();
        let newest = Arc::clone(&queue.newest);
        let writer = tokio::spawn(async move { write(&mut statuses, &newest, &Supervisor::default()).await });
        for text in ["first", "second"] {
            let key = Key::new(Some("default"), "hello");
            let status = ObjectStatus::new(key, Version::from("1"), text);
            queue.push(Follower::default(), Arc::clone(&source), status);
            sleep(Duration::from_secs(10)).await;
        }
        sleep(Duration::from_secs(3_600)).await;
        assert_eq!(*taken.lock(), [b"second".to_vec()]);
        writer.abort();
    }

    fn condition(status: &str, since: Option<&str>) -> Value {
        let mut condition = json!({"type": "Accepted", "status": status, "reason": "R", "message": "", "observedGeneration": 2});
        if let Some(since) = since {
            condition["lastTransitionTime"] = since.into();
        }
        condition
    }

    #[test]
    fn a_condition_keeps_the_time_since_when_it_is_so() {
        let before = json!({"conditions": [condition("True", Some("then"))], "listeners": [
            {"name": "a", "conditions": [condition("True", Some("then"))]},
        ]});
        let wanted = |status: &str| {
            json!({"conditions": [condition("True", None)], "listeners": [
                {"name": "a", "conditions": [condition(status, None)]},
            ]})
        };
        assert_eq!(standard_status(&wanted("True"), &before), None, "nothing is new");
        let new = standard_status(&wanted("False"), &before).unwrap();
        assert_eq!(new["conditions"][0]["lastTransitionTime"], "then");
        assert_ne!(new["listeners"][0]["conditions"][0]["lastTransitionTime"], "then");
    }

    #[test]
    fn what_other_controllers_say_of_a_route_stays() {
        let parent = |controller: &str, since: Option<&str>| json!({"parentRef": {"name": "web"}, "controllerName": controller, "conditions": [condition("True", since)]});
        let ours = |since| parent(standard::CONTROLLER, since);
        let before = json!({"parents": [parent("example.com/other", Some("then")), ours(Some("then"))]});
        assert_eq!(standard_status(&json!({"parents": [ours(None)]}), &before), None);
        let other = json!({"parents": [parent("example.com/other", Some("then"))]});
        let new = standard_status(&json!({"parents": [ours(None)]}), &other).unwrap();
        assert_eq!(new["parents"][0], other["parents"][0]);
        assert_eq!(new["parents"][1]["controllerName"], standard::CONTROLLER);
        let gone = standard_status(&json!({"parents": []}), &new).unwrap();
        assert_eq!(gone["parents"], json!([parent("example.com/other", Some("then"))]));
        assert_eq!(standard_status(&json!({"parents": []}), &Value::Null), None, "it is none of ours");
    }
}
