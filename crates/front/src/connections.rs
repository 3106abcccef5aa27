use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::Hash;
use std::net::{IpAddr, SocketAddr};
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::account::Account;
use crate::connection_state::ConnectionState;
use crate::gate::{Gate, Payer};
use crate::metrics::Dropped;
use crate::{AccessMetrics, Limits};

/// A stranger of whom something was heard this recently is not closed to make room: its handshake and its first request
/// may be on their way. Longer than a round trip to the other side of the world.
const GRACE: Duration = Duration::from_millis(250);

/// The connections of a front, within its [`Limits`].
///
/// - A connection that was authenticated is never closed for the sake of another.
/// - A new connection is let in as long as there are strangers to be closed in its place: at once if one of them has been
///   silent for 250 ms, otherwise as soon as one has been. Strangers that keep connecting so close each other, and
///   cannot keep those out who are authenticated within that time.
/// - From an address with too many strangers of its own, only a stranger of the same address is closed; if none has been
///   silent for long enough, the new connection is refused. Others do not wait for that.
/// - An address that has most of the strangers delays only itself: a connection from anywhere else takes the place of one of
///   them at once, however young. Its own wait, a few at a time; when there are more, one that has not sent anything is refused,
///   or else the one that has waited for longest.
pub(crate) struct Connections {
    limits: Limits,
    /// From when the times of events are counted.
    epoch: Instant,
    open: Mutex<Open>,
    /// Told when there may be room again.
    freed: Notify,
    /// Those who wait to be let in, in the order in which they came: as many as `waiting_places`. Each is an open file, too.
    waiting: Mutex<VecDeque<Arc<Waiter>>>,
    waiting_places: usize,
    gate: Arc<Gate>,
    pub(crate) metrics: AccessMetrics,
}

#[derive(Default)]
struct Open {
    next: u64,
    authenticated: usize,
    /// How many of those each user has.
    users: HashMap<String, Owner>,
    strangers: BTreeMap<u64, Arc<ConnectionState>>,
    /// How many of those each address has; `None` is this machine.
    addresses: HashMap<Option<IpAddr>, Owner>,
}

/// Whose connections are counted and charged together.
struct Owner {
    connections: usize,
    account: Arc<Account>,
}

/// A connection that was accepted and is let in, or waits for that.
pub(crate) enum Entry {
    Admitted(Connection),
    Waiting { address: Option<IpAddr>, waiting: Waiting },
}

/// One of those who wait, until this is dropped.
pub(crate) struct Waiting {
    connections: Arc<Connections>,
    waiter: Arc<Waiter>,
}

struct Waiter {
    /// Told when somebody else is to wait instead.
    displaced: Notify,
    /// Whether something was seen to have been sent.
    spoke: AtomicBool,
    /// Whether something has been sent by now. The socket is asked when it matters: a task that would note it may not have
    /// run since its connection was accepted.
    has_sent: Box<dyn Fn() -> bool + Send + Sync>,
}

impl Waiter {
    fn is_silent(&self) -> bool {
        !self.spoke.load(Ordering::Relaxed) && {
            let spoke = (self.has_sent)();
            self.spoke.store(spoke, Ordering::Relaxed);
            !spoke
        }
    }
}

/// A connection that counts until this is dropped.
pub(crate) struct Connection(Arc<Place>);

/// What a connection has among the others, which may outlive it.
pub(crate) struct Place {
    id: u64,
    state: Arc<ConnectionState>,
    connections: Arc<Connections>,
    /// The user whose connection it is, once that is known.
    user: Mutex<Option<String>>,
    payer: Arc<Payer>,
}

/// Why a connection is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Full {
    /// There is no room for it.
    For(Dropped),
    /// There may be room then, or when a connection ends.
    Until(Instant),
}

impl Connections {
    pub(crate) fn new(limits: Limits, metrics: AccessMetrics) -> Arc<Self> {
        Arc::new(Self {
            limits,
            epoch: Instant::now(),
            open: Mutex::default(),
            freed: Notify::new(),
            waiting: Mutex::default(),
            waiting_places: (limits.connections / 8).max(1),
            gate: Gate::of_runtime(),
            metrics,
        })
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Takes a connection from `peer` to the address `local` of ours; `None` if there is no room for it. Waits while all
    /// strangers are too young to be closed and enough others wait already, unless an address is to blame for that.
    /// `has_sent` tells whether its client has sent something by now; once the connection is admitted, it is not asked again.
    pub(crate) async fn enter(
        self: &Arc<Self>,
        peer: SocketAddr,
        local: Option<IpAddr>,
        has_sent: impl Fn() -> bool + Clone + Send + Sync + 'static,
    ) -> Option<Entry> {
        // Who comes from the address it goes to is on this machine.
        let address =
            Some(peer.ip().to_canonical()).filter(|ip| Some(*ip) != local.map(|ip| ip.to_canonical()));
        loop {
            let moment = match self.try_admit(address) {
                Ok(connection) => return Some(Entry::Admitted(connection)),
                Err(Full::For(reason)) => {
                    self.metrics.dropped(reason);
                    return None;
                }
                Err(Full::Until(moment)) => moment,
            };
            let to_blame = self.open.lock().has_most(address);
            if let Some(waiting) = self.wait(to_blame, &has_sent) {
                return Some(Entry::Waiting { address, waiting });
            }
            self.room_at(moment).await;
        }
    }

    /// Joins those who wait; if there are enough, and `displacing`, instead of one of them.
    fn wait(
        self: &Arc<Self>,
        displacing: bool,
        has_sent: &(impl Fn() -> bool + Clone + Send + Sync + 'static),
    ) -> Option<Waiting> {
        let mut waiting = self.waiting.lock();
        if waiting.len() >= self.waiting_places {
            if !displacing {
                return None;
            }
            let silent = waiting.iter().position(|other| other.is_silent());
            waiting.remove(silent.unwrap_or_default())?.displaced.notify_one();
        }
        let (displaced, spoke) = (Notify::new(), AtomicBool::new(false));
        let waiter = Arc::new(Waiter { displaced, spoke, has_sent: Box::new(has_sent.clone()) });
        waiting.push_back(Arc::clone(&waiter));
        Some(Waiting { connections: Arc::clone(self), waiter })
    }

    /// Waits until there may be room: then, or when a connection ends.
    async fn room_at(&self, moment: Instant) {
        tokio::select! {
            () = sleep_until(moment) => {}
            () = self.freed.notified() => {}
        }
    }

    fn try_admit(self: &Arc<Self>, address: Option<IpAddr>) -> Result<Connection, Full> {
        let mut open = self.open.lock();
        let of_address =
            address.and_then(|_| open.addresses.get(&address)).map_or(0, |owner| owner.connections);
        if of_address >= self.limits.strangers_per_address {
            self.evict(&mut open, Some(address), GRACE).map_err(|_| Full::For(Dropped::AddressFull))?;
        }
        let total = open.authenticated + open.strangers.len();
        if total >= self.limits.connections || open.strangers.len() >= self.limits.strangers {
            let most = open.most().filter(|most| *most != address);
            match (self.evict(&mut open, None, GRACE), most) {
                (Err(Full::Until(_)), Some(most)) => self.evict(&mut open, Some(most), Duration::ZERO)?,
                (evicted, _) => evicted?,
            }
        }
        let id = open.next;
        open.next += 1;
        let state = Arc::new(ConnectionState::new(address, self.epoch));
        open.strangers.insert(id, Arc::clone(&state));
        let account = self.one_more(&mut open.addresses, address);
        self.metrics.open(&open.counts());
        let (connections, payer) = (Arc::clone(self), Payer::new(Arc::clone(&self.gate), account));
        Ok(Connection(Arc::new(Place { id, state, connections, user: Mutex::default(), payer })))
    }

    /// Counts a connection of an owner, and gives the account of the owner.
    fn one_more<K: Hash + Eq>(&self, owners: &mut HashMap<K, Owner>, key: K) -> Arc<Account> {
        let new = || Owner { connections: 0, account: self.gate.account() };
        let owner = owners.entry(key).or_insert_with(new);
        owner.connections += 1;
        Arc::clone(&owner.account)
    }

    /// Closes the stranger of whom nothing was heard for longest, if that is more than `grace`; of those from an address,
    /// if one is given.
    fn evict(&self, open: &mut Open, address: Option<Option<IpAddr>>, grace: Duration) -> Result<(), Full> {
        loop {
            let candidates = open
                .strangers
                .iter()
                .filter(|(_, state)| address.is_none_or(|address| state.address == address));
            let Some((id, last)) =
                candidates.map(|(id, state)| (*id, state.last())).min_by_key(|(_, last)| *last)
            else {
                return Err(Full::For(Dropped::Full));
            };
            if last + grace > Instant::now() {
                return Err(Full::Until(last + grace));
            }
            // If it is used at this moment, another one is the oldest.
            if open.strangers.get(&id).is_some_and(|state| state.evict(last)) {
                open.forget(id);
                self.metrics.dropped(Dropped::Evicted);
                self.metrics.open(&open.counts());
                return Ok(());
            }
        }
    }

    /// Closes a stranger, however young, because files have run out. False if there are none.
    pub(crate) fn make_room(&self) -> bool {
        self.evict(&mut self.open.lock(), None, Duration::ZERO).is_ok()
    }
}

impl Open {
    /// Removes a stranger.
    fn forget(&mut self, id: u64) -> bool {
        let Some(state) = self.strangers.remove(&id) else { return false };
        release(&mut self.addresses, &state.address);
        true
    }

    /// Whether more than half of the strangers are from an address.
    fn has_most(&self, address: Option<IpAddr>) -> bool {
        self.addresses.get(&address).is_some_and(|owner| owner.connections * 2 > self.strangers.len())
    }

    /// The address that more than half of the strangers are from.
    fn most(&self) -> Option<Option<IpAddr>> {
        self.addresses.keys().copied().find(|address| self.has_most(*address))
    }

    fn counts(&self) -> [usize; 2] {
        [self.authenticated, self.strangers.len()]
    }
}

fn release<K: Hash + Eq>(owners: &mut HashMap<K, Owner>, key: &K) {
    if let Some(owner) = owners.get_mut(key) {
        owner.connections = owner.connections.saturating_sub(1);
        if owner.connections == 0 {
            owners.remove(key);
        }
    }
}

impl Entry {
    /// The connection, once it is let in; `None` if there is no room for it any more.
    pub(crate) async fn admitted(self) -> Option<Connection> {
        let (address, waiting) = match self {
            Self::Admitted(connection) => return Some(connection),
            Self::Waiting { address, waiting } => (address, waiting),
        };
        let Waiting { connections, waiter } = &waiting;
        loop {
            match connections.try_admit(address) {
                Ok(connection) => return Some(connection),
                Err(Full::For(reason)) => {
                    connections.metrics.dropped(reason);
                    return None;
                }
                Err(Full::Until(moment)) => tokio::select! {
                    () = connections.room_at(moment) => {}
                    () = waiter.displaced.notified() => {
                        connections.metrics.dropped(Dropped::AddressFull);
                        return None;
                    }
                },
            }
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.connections.waiting.lock().retain(|other| !Arc::ptr_eq(other, &self.waiter));
    }
}

impl Place {
    /// Notes whose connection this is. If that is somebody who has not too many connections already, it is not a stranger's
    /// from now on.
    pub(crate) fn authenticated(&self, user: &str) {
        if self.state.is_authenticated() {
            return;
        }
        let connections = &self.connections;
        let mut open = connections.open.lock();
        if let Some(owner) = open.users.get(user)
            && owner.connections >= connections.limits.connections_per_user
        {
            return self.payer.is_user(&owner.account);
        }
        // One that was forgotten has ended, has been evicted, or was authenticated by another of its requests.
        if !open.forget(self.id) {
            return;
        }
        self.state.authenticate();
        open.authenticated += 1;
        self.payer.is_user(&connections.one_more(&mut open.users, user.to_owned()));
        *self.user.lock() = Some(user.to_owned());
        connections.metrics.open(&open.counts());
        drop(open);
        connections.freed.notify_one();
    }

    /// Who pays for the work of this connection.
    pub(crate) fn payer(&self) -> &Arc<Payer> {
        &self.payer
    }

    /// Counts the end of this connection.
    pub(crate) fn dropped(&self, reason: Dropped) {
        self.connections.metrics.dropped(reason);
    }
}

impl Connection {
    pub(crate) fn place(&self) -> &Arc<Place> {
        &self.0
    }
}

impl Deref for Connection {
    type Target = Place;

    fn deref(&self) -> &Place {
        &self.0
    }
}

impl Deref for Place {
    type Target = Arc<ConnectionState>;

    fn deref(&self) -> &Self::Target {
        &self.state
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let Place { id, connections, user, .. } = &*self.0;
        let mut open = connections.open.lock();
        match user.lock().take() {
            Some(user) => {
                open.authenticated = open.authenticated.saturating_sub(1);
                release(&mut open.users, &user);
            }
            None => {
                open.forget(*id);
            }
        }
        connections.metrics.open(&open.counts());
        drop(open);
        connections.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: &str = "192.0.2.1";

    fn limits() -> Limits {
        Limits {
            connections: 6,
            strangers: 4,
            strangers_per_address: 2,
            connections_per_user: 3,
            streams: 100,
            body_bytes: u64::MAX,
        }
    }

    async fn admit(connections: &Arc<Connections>, ip: &str) -> Option<Connection> {
        let peer = SocketAddr::new(ip.parse().unwrap(), 1);
        connections.enter(peer, Some(HERE.parse().unwrap()), || false).await?.admitted().await
    }

    async fn is_evicted(connection: &Connection) -> bool {
        tokio::time::timeout(Duration::ZERO, connection.evicted()).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn the_stranger_that_was_silent_for_longest_makes_room() {
        let connections = Connections::new(limits(), AccessMetrics::default());
        let mut open = Vec::new();
        for _ in 0..4 {
            open.push(admit(&connections, HERE).await.unwrap());
            tokio::time::advance(GRACE).await;
        }
        open[0].touch();
        let before = Instant::now();
        let _fifth = admit(&connections, HERE).await.unwrap();
        assert_eq!(before, Instant::now(), "nobody had to wait");
        assert!(!is_evicted(&open[0]).await, "something was heard of it");
        assert!(is_evicted(&open[1]).await);
        assert!(!is_evicted(&open[2]).await && !is_evicted(&open[3]).await);
    }

    #[tokio::test(start_paused = true)]
    async fn strangers_that_are_young_are_waited_for() {
        let connections = Connections::new(limits(), AccessMetrics::default());
        let mut open = Vec::new();
        for _ in 0..4 {
            open.push(admit(&connections, HERE).await.unwrap());
        }
        let before = Instant::now();
        let _fifth = admit(&connections, HERE).await.unwrap();
        assert!(before.elapsed() >= GRACE && before.elapsed() < GRACE * 2, "{:?}", before.elapsed());
        assert!(is_evicted(&open[0]).await);
        // One that ends, or is authenticated, makes room at once.
        let before = Instant::now();
        let waiting = tokio::spawn({
            let connections = Arc::clone(&connections);
            async move { admit(&connections, HERE).await.unwrap() }
        });
        tokio::task::yield_now().await;
        open[1].authenticated("admin");
        let sixth = waiting.await.unwrap();
        assert_eq!(before, Instant::now());
        drop(sixth);
    }

    #[tokio::test(start_paused = true)]
    async fn an_authenticated_connection_is_never_closed_for_another() {
        let connections = Connections::new(limits(), AccessMetrics::default());
        let mut known = Vec::new();
        for user in ["a", "a", "a", "b", "b"] {
            let connection = admit(&connections, HERE).await.unwrap();
            connection.authenticated(user);
            known.push(connection);
        }
        // One place is left, and strangers take it from each other.
        for _ in 0..20 {
            tokio::time::advance(GRACE * 2).await;
            assert!(admit(&connections, HERE).await.is_some());
        }
        let last = admit(&connections, HERE).await.unwrap();
        last.authenticated("c");
        tokio::time::advance(Duration::from_secs(3600)).await;
        assert!(admit(&connections, HERE).await.is_none(), "all places are taken by the authenticated");
        for connection in &known {
            assert!(!is_evicted(connection).await);
        }
        drop(known);
        assert!(admit(&connections, HERE).await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_with_too_many_strangers_takes_the_place_of_its_own() {
        let connections = Connections::new(limits(), AccessMetrics::default());
        let elsewhere = admit(&connections, "198.51.100.7").await.unwrap();
        tokio::time::advance(GRACE).await;
        let first = admit(&connections, "203.0.113.9").await.unwrap();
        let second = admit(&connections, "203.0.113.9").await.unwrap();
        let before = Instant::now();
        assert!(admit(&connections, "203.0.113.9").await.is_none(), "its others are too young");
        assert_eq!(before, Instant::now());
        tokio::time::advance(GRACE).await;
        let third = admit(&connections, "203.0.113.9").await.unwrap();
        assert!(is_evicted(&first).await && !is_evicted(&elsewhere).await && !is_evicted(&second).await);
        second.authenticated("admin");
        assert!(admit(&connections, "203.0.113.9").await.is_some(), "the authenticated do not count");
        drop(third);
    }

    #[tokio::test(start_paused = true)]
    async fn connections_of_a_user_with_too_many_count_as_those_of_strangers() {
        let connections = Connections::new(limits(), AccessMetrics::default());
        let mut open = Vec::new();
        for _ in 0..6 {
            let connection = admit(&connections, HERE).await.unwrap();
            connection.authenticated("greedy");
            open.push(connection);
        }
        assert_eq!(connections.open.lock().counts(), [3, 3]);
        tokio::time::advance(GRACE).await;
        let other = admit(&connections, HERE).await.unwrap();
        other.authenticated("modest");
        assert!(other.is_authenticated());
        drop(open);
        assert_eq!(connections.open.lock().counts(), [1, 0]);
        drop(other);
        let open = connections.open.lock();
        assert!(open.users.is_empty() && open.addresses.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_that_has_most_of_the_strangers_delays_only_itself() {
        let connections = Connections::new(limits(), AccessMetrics::default());
        let mut crowd = Vec::new();
        for _ in 0..4 {
            crowd.push(admit(&connections, HERE).await.unwrap());
        }
        let before = Instant::now();
        let peer = SocketAddr::new(HERE.parse().unwrap(), 1);
        let enter = || connections.enter(peer, Some(HERE.parse().unwrap()), || false);
        let first = enter().await.unwrap();
        assert!(matches!(first, Entry::Waiting { .. }), "one of them may wait");
        let waiting = enter().await.unwrap();
        assert!(first.admitted().await.is_none(), "and no more than one");
        let other = admit(&connections, "198.51.100.7").await.unwrap();
        assert_eq!(before, Instant::now(), "nobody else had to wait");
        assert!(is_evicted(&crowd[0]).await && !is_evicted(&crowd[1]).await);
        other.authenticated("admin");
        assert!(waiting.admitted().await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_has_sent_something_is_not_displaced_even_if_its_task_has_not_run_yet() {
        let limits = Limits { connections: 16, strangers: 4, ..limits() };
        let connections = Connections::new(limits, AccessMetrics::default());
        let mut crowd = Vec::new();
        for _ in 0..4 {
            crowd.push(admit(&connections, HERE).await.unwrap());
        }
        let peer = SocketAddr::new(HERE.parse().unwrap(), 1);
        let enter = |spoke: bool| connections.enter(peer, Some(HERE.parse().unwrap()), move || spoke);
        let spoke = enter(true).await.unwrap();
        let mut silent = Vec::new();
        for _ in 0..10 {
            silent.push(enter(false).await.unwrap());
        }
        assert!(silent.remove(0).admitted().await.is_none());
        assert!(spoke.admitted().await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn connections_of_one_user_or_of_strangers_at_one_address_are_charged_together() {
        let connections = Connections::new(limits(), AccessMetrics::default());
        let mut open = Vec::new();
        for ip in [HERE, "198.51.100.7", "198.51.100.7"] {
            open.push(admit(&connections, ip).await.unwrap());
        }
        let same = |one: usize, other: usize| {
            std::ptr::eq(open[one].payer().account(), open[other].payer().account())
        };
        assert!(same(1, 2) && !same(0, 1), "by address");
        open[0].authenticated("jane");
        open[1].authenticated("jane");
        assert!(same(0, 1) && !same(1, 2), "by user");
        open[2].authenticated("joe");
        assert!(!same(1, 2), "users at one address");
        // Who has too many connections pays for all of them.
        connections.open.lock().users.get_mut("jane").unwrap().connections = 3;
        let fourth = admit(&connections, HERE).await.unwrap();
        fourth.authenticated("jane");
        assert!(!fourth.is_authenticated());
        assert!(std::ptr::eq(fourth.payer().account(), open[0].payer().account()));
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_is_not_told_apart_stays_a_stranger() {
        let connections = Connections::new(limits(), AccessMetrics::default());
        let connection = admit(&connections, HERE).await.unwrap();
        assert!(!connection.is_authenticated());
        assert!(connections.make_room() && is_evicted(&connection).await);
        assert!(!connections.make_room());
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_has_ended_is_nobodys() {
        let connections = Connections::new(limits(), AccessMetrics::default());
        let connection = admit(&connections, HERE).await.unwrap();
        let place = Arc::clone(connection.place());
        drop(connection);
        place.authenticated("late");
        assert_eq!(connections.open.lock().counts(), [0, 0]);
    }
}
