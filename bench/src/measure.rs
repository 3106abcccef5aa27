//! What a piece of work costs: CPU time of the whole process, and bytes.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use watchkeeper_counting::Counting;

/// Every allocation of the process is counted.
#[global_allocator]
pub static MEMORY: Counting = Counting::new();

/// User and system time of the process so far.
pub fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

/// The middle of several measurements and how far they are apart.
#[derive(Clone, Copy, Debug)]
pub struct Spread {
    /// The median.
    pub median: f64,
    /// Half the distance between the quartiles, as a share of the median.
    pub spread: f64,
}

impl Spread {
    /// Of measurements that were made.
    pub fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let at = |share: f64| values[((values.len() - 1) as f64 * share).round() as usize];
        let median = at(0.5);
        Self { median, spread: if median == 0.0 { 0.0 } else { (at(0.75) - at(0.25)) / 2.0 / median } }
    }
}

/// Runs ours and the peer's in turn and gives the CPU time of each, per unit of work, in microseconds.
pub fn alternate(
    rounds: usize,
    units: usize,
    mut ours: impl FnMut() -> Duration,
    mut peer: impl FnMut() -> Duration,
) -> (Spread, Spread) {
    let (mut left, mut right) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        left.push(ours().as_secs_f64() * 1e6 / units as f64);
        right.push(peer().as_secs_f64() * 1e6 / units as f64);
    }
    (Spread::of(left), Spread::of(right))
}
