//! The schedule of scans: a state machine that is given the time and says which path is due.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Changes that come together are looked at together.
const TOGETHER: Duration = Duration::from_millis(5);
/// A file that was created is usually written next, and closed.
pub(super) const SETTLE: Duration = Duration::from_millis(50);
/// A file that is written and not closed is read when nobody wrote to it for this long. Without word of closing, sooner.
pub(super) const QUIET: Duration = if cfg!(target_os = "linux") { Duration::from_secs(2) } else { SETTLE };
/// A file that is written all the time is read after this long.
const AT_LAST: Duration = Duration::from_secs(10);
/// So many paths are looked at before what was found is told.
const AT_ONCE: usize = 257;
/// Editors move a file away before they write the new one.
pub(super) const GRACE: Duration = Duration::from_millis(100);

/// What is said of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Hint {
    /// Complete: closed after writing, or moved here.
    Ready,
    /// Something about it changed, but nobody writes to it.
    Touched,
    /// Created, maybe to be written.
    Created,
    /// Being written.
    Writing,
    /// Removed or moved away.
    Gone,
}

/// The paths to be looked at, and when.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    entries: HashMap<PathBuf, Entry>,
}

#[derive(Debug)]
struct Entry {
    hint: Hint,
    since: Instant,
    due: Instant,
}

impl Agenda {
    pub(super) fn hint(&mut self, path: PathBuf, hint: Hint, now: Instant) {
        let wait = match hint {
            Hint::Ready | Hint::Touched => TOGETHER,
            Hint::Created => SETTLE,
            Hint::Writing => QUIET,
            Hint::Gone => GRACE,
        };
        let due = now + wait;
        let Some(entry) = self.entries.get_mut(&path) else {
            self.entries.insert(path, Entry { hint, since: now, due });
            return;
        };
        match (entry.hint, hint) {
            // It is due soon as it is.
            (Hint::Ready, Hint::Ready | Hint::Touched | Hint::Created) => {}
            (Hint::Writing | Hint::Created, Hint::Touched | Hint::Created) => {}
            (Hint::Touched, Hint::Touched) | (Hint::Gone, Hint::Gone) => {}
            (Hint::Writing, Hint::Writing) => entry.due = due.min(entry.since + AT_LAST),
            _ => *entry = Entry { hint, since: now, due },
        }
    }

    /// A bundle waits until all of it has been left alone.
    pub(super) fn postpone(&mut self, path: PathBuf, wait: Duration, now: Instant) {
        let entry = self.entries.entry(path).or_insert(Entry { hint: Hint::Writing, since: now, due: now });
        entry.due = (now + wait).min(entry.since + AT_LAST);
    }

    /// When the next path is due.
    pub(super) fn next(&self) -> Option<Instant> {
        self.entries.values().map(|entry| entry.due).min()
    }

    /// Takes the paths that are due, in order: all that may be gone, so that it shows how many they are, and some of the others.
    pub(super) fn take(&mut self, now: Instant) -> Vec<(PathBuf, Hint)> {
        let mut room = AT_ONCE;
        let due = self.entries.extract_if(|_, entry| {
            entry.due <= now
                && (entry.hint == Hint::Gone || {
                    room = room.saturating_sub(1);
                    room > 0
                })
        });
        let mut due: Vec<_> = due.map(|(path, entry)| (path, entry.hint)).collect();
        due.sort();
        due
    }

    pub(super) fn contains(&self, path: &Path) -> bool {
        self.entries.contains_key(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due(hints: &[(u64, Hint)]) -> Option<u64> {
        let start = Instant::now();
        let mut agenda = Agenda::default();
        for (at, hint) in hints {
            agenda.hint("a".into(), *hint, start + Duration::from_millis(*at));
        }
        agenda.next().map(|next| (next - start).as_millis() as u64)
    }

    #[test]
    fn a_file_is_read_when_it_is_complete() {
        use Hint::*;
        let quiet = QUIET.as_millis() as u64;
        assert_eq!(due(&[]), None);
        assert_eq!(due(&[(0, Ready)]), Some(5));
        assert_eq!(due(&[(0, Ready), (4, Ready)]), Some(5), "nobody is put off");
        assert_eq!(due(&[(0, Created), (1, Writing), (2, Ready)]), Some(7));
        assert_eq!(due(&[(0, Created), (10, Touched)]), Some(50));
        assert_eq!(due(&[(0, Writing), (10, Touched)]), Some(quiet));
        assert_eq!(due(&[(0, Ready), (1, Writing)]), Some(1 + quiet), "the next writer has begun");
        assert_eq!(due(&[(0, Writing), (1000, Writing)]), Some(1000 + quiet));
        assert_eq!(due(&[(0, Gone), (1, Ready)]), Some(6), "it was replaced");
        assert_eq!(due(&[(0, Ready), (1, Gone)]), Some(101));
        assert_eq!(due(&[(0, Writing), (1, Gone)]), Some(101));
        assert_eq!(due(&[(0, Gone), (90, Gone)]), Some(100), "whoever looks often does not wait for ever");
    }

    #[test]
    fn a_file_that_is_always_written_is_read_at_last() {
        let always: Vec<_> = (0..100).map(|step| (step * 500, Hint::Writing)).collect();
        assert_eq!(due(&always), Some(AT_LAST.as_millis() as u64));
    }

    #[test]
    fn what_is_due_is_taken_once() {
        let now = Instant::now();
        let mut agenda = Agenda::default();
        agenda.hint("b".into(), Hint::Ready, now);
        agenda.hint("a".into(), Hint::Ready, now);
        agenda.hint("c".into(), Hint::Gone, now);
        assert!(agenda.take(now).is_empty());
        assert_eq!(agenda.take(now + TOGETHER), [("a".into(), Hint::Ready), ("b".into(), Hint::Ready)]);
        assert_eq!(agenda.next(), Some(now + GRACE));
    }
}
