//! From the journals of informers to what a person sees: without waiting, without a network.

use std::collections::HashSet;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use serde_json::Value;
use watchkeeper_core::{Cause, Change, Error, Key, Start};
use watchkeeper_informer::{Entry, Object};

use super::lines;
use super::notes::{Notes, counted, grouped, rounded};
use super::report::{Filter, Report, What};
use super::target::Target;
use super::text::Style;
use crate::cluster::plainly;
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
struct Standing {
    /// Whether it was completely listed once.
    synced: bool,
    /// How many objects the first list has.
    there: usize,
    /// Those of them that wait to be shown if they stay few.
    waiting: Vec<Change<Object<Value>>>,
    /// While a later list is compared with what is known: how many differ.
    comparing: Option<usize>,
    /// How often it was asked in vain since it last answered.
    failures: u32,
}

/// Takes the journals' entries, shows what is to be shown, and remembers what the notes need.
pub(super) struct Follower<W> {
    targets: Vec<Target>,
    standings: Vec<Standing>,
    pub(super) notes: Notes,
    out: W,
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
            Entry::Changed(change) if change.cause == Cause::Initial => self.initial(at, change),
            Entry::Changed(change) if !self.standings[at].synced => self.gone_before_the_end(at, change),
            Entry::Changed(change) => self.changed(at, &change),
            Entry::Complete(_) => self.complete(at),
            Entry::Resumed => self.resumed(at),
            Entry::Interrupted { error, wait, next } => self.interrupted(at, error, wait, &next),
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
        if standing.there <= FEW {
            waiting.sort_by(|left, right| left.key.cmp(&right.key));
            for change in waiting {
                self.show(at, &as_present(change), What::Present, false)?;
            }
        }
        self.out.flush()?;
        if self.standings.iter().all(|standing| standing.synced) {
            self.say_what_is_there();
        }
        Ok(())
    }

    fn say_what_is_there(&mut self) {
        let targets = self.targets.iter().zip(&self.standings);
        let told = targets.map(|(target, standing)| match (&target.name, standing.there) {
            (Some(_), 0) => format!("{} (not there yet)", target.what()),
            (Some(_), _) => target.what(),
            (None, there) => format!("{} ({} there)", target.what(), grouped(there)),
        });
        let told = told.collect::<Vec<_>>().join(", ");
        let places: HashSet<String> = self.targets.iter().map(Target::place).collect();
        let place = if places.len() == 1 { self.targets[0].place() } else { String::new() };
        self.notes.say(&format!("watching {told}{place}"));
    }

    fn resumed(&mut self, at: usize) -> Result<(), Stop> {
        let lost = std::mem::take(&mut self.standings[at].failures) > 0;
        if lost && self.standings.iter().all(|standing| standing.failures == 0) {
            self.out.flush()?;
            self.notes.say("connected again, nothing missed");
        }
        Ok(())
    }

    fn interrupted(
        &mut self,
        at: usize,
        error: Option<Error>,
        wait: Duration,
        next: &Start,
    ) -> Result<(), Stop> {
        if !self.standings[at].synced {
            return self.never_came(at, error, wait);
        }
        self.out.flush()?;
        let lists = matches!(next, Start::Snapshot(_));
        if lists && self.standings[at].comparing.is_none() {
            self.standings[at].comparing = Some(0);
            if matches!(error, Some(Error::Expired(_)) | None) {
                let (what, place) = (self.targets[at].what(), self.targets[at].place());
                self.notes.say(&format!(
                    "the server no longer has all changes of {what}{place}: comparing with its present state"
                ));
            }
        }
        let Some(error) = error.filter(|error| !matches!(error, Error::Expired(_))) else { return Ok(()) };
        let others = self.standings.iter().any(|standing| standing.failures > 0);
        let standing = &mut self.standings[at];
        standing.failures += 1;
        // One line for all targets, and fewer and fewer while it lasts.
        let worth =
            if standing.failures == 1 { !others } else { standing.failures.is_power_of_two() && at == 0 };
        if worth {
            let reason = reason(&error);
            let what =
                if matches!(error, Error::Denied(_)) { "not allowed any more" } else { "connection lost" };
            self.notes.say(&format!("{what}: {reason}; trying again in {}", rounded(wait)));
        }
        Ok(())
    }

    /// A failure before the first list was complete: mostly of what was asked for.
    fn never_came(&mut self, at: usize, error: Option<Error>, wait: Duration) -> Result<(), Stop> {
        let target = &self.targets[at];
        let (what, place) = (target.what(), target.place());
        // It starts over.
        self.standings[at].there = 0;
        let failed = match error {
            None | Some(Error::Expired(_)) => return Ok(()),
            Some(Error::Denied(said)) if target.by_category => {
                self.notes.say(&format!("{what}{place} left out: {}", without_request(&said)));
                self.standings[at].synced = true;
                return Ok(());
            }
            Some(Error::Denied(said)) => Failure::running(format!(
                "not allowed to list and watch {what}{place}: {}; another --context, or -n NAMESPACE, may be",
                without_request(&said)
            )),
            Some(Error::Missing(said)) => {
                Failure::running(format!("{what}{place}: {}", without_request(&said)))
            }
            Some(Error::Fatal(said)) => {
                Failure::input(format!("{what}{place} cannot be watched so: {}", without_request(&said)))
            }
            Some(error) => {
                let standing = &mut self.standings[at];
                standing.failures += 1;
                if standing.failures.is_power_of_two() {
                    let (reason, url) = (reason(&error), &self.url);
                    self.notes
                        .say(&format!("no answer from {url}: {reason}; trying again in {}", rounded(wait)));
                }
                return Ok(());
            }
        };
        Err(Stop::Failed(failed))
    }
}

/// A state from the first list is no change, however it came.
fn as_present(change: Change<Object<Value>>) -> Change<Object<Value>> {
    Change { old: None, ..change }
}

fn reason(error: &Error) -> String {
    let text = match error {
        Error::Expired(reason) | Error::Denied(reason) | Error::Missing(reason) | Error::Fatal(reason) => {
            reason
        }
        Error::Throttled { reason, .. } | Error::Unavailable { reason, .. } => reason,
        _ => return error.to_string(),
    };
    plainly(without_request(text)).to_owned()
}

/// `watch /api/v1/pods: broken off` says `broken off`: which request it was is of no use to those who did not send it.
fn without_request(text: &str) -> &str {
    match text.split_once(": ") {
        Some((request, rest)) if ["watch /", "list /"].iter().any(|verb| request.starts_with(verb)) => rest,
        _ => text,
    }
}
