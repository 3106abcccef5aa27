//! What is said when the server does not answer, and when it does again.

use std::io::Write;
use std::time::Duration;

use watchkeeper_core::{Error, Start};

use super::follower::{Follower, Standing, Stop};
use super::notes::rounded;
use crate::cluster::plainly;
use crate::failure::Failure;

impl<W: Write> Follower<W> {
    pub(super) fn resumed(&mut self, at: usize) -> Result<(), Stop> {
        let lost = std::mem::take(&mut self.standings[at].failures) > 0;
        if lost && self.standings.iter().all(|standing| standing.failures == 0) {
            self.out.flush()?;
            self.notes.say("connected again, nothing missed");
        }
        Ok(())
    }

    pub(super) fn interrupted(
        &mut self,
        at: usize,
        error: Option<Error>,
        wait: Duration,
        next: &Start,
    ) -> Result<(), Stop> {
        match self.standings[at] {
            Standing { left_out: true, .. } => return Ok(()),
            Standing { synced: false, .. } => return self.never_came(at, error, wait),
            _ => {}
        }
        // A source that is read again and again is not lost in between.
        if error.is_none() && self.targets[at].kind().is_none() {
            return Ok(());
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
        self.standings[at].failures += 1;
        let failures = self.standings[at].failures;
        // One line for all targets, and fewer and fewer while it lasts.
        let first = self.standings.iter().position(|standing| standing.failures > 0) == Some(at);
        let worth = if failures == 1 { !others } else { first && failures.is_power_of_two() };
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
        let failed = match error {
            None | Some(Error::Expired(_)) => return Ok(()),
            Some(Error::Denied(said)) if target.by_category => {
                self.notes.say(&format!("{what}{place} left out: {}", without_request(&said)));
                let standing = &mut self.standings[at];
                (standing.synced, standing.left_out) = (true, true);
                if self.standings.iter().any(|standing| !standing.left_out) {
                    return self.say_what_is_there();
                }
                Failure::running(format!(
                    "not allowed to list and watch anything of what was asked for{place}"
                ))
            }
            Some(Error::Denied(said)) if target.kind().is_none() => {
                Failure::running(format!("not allowed to read {what}: {said}"))
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
