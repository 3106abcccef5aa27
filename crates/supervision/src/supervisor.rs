use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use tokio::time::{Instant, sleep};

use crate::backoff::Backoff;

/// Watches over the background tasks of one server or one manager. Cheap to clone; all clones are the same supervisor.
///
/// # What it promises
///
/// - A task that panics is begun again: after 100 ms, then after twice as long each time, up to 30 s. Once it has run for
///   10 s without a panic it has recovered, and the next pause is short again.
/// - Every panic is counted, by task, and logged with the name of the task and of the object at hand where that is known. The
///   object itself is never logged, and neither is what the panic said: it may quote the object.
/// - After three panics in a row, [`failing`](Self::failing) names the task until it has recovered.
/// - What panics because of one object costs that object: [`caught`](Self::caught), [`caught_async`](Self::caught_async) and
///   [`run_for`](Self::run_for) count and log, and `failing` does not know of them. A single object of a single user
///   must not make a whole server look unfit.
///
/// # What it does not promise
///
/// Anything about what the task has left half-done. A task gets its state anew when it begins, or its state is such that it
/// does no harm.
#[derive(Clone, Default)]
pub struct Supervisor {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    tasks: Mutex<Tasks>,
    panics: Family<Label, Counter>,
    #[cfg(feature = "faults")]
    faults: crate::faults::Faults,
}

/// The tasks that run. Several may have one name.
#[derive(Default)]
struct Tasks {
    next: u64,
    running: BTreeMap<u64, Task>,
}

struct Task {
    name: Arc<str>,
    is_for_object: bool,
    backoff: Backoff,
}

impl Tasks {
    /// Those that are not for one object.
    fn whole(&self) -> impl Iterator<Item = &Task> {
        self.running.values().filter(|task| !task.is_for_object)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Label {
    task: Arc<str>,
}

impl Supervisor {
    /// A supervisor whose counts are in a registry: `watchkeeper_task_panics_total{task}`. Those of [`default`](Self::default) are
    /// in none.
    pub fn register(registry: &mut Registry) -> Self {
        let supervisor = Self::default();
        supervisor.show(registry);
        supervisor
    }

    /// Shows the counts of this supervisor in a registry, as those of [`register`](Self::register) are.
    pub fn show(&self, registry: &mut Registry) {
        let panics = self.shared.panics.clone();
        registry.register("watchkeeper_task_panics", "Panics of background tasks that were caught", panics);
    }

    /// Runs a task to its end, and restarts it after a panic.
    pub async fn run<R: Future>(&self, name: &str, mut task: impl FnMut() -> R) -> R::Output {
        let entry = self.enter(name);
        loop {
            // The call itself may panic as well as what it returns.
            if let Some(ended) = self.once(&entry, None, async { task().await }).await {
                return ended;
            }
        }
    }

    /// As [`run`](Self::run), for a task that keeps its state after a panic.
    pub async fn run_with<S, T>(
        &self,
        name: &str,
        mut state: S,
        mut task: impl for<'a> FnMut(&'a mut S) -> BoxFuture<'a, T>,
    ) -> T {
        let entry = self.enter(name);
        loop {
            if let Some(ended) = self.once(&entry, None, async { task(&mut state).await }).await {
                return ended;
            }
        }
    }

    /// As [`run`](Self::run), for work on one object, which does not affect readiness.
    pub async fn run_for<R: Future>(
        &self,
        name: &str,
        object: &str,
        mut task: impl FnMut() -> R,
    ) -> R::Output {
        let entry = self.entry(name, true);
        loop {
            if let Some(ended) = self.once(&entry, Some(&object), async { task().await }).await {
                return ended;
            }
        }
    }

    /// Runs a function about one object. `None` if it panicked, which counts as a panic of the task.
    pub fn caught<T>(&self, task: &str, object: &dyn fmt::Display, work: impl FnOnce() -> T) -> Option<T> {
        let work = || {
            #[cfg(feature = "faults")]
            self.shared.faults.meet(&object.to_string());
            work()
        };
        let done = catch_unwind(AssertUnwindSafe(work)).ok();
        if done.is_none() {
            self.panicked(task, Some(object));
        }
        done
    }

    /// As [`caught`](Self::caught), for a future.
    pub async fn caught_async<T>(
        &self,
        task: &str,
        object: &(dyn fmt::Display + Sync),
        work: impl Future<Output = T>,
    ) -> Option<T> {
        let work = async {
            #[cfg(feature = "faults")]
            self.shared.faults.meet(&object.to_string());
            work.await
        };
        let done = AssertUnwindSafe(work).catch_unwind().await.ok();
        if done.is_none() {
            self.panicked(task, Some(object));
        }
        done
    }

    /// Counts and logs a panic that was caught elsewhere.
    pub fn panicked(&self, task: &str, object: Option<&dyn fmt::Display>) {
        self.shared.panics.get_or_create(&Label { task: task.into() }).inc();
        let object = object.map(tracing::field::display);
        tracing::error!(task, object, "background task panicked");
    }

    /// The number of panics of a task that were caught.
    pub fn panics(&self, task: &str) -> u64 {
        self.shared.panics.get(&Label { task: task.into() }).map_or(0, |panics| panics.get())
    }

    /// The names of the tasks that run or are about to be restarted.
    pub fn tasks(&self) -> BTreeSet<Arc<str>> {
        self.shared.tasks.lock().whole().map(|task| Arc::clone(&task.name)).collect()
    }

    /// The names of the tasks that have panicked again and again and have not recovered.
    pub fn failing(&self) -> BTreeSet<Arc<str>> {
        let now = Instant::now();
        let tasks = self.shared.tasks.lock();
        let failing = tasks.whole().filter(|task| task.backoff.is_failing(now));
        failing.map(|task| Arc::clone(&task.name)).collect()
    }

    /// A place for a task that catches its panics itself.
    pub fn enter(&self, name: &str) -> Entry {
        self.entry(name, false)
    }

    fn entry(&self, name: &str, is_for_object: bool) -> Entry {
        let name: Arc<str> = name.into();
        let mut tasks = self.shared.tasks.lock();
        let id = tasks.next;
        tasks.next = tasks.next.wrapping_add(1);
        let backoff = Backoff::begun(Instant::now());
        tasks.running.insert(id, Task { name: Arc::clone(&name), is_for_object, backoff });
        drop(tasks);
        Entry { supervisor: self.clone(), name, id }
    }

    /// Runs a task once. `None` if it panicked, after the pause that this costs.
    async fn once<T>(
        &self,
        entry: &Entry,
        object: Option<&(dyn fmt::Display + Sync)>,
        task: impl Future<Output = T>,
    ) -> Option<T> {
        #[cfg(feature = "faults")]
        let task = async {
            tokio::select! {
                biased;
                () = self.shared.faults.strike(&entry.name) => std::future::pending().await,
                ended = task => ended,
            }
        };
        if let Ok(ended) = AssertUnwindSafe(task).catch_unwind().await {
            return Some(ended);
        }
        let pause = entry.panicked(object.map(|object| object as &dyn fmt::Display));
        sleep(pause).await;
        entry.begins();
        None
    }

    #[cfg(feature = "faults")]
    pub(crate) fn faults(&self) -> &crate::faults::Faults {
        &self.shared.faults
    }
}

/// A task that its supervisor knows of, for as long as this lives.
pub struct Entry {
    supervisor: Supervisor,
    name: Arc<str>,
    id: u64,
}

impl Entry {
    /// The task panicked: counts and logs that. Returns how long to wait before it begins again.
    pub fn panicked(&self, object: Option<&dyn fmt::Display>) -> Duration {
        self.supervisor.panicked(&self.name, object);
        self.with(|backoff| backoff.panicked(Instant::now())).unwrap_or_default()
    }

    /// The task begins again.
    pub fn begins(&self) {
        self.with(|backoff| backoff.begins(Instant::now()));
    }

    fn with<T>(&self, change: impl FnOnce(&mut Backoff) -> T) -> Option<T> {
        let mut tasks = self.supervisor.shared.tasks.lock();
        tasks.running.get_mut(&self.id).map(|task| change(&mut task.backoff))
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.supervisor.shared.tasks.lock().running.remove(&self.id);
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry").field("name", &self.name).finish_non_exhaustive()
    }
}

impl fmt::Debug for Supervisor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Supervisor").field("tasks", &self.tasks()).field("failing", &self.failing()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    /// A task that counts how often it begins, and never ends.
    fn spawn(supervisor: &Supervisor, name: &'static str) -> Arc<AtomicU32> {
        let (supervisor, begun) = (supervisor.clone(), Arc::new(AtomicU32::new(0)));
        let count = Arc::clone(&begun);
        tokio::spawn(async move {
            let task = || {
                count.fetch_add(1, Ordering::Relaxed);
                std::future::pending::<()>()
            };
            supervisor.run(name, task).await;
        });
        begun
    }

    async fn after(seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }

    fn names(names: &BTreeSet<Arc<str>>) -> Vec<&str> {
        names.iter().map(|name| &**name).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_panics_begins_again_and_others_do_not() {
        let mut registry = Registry::default();
        let supervisor = Supervisor::register(&mut registry);
        let (one, other) = (spawn(&supervisor, "one"), spawn(&supervisor, "other"));
        after(1).await;
        supervisor.inject("one");
        after(1).await;
        assert_eq!((one.load(Ordering::Relaxed), other.load(Ordering::Relaxed)), (2, 1));
        assert_eq!((supervisor.panics("one"), supervisor.panics("other")), (1, 0));
        assert_eq!(names(&supervisor.tasks()), ["one", "other"]);
        assert_eq!(names(&supervisor.failing()), [""; 0], "once is an accident");
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        assert!(text.contains(r#"watchkeeper_task_panics_total{task="one"} 1"#), "{text}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_does_not_recover_is_named_until_it_does() {
        let supervisor = Supervisor::default();
        let begun = spawn(&supervisor, "one");
        after(1).await;
        supervisor.break_down("one");
        after(60).await;
        assert_eq!(names(&supervisor.failing()), ["one"]);
        assert_eq!(begun.load(Ordering::Relaxed), 1, "it panics before it does anything");
        supervisor.mend("one");
        after(29).await;
        assert_eq!(begun.load(Ordering::Relaxed), 2);
        after(12).await;
        assert_eq!(names(&supervisor.failing()), [""; 0]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_with_state_goes_on_where_it_was() {
        let supervisor = Supervisor::default();
        let left = vec![1, 2, 3];
        let seen = supervisor.run_with("t", (left, Vec::new()), |(left, seen)| {
            Box::pin(async move {
                while let Some(number) = left.pop() {
                    seen.push(number);
                    assert_ne!(number, 2, "poison");
                }
                seen.clone()
            })
        });
        assert_eq!(seen.await, [3, 2, 1]);
        assert_eq!(supervisor.panics("t"), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn one_object_costs_one_object() {
        let supervisor = Supervisor::default();
        supervisor.poison("b");
        let done: Vec<_> =
            ["a", "b", "c"].iter().filter_map(|key| supervisor.caught("t", key, || *key)).collect();
        assert_eq!(done, ["a", "c"]);
        assert_eq!(supervisor.caught_async("t", &"b", async { 1 }).await, None);
        assert_eq!(supervisor.caught_async("t", &"c", async { 1 }).await, Some(1));
        assert_eq!(supervisor.panics("t"), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn work_on_one_object_is_done_again_and_does_not_make_anybody_unready() {
        let supervisor = Supervisor::default();
        let mut tries = 0;
        let work = || {
            tries += 1;
            assert!(tries > 9, "poison");
            assert_eq!(names(&supervisor.failing()), [""; 0]);
            std::future::ready(tries)
        };
        assert_eq!(supervisor.run_for("emptying", "namespace", work).await, 10);
        assert_eq!(supervisor.panics("emptying"), 9);
        assert!(supervisor.tasks().is_empty());
    }
}
