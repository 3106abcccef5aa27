use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::Mutex;
use tokio::time::Instant;

/// The time that objects carry: goes as tokio's clock goes, and can be set.
#[derive(Clone)]
pub(crate) struct WallClock(Arc<Mutex<(SystemTime, Instant)>>);

impl WallClock {
    pub(crate) fn starting_at(time: SystemTime) -> Self {
        Self(Arc::new(Mutex::new((time, Instant::now()))))
    }

    pub(crate) fn now(&self) -> SystemTime {
        let (time, set) = *self.0.lock();
        time + set.elapsed()
    }

    pub(crate) fn set(&self, time: SystemTime) {
        *self.0.lock() = (time, Instant::now());
    }
}
