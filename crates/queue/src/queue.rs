use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

use hashbrown::DefaultHashBuilder;
use slab::Slab;

use crate::builder::QueueBuilder;
use crate::clock::Clock;
use crate::counts::QueueCounts;
use crate::drain::Drain;
use crate::get::Get;
use crate::job::Job;
use crate::outcome::JobOutcome;
use crate::priority::{Add, Priority};
use crate::state::{Hashed, State};
use crate::sync::{Mutex, MutexGuard};
use crate::timers::Nanos;
use crate::waiters::Waiters;

/// A queue of keys that need work.
///
/// A handle: clones are the same queue. Producers [`add`](Queue::add) keys; workers [`get`](Queue::get) a [`Job`], do
/// what is to be done for its key, and [`finish`](Job::finish) it with a [`JobOutcome`].
///
/// ```
/// # use watchkeeper_queue::{JobOutcome, Queue};
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let queue = Queue::new();
/// queue.add("default/web");
/// queue.add("default/web");
///
/// let worker = queue.clone();
/// let worker = tokio::spawn(async move {
///     let mut runs = 0;
///     while let Some(job) = worker.get().await {
///         assert_eq!(*job.key(), "default/web");
///         runs += 1;
///         job.finish(JobOutcome::Done);
///     }
///     runs
/// });
/// # while !queue.is_empty() { tokio::task::yield_now().await }
/// let left = queue.drain().await;
/// assert!(left.is_empty());
/// assert_eq!(worker.await.unwrap(), 1);
/// # }
/// ```
///
/// # What is promised
///
/// - **One run a key at a time.** However many workers there are, a key is with at most one of them.
/// - **No add is lost.** After an add returns, a run of that key will start, with the exceptions below. Adds of a key
///   that is queued already are one; an add while the key runs leads to exactly one more run after that one.
/// - **A key cannot get stuck.** A [`Job`] that is dropped without being finished (its worker panicked or was
///   cancelled) counts as [`JobOutcome::Retry`].
/// - **Nothing is kept** about a key that is not queued, running or delayed. Memory follows the number of live keys, down
///   as well as up.
///
/// # Order
///
/// Ready items come out by rank, smallest first: the time at which the item became ready, minus its [`Priority`]
/// times the age step ([`QueueBuilder::age_step`], 100 ms). So a higher priority goes first, equal ones are first in first
/// out, and nothing starves: an item of priority -100 is overtaken by normal items for 10 s and no longer. A backlog that
/// is older than that is served by age before newer normal items.
///
/// An add with a higher priority promotes a queued item: it moves behind the items of its new priority, unless its age
/// has already brought it ahead of that place. An add with a lower priority changes nothing. A retry has the
/// priority with which the item ran, unless [`Job::finish_with`] says otherwise.
///
/// With [`QueueBuilder::fair_by`], a priority is still chosen by its oldest item, but within it the tenants take turns, one
/// item each, and each tenant's items are first in first out.
///
/// # The timer rule
///
/// A key has at most one timer, which adds it when it fires.
///
/// - A plain add runs as soon as it can and leaves a pending timer alone.
/// - A second delayed add keeps the earlier time, and the higher priority.
/// - When a run ends, its result replaces the timer that the key had when the run started:
///   [`Done`](JobOutcome::Done) and [`Terminal`](JobOutcome::Terminal) cancel it, the others set their own.
/// - A timer that fires while the key runs is an add like any other: it leads to one more run.
/// - A delayed add made *while the key runs* is not replaced: the run may have read the world before whoever asked
///   did, so its result cannot speak for that request. It is merged with the result's timer, if any, as two
///   delayed adds are.
///
/// # Back-off
///
/// [`JobOutcome::Retry`] sets a timer after the key's [`Backoff`](crate::Backoff), [`JobOutcome::RetryAfter`] after its own time. The attempts are counted per key and
/// forgotten by any other outcome and by [`forget`](Queue::forget). An add does not wait for the back-off of its key:
/// what has changed may be what was wrong.
///
/// # Shutdown
///
/// After [`shutdown`](Queue::shutdown) nothing starts any more, adds are ignored, and `get` gives `None`, whatever is
/// queued. [`drain`](Queue::drain) also waits for what is running, and says what it left.
///
/// # What is not promised
///
/// - No order between keys that run at the same time, and none between adds from different threads.
/// - No exact time: a timer fires when it is due, its item then waits for its turn like any other.
/// - Nothing survives the process.
///
/// # Cancellation and locking
///
/// Dropping the future of `get` or `drain` at any time loses nothing: an item belongs to the queue until the moment
/// `get` returns it, and a wake-up that a dropped future had been given goes to another. One add wakes one worker; of all
/// the waiting workers one holds a timer. There is one lock, held for a few lines and never across an await. The key's
/// `Hash` runs outside it; `Eq` and `Clone` run inside and must not call the queue.
pub struct Queue<K> {
    pub(crate) shared: Arc<Shared<K>>,
}

pub(crate) struct Shared<K> {
    pub(crate) inner: Mutex<Inner<K>>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) epoch: Instant,
    pub(crate) hasher: DefaultHashBuilder,
    pub(crate) tenant: Option<Tenant<K>>,
}

/// A hundred years in nanoseconds: a timer beyond that never fires, and an `Instant` can still be that far off.
const FAR: Nanos = 100 * 365 * 24 * 60 * 60 * 1_000_000_000;

/// Tells a key's tenant, as a hash: two tenants of one hash would share their turns, which does no harm.
pub(crate) type Tenant<K> = Box<dyn Fn(&K) -> u64 + Send + Sync>;

pub(crate) struct Inner<K> {
    pub(crate) state: State<K>,
    pub(crate) waiters: Waiters,
    pub(crate) drains: Slab<Waker>,
}

impl<K> Queue<K>
where
    K: Hash + Eq + Clone + Send + 'static,
{
    /// A queue with default options; [`builder`](Queue::builder) has others.
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// Starts a queue with settings.
    pub fn builder() -> QueueBuilder<K> {
        QueueBuilder::new()
    }

    /// Adds a key at normal priority, to run as soon as possible.
    pub fn add(&self, key: K) {
        self.add_with(key, Add::default());
    }

    /// Adds a key at normal priority, to be ready after `delay`.
    pub fn add_after(&self, key: K, delay: Duration) {
        self.add_with(key, Add { after: delay, ..Add::default() });
    }

    /// Adds a key with a [`Priority`], or with all that [`Add`] has to say.
    pub fn add_with(&self, key: K, add: impl Into<Add>) {
        let hash = self.shared.hasher.hash_one(&key) as u32;
        let tenant = self.shared.tenant.as_ref().map_or(0, |tenant| tenant(&key));
        let add = add.into();
        self.shared.with(|state| state.add(Hashed { key, hash, tenant }, add));
    }

    /// Waits for an item and takes it; `None` once the queue is shut down.
    pub fn get(&self) -> Get<'_, K> {
        Get::new(self)
    }

    /// Takes an item if one is ready.
    pub fn try_get(&self) -> Option<Job<K>> {
        self.shared.with(State::start).map(|started| Job::new(self.clone(), started))
    }

    /// Forgets the attempts and the timer of a key. For a key whose object is gone.
    ///
    /// A queued or running key stays so, since someone asked for that run.
    pub fn forget(&self, key: &K) {
        let hash = self.shared.hasher.hash_one(key) as u32;
        self.shared.with(|state| state.forget(hash, key));
    }

    /// Shuts the queue down and waits until nothing runs any more.
    ///
    /// The shutdown happens at once, whether or not the future is awaited.
    pub fn drain(&self) -> Drain<'_, K> {
        Drain::new(self, None)
    }

    /// Like [`drain`](Queue::drain), but waits no longer than `grace`; [`Left::running`](crate::Left::running) says what
    /// was still running then.
    pub fn drain_within(&self, grace: Duration) -> Drain<'_, K> {
        Drain::new(self, Some(grace))
    }
}

impl<K> Queue<K> {
    /// From now on nothing starts, adds are ignored, and [`get`](Queue::get) gives `None`.
    ///
    /// Running jobs go on; what their results ask for is kept, for [`drain`](Queue::drain) to report.
    pub fn shutdown(&self) {
        let wakers = {
            let mut inner = self.shared.lock();
            inner.state.shut_down();
            inner.waiters.wake_all()
        };
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Whether the queue has been shut down.
    pub fn is_shut_down(&self) -> bool {
        self.shared.with(|state| state.is_shut_down())
    }

    /// The counts of queued, running and delayed items, all at one moment.
    pub fn counts(&self) -> QueueCounts {
        self.shared.with(|state| state.counts())
    }

    /// The number of items that are ready, waiting for a worker.
    pub fn len(&self) -> usize {
        self.counts().queued
    }

    /// Whether no item is ready.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// For how long the longest of the running items has been running.
    pub fn longest_run(&self) -> Option<Duration> {
        self.shared.with(|state| state.run_times().max()).map(Duration::from_nanos)
    }

    /// The number of ready items by priority, highest first. An item that was promoted but stayed where it was
    /// because of its age still counts there.
    pub fn depths(&self) -> Vec<(Priority, usize)> {
        self.shared.with(|state| state.depths().collect())
    }

    pub(crate) fn finish(&self, run: u32, outcome: JobOutcome, priority: Option<Priority>) {
        let mut inner = self.shared.inner.lock();
        if inner.state.finish_takes_time(run, outcome) {
            inner.state.advance(self.shared.now());
        }
        inner.state.finish(run, outcome, priority);
        let drained = inner.state.is_shut_down() && inner.state.counts().running == 0;
        let drained = drained.then(|| std::mem::take(&mut inner.drains));
        unlock(inner);
        drained.into_iter().flatten().for_each(|(_, waker)| waker.wake());
    }
}

impl<K> Shared<K> {
    pub(crate) fn now(&self) -> Nanos {
        let since = self.clock.now().saturating_duration_since(self.epoch);
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    }

    pub(crate) fn instant(&self, at: Nanos) -> Instant {
        self.epoch + Duration::from_nanos(at.min(FAR))
    }

    /// The state as of now.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner<K>> {
        let now = self.now();
        let mut inner = self.inner.lock();
        inner.state.advance(now);
        inner
    }

    /// Makes a step as of now, then wakes whom it concerns.
    pub(crate) fn with<R>(&self, step: impl FnOnce(&mut State<K>) -> R) -> R {
        self.with_inner(|inner| step(&mut inner.state))
    }

    pub(crate) fn with_inner<R>(&self, step: impl FnOnce(&mut Inner<K>) -> R) -> R {
        let mut inner = self.lock();
        let result = step(&mut inner);
        unlock(inner);
        result
    }
}

/// Ends an operation: releases the lock and then wakes whom it concerns.
pub(crate) fn unlock<K>(mut inner: MutexGuard<'_, Inner<K>>) {
    let Inner { state, waiters, .. } = &mut *inner;
    let waker = waiters.balance(state.ready(), state.next_timer());
    drop(inner);
    if let Some(waker) = waker {
        waker.wake();
    }
}

impl<K> Clone for Queue<K> {
    fn clone(&self) -> Self {
        Queue { shared: Arc::clone(&self.shared) }
    }
}

impl<K> Default for Queue<K>
where
    K: Hash + Eq + Clone + Send + 'static,
{
    fn default() -> Self {
        Self::new()
    }
}

impl<K> fmt::Debug for Queue<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (counts, shut_down) = self.shared.with(|state| (state.counts(), state.is_shut_down()));
        f.debug_struct("Queue")
            .field("counts", &counts)
            .field("shut_down", &shut_down)
            .finish_non_exhaustive()
    }
}
