use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The window of the past that a storage keeps. Whichever limit is reached first, the oldest revisions are forgotten.
///
/// Limits are applied when something is committed: a storage that nobody writes to forgets nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// At most so many revisions.
    pub revisions: u64,
    /// None longer ago than this.
    pub age: Duration,
    /// At most so many bytes of keys and values that are no longer current, and of what is [packed](crate::Storage::pack).
    pub bytes: usize,
}

/// A little more than the five minutes that etcd gives to Kubernetes, in at most 64 MiB.
impl Default for Window {
    fn default() -> Self {
        Self { revisions: 100_000, age: Duration::from_secs(330), bytes: 64 << 20 }
    }
}

/// When a commit is acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Once it is on the disk: survives the death of the process, of the operating system and of the power supply.
    #[default]
    Sync,
    /// Once the operating system has it: survives the death of the process, but if the machine goes down, the last
    /// commits may be lost (a suffix of the history, never something from its middle).
    Relaxed,
}

/// Options of a storage.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The window of the past that is kept.
    pub window: Window,
    /// When a commit is acknowledged. Without meaning for a storage in memory.
    pub durability: Durability,
    /// The clock.
    pub clock: Clock,
    /// The limits of log sizes and of watchers that fall behind.
    pub limits: Limits,
}

/// Sizes with defaults that fit most uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// A watcher has at most so many events waiting in memory; those beyond are read from the window when it comes
    /// to them.
    pub watch_buffer: usize,
    /// A file of the log is closed once it is larger than this.
    pub segment_bytes: u64,
    /// A checkpoint is made once the log is larger than this and larger than the last checkpoint.
    pub log_bytes: u64,
    /// The file of the log that is written to is longer than what is in it by up to this much, filled with zeros in advance: a
    /// sync that need not record a new length of the file is quicker. Not with [`Durability::Relaxed`].
    pub reserved_bytes: u64,
    /// Events are [packed](crate::Storage::pack) when they are so old: most watchers that were cut off are back by then, and read them as they are.
    pub pack_after: Duration,
    /// Events are packed together when they have so many bytes; to read one of them, all are unpacked.
    pub pack_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            watch_buffer: 256,
            segment_bytes: 16 << 20,
            log_bytes: 32 << 20,
            reserved_bytes: 512 << 10,
            pack_after: Duration::from_secs(20),
            pack_bytes: 128 << 10,
        }
    }
}

/// A monotonic clock: the time since some fixed moment.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Duration + Send + Sync>);

impl Clock {
    /// A clock that says what this function says.
    pub fn new(now: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    pub(crate) fn now(&self) -> Duration {
        (self.0)()
    }
}

/// The clock of this machine.
impl Default for Clock {
    fn default() -> Self {
        let start = Instant::now();
        Self::new(move || start.elapsed())
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}
