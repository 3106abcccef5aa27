//! What a piece of work costs: CPU time of the whole process, and bytes.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use watchkeeper_bench_report::Samples;
use watchkeeper_counting::Counting;

/// Every allocation of the process is counted.
#[global_allocator]
pub static MEMORY: Counting = Counting::new();

/// User and system time of the process so far.
pub fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

/// Runs ours and the peer's in turn and gives the CPU time of each, per unit of work, in seconds.
pub fn alternate(
    rounds: usize,
    units: usize,
    mut ours: impl FnMut() -> Duration,
    mut peer: impl FnMut() -> Duration,
) -> (Samples, Samples) {
    let (mut left, mut right) = (Samples::default(), Samples::default());
    for _ in 0..rounds {
        left.push(ours().as_secs_f64() / units as f64);
        right.push(peer().as_secs_f64() / units as f64);
    }
    (left, right)
}
