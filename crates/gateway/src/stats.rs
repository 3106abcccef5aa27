//! What is counted.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Upper bounds of the buckets of durations, in microseconds.
pub(crate) const BOUNDS: [u64; 10] =
    [500, 1_000, 2_500, 5_000, 10_000, 25_000, 100_000, 500_000, 2_500_000, 10_000_000];

/// What is counted of the requests of a route.
#[derive(Debug, Default)]
pub struct RouteStats {
    /// Requests by the first digit of their code; 0 for those whose client left before there was one.
    pub codes: [AtomicU64; 6],
    /// Requests under way.
    pub active: AtomicI64,
    /// How many took how long, to the last byte.
    pub(crate) durations: [AtomicU64; BOUNDS.len() + 1],
    /// Microseconds of all requests.
    pub(crate) time: AtomicU64,
}

/// What is counted of the gateway.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    /// Requests that no route was for.
    pub(crate) unrouted: AtomicU64,
    /// Requests that were refused because of how they were written.
    pub(crate) malformed: AtomicU64,
    /// Requests that could not be read at all, as the sockets counted them when this was asked for last.
    pub(crate) unreadable: AtomicU64,
    /// Requests that a policy refused.
    pub(crate) refused: AtomicU64,
    /// Lines of the access log that were lost because nobody took them.
    pub(crate) lost_lines: AtomicU64,
    /// Spans that were lost because the collector did not take them.
    pub(crate) lost_spans: AtomicU64,
    /// How often the table was replaced.
    pub(crate) swaps: AtomicU64,
    /// Responses that were cut because a backend broke off or was silent.
    pub(crate) cut: AtomicU64,
}

impl RouteStats {
    /// Counts a request that has ended.
    pub(crate) fn ended(&self, code: u16, duration: Duration) {
        let class = usize::from(code / 100).min(5);
        self.codes[class].fetch_add(1, Relaxed);
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        let bucket = BOUNDS.partition_point(|bound| *bound < micros);
        self.durations[bucket].fetch_add(1, Relaxed);
        self.time.fetch_add(micros, Relaxed);
    }

    /// All requests that have ended.
    pub fn total(&self) -> u64 {
        self.codes.iter().map(|count| count.load(Relaxed)).sum()
    }

    pub(crate) fn add(&self, other: &Self) {
        let pairs = self.codes.iter().zip(&other.codes).chain(self.durations.iter().zip(&other.durations));
        for (sum, count) in pairs.chain([(&self.time, &other.time)]) {
            sum.fetch_add(count.load(Relaxed), Relaxed);
        }
        self.active.fetch_add(other.active.load(Relaxed), Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_fall_into_buckets() {
        let stats = RouteStats::default();
        stats.ended(200, Duration::from_micros(500));
        stats.ended(503, Duration::from_micros(501));
        stats.ended(0, Duration::from_secs(60));
        let counts: Vec<u64> = stats.durations.iter().map(|count| count.load(Relaxed)).collect();
        assert_eq!((counts[0], counts[1], counts[10], stats.total()), (1, 1, 1, 3));
    }
}
