//! One reaction: its queue, and the delivery of an object.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::{Notify, watch};
use watchkeeper_core::Key;
use watchkeeper_informer::{Object, Store};
use watchkeeper_queue::{Backoff, JobOutcome, Queue};

use crate::action::{Action, Again, Failure, Run, Stray};
use crate::change::{Change, Event};
use crate::condition::Filter;
use crate::delivered::{Delivered, Last};
use crate::file::Retry;
use crate::metrics::{Metrics, Outcome};

/// What all reactions of a reactor have in common.
pub(crate) struct Shared {
    pub(crate) delivered: Delivered,
    pub(crate) metrics: Metrics,
    pub(crate) tally: Tally,
    /// Told whenever a run has ended.
    pub(crate) progress: Notify,
    /// Becomes true when everything has to end now.
    pub(crate) abort: watch::Sender<bool>,
    pub(crate) dry_run: bool,
    pub(crate) once: bool,
}

/// How many changes had which end.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) done: AtomicU64,
    pub(crate) filtered: AtomicU64,
    /// Tries that failed.
    pub(crate) failed: AtomicU64,
    /// Changes that are not tried again.
    pub(crate) given_up: AtomicU64,
    /// Objects that could not be understood.
    pub(crate) rejected: AtomicU64,
}

/// A reaction to the changes of one source.
pub(crate) struct Reaction {
    pub(crate) name: Arc<str>,
    /// Its place in the file.
    pub(crate) index: usize,
    pub(crate) source: Arc<str>,
    /// What the objects are, where the source does not say it of each.
    pub(crate) kind: Option<(String, String)>,
    pub(crate) filter: Filter,
    pub(crate) action: Action,
    pub(crate) timeout: Duration,
    pub(crate) retry: Retry,
    pub(crate) queue: Queue<Key>,
    pub(crate) store: Store<Value>,
    /// Whether the source has said everything once, so that what the store lacks is gone.
    pub(crate) complete: Arc<AtomicBool>,
    pub(crate) shared: Arc<Shared>,
    /// Objects whose children are not as they were applied.
    pub(crate) strays: Mutex<HashMap<Key, Vec<Stray>>>,
}

/// A change that is to be delivered, and what is then known to be delivered.
struct Due {
    change: Change,
    last: Option<Last>,
    /// The object, if nothing was told of it before.
    first: Option<Object<Value>>,
    /// The object was replaced by another one, whose coming is another change.
    replaced: bool,
}

impl Reaction {
    /// Takes one object after the other, until the queue is shut down.
    pub(crate) async fn work(self: Arc<Self>) {
        while let Some(job) = self.queue.get().await {
            let supervisor = &self.shared.metrics.supervisor;
            let handled = self.handle(job.key(), job.attempt());
            let outcome = supervisor.caught_async(&self.name, job.key(), handled).await;
            job.finish(outcome.unwrap_or(JobOutcome::Retry));
            self.shared.progress.notify_waiters();
        }
    }

    async fn handle(&self, key: &Key, attempt: u32) -> JobOutcome {
        loop {
            let due = match self.due(key) {
                Ok(Some(due)) => due,
                Ok(None) => return self.put_right(key, attempt).await,
                Err(failure) => return self.failed(&format!("changed {key}"), &failure, attempt),
            };
            let mut said = None;
            if self.filter.lets_pass(&due.change) {
                if let Some(object) = due.first {
                    self.written(&due.change, self.shared.delivered.begin(self.index, key, object));
                }
                match self.react(&due.change, attempt).await {
                    Ok(done) => said = Some(done),
                    Err(failure) => return self.failed(&due.change.to_string(), &failure, attempt),
                }
            } else {
                self.shared.tally.filtered.fetch_add(1, Ordering::Relaxed);
                self.shared.metrics.ended(&self.name, Outcome::Filtered);
            }
            self.written(&due.change, self.shared.delivered.set(self.index, key, due.last));
            if let Some(done) = said {
                tracing::info!("{}: {}: {done}", self.name, due.change);
            }
            self.strays.lock().remove(key);
            if !due.replaced {
                return JobOutcome::Done;
            }
        }
    }

    fn written(&self, change: &Change, written: io::Result<()>) {
        if let Err(error) = written {
            tracing::error!(
                "{}: {change}: the state file cannot be written, after a restart this is delivered again: {error}",
                self.name
            );
        }
    }

    /// Has what was done for an object done again, if somebody has undone it.
    async fn put_right(&self, key: &Key, attempt: u32) -> JobOutcome {
        let strays = self.strays.lock().remove(key).unwrap_or_default();
        // What was applied may be seen before the answer says which version it is.
        let Action::Apply(apply) = &self.action else { return JobOutcome::Done };
        if strays.iter().all(|stray| apply.wrote(stray)) {
            return JobOutcome::Done;
        }
        let Some(value) = self.store.get(key).and_then(|object| object.get().ok()) else {
            return JobOutcome::Done;
        };
        let state = Some(self.with_kind(value));
        let (source, key) = (Arc::clone(&self.source), key.clone());
        let change = Change { source, key, event: Event::Changed, old: state.clone(), new: state };
        tracing::info!("{}: {}: somebody else has changed what was applied for it", self.name, change.key);
        match self.react(&change, attempt).await {
            Ok(done) => {
                tracing::info!("{}: {change}: {done}", self.name);
                JobOutcome::Done
            }
            Err(failure) => {
                let outcome = self.failed(&change.to_string(), &failure, attempt);
                self.strays.lock().entry(change.key).or_default().extend(strays);
                outcome
            }
        }
    }

    /// Notes that what was applied for an object is no longer there as it was.
    pub(crate) fn stray(&self, key: Key, stray: Stray) {
        let mut strays = self.strays.lock();
        let of_key = strays.entry(key.clone()).or_default();
        of_key.retain(|other| (&other.kind, &other.key) != (&stray.kind, &stray.key));
        of_key.push(stray);
        drop(strays);
        self.queue.add(key);
    }

    /// Whether what others do to the children of objects is put right: not where a filter decides on changes, since then it is not
    /// known whether the present state was to be applied.
    pub(crate) fn puts_right(&self) -> bool {
        let Shared { dry_run, once, .. } = &*self.shared;
        let always = self.filter.events.is_empty() && self.filter.conditions.is_empty();
        matches!(self.action, Action::Apply(_)) && always && !dry_run && !once
    }

    /// How what there is differs from what was delivered last.
    fn due(&self, key: &Key) -> Result<Option<Due>, Failure> {
        let last = self.shared.delivered.get(self.index, key);
        let object = self.store.get(key);
        let change =
            |event, old, new| Change { source: Arc::clone(&self.source), key: key.clone(), event, old, new };
        let gone = |last: &Last, replaced| {
            let change = change(Event::Gone, self.old(last), None);
            Some(Due { change, last: None, first: None, replaced })
        };
        let Some(object) = object else {
            return Ok(last
                .filter(|_| self.complete.load(Ordering::Acquire))
                .and_then(|last| gone(&last, false)));
        };
        let value =
            object.get().map_err(|error| Failure { message: error.to_string(), again: Again::Never })?;
        let value = self.with_kind(value);
        let print = self.action.print(&value);
        let (event, old) = match &last {
            Some(last) if last.print == Some(print) => {
                self.shared.delivered.same(self.index, key, object);
                return Ok(None);
            }
            Some(last) if last.print.is_some() => {
                let old = self.old(last);
                if old.as_deref().is_some_and(|old| is_another(old, &value)) {
                    return Ok(gone(last, true));
                }
                (Event::Changed, old)
            }
            _ => (Event::Added, None),
        };
        let change = change(event, old, Some(value));
        let first = last.is_none().then(|| object.clone());
        Ok(Some(Due { change, last: Some(Last::of(object, print)), first, replaced: false }))
    }

    fn old(&self, last: &Last) -> Option<Arc<Value>> {
        last.value().map(|value| self.with_kind(value))
    }

    /// Items of lists do not say what they are, entries of watches do: a state is the same either way.
    fn with_kind(&self, value: Arc<Value>) -> Arc<Value> {
        match &self.kind {
            Some((api_version, kind)) if value.get("kind").is_none() || value.get("apiVersion").is_none() => {
                let mut value = Arc::unwrap_or_clone(value);
                value["apiVersion"] = api_version.as_str().into();
                value["kind"] = kind.as_str().into();
                Arc::new(value)
            }
            _ => value,
        }
    }

    /// Has the action done, and says what came of it.
    async fn react(&self, change: &Change, attempt: u32) -> Result<String, Failure> {
        let Shared { tally, metrics, abort, dry_run, .. } = &*self.shared;
        if *dry_run {
            let would = self.action.would(change)?;
            tally.done.fetch_add(1, Ordering::Relaxed);
            return Ok(format!("would {would}"));
        }
        let run = Run {
            reaction: &self.name,
            change,
            attempt,
            nonce: self.shared.delivered.nonce(self.index, &change.key),
            timeout: self.timeout,
            abort: abort.subscribe(),
        };
        let begun = Instant::now();
        let done = self.action.run(&run).await;
        metrics.took(&self.name, begun.elapsed());
        done?;
        tally.done.fetch_add(1, Ordering::Relaxed);
        metrics.ended(&self.name, Outcome::Done);
        Ok(format!("done in {}", rounded(begun.elapsed())))
    }

    fn failed(&self, what: &str, failure: &Failure, attempt: u32) -> JobOutcome {
        let Shared { tally, metrics, abort, once, .. } = &*self.shared;
        let Failure { message, again } = failure;
        let tries = attempt.saturating_add(1);
        tally.failed.fetch_add(1, Ordering::Relaxed);
        metrics.ended(&self.name, Outcome::Failed);
        if *abort.borrow() {
            tracing::warn!("{}: {what}: aborted", self.name);
            return JobOutcome::Terminal;
        }
        let most = self.retry.attempts.or(once.then_some(1));
        if *again == Again::Never || most.is_some_and(|most| tries >= most) {
            tally.given_up.fetch_add(1, Ordering::Relaxed);
            metrics.ended(&self.name, Outcome::GivenUp);
            tracing::error!("{}: {what}: failed: {message}; not tried again before it changes", self.name);
            return JobOutcome::Terminal;
        }
        let wait = match again {
            Again::After(after) => *after,
            _ => Backoff::new(self.retry.initial, self.retry.max).delay(tries, &mut fastrand::Rng::new()),
        };
        let tried = if tries == 1 { String::new() } else { format!(" {tries} times") };
        tracing::warn!("{}: {what}: failed{tried}: {message}; trying again in {}", self.name, rounded(wait));
        JobOutcome::RetryAfter(wait)
    }

    /// Whether nothing is left to do.
    pub(crate) fn is_idle(&self) -> bool {
        let counts = self.queue.counts();
        counts.queued + counts.running + counts.delayed == 0
    }
}

/// Whether two states are of two objects that had one name after the other.
fn is_another(old: &Value, new: &Value) -> bool {
    let uid = |state: &Value| state.pointer("/metadata/uid").and_then(Value::as_str).map(str::to_owned);
    matches!((uid(old), uid(new)), (Some(old), Some(new)) if old != new)
}

/// `800 ms`, `2.5 s`, `1 min 5 s`.
pub(crate) fn rounded(time: Duration) -> String {
    match time.as_millis() {
        ..1000 => format!("{} ms", time.as_millis()),
        1000..10_000 => format!("{:.1} s", time.as_secs_f64()),
        10_000..60_000 => format!("{} s", time.as_secs()),
        _ => format!("{} min {} s", time.as_secs() / 60, time.as_secs() % 60),
    }
}
