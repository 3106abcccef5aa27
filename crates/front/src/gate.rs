use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::yield_now;

use crate::account::{Account, nanoseconds};

/// How long heavy work is polled at once, after the runtime has looked at its sockets and before it does so again. A light client
/// waits for so much of it; and a step of most requests takes a tenth of it, so that few of them pay for that look.
const SLICE: Duration = Duration::from_micros(300);
/// After so long without heavy work, the runtime has had time to look at its sockets by itself.
const PAUSE: Duration = Duration::from_micros(20);

/// Lets the work of clients that use much processor time take turns, so that others do not wait for all of it.
///
/// The runtime polls tasks in the order in which they became ready. A client that sends a thousand requests at once would so
/// have everybody else wait for a thousand polls. Work is therefore polled by way of a [`Payer`], which charges the time to an
/// [`Account`]:
///
/// - Work of a light account is polled at once.
/// - Work of heavy accounts is polled at once for a slice of time. What is left waits in line before it is polled, outside the
///   queues of the runtime, until it has one of as many slots as the runtime has threads. The first in line lets the runtime look at
///   its sockets and at other tasks once; with that, another slice begins.
/// - In line, accounts take turns; the work of one account is polled in the order in which it came. Who has more work, or more
///   connections, gets no more turns.
/// - Nothing is held back: while there is heavy work and nothing else to do, all threads do it. Who is heavy and alone, and waits for each answer
///   before it asks for the next, waits for no turns.
///
/// The length of one poll is not limited here; [`FairSocket`](crate::fair_socket::FairSocket) does that.
#[derive(Debug)]
pub(crate) struct Gate {
    slots: usize,
    /// The common line, which is served in the order of arrival.
    turns: Semaphore,
    /// How much work is in line.
    waiting: AtomicUsize,
    slice: Duration,
    epoch: Instant,
    /// When the slice ends, in nanoseconds since `epoch`.
    slice_end: AtomicU64,
    /// When a step of heavy work ended last.
    last: AtomicU64,
}

/// A place in line; given up when it is dropped.
struct Place<'a>(&'a AtomicUsize);

/// A turn to be polled; the next in line has its turn when this is dropped.
struct Turn<'a> {
    _slot: SemaphorePermit<'a>,
    _line: SemaphorePermit<'a>,
}

/// The account that the work of a connection is charged to: that of its address until its user is known, then the user's.
#[derive(Debug)]
pub(crate) struct Payer {
    gate: Arc<Gate>,
    address: Arc<Account>,
    user: OnceLock<Arc<Account>>,
}

impl Gate {
    /// A gate with a slot for each thread of the current runtime.
    pub(crate) fn of_runtime() -> Arc<Self> {
        Self::new(Handle::try_current().map_or(1, |runtime| runtime.metrics().num_workers()), SLICE)
    }

    fn new(slots: usize, slice: Duration) -> Arc<Self> {
        Arc::new(Self {
            slots,
            turns: Semaphore::new(slots),
            waiting: AtomicUsize::new(0),
            slice,
            epoch: Instant::now(),
            slice_end: AtomicU64::new(0),
            last: AtomicU64::new(0),
        })
    }

    /// A new account, which is light.
    pub(crate) fn account(&self) -> Arc<Account> {
        Arc::new(Account::new(self.slots))
    }

    /// Waits for a turn if the account is heavy.
    async fn turn<'a>(&'a self, account: &'a Account, now: Instant) -> Option<Turn<'a>> {
        if !account.is_heavy() || (self.waiting.load(Ordering::Relaxed) == 0 && self.is_in_slice(now)) {
            return None;
        }
        if self.waiting.load(Ordering::Relaxed) == 0 && self.paused(now) {
            self.begin_slice(now);
            return None;
        }
        let _place = Place::in_line(&self.waiting);
        // The semaphores are never closed.
        let line = account.line.acquire().await.ok()?;
        let turn = Turn { _slot: self.turns.acquire().await.ok()?, _line: line };
        if !self.is_in_slice(Instant::now()) {
            // The runtime goes on with this after it has looked at its sockets.
            yield_now().await;
            self.begin_slice(Instant::now());
        }
        Some(turn)
    }

    fn begin_slice(&self, now: Instant) {
        self.slice_end.store(self.since_epoch(now + self.slice), Ordering::Relaxed);
    }

    /// Whether nothing heavy was done for a while.
    fn paused(&self, now: Instant) -> bool {
        let since = self.last.load(Ordering::Relaxed).saturating_add(nanoseconds(PAUSE));
        since < self.since_epoch(now)
    }

    /// Some work was done until now.
    fn worked(&self, account: &Account, now: Instant) {
        if account.is_heavy() {
            self.last.store(self.since_epoch(now), Ordering::Relaxed);
        }
    }

    fn since_epoch(&self, now: Instant) -> u64 {
        nanoseconds(now.duration_since(self.epoch))
    }

    fn is_in_slice(&self, now: Instant) -> bool {
        self.since_epoch(now) < self.slice_end.load(Ordering::Relaxed)
    }
}

impl<'a> Place<'a> {
    fn in_line(waiting: &'a AtomicUsize) -> Self {
        waiting.fetch_add(1, Ordering::Relaxed);
        Self(waiting)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Payer {
    pub(crate) fn new(gate: Arc<Gate>, address: Arc<Account>) -> Arc<Self> {
        Arc::new(Self { gate, address, user: OnceLock::new() })
    }

    /// Has the account of a user pay from now on. Only the first one that is named does.
    pub(crate) fn is_user(&self, account: &Arc<Account>) {
        self.user.get_or_init(|| Arc::clone(account));
    }

    /// Who pays now.
    pub(crate) fn account(&self) -> &Account {
        self.user.get().unwrap_or(&self.address)
    }

    /// Does some work, each step of which is charged, and waits for its turn if the account is heavy.
    ///
    /// It has to be all that a task does: a turn that was given to it is lost to others until it is polled again.
    pub(crate) async fn run<W: Future>(&self, work: W) -> W::Output {
        let mut work = pin!(work);
        loop {
            let account = self.account();
            let mut begin = Instant::now();
            let turn = self.gate.turn(account, begin).await;
            if turn.is_some() {
                begin = Instant::now();
            }
            let (step, end) =
                poll_fn(|cx| Poll::Ready(account.charged(begin, || work.as_mut().poll(cx)))).await;
            self.gate.worked(account, end);
            drop(turn);
            match step {
                Poll::Ready(done) => return done,
                Poll::Pending => woken().await,
            }
        }
    }
}

/// Waits until the task is polled again.
async fn woken() {
    let mut polled = false;
    poll_fn(|_| match std::mem::replace(&mut polled, true) {
        true => Poll::Ready(()),
        false => Poll::Pending,
    })
    .await;
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;
    use tokio::sync::{Notify, mpsc};
    use tokio::task::JoinSet;
    use tokio::time::timeout;

    use super::*;

    fn heavy(gate: &Arc<Gate>) -> Arc<Payer> {
        let account = gate.account();
        account.overdraw();
        Payer::new(Arc::clone(gate), account)
    }

    fn light(gate: &Arc<Gate>) -> Arc<Payer> {
        Payer::new(Arc::clone(gate), gate.account())
    }

    #[test]
    fn a_slice_begins_by_itself_after_a_pause_and_only_then() {
        let gate = Gate::new(1, SLICE);
        let account = gate.account();
        account.overdraw();
        let now = Instant::now();
        gate.worked(&account, now);
        assert!(!gate.paused(now + PAUSE));
        assert!(gate.paused(now + PAUSE + Duration::from_nanos(1)));
        // What light accounts do is no heavy work.
        gate.worked(&gate.account(), now + 2 * PAUSE);
        assert!(gate.paused(now + 2 * PAUSE));
        gate.begin_slice(now);
        assert!(gate.is_in_slice(now + SLICE - Duration::from_nanos(1)) && !gate.is_in_slice(now + SLICE));
    }

    /// The order in which work was done.
    #[derive(Clone, Default)]
    struct Done(Arc<Mutex<Vec<&'static str>>>);

    impl Done {
        /// Has so many tasks each do a step of work.
        fn begin(&self, tasks: &mut JoinSet<()>, count: usize, payer: &Arc<Payer>, name: &'static str) {
            for _ in 0..count {
                let (done, payer) = (self.clone(), Arc::clone(payer));
                tasks.spawn(async move { payer.run(async { done.0.lock().push(name) }).await });
            }
        }

        /// How much was done before the first work of this name.
        fn before(&self, name: &str) -> usize {
            self.0.lock().iter().position(|other| *other == name).unwrap()
        }
    }

    #[tokio::test]
    async fn light_work_does_not_wait_for_heavy_work_that_came_before() {
        let (gate, done, mut tasks) = (Gate::new(2, Duration::ZERO), Done::default(), JoinSet::new());
        done.begin(&mut tasks, 100, &heavy(&gate), "heavy");
        done.begin(&mut tasks, 1, &light(&gate), "light");
        tasks.join_all().await;
        assert!(done.before("light") <= gate.slots, "{}", done.before("light"));
        assert_eq!(done.0.lock().len(), 101);
    }

    #[tokio::test]
    async fn accounts_take_turns_however_much_work_they_have() {
        let (gate, done, mut tasks) = (Gate::new(2, Duration::ZERO), Done::default(), JoinSet::new());
        done.begin(&mut tasks, 100, &heavy(&gate), "much");
        done.begin(&mut tasks, 1, &heavy(&gate), "little");
        tasks.join_all().await;
        assert!(done.before("little") <= 2 * gate.slots, "{}", done.before("little"));
    }

    #[tokio::test]
    async fn connections_of_a_user_share_an_account_once_the_user_is_known() {
        let (gate, done, mut tasks) = (Gate::new(2, Duration::ZERO), Done::default(), JoinSet::new());
        let user = gate.account();
        user.overdraw();
        for _ in 0..100 {
            let payer = light(&gate);
            payer.is_user(&user);
            payer.is_user(&gate.account());
            done.begin(&mut tasks, 1, &payer, "much");
        }
        done.begin(&mut tasks, 1, &heavy(&gate), "little");
        tasks.join_all().await;
        assert!(done.before("little") <= 2 * gate.slots, "{}", done.before("little"));
    }

    #[tokio::test]
    async fn work_that_is_dropped_or_panics_gives_its_turn_to_the_next() {
        let (gate, done) = (Gate::new(1, Duration::ZERO), Done::default());
        let payer = heavy(&gate);
        // Dropped in each state: before it is in line, first in line, with a turn, further behind.
        for polls in 0..4 {
            let mut tasks = JoinSet::new();
            done.begin(&mut tasks, 4, &payer, "dropped");
            for _ in 0..polls {
                yield_now().await;
            }
            drop(tasks);
        }
        let panicking = Arc::clone(&payer);
        let panic = tokio::spawn(async move { panicking.run(async { panic!("as it should") }).await });
        assert!(panic.await.unwrap_err().is_panic());
        let mut tasks = JoinSet::new();
        done.begin(&mut tasks, 3, &payer, "done");
        timeout(Duration::from_secs(10), tasks.join_all()).await.unwrap();
        assert_eq!((gate.turns.available_permits(), payer.account().line.available_permits()), (1, 1));
    }

    #[tokio::test]
    async fn work_that_waits_for_something_keeps_no_turn() {
        let gate = Gate::new(1, Duration::ZERO);
        let (first, second) = (heavy(&gate), heavy(&gate));
        let told = Arc::new(Notify::new());
        let waiting = tokio::spawn({
            let told = Arc::clone(&told);
            async move { first.run(told.notified()).await }
        });
        for _ in 0..10 {
            yield_now().await;
        }
        second.run(async { told.notify_one() }).await;
        timeout(Duration::from_secs(10), waiting).await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn heavy_work_is_done_at_once_for_a_slice_and_waits_in_line_after_it() {
        let (gate, done, mut tasks) =
            (Gate::new(1, Duration::from_millis(20)), Done::default(), JoinSet::new());
        let payer = heavy(&gate);
        // The first one begins the slice.
        payer.run(async {}).await;
        let busy = |time: Duration| {
            let begin = Instant::now();
            while begin.elapsed() < time {}
        };
        for _ in 0..40 {
            let (payer, done) = (Arc::clone(&payer), done.clone());
            tasks.spawn(async move {
                let work = async {
                    busy(Duration::from_millis(2));
                    done.0.lock().push("heavy");
                };
                payer.run(work).await;
            });
        }
        // Whoever comes behind all of it waits for what is done in a slice.
        done.begin(&mut tasks, 1, &light(&gate), "light");
        tasks.join_all().await;
        let before = done.before("light");
        assert!((1..=11).contains(&before), "{before} of 40 in a slice of 10");
        assert_eq!((done.0.lock().len(), gate.waiting.load(Ordering::Relaxed)), (41, 0));
    }

    /// Messages go around rings of tasks, so that each wake-up that were lost would end a ring.
    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn no_wake_up_is_lost_between_threads() {
        const ROUNDS: usize = 500;
        let (gate, mut tasks) = (Gate::of_runtime(), JoinSet::new());
        assert_eq!(gate.slots, 4);
        for _ in 0..8 {
            let payer = heavy(&gate);
            let (first, mut inbox) = mpsc::channel(1);
            for _ in 0..8 {
                let (sender, next) = mpsc::channel(1);
                let (payer, mut own) = (Arc::clone(&payer), std::mem::replace(&mut inbox, next));
                tasks.spawn(async move {
                    let pass = async {
                        while let Some(round) = own.recv().await {
                            if sender.send(round).await.is_err() {
                                break;
                            }
                        }
                    };
                    payer.run(pass).await;
                });
            }
            tasks.spawn(async move {
                for round in 0..ROUNDS {
                    payer.account().overdraw();
                    first.send(round).await.unwrap();
                    assert_eq!(payer.run(inbox.recv()).await, Some(round));
                }
            });
        }
        timeout(Duration::from_secs(60), tasks.join_all()).await.unwrap();
        assert_eq!(gate.turns.available_permits(), 4);
    }
}
