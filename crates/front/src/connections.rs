use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::connection_state::ConnectionState;
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
pub(crate) struct Connections {
    limits: Limits,
    /// From when the times of events are counted.
    epoch: Instant,
    open: Mutex<Open>,
    /// Told when there may be room again.
    room: Notify,
    pub(crate) metrics: AccessMetrics,
}

#[derive(Default)]
struct Open {
    next: u64,
    authenticated: usize,
    /// How many of those each user has.
    users: HashMap<String, usize>,
    strangers: BTreeMap<u64, Arc<ConnectionState>>,
    /// How many of those each address has.
    addresses: HashMap<IpAddr, usize>,
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
        Arc::new(Self { limits, epoch: Instant::now(), open: Mutex::default(), room: Notify::new(), metrics })
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Lets a connection in, from `peer` to the address `local` of ours; `None` if there is no room for it. Waits while
    /// all strangers are too young to be closed.
    pub(crate) async fn admit(
        self: &Arc<Self>,
        peer: SocketAddr,
        local: Option<IpAddr>,
    ) -> Option<Connection> {
        // Who comes from the address it goes to is on this machine.
        let address =
            Some(peer.ip().to_canonical()).filter(|ip| Some(*ip) != local.map(|ip| ip.to_canonical()));
        loop {
            match self.try_admit(address) {
                Ok(connection) => return Some(connection),
                Err(Full::For(reason)) => {
                    self.metrics.dropped(reason);
                    return None;
                }
                Err(Full::Until(moment)) => tokio::select! {
                    () = sleep_until(moment) => {}
                    () = self.room.notified() => {}
                },
            }
        }
    }

    fn try_admit(self: &Arc<Self>, address: Option<IpAddr>) -> Result<Connection, Full> {
        let mut open = self.open.lock();
        let of_address =
            address.and_then(|address| open.addresses.get(&address)).copied().unwrap_or_default();
        if of_address >= self.limits.strangers_per_address {
            self.evict(&mut open, address, GRACE).map_err(|_| Full::For(Dropped::AddressFull))?;
        }
        let total = open.authenticated + open.strangers.len();
        if total >= self.limits.connections || open.strangers.len() >= self.limits.strangers {
            self.evict(&mut open, None, GRACE)?;
        }
        let id = open.next;
        open.next += 1;
        let state = Arc::new(ConnectionState::new(address, self.epoch));
        open.strangers.insert(id, Arc::clone(&state));
        if let Some(address) = address {
            *open.addresses.entry(address).or_default() += 1;
        }
        self.metrics.open(&open.counts());
        let connections = Arc::clone(self);
        Ok(Connection(Arc::new(Place { id, state, connections, user: Mutex::default() })))
    }

    /// Closes the stranger of whom nothing was heard for longest, if that is more than `grace`; of those from an address,
    /// if one is given.
    fn evict(&self, open: &mut Open, address: Option<IpAddr>, grace: Duration) -> Result<(), Full> {
        loop {
            let candidates =
                open.strangers.iter().filter(|(_, state)| address.is_none_or(|_| state.address == address));
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
        if let Some(address) = state.address {
            release(&mut self.addresses, &address);
        }
        true
    }

    fn counts(&self) -> [usize; 2] {
        [self.authenticated, self.strangers.len()]
    }
}

fn release<K: std::hash::Hash + Eq>(counts: &mut HashMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count = count.saturating_sub(1);
        if *count == 0 {
            counts.remove(key);
        }
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
        let count = open.users.get(user).copied().unwrap_or_default();
        // One that was forgotten has ended, has been evicted, or was authenticated by another of its requests.
        if count >= connections.limits.connections_per_user || !open.forget(self.id) {
            return;
        }
        self.state.authenticate();
        open.authenticated += 1;
        *open.users.entry(user.to_owned()).or_default() += 1;
        *self.user.lock() = Some(user.to_owned());
        connections.metrics.open(&open.counts());
        drop(open);
        connections.room.notify_one();
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
        connections.room.notify_one();
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
        connections.admit(SocketAddr::new(ip.parse().unwrap(), 1), Some(HERE.parse().unwrap())).await
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
