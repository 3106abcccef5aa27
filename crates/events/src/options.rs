use std::time::{Duration, SystemTime};

use watchkeeper_supervision::Supervisor;

/// Options of [`Events`](crate::Events). The default numbers are those of client-go.
///
/// ```
/// # use watchkeeper_events::EventOptions;
/// let mut options = EventOptions::new("example.com/operator");
/// options.queue = 10_000; // It reports about many objects at once.
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EventOptions {
    /// Which controller reports: a qualified name, `example.com/operator`.
    pub controller: String,
    /// Which instance of it: by default the controller's name and the host's.
    pub instance: String,
    /// How many events wait to be written; more are dropped: 1,000.
    pub queue: usize,
    /// An event that is seen again within this time is a repetition: 6 minutes.
    pub series: Duration,
    /// How often a series is written while it grows: every minute.
    pub series_pause: Duration,
    /// How many events about one object can be new at once: 25.
    pub burst: u32,
    /// After this time, one more: 5 minutes.
    pub refill: Duration,
    /// How often to try to write an event: 12 times.
    pub tries: u32,
    /// How long to wait before trying again: 10 s.
    pub retry: Duration,
    /// The clock of the times in events.
    pub wall_clock: fn() -> SystemTime,
    /// The supervisor of the task that writes.
    pub supervisor: Supervisor,
}

impl EventOptions {
    /// For this controller: a qualified name, `example.com/operator`.
    pub fn new(controller: impl Into<String>) -> Self {
        let controller = controller.into();
        let host = host();
        let instance = format!("{}-{host}", controller.rsplit('/').next().unwrap_or_default());
        Self {
            controller,
            instance,
            queue: 1_000,
            series: Duration::from_secs(360),
            series_pause: Duration::from_secs(60),
            burst: 25,
            refill: Duration::from_secs(300),
            tries: 12,
            retry: Duration::from_secs(10),
            wall_clock: SystemTime::now,
            supervisor: Supervisor::default(),
        }
    }
}

#[cfg(unix)]
fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(not(unix))]
fn host() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_default()
}
