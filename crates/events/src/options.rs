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
    /// The reporting controller: a qualified name, `example.com/operator`.
    pub controller: String,
    /// The reporting instance. Default: the names of the controller and of the host.
    pub instance: String,
    /// The length of the queue; events beyond it are dropped. Default: 1,000.
    pub queue: usize,
    /// The time within which an equal event is a repetition. Default: 6 minutes.
    pub series: Duration,
    /// The interval at which a growing series is written. Default: one minute.
    pub series_pause: Duration,
    /// The burst of new events about one object. Default: 25.
    pub burst: u32,
    /// The interval at which one more event about the object is allowed. Default: 5 minutes.
    pub refill: Duration,
    /// The attempts to write an event. Default: 12.
    pub tries: u32,
    /// The delay before a retry. Default: 10 s.
    pub retry: Duration,
    /// The clock of the times in events.
    pub wall_clock: fn() -> SystemTime,
    /// The supervisor of the task that writes.
    pub supervisor: Supervisor,
}

impl EventOptions {
    /// Options for the controller of this qualified name: `example.com/operator`.
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
