use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use http::HeaderName;
use parking_lot::Mutex;

use super::{Client, Refusal};

/// Parts of the map of buckets, so that requests rarely wait for each other.
const SHARDS: usize = 16;
/// How many buckets one part has before those that are full again are thrown away, and at most.
const BUCKETS: (usize, usize) = (4_096, 65_536);
/// How often a part with too many buckets is gone through, in nanoseconds.
const SWEEP: u64 = 1_000_000_000;

/// How many requests: so many at once, and then one every so often (GCRA, a bucket of tokens that needs one number).
#[derive(Debug)]
pub struct Rate {
    /// Nanoseconds between two requests.
    interval: u64,
    /// Nanoseconds that requests may come early.
    tolerance: u64,
    by: RateBy,
}

/// Who shares a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RateBy {
    /// Everybody at one address.
    Address,
    /// Everybody with the same credential.
    Consumer,
    /// Everybody with the same value of a header.
    Header(HeaderName),
    /// Everybody.
    All,
}

/// What is remembered of each key.
#[derive(Debug, Default)]
pub(crate) struct Buckets([Mutex<Shard>; SHARDS]);

/// A part of the buckets.
#[derive(Debug, Default)]
struct Shard {
    /// For each key, when the request after the last one would be in time, in nanoseconds since the process began.
    due: HashMap<Box<[u8]>, u64>,
    /// How many there were left when those that are full again were thrown away last, and when that was.
    swept: (usize, u64),
}

impl Shard {
    /// Makes room for one more key. Each key is looked at twice at the most for every key that came, and when there are too many,
    /// all of them once a second.
    fn has_room(&mut self, now: u64) -> bool {
        let (left, when) = self.swept;
        let doubled = self.due.len() >= BUCKETS.0.max(2 * left);
        let full = self.due.len() >= BUCKETS.1;
        if doubled && !full || full && now.saturating_sub(when) >= SWEEP {
            self.due.retain(|_, due| *due > now);
            self.swept = (self.due.len(), now);
        }
        self.due.len() < BUCKETS.1
    }
}

impl Rate {
    /// So many requests in so long, and so many at once.
    pub fn new(requests: u64, per: Duration, burst: u64, by: RateBy) -> Self {
        let per = u64::try_from(per.as_nanos()).unwrap_or(u64::MAX);
        let interval = (per / requests.max(1)).max(1);
        Self { interval, tolerance: interval.saturating_mul(burst.saturating_sub(1)), by }
    }

    pub(super) fn check(&self, client: &Client<'_>, buckets: &Buckets) -> Result<(), Refusal> {
        // The name of a consumer may be as long as an address: the first byte says which it is.
        let address = || match client.address {
            IpAddr::V4(address) => [b"a", &address.octets()[..]].concat(),
            // Whoever has an address has a network of them.
            IpAddr::V6(address) => [b"a", &address.octets()[..8]].concat(),
        };
        match &self.by {
            RateBy::All => self.take(buckets, b"", now()),
            RateBy::Address => self.take(buckets, &address(), now()),
            RateBy::Consumer => match &client.consumer {
                Some(consumer) => self.take(buckets, [b"c", consumer.as_bytes()].concat().as_slice(), now()),
                None => self.take(buckets, &address(), now()),
            },
            RateBy::Header(name) => {
                let value = client.headers.get(name).map_or(&[][..], |value| value.as_bytes());
                self.take(buckets, value, now())
            }
        }
    }

    /// Takes one request of a key at this time.
    fn take(&self, buckets: &Buckets, key: &[u8], now: u64) -> Result<(), Refusal> {
        let mut shard = buckets.shard(key).lock();
        let due = shard.due.get(key).copied().unwrap_or(0).max(now);
        if due - now > self.tolerance {
            return Err(Refusal::TooMany(Duration::from_nanos(due - now - self.tolerance)));
        }
        let next = due.saturating_add(self.interval);
        if let Some(bucket) = shard.due.get_mut(key) {
            *bucket = next;
            return Ok(());
        }
        // More keys than can be remembered: whoever makes up keys gets no further by it.
        if !shard.has_room(now) {
            return Err(Refusal::TooMany(Duration::from_nanos(self.interval)));
        }
        shard.due.insert(key.into(), next);
        Ok(())
    }
}

impl Buckets {
    fn shard(&self, key: &[u8]) -> &Mutex<Shard> {
        let sum = key.iter().fold(0_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(*byte)));
        &self.0[sum % SHARDS]
    }
}

fn now() -> u64 {
    static BEGIN: OnceLock<Instant> = OnceLock::new();
    u64::try_from(BEGIN.get_or_init(Instant::now).elapsed().as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn taken(rate: &Rate, buckets: &Buckets, key: &[u8], at: u64) -> usize {
        (0..1_000).take_while(|_| rate.take(buckets, key, at).is_ok()).count()
    }

    #[test]
    fn so_many_at_once_and_then_one_every_so_often() {
        let (rate, buckets) = (Rate::new(10, Duration::from_secs(1), 5, RateBy::All), Buckets::default());
        assert_eq!(taken(&rate, &buckets, b"a", SECOND), 5);
        assert_eq!(rate.take(&buckets, b"a", SECOND), Err(Refusal::TooMany(Duration::from_millis(100))));
        assert_eq!(taken(&rate, &buckets, b"b", SECOND), 5, "others have their own");
        assert_eq!(taken(&rate, &buckets, b"a", SECOND + SECOND / 5), 2);
        assert_eq!(taken(&rate, &buckets, b"a", 100 * SECOND), 5, "and no more are saved up");
    }

    #[test]
    fn no_consumer_shares_the_bucket_of_an_address() {
        let (rate, buckets) =
            (Rate::new(1, Duration::from_secs(3600), 1, RateBy::Consumer), Buckets::default());
        let ask = |address: &str, consumer: Option<&str>| {
            let (address, headers) = (address.parse().unwrap(), &mut http::HeaderMap::new());
            rate.check(&Client { address, headers, consumer: consumer.map(Into::into) }, &buckets)
        };
        // `bob` behind the letter of consumers is 99.98.111.98.
        for (address, consumer) in [("99.98.111.98", "bob"), ("6361:6263:6465:6667::1", "abcdefg")] {
            assert_eq!(ask(address, None), Ok(()));
            assert_eq!(ask("10.0.0.1", Some(consumer)), Ok(()), "{consumer}");
            assert!(ask(address, None).is_err() && ask("10.0.0.1", Some(consumer)).is_err());
        }
    }

    #[test]
    fn an_edit_keeps_what_was_used() {
        let buckets = Buckets::default();
        assert_eq!(taken(&Rate::new(5, Duration::from_secs(60), 5, RateBy::All), &buckets, b"", SECOND), 5);
        let edited = Rate::new(6, Duration::from_secs(60), 6, RateBy::All);
        assert!(taken(&edited, &buckets, b"", SECOND) <= 1);
    }

    #[test]
    fn made_up_keys_take_no_more_memory_than_allowed() {
        let (rate, buckets) = (Rate::new(1, Duration::from_secs(3600), 1, RateBy::All), Buckets::default());
        for number in 0..2_000_000_u32 {
            let _ = rate.take(&buckets, &number.to_le_bytes(), SECOND);
        }
        assert!(buckets.0.iter().all(|shard| shard.lock().due.len() <= BUCKETS.1));
    }
}
