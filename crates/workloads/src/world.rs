#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;

use crate::addresses::Addresses;
use crate::since::Since;
use crate::timing::Timing;

/// What all simulated controllers share.
pub(crate) struct World {
    pub(crate) timing: Timing,
    clock: Arc<dyn Fn() -> SystemTime + Send + Sync>,
    pub(crate) since: Since,
    pub(crate) addresses: Addresses,
}

impl World {
    pub(crate) fn new(timing: Timing, clock: Arc<dyn Fn() -> SystemTime + Send + Sync>) -> Self {
        Self { timing, clock, since: Since::default(), addresses: Addresses::default() }
    }

    /// What time it is, in whole seconds, as objects carry it.
    pub(crate) fn now(&self) -> Time {
        let now = Timestamp::try_from((self.clock)()).unwrap_or_default();
        Time(Timestamp::from_second(now.as_second()).unwrap_or(now))
    }

    /// How long it is until so many seconds after a time; zero when that is past.
    ///
    /// Objects carry whole seconds, and so does what is compared with them: a wait that is computed from them ends in the
    /// second that is meant, not before it.
    pub(crate) fn until(&self, time: &Time, seconds: i64) -> Duration {
        let due = time.0.as_second().saturating_add(seconds);
        let due = Duration::from_secs(due.max(0).unsigned_abs());
        let now = (self.clock)().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        due.saturating_sub(now)
    }

    /// How long ago a time is, as far as whole seconds can tell: at least this long.
    pub(crate) fn age(&self, time: &Time) -> Duration {
        let seconds = self.now().0.as_second().saturating_sub(time.0.as_second()).saturating_sub(1);
        Duration::from_secs(seconds.max(0).unsigned_abs())
    }
}
