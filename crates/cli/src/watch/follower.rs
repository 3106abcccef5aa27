//! From the journals of informers to what a person sees: without waiting, without a network.

use std::collections::HashSet;
use std::io::{self, Write};
use std::time::Instant;

use serde_json::Value;
use watchkeeper_core::{Change, Delivery, Key};
use watchkeeper_informer::{Entry, Object};

use super::lines;
use super::notes::{Notes, counted, grouped, rounded};
use super::report::{Filter, Report, What};
use super::target::Target;
use super::text::Style;
use crate::failure::Failure;

/// So many objects that are there at the beginning are listed; of more, the number is told.
const FEW: usize = 20;

/// How changes are shown.
pub(super) enum Output {
    Text(Style),
    Json { objects: bool },
}

/// Which of the objects that are there at the beginning are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Initial {
    All,
    Few,
    None,
}

/// Why watching ends.
pub(super) enum Stop {
    /// As many changes as were asked for.
    Enough,
    /// Nobody reads any more.
    NobodyReads,
    Failed(Failure),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::NobodyReads,
            _ => Self::Failed(Failure::running(format!("cannot write the changes: {error}"))),
        }
    }
}

/// How it stands with one target.
#[derive(Default)]
pub(super) struct Standing {
    /// Whether it was completely listed once.
    pub(super) synced: bool,
    /// It is not allowed, and nobody asked for it by name.
    pub(super) left_out: bool,
    /// How many objects the first list has.
    there: usize,
    /// Those of them that wait to be shown if they stay few.
    waiting: Vec<Change<Object<Value>>>,
    /// While a later list is compared with what is known: how many differ.
    pub(super) comparing: Option<usize>,
    /// How often it was asked in vain since it last answered.
    pub(super) failures: u32,
}

/// Takes the journals' entries, shows what is to be shown, and remembers what the notes need.
pub(super) struct Follower<W> {
    pub(super) targets: Vec<Target>,
    pub(super) standings: Vec<Standing>,
    pub(super) notes: Notes,
    pub(super) out: W,
    pub(super) output: Output,
    pub(super) filter: Filter,
    pub(super) initial: Initial,
    pub(super) until: Option<usize>,
    /// Where the server is, for those who have to find out why it does not answer.
    pub(super) url: String,
    began: Instant,
    changes: usize,
    unshown: usize,
    objects: HashSet<(usize, Key)>,
}

impl<W: Write> Follower<W> {
    pub(super) fn new(targets: Vec<Target>, notes: Notes, out: W, output: Output, url: String) -> Self {
        let standings = targets.iter().map(|_| Standing::default()).collect();
        Self {
            targets,
            standings,
            notes,
            out,
            output,
            filter: Filter::default(),
            initial: Initial::Few,
            until: None,
            url,
            began: Instant::now(),
            changes: 0,
            unshown: 0,
            objects: HashSet::new(),
        }
    }

    /// One entry of the journal of target number `at`.
    pub(super) fn take(&mut self, at: usize, entry: Entry<Value>) -> Result<(), Stop> {
        match entry {
            Entry::Changed(change) if change.delivery == Delivery::Initial => self.initial(at, change),
            Entry::Changed(change) if !self.standings[at].synced => self.gone_before_the_end(at, change),
            Entry::Changed(change) => self.changed(at, &change),
            Entry::Complete(_) => self.complete(at),
            Entry::Resumed => self.resumed(at),
            Entry::Interrupted { error, wait, next } => self.interrupted(at, error, wait, &next),
            Entry::Rejected(rejection) => {
                self.out.flush()?;
                self.notes
                    .say(&format!("a change of {} cannot be shown: {rejection}", self.targets[at].what()));
                Ok(())
            }
            // What is added to journals later is not needed here.
            _ => Ok(()),
        }
    }

    /// Everything that was written is seen now.
    pub(super) fn flush(&mut self) -> Result<(), Stop> {
        if self.standings.iter().any(|standing| !standing.synced) {
            self.notes.progress(self.standings.iter().map(|standing| standing.there).sum());
        }
        Ok(self.out.flush()?)
    }

    /// The last line: what there was.
    pub(super) fn sum_up(&mut self) {
        let unshown = match self.unshown {
            0 => String::new(),
            count => format!("; {} more in fields that are not shown", grouped(count)),
        };
        let objects = counted(self.objects.len(), "object");
        let text = format!(
            "{} of {objects} in {}{unshown}",
            counted(self.changes, "change"),
            rounded(self.began.elapsed())
        );
        self.notes.say(&text);
    }

    pub(super) fn changes(&self) -> usize {
        self.changes
    }

    fn initial(&mut self, at: usize, change: Change<Object<Value>>) -> Result<(), Stop> {
        let standing = &mut self.standings[at];
        standing.there += usize::from(change.old.is_none());
        match (self.initial, &self.output) {
            (Initial::None, _) => Ok(()),
            (Initial::Few, Output::Text(_)) => {
                standing.waiting.retain(|waiting| waiting.key != change.key);
                if standing.waiting.len() <= FEW {
                    standing.waiting.push(change);
                }
                Ok(())
            }
            (Initial::All | Initial::Few, _) => self.show(at, &as_present(change), What::Present, false),
        }
    }

    /// An object that went away while the first list was still coming. Where it was shown, its end is shown as well.
    fn gone_before_the_end(&mut self, at: usize, change: Change<Object<Value>>) -> Result<(), Stop> {
        let standing = &mut self.standings[at];
        standing.there = standing.there.saturating_sub(1);
        standing.waiting.retain(|waiting| waiting.key != change.key);
        match (self.initial, &self.output) {
            (Initial::None, _) | (Initial::Few, Output::Text(_)) => Ok(()),
            _ => self.changed(at, &change),
        }
    }

    fn changed(&mut self, at: usize, change: &Change<Object<Value>>) -> Result<(), Stop> {
        let comparing = &mut self.standings[at].comparing;
        let compared = comparing.is_some();
        comparing.iter_mut().for_each(|count| *count += 1);
        self.show(at, change, What::Happened(change.kind()), compared)
    }

    fn show(
        &mut self,
        at: usize,
        change: &Change<Object<Value>>,
        what: What,
        compared: bool,
    ) -> Result<(), Stop> {
        let target = &self.targets[at];
        let report = match Report::of(change, what, target, &self.filter) {
            Ok(Some(report)) => Report { compared, ..report },
            Ok(None) => {
                self.unshown += 1;
                return Ok(());
            }
            Err(error) => {
                self.notes.say(&format!("{} cannot be read: {error}", target.what()));
                return Ok(());
            }
        };
        let text = match &self.output {
            Output::Text(style) => style.lines(&report, target),
            Output::Json { objects } => lines::line(&report, target, *objects, self.filter.all_fields),
        };
        self.notes.clear();
        self.out.write_all(text.as_bytes())?;
        if what == What::Present {
            return Ok(());
        }
        self.changes += 1;
        self.objects.insert((at, change.key.clone()));
        if self.until == Some(self.changes) { Err(Stop::Enough) } else { Ok(()) }
    }

    fn complete(&mut self, at: usize) -> Result<(), Stop> {
        let standing = &mut self.standings[at];
        standing.failures = 0;
        if std::mem::replace(&mut standing.synced, true) {
            if let Some(count) = standing.comparing.take() {
                self.out.flush()?;
                let (what, place) = (self.targets[at].what(), self.targets[at].place());
                self.notes.say(&format!(
                    "connected again, {what}{place} compared: {}",
                    counted(count, "difference")
                ));
            }
            return Ok(());
        }
        let mut waiting = std::mem::take(&mut standing.waiting);
        if standing.there <= FEW && waiting.len() == standing.there {
            waiting.sort_by(|left, right| left.key.cmp(&right.key));
            for change in waiting {
                self.show(at, &as_present(change), What::Present, false)?;
            }
        }
        self.say_what_is_there()
    }

    /// Once all targets have been listed.
    pub(super) fn say_what_is_there(&mut self) -> Result<(), Stop> {
        self.out.flush()?;
        if self.standings.iter().any(|standing| !standing.synced) {
            return Ok(());
        }
        let targets = self.targets.iter().zip(&self.standings).filter(|(_, standing)| !standing.left_out);
        let told = targets.map(|(target, standing)| match (&target.name, standing.there) {
            (Some(_), 0) => format!("{} (not there yet)", target.what()),
            (Some(_), _) => target.what(),
            (None, there) => format!("{} ({} there)", target.what(), grouped(there)),
        });
        let told = told.collect::<Vec<_>>().join(", ");
        let places: HashSet<String> = self.targets.iter().map(Target::place).collect();
        let place = if places.len() == 1 { self.targets[0].place() } else { String::new() };
        self.notes.say(&format!("watching {told}{place}"));
        Ok(())
    }
}

/// A state from the first list is no change, however it came.
fn as_present(change: Change<Object<Value>>) -> Change<Object<Value>> {
    Change { old: None, ..change }
}
