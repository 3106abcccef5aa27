//! A snapshot of all files, in batches.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use watchkeeper_core::{Error, Event, Reason};

use super::agenda::{Agenda, GRACE, Hint, QUIET, SETTLE};
use super::catalog::{Catalog, Step};
use super::mounts;
use super::settings::Form;
use super::status::Watching;
use super::tracker::{Outcome, Tracker};
use super::walk::{Found, Look, Watches, walk};
use crate::print::Print;

/// So many events are made before they are handed on.
const BATCH: usize = 256;

/// How often everything is looked at where nobody tells of changes.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

impl Tracker {
    /// Watches everything, and notes what is to be read.
    pub(super) fn begin(&mut self) -> Result<(), Error> {
        let device = self.root()?;
        self.catalog = Catalog::default();
        self.agenda = Agenda::default();
        self.suspects.clear();
        self.inbox.take();
        self.everything = false;
        let polling = self.connect();
        let mut found = self.walk_all(Look::ToRead)?;
        if self.lacks_what_was_known(&found) {
            // Maybe an editor is just about to put it back.
            std::thread::sleep(GRACE);
            found = self.walk_all(Look::ToRead)?;
        }
        if found.files.is_empty() && found.unreadable.is_empty() && self.is_unmounted(device) {
            return Err(self.unmounted());
        }
        self.say_how_it_watches(polling);
        for (path, why) in &found.unreadable {
            let parsed = self.unreadable(path, Reason::Unreadable, why);
            self.take_over(path, parsed, Print::default(), None);
            self.keep_below(path);
        }
        let units = self.units(found);
        let mut memory = self.settings.shared.lock();
        let is_there = |path: &Path| units.binary_search_by(|unit| unit.as_path().cmp(path)).is_ok();
        memory.held.retain(|path| is_there(path) || self.catalog.file(path).is_some());
        drop(memory);
        self.pending = units.into();
        self.ahead.clear();
        Ok(())
    }

    /// Begins to be told of changes; gives the reason if that is not possible.
    fn connect(&mut self) -> Option<String> {
        let settings = &self.settings;
        let real = std::fs::canonicalize(settings.root()).unwrap_or_default();
        let reason = match mounts::of(&real) {
            _ if settings.poll.is_some() => Some("asked to".to_owned()),
            Some(mount) if mount.is_silent() => Some(format!("{} does not tell of changes", mount.kind)),
            _ => None,
        };
        if reason.is_some() {
            self.watches = Watches::default();
            return reason;
        }
        match (settings.connect)(Arc::clone(&self.inbox)) {
            Ok(watcher) => {
                self.watches = Watches::new(Some(watcher));
                None
            }
            Err(reason) => {
                self.watches = Watches::default();
                Some(reason)
            }
        }
    }

    /// Looks at everything, and watches it.
    pub(super) fn walk_all(&mut self, look: Look) -> Result<Found, Error> {
        let before = self.watches.begin();
        self.watches.add_root(self.settings.root());
        let found = walk(&self.settings, &mut self.watches, "".as_ref(), look);
        self.watches.end(before);
        found.map_err(|error| {
            let reason = format!("{}: {error}", self.settings.root().display());
            match error.kind() {
                std::io::ErrorKind::NotFound => Error::Missing(reason),
                std::io::ErrorKind::PermissionDenied => Error::Denied(reason),
                _ => Error::Unavailable { answered: false, reason },
            }
        })
    }

    fn lacks_what_was_known(&self, found: &Found) -> bool {
        let memory = self.settings.shared.lock();
        if memory.held.is_empty() {
            return false;
        }
        let units: BTreeSet<PathBuf> = found.files.keys().map(|file| self.unit(file)).collect();
        memory.held.paths().any(|path| !units.contains(path))
    }

    /// The paths under which what was found is read, in their order.
    fn units(&self, found: Found) -> Vec<PathBuf> {
        match self.settings.form {
            // Each is a unit of its own, and they are sorted.
            Form::Directory | Form::File => found.files.into_keys().collect(),
            Form::Bundles => {
                let units: BTreeSet<PathBuf> = found.files.keys().map(|file| self.unit(file)).collect();
                units.into_iter().collect()
            }
        }
    }

    /// A directory that cannot be read keeps what was in it.
    fn keep_below(&mut self, directory: &Path) {
        let memory = self.settings.shared.lock();
        let known: Vec<PathBuf> = memory
            .held
            .paths()
            .filter(|path| path.starts_with(directory) && *path != directory)
            .map(Path::to_path_buf)
            .collect();
        drop(memory);
        for path in known {
            let parsed = self.unreadable(&path, Reason::Unreadable, "the directory cannot be read");
            self.take_over(&path, parsed, Print::default(), None);
        }
    }

    pub(super) fn say_how_it_watches(&mut self, polling: Option<String>) {
        let polling = polling.or_else(|| self.watches.refused().map(str::to_owned));
        let source = &self.settings.name;
        let mut notes = Vec::new();
        let mut reason = polling;
        if self.settings.form == Form::File
            && let Ok(real) = std::fs::canonicalize(&self.settings.path)
            && mounts::of(&real).is_some_and(|mount| real.to_str() == Some(&mount.point))
        {
            let note = "the file is a mount of its own (a subPath, or a bind mount) and does not follow if its origin is replaced";
            tracing::warn!(source, "{note}");
            notes.push(note.to_owned());
            reason = reason.or(Some("the file is a mount of its own".to_owned()));
        }
        let interval = self.settings.poll.unwrap_or(POLL_INTERVAL);
        self.polling = reason.is_some().then_some(interval);
        let watching = match reason {
            None => Watching::Events,
            Some(reason) => {
                match self.settings.poll {
                    Some(_) => tracing::info!(source, reason, ?interval, "polling"),
                    None => tracing::warn!(source, reason, ?interval, "polling"),
                }
                Watching::Polling { reason }
            }
        };
        let mut memory = self.settings.shared.lock();
        memory.status.watching = watching;
        memory.status.notes = notes;
        drop(memory);
        self.scan_at = Instant::now() + self.polling.unwrap_or(self.settings.rescan);
    }

    /// Some of the snapshot; `true` with the last of it.
    pub(super) fn batch(&mut self) -> Result<(Vec<Event>, bool), Error> {
        let mut events = self.snapshot_news();
        while events.len() < BATCH {
            if self.ahead.is_empty() && self.settings.form == Form::Directory {
                self.ahead.read(&self.settings, &self.pending);
            }
            let Some(path) = self.pending.pop_front() else {
                self.complete(&mut events)?;
                return Ok((events, true));
            };
            self.read_settled(&path);
            self.items(&path, &mut events);
        }
        Ok((events, false))
    }

    /// What there is to tell in a snapshot: what is gone, it does not mention.
    fn snapshot_news(&mut self) -> Vec<Event> {
        let mut news = std::mem::take(&mut self.news);
        news.retain(|event| !matches!(event, Event::Gone { .. }));
        news
    }

    /// Reads a file after those who write to it, as far as one can wait for them.
    fn read_settled(&mut self, path: &Path) {
        let had_objects = self.settings.shared.lock().held.has_objects(path);
        let deadline = Instant::now() + QUIET;
        loop {
            // Somebody may be about to write more.
            let wait = match self.read_if(path, false, |content| {
                let enough = if had_objects && content.signature.is_empty() { QUIET } else { SETTLE };
                enough.checked_sub(content.age?)
            }) {
                Outcome::Young(wait) => wait,
                Outcome::Unstable | Outcome::Superseded | Outcome::Doubtful => SETTLE,
                Outcome::Missing => return self.agenda.hint(path.into(), Hint::Created, Instant::now()),
                Outcome::Same | Outcome::Changed => return,
            };
            if Instant::now() >= deadline {
                self.agenda.hint(path.into(), Hint::Writing, Instant::now());
                return;
            }
            std::thread::sleep(wait.min(SETTLE));
        }
    }

    /// What a file adds to the snapshot. Files come in the order in which they win.
    fn items(&mut self, path: &Path, events: &mut Vec<Event>) {
        events.append(&mut self.snapshot_news());
        let mut fresh = self.fresh.remove(path).unwrap_or_default();
        let mut keys: Vec<_> = std::mem::take(&mut self.affected).into_iter().collect();
        keys.sort();
        for key in keys {
            if let Step::Put(print) = self.catalog.step(&key, |winner| winner == path)
                && let Some(object) = fresh.remove(&key)
            {
                self.catalog.tell(&object.document, print);
                events.push(Event::Item(object.document));
            }
            let settings = Arc::clone(&self.settings);
            events.extend(self.catalog.conflicts(&key, |path| settings.shown(path)));
        }
    }

    fn complete(&mut self, events: &mut Vec<Event>) -> Result<(), Error> {
        // What went away meanwhile may have taken everything along.
        let device = self.root()?;
        for path in self.catalog.below("".as_ref()) {
            events.extend(self.catalog.keep(&path));
        }
        if self.catalog.objects() > 0 {
            self.settings.shared.lock().device = Some(device);
        }
        self.fresh.clear();
        self.affected.clear();
        events.push(Event::Complete(self.catalog.print().version()));
        Ok(())
    }
}
