//! Leases for what etcd deletes by itself after some time.

use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;
use watchkeeper_etcd::{Client, Error};

/// For how long a lease is given to what is written, at most.
const SHARED_FOR: Duration = Duration::from_secs(60);

/// How many keys a lease is given to, at most: they are all deleted at one revision.
const SHARED_BY: u32 = 1000;

/// The longest lease that etcd grants, in seconds.
const LONGEST: i64 = 9_000_000_000;

/// Makes leases, one for many keys: each costs etcd memory and a timer.
pub(super) struct Leases {
    client: Client,
    /// The one that was made last.
    last: Mutex<Option<Shared>>,
}

struct Shared {
    id: i64,
    lifetime: Duration,
    until: Instant,
    keys: u32,
}

impl Leases {
    pub(super) fn new(client: Client) -> Self {
        Self { client, last: Mutex::new(None) }
    }

    /// A lease that ends when `lifetime` has passed, or a twentieth of that or a minute later.
    pub(super) async fn get(&self, lifetime: Duration) -> Result<i64, Error> {
        let mut last = self.last.lock().await;
        if let Some(shared) = last.as_mut()
            && shared.lifetime == lifetime
            && shared.keys < SHARED_BY
            && Instant::now() < shared.until
        {
            shared.keys += 1;
            return Ok(shared.id);
        }
        let shared_for = SHARED_FOR.min(lifetime / 20);
        // Counted from before it is asked for: etcd begins later.
        let until = Instant::now() + shared_for;
        let seconds = lifetime.saturating_add(shared_for).as_secs_f64().ceil();
        let seconds = (seconds as i64).clamp(1, LONGEST);
        let id = self.client.lease_grant(seconds).await?.id;
        *last = Some(Shared { id, lifetime, until, keys: 1 });
        Ok(id)
    }

    /// Does not hand out this lease any more: etcd does not know it.
    pub(super) async fn forget(&self, id: i64) {
        let mut last = self.last.lock().await;
        last.take_if(|shared| shared.id == id);
    }
}
