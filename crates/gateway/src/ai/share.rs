//! Budgets that replicas share: who leases slices of them.
//!
//! One task leases, for all calls that wait at once, so that many calls are one write. A call whose slice suffices does not wait for anybody.
//! See [`watchkeeper_ai::lease`] for what is promised.

use std::collections::{BTreeMap, HashMap};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};
use watchkeeper_ai::budget::Part;
use watchkeeper_ai::lease::Leases;
use watchkeeper_ai::{Amounts, Ledger, Limit, Reservation, Shortage};
use watchkeeper_core::Key;
use watchkeeper_supervision::Supervisor;

use super::clock::now;

/// The name of the task that leases.
const TASK: &str = "budgets";
/// How many calls may wait for a lease.
const WAITING: usize = 4_096;
/// How long a call waits for a lease, in all.
const LEASE_TIMEOUT: Duration = Duration::from_secs(5);
/// How often a write is tried again that others were quicker than.
const ATTEMPTS: u32 = 20;
/// How long to wait before that, on average.
const BACKOFF: Duration = Duration::from_millis(5);
/// How often is looked for slices that nobody needs, and how long they are kept.
const IDLE: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(30));

/// A future of a [`LeaseStore`].
pub(crate) type Stored<'a, T> = Pin<Box<dyn Future<Output = Result<T, String>> + Send + 'a>>;

/// Where leases are written: objects that are changed only by those who know their last version.
pub(crate) trait LeaseStore: Send + Sync + 'static {
    /// The leases of an object, and its version; none if it is not there.
    fn read<'a>(&'a self, object: &'a Key) -> Stored<'a, (Option<String>, Leases)>;

    /// Writes leases, if the object still has this version. The new version; `None` if somebody else was quicker.
    fn write<'a>(
        &'a self,
        object: &'a Key,
        version: Option<&'a str>,
        leases: &'a Leases,
    ) -> Stored<'a, Option<String>>;
}

/// Whose budget: that of a policy or a tenant, and of a key; empty for all keys.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Owner {
    pub(super) object: Key,
    pub(super) key: Arc<str>,
}

/// A budget of a call.
pub(super) struct Budget<'a> {
    pub(super) owner: Owner,
    pub(super) ledger: &'a Arc<Mutex<Ledger>>,
    pub(super) limits: &'a [Limit],
}

struct Want {
    owner: Owner,
    ledger: Arc<Mutex<Ledger>>,
    limits: Vec<Limit>,
    wanted: Amounts,
    done: oneshot::Sender<bool>,
}

enum Message {
    Want(Want),
    /// Everything is given back.
    Close(oneshot::Sender<()>),
}

/// What calls lease from.
pub(crate) struct Share {
    queue: mpsc::Sender<Message>,
    counted: Arc<Counted>,
}

/// What is counted of leases.
#[derive(Default)]
pub(super) struct Counted {
    pub(super) leases: AtomicU64,
    pub(super) failures: AtomicU64,
}

/// Why a call got nothing of a shared budget.
pub(super) enum Refused {
    Exceeded(watchkeeper_ai::Exceeded),
    /// The leases cannot be read or written, and what was leased is spent.
    Unavailable,
}

impl Share {
    /// Begins to lease, on the current runtime.
    pub(crate) fn start(store: impl LeaseStore, supervisor: &Supervisor) -> Self {
        let (queue, messages) = mpsc::channel(WAITING);
        let counted = Arc::<Counted>::default();
        let leaser = Leaser {
            store: Box::new(store),
            messages,
            counted: Arc::clone(&counted),
            objects: HashMap::new(),
            holders: HashMap::new(),
        };
        let supervisor = supervisor.clone();
        tokio::spawn(async move {
            supervisor.run_with(TASK, leaser, |leaser| Box::pin(leaser.run())).await;
        });
        Self { queue, counted }
    }

    /// Reserves of a budget. Waits for a lease if what is leased does not suffice.
    pub(super) async fn reserve(&self, budget: &Budget<'_>, wanted: Amounts) -> Result<Reservation, Refused> {
        let end = Instant::now() + LEASE_TIMEOUT;
        loop {
            let reserved = budget.ledger.lock().reserve_leased(now(), budget.limits, wanted);
            match reserved {
                Ok(reservation) => return Ok(reservation),
                Err(Shortage::Exceeded(exceeded)) => return Err(Refused::Exceeded(exceeded)),
                Err(Shortage::Unleased) => {}
            }
            let (done, answer) = oneshot::channel();
            let want = Want {
                owner: budget.owner.clone(),
                ledger: Arc::clone(budget.ledger),
                limits: budget.limits.to_vec(),
                wanted,
                done,
            };
            let asked = async {
                let sent = self.queue.send(Message::Want(want)).await;
                sent.is_ok() && answer.await.unwrap_or(false)
            };
            let left = end.saturating_duration_since(Instant::now());
            if !matches!(timeout(left, asked).await, Ok(true)) {
                return Err(Refused::Unavailable);
            }
        }
    }

    /// Gives back what is leased and not spent.
    pub(crate) async fn close(&self) {
        let (done, closed) = oneshot::channel();
        if self.queue.send(Message::Close(done)).await.is_ok() {
            let _ = timeout(LEASE_TIMEOUT, closed).await; // what is not given back is lost, as in a crash
        }
    }

    pub(super) fn counted(&self) -> (u64, u64) {
        (self.counted.leases.load(Relaxed), self.counted.failures.load(Relaxed))
    }
}

struct Leaser {
    store: Box<dyn LeaseStore>,
    messages: mpsc::Receiver<Message>,
    counted: Arc<Counted>,
    /// What was read or written last.
    objects: HashMap<Key, (Option<String>, Leases)>,
    /// Who has leased, and when for the last time.
    holders: HashMap<Owner, (Weak<Mutex<Ledger>>, Instant)>,
}

/// What all calls want that wait for the same budget.
struct Wanted {
    ledger: Arc<Mutex<Ledger>>,
    limits: Vec<Limit>,
    amounts: Amounts,
    waiting: Vec<oneshot::Sender<bool>>,
}

/// What is to be done with the leases of an object.
enum Change<'a> {
    Lease(&'a BTreeMap<Owner, Wanted>),
    GiveBack(&'a [(Owner, Part)]),
}

impl Leaser {
    async fn run(&mut self) {
        let mut ticks = interval(IDLE.0);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                message = self.messages.recv() => match message {
                    Some(message) => self.take(message).await,
                    None => return,
                },
                _ = ticks.tick() => self.give_back(IDLE.1).await,
            }
        }
    }

    /// Serves a message, and those that wait behind it.
    async fn take(&mut self, first: Message) {
        let (mut objects, mut closed) = (BTreeMap::<Key, BTreeMap<Owner, Wanted>>::new(), None);
        let mut next = Some(first);
        while let Some(message) = next {
            match message {
                Message::Close(done) => closed = Some(done),
                Message::Want(Want { owner, ledger, limits, wanted, done }) => {
                    let object = objects.entry(object(&owner)).or_default();
                    let all = object.entry(owner).or_insert_with(|| Wanted {
                        ledger,
                        limits: Vec::new(),
                        amounts: Amounts::default(),
                        waiting: Vec::new(),
                    });
                    all.limits = limits;
                    all.amounts = all.amounts.plus(wanted);
                    all.waiting.push(done);
                }
            }
            next = self.messages.try_recv().ok();
        }
        for (object, wanted) in objects {
            let changed = self.change(&object, &Change::Lease(&wanted)).await;
            if let Err(reason) = &changed {
                self.counted.failures.fetch_add(1, Relaxed);
                tracing::error!("LLMBudget {object}: nothing is leased: {reason}");
            }
            for (owner, wanted) in wanted {
                self.holders.insert(owner, (Arc::downgrade(&wanted.ledger), Instant::now()));
                for done in wanted.waiting {
                    let _ = done.send(changed.is_ok()); // the client may have left
                }
            }
        }
        if let Some(done) = closed {
            self.give_back(Duration::ZERO).await;
            let _ = done.send(()); // nobody waits any more
        }
    }

    /// Changes the leases of an object. If others change it at the same time, it is done again with what they wrote.
    async fn change(&mut self, object: &Key, change: &Change<'_>) -> Result<(), String> {
        for _ in 0..ATTEMPTS {
            let known = match self.objects.remove(object) {
                Some(known) => known,
                None => self.store.read(object).await?,
            };
            let (version, mut leases) = known;
            let before = leases.clone();
            leases.forget(now());
            let granted = match change {
                Change::Lease(wanted) => lease(&mut leases, wanted),
                Change::GiveBack(spare) => {
                    spare.iter().for_each(|(owner, part)| leases.give_back(&owner.key, *part));
                    Vec::new()
                }
            };
            let written = match leases == before {
                true => Some(version),
                false => self.store.write(object, version.as_deref(), &leases).await?.map(Some),
            };
            if let Some(version) = written {
                self.objects.insert(object.clone(), (version, leases));
                self.counted.leases.fetch_add(u64::from(!granted.is_empty()), Relaxed);
                for (ledger, part, amount) in granted {
                    ledger.lock().lease(now(), part, amount);
                }
                return Ok(());
            }
            sleep(BACKOFF.mul_f64(fastrand::f64() * 2.0)).await;
        }
        Err(format!("others were quicker {ATTEMPTS} times"))
    }

    /// Gives back slices that nobody has needed for so long.
    async fn give_back(&mut self, idle: Duration) {
        let mut spare = BTreeMap::<Key, Vec<(Owner, Part)>>::new();
        self.holders.retain(|owner, (ledger, since)| {
            let Some(ledger) = ledger.upgrade() else { return false };
            if since.elapsed() < idle {
                return true;
            }
            let parts = ledger.lock().take_spare(now()).into_iter().map(|part| (owner.clone(), part));
            let parts: Vec<(Owner, Part)> = parts.collect();
            if !parts.is_empty() {
                spare.entry(object(owner)).or_default().extend(parts);
            }
            false
        });
        for (object, spare) in spare {
            // What cannot be given back is lost until its period ends: nobody spends more than there is.
            if let Err(reason) = self.change(&object, &Change::GiveBack(&spare)).await {
                tracing::warn!("LLMBudget {object}: slices that nobody needs are not given back: {reason}");
            }
        }
    }
}

/// Leases what calls want. Says what each ledger gets.
fn lease(leases: &mut Leases, wanted: &BTreeMap<Owner, Wanted>) -> Vec<(Arc<Mutex<Ledger>>, Part, u64)> {
    let mut granted = Vec::new();
    for (owner, wanted) in wanted {
        let lacking = wanted.ledger.lock().lacks(now(), &wanted.limits, wanted.amounts);
        for (part, most) in lacking {
            let amount = leases.lease(&owner.key, part, most);
            granted.push((Arc::clone(&wanted.ledger), part, amount));
        }
    }
    granted
}

/// The object that has the leases of a budget. Keys of a policy are spread over sixteen, so that none of them gets too large.
fn object(owner: &Owner) -> Key {
    let shard =
        owner.key.bytes().fold(7_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into())) % 16;
    let (namespace, name) = (owner.object.namespace(), owner.object.name());
    match owner.key.is_empty() {
        true => Key::new(namespace, name),
        false => Key::new(namespace, &format!("{name}-{shard:x}")),
    }
}
