//! One scan after the snapshot, reported as differences.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use watchkeeper_core::{Error, Event, Key, Reason};

use super::agenda::{Hint, SETTLE};
use super::bundle::LEFT_ALONE;
use super::catalog::Step;
use super::hints::Waiting;
use super::settings::{Form, SHRINK};
use super::tracker::{Outcome, Tracker};
use super::walk::{About, Found, Look, walk};
use crate::print::Print;

/// What a round found.
#[derive(Debug)]
pub(super) enum Round {
    /// This is different.
    Differences(Vec<Event>),
    /// So much is gone that the reader has to see everything, to judge for itself.
    Anew,
}

impl Tracker {
    /// When the next round is due, if nothing is told before.
    pub(super) fn wake_at(&self) -> Instant {
        match self.agenda.next() {
            _ if self.everything => Instant::now(),
            Some(next) => next.min(self.scan_at),
            None => self.scan_at,
        }
    }

    /// Looks at whatever is due.
    pub(super) fn round(&mut self) -> Result<Round, Error> {
        let now = Instant::now();
        self.take_hints(now);
        self.written.clear();
        let everything = std::mem::take(&mut self.everything);
        let scan = now >= self.scan_at;
        if everything || scan {
            let found = self.walk_all(Look::ToCompare)?;
            self.compare(Path::new(""), found, scan && !everything && self.polling.is_none());
            self.scan_at = now + self.polling.unwrap_or(self.settings.rescan);
        }
        for (path, hint) in self.agenda.take(now) {
            self.look(&path, hint)?;
        }
        if self.polling.is_none() && self.watches.refused().is_some() {
            self.say_how_it_watches(None);
        }
        self.differences()
    }

    /// Takes over what was told.
    pub(super) fn take_hints(&mut self, now: Instant) {
        let Waiting { hints, everything } = self.inbox.take();
        self.everything |= everything;
        for (path, hint) in hints {
            self.told_of(&path, hint, now);
        }
    }

    /// Takes a hint about a path, as the system knows it.
    fn told_of(&mut self, path: &Path, hint: Hint, now: Instant) {
        for about in self.watches.about(path) {
            let path = match about {
                About::Directory(directory) => {
                    self.agenda.hint(directory, Hint::Ready, now);
                    continue;
                }
                About::Path(path) => path,
            };
            self.suspects.remove(&path);
            if hint == Hint::Writing {
                self.written.insert(path.clone());
            }
            if self.settings.wants(&path) && self.settings.form == Form::Bundles {
                let unit = self.unit(&path);
                self.suspects.remove(&unit);
                self.agenda.postpone(unit, LEFT_ALONE, now);
            } else if self.settings.wants(&path) {
                self.catalog.doubt(&path, hint.is_absence());
                self.agenda.hint(path, hint, now);
                continue;
            }
            // A directory, a link to one, or a link that others lead through.
            let parent = || path.parent().unwrap_or(Path::new("")).to_path_buf();
            match std::fs::symlink_metadata(self.settings.root().join(&path)) {
                Ok(metadata) if metadata.is_file() => {}
                Ok(metadata) if metadata.is_dir() => self.agenda.hint(path, Hint::Ready, now),
                Ok(_) => self.agenda.hint(parent(), Hint::Ready, now),
                Err(_) => self.agenda.hint(parent(), Hint::Ready, now),
            }
        }
    }

    fn look(&mut self, path: &Path, hint: Hint) -> Result<(), Error> {
        let is_directory = !self.is_bundle(path) && self.settings.root().join(path).is_dir();
        let is_root = path.as_os_str().is_empty();
        if is_root {
            let found = self.walk_all(Look::ToCompare)?;
            self.compare(path, found, false);
        } else if is_directory && self.settings.form != Form::File {
            match walk(&self.settings, &mut self.watches, path, Look::ToCompare) {
                Ok(found) => self.compare(path, found, false),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => {
                    let found =
                        Found { unreadable: [(path.into(), error.to_string())].into(), ..Found::default() };
                    self.compare(path, found, false);
                }
            }
        } else if self.is_bundle(path) || self.settings.wants(path) {
            self.read_now(path, hint);
        }
        if !is_directory && !is_root && self.settings.form != Form::File {
            // Maybe a directory was here.
            for path in self.catalog.below(path).into_iter().filter(|below| below != path) {
                self.vanished(&path, hint);
            }
        }
        Ok(())
    }

    fn read_now(&mut self, path: &Path, hint: Hint) {
        match self.read(path, false) {
            Outcome::Missing => self.vanished(path, hint),
            Outcome::Unstable if self.is_bundle(path) => {
                self.agenda.postpone(path.into(), LEFT_ALONE, Instant::now());
            }
            Outcome::Superseded | Outcome::Young(_) => {}
            Outcome::Doubtful => self.agenda.hint(path.into(), Hint::Created, Instant::now()),
            Outcome::Unstable => self.agenda.hint(path.into(), Hint::Writing, Instant::now()),
            Outcome::Same => drop(self.suspects.remove(path)),
            Outcome::Changed => {
                if self.suspects.remove(path) {
                    self.settings.shared.lock().status.drift += 1;
                    let file = self.settings.shown(path);
                    tracing::warn!(
                        source = self.settings.name,
                        file,
                        "drift: file changed without a notification"
                    );
                }
            }
        }
    }

    /// A file that was there is not: the second time, it is gone.
    fn vanished(&mut self, path: &Path, hint: Hint) {
        if hint.is_absence() {
            self.forget(path);
        } else if self.catalog.file(path).is_some() {
            self.catalog.doubt(path, true);
            self.agenda.hint(path.into(), Hint::Away, Instant::now());
        }
    }

    /// Notes what differs between a directory and what is known of it.
    fn compare(&mut self, directory: &Path, found: Found, suspicious: bool) {
        let (now, clock) = (Instant::now(), SystemTime::now());
        for (path, why) in &found.unreadable {
            let parsed = self.unreadable(path, Reason::Unreadable, why);
            if self.catalog.file(path).is_none_or(|file| file.faults != parsed.faults) {
                self.take_over(path, parsed, Print::default(), None);
            }
        }
        let mut units = std::collections::HashSet::new();
        for (file, signature) in &found.files {
            let unit = self.unit(file);
            if self.is_bundle(&unit) {
                if units.insert(unit.clone()) && !self.agenda.contains(&unit) {
                    self.agenda.postpone(unit, LEFT_ALONE, now);
                }
                continue;
            }
            let known = self.catalog.file(&unit);
            let differs = known
                .is_none_or(|known| signature.is_none() || known.signature != *signature || known.doubtful);
            let certain = known
                .and_then(|known| known.read)
                .zip(*signature)
                .is_some_and(|(read, signature)| signature.would_show_changes_since(read));
            if differs || !certain {
                if differs && suspicious && !self.agenda.contains(&unit) {
                    self.suspects.insert(unit.clone());
                }
                let age = signature.and_then(|signature| signature.age(clock));
                let young = age.is_some_and(|age| age < SETTLE);
                let hint = if young || self.polling.is_some() { Hint::Created } else { Hint::Touched };
                self.agenda.hint(unit.clone(), hint, now);
            }
            units.insert(unit);
        }
        for path in self.catalog.below(directory) {
            let kept = found.unreadable.keys().any(|unreadable| path.starts_with(unreadable));
            if !units.contains(&path) && !kept {
                self.vanished(&path, Hint::Touched);
            }
        }
    }

    /// Makes of what was read what the reader does not know yet.
    fn differences(&mut self) -> Result<Round, Error> {
        let mut events = std::mem::take(&mut self.news);
        let mut keys: Vec<Key> = std::mem::take(&mut self.affected).into_iter().collect();
        keys.sort();
        let held = self.catalog.objects();
        let mut gone = Vec::new();
        let mut read_again: Vec<PathBuf> = Vec::new();
        while let Some(key) = keys.pop() {
            match self.catalog.step(&key, |path| self.fresh.contains_key(path)) {
                Step::Nothing => {}
                Step::Gone => gone.push(key.clone()),
                Step::Put(print) => {
                    let path = self.catalog.winning_path(&key).unwrap_or_default();
                    if let Some(object) = self.fresh.get_mut(&path).and_then(|objects| objects.remove(&key)) {
                        self.catalog.tell(&object.document, print);
                        events.push(Event::Put { document: object.document, position: None });
                    }
                }
                Step::Read(path) if read_again.contains(&path) => {}
                Step::Read(path) => {
                    if self.read(&path, true) != Outcome::Changed {
                        self.agenda.hint(path.clone(), Hint::Created, Instant::now());
                    }
                    events.append(&mut self.news);
                    read_again.push(path);
                    keys.extend(self.affected.drain());
                    keys.push(key);
                    continue;
                }
            }
            let settings = Arc::clone(&self.settings);
            events.extend(self.catalog.conflicts(&key, |path| settings.shown(path)));
        }
        self.fresh.clear();
        gone.sort();
        gone.dedup();
        if !gone.is_empty() {
            let device = self.root()?;
            if gone.len() == held && self.is_unmounted(device) {
                return Err(self.unmounted());
            }
            if gone.len() == held || gone.len() as f32 > SHRINK * held as f32 {
                return Ok(Round::Anew);
            }
        }
        for key in gone {
            self.catalog.tell_gone(&key);
            events.push(Event::Gone { key, position: None });
        }
        Ok(Round::Differences(events))
    }
}
