use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinHandle;
use tokio::time::sleep;
use watchkeeper_core::{Error, Key, ObjectStatus, Source, Version};
use watchkeeper_go::Time;
use watchkeeper_supervision::Supervisor;

use super::sources::Follower;
use crate::compile::Report;
use crate::kinds::standard;
use crate::object::ObjectId;

/// The name of the task that writes statuses.
const TASK: &str = "statuses";
/// How many statuses are written at a time.
const AT_A_TIME: usize = 8;
/// How often, and after how long, writing is tried again.
const RETRY: (u32, Duration) = (5, Duration::from_secs(1));

/// Writes what became of objects back to where they came from, if that takes it.
pub(super) struct Statuses {
    sources: Vec<Arc<dyn Source>>,
    seen: HashMap<ObjectId, Seen>,
    queue: mpsc::UnboundedSender<(Arc<dyn Source>, ObjectStatus)>,
    writer: JoinHandle<()>,
}

/// The state of an object that was seen last.
struct Seen {
    follower: Follower,
    key: Key,
    version: Version,
    status: Value,
}

impl Statuses {
    pub(super) fn start(sources: Vec<Arc<dyn Source>>, supervisor: &Supervisor) -> Self {
        let (queue, statuses) = mpsc::unbounded_channel();
        let supervisor = supervisor.clone();
        let writer = tokio::spawn(async move {
            let state = (statuses, supervisor.clone());
            supervisor
                .run_with(TASK, state, |(statuses, supervisor)| Box::pin(write(statuses, supervisor)))
                .await;
        });
        Self { sources, seen: HashMap::new(), queue, writer }
    }

    fn source(&self, follower: Follower) -> Option<&Arc<dyn Source>> {
        let source = self.sources.get(follower.index())?;
        source.capabilities().status_write_back.then_some(source)
    }

    /// Notes the state of an object that a source has.
    pub(super) fn seen(
        &mut self,
        id: &ObjectId,
        follower: Follower,
        key: &Key,
        version: Version,
        object: &Value,
    ) {
        if !id.kind.has_status() || self.source(follower).is_none() {
            return;
        }
        let status = object.get("status").cloned().unwrap_or_default();
        self.seen.insert(id.clone(), Seen { follower, key: key.clone(), version, status });
    }

    /// Writes what became of an object, unless that is what its status says already.
    pub(super) fn tell(&mut self, report: &Report) {
        let Some(seen) = self.seen.get(&report.id) else { return };
        let Some(source) = self.source(seen.follower) else { return };
        let status = match &report.status {
            Some(wanted) => standard_status(wanted, &seen.status),
            None => status(report, &seen.status),
        };
        let Some(status) = status else { return };
        let json = status.to_string().into_bytes();
        let status = ObjectStatus { key: seen.key.clone(), version: seen.version.clone(), json };
        // The writer lives as long as this.
        let _ = self.queue.send((Arc::clone(source), status));
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

async fn write(
    statuses: &mut mpsc::UnboundedReceiver<(Arc<dyn Source>, ObjectStatus)>,
    supervisor: &Supervisor,
) {
    let turns = Arc::new(Semaphore::new(AT_A_TIME));
    let mut tasks = tokio::task::JoinSet::new();
    while let Some((source, status)) = statuses.recv().await {
        while tasks.try_join_next().is_some() {}
        let Ok(turn) = Arc::clone(&turns).acquire_owned().await else { return };
        let supervisor = supervisor.clone();
        tasks.spawn(async move {
            let _turn = turn;
            let key = status.key.clone();
            supervisor.caught_async(TASK, &key, write_one(&*source, status)).await;
        });
    }
}

/// Writes the status of one object, again if that fails.
async fn write_one(source: &dyn Source, status: ObjectStatus) {
    for _ in 0..RETRY.0 {
        match source.write_status(status.clone()).await {
            // Whoever has changed meanwhile is told of, and gets a status then.
            Ok(()) | Err(Error::Expired(_) | Error::Missing(_)) => return,
            Err(error) => {
                tracing::warn!("{}: the status of {} is not written: {error}", source.name(), status.key);
            }
        }
        sleep(RETRY.1).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
