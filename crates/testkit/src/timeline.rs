use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::Call;

/// How many requests are remembered.
const CAPACITY: usize = 10_000;
/// How many are printed when a test fails.
const PRINTED: usize = 100;

/// A request in the record of a [`TestEnv`](crate::TestEnv), without its body.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Seen {
    /// The request.
    pub call: Call,
    /// The time of the request, after the start of the environment, in tokio's time.
    pub at: Duration,
    /// The time until the request was answered, or failed; for a watch, until it began.
    pub took: Option<Duration>,
    /// The result of the request.
    pub fate: Fate,
}

/// The result of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Nothing yet.
    Pending,
    /// The request was answered with this code.
    Answered(u16),
    /// The connection broke, or there was none.
    Broken,
    /// The client gave up.
    Abandoned,
}

/// The last requests, in the order in which they came.
pub(crate) struct Timeline {
    start: Instant,
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    total: u64,
    kept: VecDeque<Seen>,
}

/// A request whose fate is not yet known; if this is dropped, it was abandoned.
pub(crate) struct Ticket {
    timeline: Arc<Timeline>,
    number: u64,
    begun: Instant,
    open: bool,
}

impl Timeline {
    pub(crate) fn new() -> Self {
        Self { start: Instant::now(), entries: Mutex::default() }
    }

    /// Notes a request and gives it its number.
    pub(crate) fn begin(self: &Arc<Self>, call: &mut Call) -> Ticket {
        let begun = Instant::now();
        let mut entries = self.entries.lock();
        entries.total += 1;
        call.number = entries.total;
        if entries.kept.len() == CAPACITY {
            entries.kept.pop_front();
        }
        let at = begun.duration_since(self.start);
        entries.kept.push_back(Seen { call: call.clone(), at, took: None, fate: Fate::Pending });
        Ticket { timeline: Arc::clone(self), number: call.number, begun, open: true }
    }

    pub(crate) fn requests(&self) -> Vec<Seen> {
        self.entries.lock().kept.iter().cloned().collect()
    }

    pub(crate) fn count(&self, matching: impl Fn(&Seen) -> bool) -> usize {
        self.entries.lock().kept.iter().filter(|seen| matching(seen)).count()
    }

    pub(crate) fn total(&self) -> u64 {
        self.entries.lock().total
    }

    fn settle(&self, number: u64, took: Duration, fate: Fate) {
        let mut entries = self.entries.lock();
        let first = entries.total - entries.kept.len() as u64 + 1;
        let index = number.checked_sub(first).and_then(|index| usize::try_from(index).ok());
        if let Some(seen) = index.and_then(|index| entries.kept.get_mut(index)) {
            (seen.took, seen.fate) = (Some(took), fate);
        }
    }
}

impl Ticket {
    pub(crate) fn end(mut self, fate: Fate) {
        self.open = false;
        self.timeline.settle(self.number, self.begun.elapsed(), fate);
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if self.open {
            self.timeline.settle(self.number, self.begun.elapsed(), Fate::Abandoned);
        }
    }
}

/// One line a request.
impl fmt::Display for Timeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries = self.entries.lock();
        let skipped = entries.kept.len().saturating_sub(PRINTED);
        writeln!(f, "the last {} of {} requests:", entries.kept.len() - skipped, entries.total)?;
        for seen in entries.kept.iter().skip(skipped) {
            writeln!(f, "{seen}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Call { user, verb, path, query, .. } = &self.call;
        let mark = if query.is_empty() { "" } else { "?" };
        write!(f, "{:>9.3} s  {user:<10} {verb:<7} {path}{mark}{query}  ", self.at.as_secs_f64())?;
        match self.fate {
            Fate::Pending => f.write_str("...")?,
            Fate::Answered(code) => write!(f, "{code}")?,
            Fate::Broken => f.write_str("broken")?,
            Fate::Abandoned => f.write_str("abandoned")?,
        }
        match self.took.filter(|took| *took >= Duration::from_millis(1)) {
            Some(took) => write!(f, " after {:.3} s", took.as_secs_f64()),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_are_forgotten_and_all_are_counted() {
        let timeline = Arc::new(Timeline::new());
        let mut first = Some(timeline.begin(&mut Call::default()));
        for _ in 0..CAPACITY {
            timeline.begin(&mut Call::default()).end(Fate::Answered(200));
        }
        first.take().map(|ticket| ticket.end(Fate::Broken)).unwrap();
        assert_eq!(timeline.total(), CAPACITY as u64 + 1);
        assert_eq!(timeline.count(|seen| seen.fate == Fate::Answered(200)), CAPACITY);
        assert_eq!(timeline.requests()[0].call.number, 2);
    }

    #[test]
    fn what_nobody_waits_for_is_abandoned() {
        let timeline = Arc::new(Timeline::new());
        let mut call = Call { verb: "get", path: "/version".into(), user: "me".into(), ..Call::default() };
        drop(timeline.begin(&mut call));
        assert_eq!(timeline.requests()[0].fate, Fate::Abandoned);
        assert!(timeline.to_string().contains("me         get     /version  abandoned"), "{timeline}");
    }
}
