//! Room for large documents, and who has it.
//!
//! Room is for computing. Who waits for somebody else (a webhook, another server, the storage) gives it to others meanwhile: what
//! such documents take is counted as *parked*, and is bounded where a document comes in. So nobody ever waits for room that is not
//! given back before long, however slow a webhook is, and also if it is the webhook who asks for room.

use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use futures_util::task::AtomicWaker;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use watchkeeper_schema::MAX_TREE;

/// A semaphore counts in these, in bytes.
const UNIT: usize = 1 << 10;

/// How much may be parked at a time, in bytes, when another document comes in.
pub(super) const MAX_PARKED: usize = 4 * MAX_TREE;

/// How much of that may be of one user.
pub(super) const MAX_PARKED_OF_USER: usize = 2 * MAX_TREE;

/// How long work with a large document may wait for something before its room goes to others.
const IDLE_TIMEOUT: Duration = Duration::from_millis(50);

/// The memory that trees of large documents take at a time while they are worked on.
pub(super) struct Room {
    all: Arc<Semaphore>,
    /// What one user may have of it, by user: half, or one document.
    shares: Mutex<HashMap<String, Weak<Share>>>,
    parked: AtomicUsize,
}

/// What one user has of a room.
struct Share {
    worked_on: Arc<Semaphore>,
    parked: AtomicUsize,
}

/// No room is left for another document, since too many of them wait for others.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// Room for a large document, until this is dropped.
pub(crate) struct Claim {
    place: Place,
    _permits: Permits,
}

/// Whose document it is, and how large.
struct Place {
    room: Arc<Room>,
    /// `None` for the server itself, which takes part in no shares.
    share: Option<Arc<Share>>,
    bytes: usize,
}

struct Permits {
    _of_share: Option<OwnedSemaphorePermit>,
    _of_all: Option<OwnedSemaphorePermit>,
}

/// A document that takes memory, and nothing happens to it.
struct Parked(Place);

impl Default for Room {
    fn default() -> Self {
        Self {
            all: Arc::new(Semaphore::new(MAX_TREE / UNIT)),
            shares: Mutex::default(),
            parked: AtomicUsize::new(0),
        }
    }
}

impl Room {
    /// Waits for room for a document that will take this much memory.
    ///
    /// # Errors
    ///
    /// So much is parked, of this user or of all, that the document would have to wait for who knows how long.
    pub(super) async fn claim(self: &Arc<Self>, user: Option<&str>, bytes: usize) -> Result<Claim, Full> {
        let share = user.map(|user| self.share(user));
        let bytes = bytes.min(MAX_TREE);
        let is_over =
            |parked: &AtomicUsize, most: usize| parked.load(Ordering::Relaxed).saturating_add(bytes) > most;
        if share.as_ref().is_some_and(|share| {
            is_over(&share.parked, MAX_PARKED_OF_USER) || is_over(&self.parked, MAX_PARKED)
        }) {
            return Err(Full);
        }
        let place = Place { room: Arc::clone(self), share, bytes };
        Ok(place.claim().await)
    }

    fn share(&self, user: &str) -> Arc<Share> {
        let mut shares = self.shares.lock();
        if let Some(known) = shares.get(user).and_then(Weak::upgrade) {
            return known;
        }
        shares.retain(|_, share| share.strong_count() > 0);
        let worked_on = Arc::new(Semaphore::new(MAX_TREE / UNIT / 2));
        let new = Arc::new(Share { worked_on, parked: AtomicUsize::new(0) });
        shares.insert(user.to_owned(), Arc::downgrade(&new));
        new
    }
}

impl Place {
    /// Waits for room: first for that of the user, so that what waits for it keeps nothing from others.
    async fn claim(self) -> Claim {
        let units = u32::try_from(self.bytes.div_ceil(UNIT)).unwrap_or(u32::MAX);
        let most = u32::try_from(MAX_TREE / UNIT).unwrap_or(u32::MAX);
        // They are never closed.
        let of_share = match &self.share {
            Some(share) => Arc::clone(&share.worked_on).acquire_many_owned(units.min(most / 2)).await.ok(),
            None => None,
        };
        let of_all = Arc::clone(&self.room.all).acquire_many_owned(units.min(most)).await.ok();
        Claim { place: self, _permits: Permits { _of_share: of_share, _of_all: of_all } }
    }

    fn parked(&self) -> impl Iterator<Item = &AtomicUsize> {
        std::iter::once(&self.room.parked).chain(self.share.as_ref().map(|share| &share.parked))
    }
}

impl Claim {
    /// Gives the room to others.
    fn park(self) -> Parked {
        self.place.parked().for_each(|parked| _ = parked.fetch_add(self.place.bytes, Ordering::Relaxed));
        Parked(self.place)
    }

    /// Does something with the document; `poll` polls it. The room goes to others while it waits for something.
    pub(super) async fn hold<F: Future + ?Sized>(
        self,
        mut work: Pin<&mut F>,
        poll: impl Fn(Pin<&mut F>, &mut Context<'_>) -> Poll<F::Output>,
    ) -> F::Output {
        let alarm = Arc::new(Alarm::default());
        let waker = Waker::from(Arc::clone(&alarm));
        let mut claim = self;
        loop {
            alarm.rings.store(false, Ordering::Relaxed);
            if let Poll::Ready(done) = poll(work.as_mut(), &mut Context::from_waker(&waker)) {
                return done;
            }
            if tokio::time::timeout(IDLE_TIMEOUT, alarm.rung()).await.is_err() {
                let parked = claim.park();
                alarm.rung().await;
                claim = parked.again().await;
            }
        }
    }
}

impl Parked {
    /// Waits for room once more.
    async fn again(self) -> Claim {
        let place = &self.0;
        let again = Place { room: Arc::clone(&place.room), share: place.share.clone(), bytes: place.bytes };
        again.claim().await
    }
}

impl Drop for Parked {
    fn drop(&mut self) {
        self.0.parked().for_each(|parked| _ = parked.fetch_sub(self.0.bytes, Ordering::Relaxed));
    }
}

/// Tells that what was waited for has come.
#[derive(Default)]
struct Alarm {
    rings: AtomicBool,
    waker: AtomicWaker,
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.rings.store(true, Ordering::Release);
        self.waker.wake();
    }
}

impl Alarm {
    /// Waits until the alarm has rung. Others always have a turn before: work that has used up its turn rings at once.
    async fn rung(&self) {
        let mut had_turn = false;
        poll_fn(|cx| {
            self.waker.register(cx.waker());
            match (self.rings.load(Ordering::Acquire), std::mem::replace(&mut had_turn, true)) {
                (true, true) => Poll::Ready(()),
                (true, false) => {
                    cx.waker().wake_by_ref();
                    Poll::Pending
                }
                (false, _) => Poll::Pending,
            }
        })
        .await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use tokio::sync::oneshot;

    const MINUTE: Duration = Duration::from_secs(60);

    /// A document of somebody that waits until it is told to go on.
    fn waits(
        room: &Arc<Room>,
        user: &'static str,
        bytes: usize,
    ) -> (oneshot::Sender<()>, tokio::task::JoinHandle<bool>) {
        let (go, told) = oneshot::channel();
        let room = Arc::clone(room);
        let work = async move {
            let Ok(claim) = room.claim(Some(user), bytes).await else { return false };
            claim.hold(pin!(told), |work, cx| work.poll(cx)).await.is_ok()
        };
        (go, tokio::spawn(work))
    }

    async fn parked(room: &Room, bytes: usize) {
        while room.parked.load(Ordering::Relaxed) != bytes {
            tokio::time::sleep(IDLE_TIMEOUT).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_for_somebody_else_keeps_no_room_from_others() {
        let room = Arc::new(Room::default());
        let (go, slow) = waits(&room, "slow", MAX_TREE);
        parked(&room, MAX_TREE).await;
        let other = tokio::time::timeout(MINUTE, room.claim(Some("other"), MAX_TREE)).await.expect("in time");
        assert!(other.is_ok());
        // There is room for one of them only, so the first one goes on when the other is done.
        go.send(()).unwrap();
        let mut slow = slow;
        assert!(tokio::time::timeout(MINUTE, &mut slow).await.is_err(), "both at a time");
        drop(other);
        assert!(slow.await.unwrap());
        parked(&room, 0).await;
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_parked_is_bounded_by_user_and_in_all() {
        let room = Arc::new(Room::default());
        let mut held = Vec::new();
        for (number, user) in ["a", "a", "b", "b"].into_iter().enumerate() {
            held.push(waits(&room, user, MAX_TREE));
            parked(&room, (number + 1) * MAX_TREE).await;
            let is_full = room.claim(Some("a"), 1).await.is_err();
            assert_eq!(is_full, number >= 1, "{number}");
        }
        assert!(room.claim(Some("c"), 1).await.is_err());
        assert!(room.claim(None, 1).await.is_ok(), "the server itself goes on");
        held.into_iter().for_each(|(_, task)| task.abort());
        parked(&room, 0).await;
        assert!(room.claim(Some("a"), MAX_TREE).await.is_ok());
        assert!(room.shares.lock().len() <= 3);
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_computes_with_more_than_half_of_the_room_in_many_documents() {
        let room = Arc::new(Room::default());
        let first = room.claim(Some("greedy"), MAX_TREE / 2).await;
        let more = tokio::time::timeout(MINUTE, room.claim(Some("greedy"), UNIT)).await;
        assert!(more.is_err());
        assert!(tokio::time::timeout(MINUTE, room.claim(Some("modest"), MAX_TREE / 2)).await.is_ok());
        drop(first);
    }

    #[tokio::test]
    async fn work_that_wakes_itself_lets_others_have_a_turn() {
        let room = Arc::new(Room::default());
        let others = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&others);
        let other = tokio::spawn(async move {
            loop {
                counted.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
            }
        });
        let mut turns = 0;
        let work = pin!(poll_fn(move |cx| {
            turns += 1;
            cx.waker().wake_by_ref();
            if turns > 100 { Poll::Ready(()) } else { Poll::Pending }
        }));
        room.claim(None, UNIT).await.unwrap().hold(work, |work, cx| work.poll(cx)).await;
        other.abort();
        assert!(others.load(Ordering::Relaxed) >= 50);
    }
}
