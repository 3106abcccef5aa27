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
/// Who deletes a file, and makes it anew, does so at once: git, `cp --remove-destination`.
const DELETED: Duration = Duration::from_millis(20);
/// When this is asked so much too late, others did not get their turn in time either: whoever deleted a file may be about to make it anew.
const LATE: Duration = Duration::from_millis(10);

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
    /// Moved away, or not found.
    Away,
    /// Deleted.
    Gone,
}

impl Hint {
    /// Whether it says that nothing is there.
    pub(super) fn is_absence(self) -> bool {
        matches!(self, Self::Away | Self::Gone)
    }
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
            Hint::Away => GRACE,
            Hint::Gone => DELETED,
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
            (Hint::Touched, Hint::Touched) | (Hint::Away | Hint::Gone, Hint::Away) => {}
            (Hint::Gone, Hint::Gone) => {}
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
        self.be_patient(now);
        let mut room = AT_ONCE;
        let due = self.entries.extract_if(|_, entry| {
            entry.due <= now
                && (entry.hint.is_absence() || {
                    room = room.saturating_sub(1);
                    room > 0
                })
        });
        let mut due: Vec<_> = due.map(|(path, entry)| (path, entry.hint)).collect();
        due.sort();
        due
    }

    /// Waits for longer before files are gone that were deleted, if the machine is so busy that this is asked late; not for longer than for others.
    fn be_patient(&mut self, now: Instant) {
        for entry in self.entries.values_mut().filter(|entry| entry.hint == Hint::Gone) {
            let end = entry.since + GRACE;
            if entry.due + LATE <= now && now < end {
                entry.due = (now + DELETED).min(end);
            }
        }
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
        assert_eq!(due(&[(0, Away), (1, Ready)]), Some(6), "it was replaced");
        assert_eq!(due(&[(0, Gone), (1, Ready)]), Some(6), "it was made anew");
        assert_eq!(due(&[(0, Ready), (1, Away)]), Some(101));
        assert_eq!(due(&[(0, Writing), (1, Gone)]), Some(21));
        assert_eq!(due(&[(0, Away), (90, Away)]), Some(100), "whoever looks often does not wait for ever");
        assert_eq!(due(&[(0, Gone), (10, Gone)]), Some(20));
        assert_eq!(due(&[(0, Gone), (10, Away)]), Some(20), "that it is not found is nothing new");
        assert_eq!(due(&[(0, Away), (10, Gone)]), Some(30), "it was there again");
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
        agenda.hint("c".into(), Hint::Away, now);
        assert!(agenda.take(now).is_empty());
        assert_eq!(agenda.take(now + TOGETHER), [("a".into(), Hint::Ready), ("b".into(), Hint::Ready)]);
        assert_eq!(agenda.next(), Some(now + GRACE));
    }

    #[test]
    fn what_was_deleted_is_gone_at_once_but_on_a_machine_that_is_too_busy_to_make_it_anew() {
        let now = Instant::now();
        let after = |millis| now + Duration::from_millis(millis);
        let deleted = || {
            let mut agenda = Agenda::default();
            agenda.hint("a".into(), Hint::Gone, now);
            agenda
        };
        assert_eq!(deleted().take(after(25)), [("a".into(), Hint::Gone)]);
        let mut agenda = deleted();
        for (late, next) in [(35, 55), (70, 90)] {
            assert!(agenda.take(after(late)).is_empty(), "{late}");
            assert_eq!(agenda.next(), Some(after(next)), "{late}");
        }
        assert_eq!(agenda.take(after(100)), [("a".into(), Hint::Gone)], "not for longer than for others");
    }
}
