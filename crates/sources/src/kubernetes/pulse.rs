//! How long a watch may be silent before it is taken for dead.

use std::time::Duration;

use tokio::time::Instant;

/// How much longer than the server's own limit a watch may be silent.
const SILENCE_GRACE: Duration = Duration::from_secs(30);

/// A server that sends bookmarks is not taken for dead sooner than this.
const SHORTEST: Duration = Duration::from_secs(150);

/// Bookmarks that follow each other faster than this are no rhythm.
const RHYTHM: Duration = Duration::from_secs(10);

/// Learns from the bookmarks of a watch how long its silences are.
///
/// The server ends a watch by itself after the time it was given, so a silence beyond that is a dead connection. A server
/// that sends bookmarks about every minute, as Kubernetes does, shows much sooner that it is alive: its silences are
/// measured, and two and a half of them are too many.
#[derive(Debug)]
pub(super) struct Pulse {
    longest: Duration,
    silence_timeout: Duration,
    last: Instant,
}

impl Pulse {
    /// Of a watch that begins now and that the server ends after `timeout`.
    pub(super) fn new(timeout: Duration, now: Instant) -> Self {
        Self { longest: timeout + SILENCE_GRACE, silence_timeout: timeout + SILENCE_GRACE, last: now }
    }

    /// A bookmark came that was not asked for by anything else.
    pub(super) fn bookmark(&mut self, now: Instant) {
        let silence = now - self.last;
        self.last = now;
        if silence >= RHYTHM {
            self.silence_timeout = (silence * 5 / 2).max(SHORTEST).min(self.longest);
        }
    }

    pub(super) fn silence_timeout(&self) -> Duration {
        self.silence_timeout
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn without_bookmarks_only_the_servers_own_limit_counts() {
        assert_eq!(Pulse::new(300 * SECOND, Instant::now()).silence_timeout(), 330 * SECOND);
    }

    #[test]
    fn a_bookmark_every_minute_makes_a_silence_of_150_seconds_deadly() {
        let start = Instant::now();
        let mut pulse = Pulse::new(300 * SECOND, start);
        pulse.bookmark(start + 60 * SECOND);
        assert_eq!(pulse.silence_timeout(), 150 * SECOND);
        pulse.bookmark(start + 61 * SECOND);
        assert_eq!(pulse.silence_timeout(), 150 * SECOND);
    }

    #[test]
    fn rare_bookmarks_do_not_shorten_the_timeout_below_their_distance() {
        let start = Instant::now();
        let mut pulse = Pulse::new(600 * SECOND, start);
        pulse.bookmark(start + SECOND);
        assert_eq!(pulse.silence_timeout(), 630 * SECOND);
        pulse.bookmark(start + 101 * SECOND);
        assert_eq!(pulse.silence_timeout(), 250 * SECOND);
        pulse.bookmark(start + 500 * SECOND);
        assert_eq!(pulse.silence_timeout(), 630 * SECOND);
    }
}
