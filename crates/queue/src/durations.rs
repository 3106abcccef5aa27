use crate::timers::Nanos;

/// How long items were queued and how long they ran, counted while the queue's lock is held anyway.
#[derive(Clone, Debug, Default)]
pub(crate) struct Durations {
    pub(crate) queued: Histogram,
    pub(crate) worked: Histogram,
}

impl Durations {
    pub(crate) fn merge(&mut self, other: &Durations) {
        self.queued.merge(&other.queued);
        self.worked.merge(&other.worked);
    }
}

/// The buckets of client-go and controller-runtime: ten nanoseconds to a thousand seconds, by tens.
const BOUNDS: [Nanos; 12] = {
    let mut bounds = [10; 12];
    let mut i = 1;
    while i < bounds.len() {
        bounds[i] = 10 * bounds[i - 1];
        i += 1;
    }
    bounds
};

#[derive(Clone, Debug, Default)]
pub(crate) struct Histogram {
    sum: u128,
    counts: [u64; BOUNDS.len() + 1],
}

impl Histogram {
    pub(crate) fn observe(&mut self, value: Nanos) {
        self.sum += u128::from(value);
        self.counts[BOUNDS.partition_point(|&bound| bound < value)] += 1;
    }

    fn merge(&mut self, other: &Histogram) {
        self.sum += other.sum;
        for (count, more) in self.counts.iter_mut().zip(other.counts) {
            *count += more;
        }
    }

    /// In seconds.
    pub(crate) fn sum(&self) -> f64 {
        self.sum as f64 / 1e9
    }

    pub(crate) fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Upper bounds in seconds with the count of each bucket alone, the last one unbounded.
    pub(crate) fn buckets(&self) -> [(f64, u64); BOUNDS.len() + 1] {
        std::array::from_fn(|i| {
            (BOUNDS.get(i).map_or(f64::INFINITY, |&bound| bound as f64 / 1e9), self.counts[i])
        })
    }
}
