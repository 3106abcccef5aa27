//! What a candidate does next, given what it has seen: pure, without clocks, requests or tasks.
//!
//! Two rules make it safe. A lease that somebody else holds is left alone until it has not been seen to change for its
//! duration, by the local clock. And every write names the version that it is based on, so that of two candidates who
//! think that it is their turn, one is told of a conflict.

mod leading;
mod releasing;
mod standby;
#[cfg(test)]
mod tests;

use std::time::Duration;

use crate::lease::{Claim, Lease};
use crate::{ElectionMetrics, ElectionOptions, LeaseName, Loss, options};

/// A time of the local clock.
pub(crate) type Moment = Duration;

/// What has happened.
#[derive(Debug)]
pub(crate) enum Input {
    /// Time has passed.
    Wake,
    /// The watch showed the lease, or that it was deleted.
    Sighted(Option<Lease>),
    /// The last request was answered.
    Answered(Answer),
    /// The leader's work is done; a request that is under way was dropped.
    Release,
}

/// What a request came to.
#[derive(Debug)]
pub(crate) enum Answer {
    /// The lease, or that there is none.
    Found(Option<Lease>),
    /// It was written, and is now this.
    Written(Lease),
    /// Somebody else was faster.
    Conflict,
    /// It may or may not have been written.
    Failed { why: String, timed_out: bool },
}

/// What to do.
#[derive(Debug, PartialEq)]
pub(crate) enum Action {
    /// Nothing until then, or until the lease is sighted.
    Wait { until: Moment },
    /// Read the lease.
    Read { timeout: Duration },
    /// Create it.
    Create { lease: Lease, timeout: Duration },
    /// Replace it.
    Replace { lease: Lease, timeout: Duration },
    /// Nothing, ever again.
    End,
}

/// What to tell.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Note {
    Standby(Option<String>),
    Leading,
    Lost(Loss),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Standby,
    Leading,
    Releasing { deadline: Moment },
    Ended,
}

/// A write of ours.
#[derive(Clone, Debug)]
struct Attempt {
    /// What it put into the lease as the time of the renewal, by which it is recognised.
    stamp: String,
    sent: Moment,
}

/// A lease, and when it was first seen as it is.
#[derive(Debug)]
struct Seen {
    lease: Lease,
    since: Moment,
}

pub(crate) struct Machine {
    name: LeaseName,
    identity: String,
    lease_duration: Duration,
    renew_deadline: Duration,
    retry_period: Duration,
    random: fastrand::Rng,
    role: Role,
    /// What is known of the lease. If it is gone, what it was.
    seen: Option<Seen>,
    gone: bool,
    /// Whether the lease has to be read before it can be written.
    unsure: bool,
    /// The last of our writes that is known to have succeeded, and those after it of which it is not known.
    ours: Option<Attempt>,
    attempts: Vec<Attempt>,
    /// Whether `ours` was acknowledged after the last loss.
    fresh: bool,
    /// Not to send anything before this; and when to read again, if nothing happens.
    not_before: Moment,
    poll_at: Moment,
    failure: Option<String>,
    told: Option<Option<String>>,
    notes: Vec<Note>,
    metrics: ElectionMetrics,
}

impl Machine {
    pub(crate) fn new(name: LeaseName, options: &ElectionOptions) -> Self {
        Self {
            name,
            identity: options.identity.clone(),
            lease_duration: options.lease_duration,
            renew_deadline: options.renew_deadline,
            retry_period: options.retry_period,
            random: fastrand::Rng::with_seed(options.seed),
            role: Role::Standby,
            seen: None,
            gone: false,
            unsure: true,
            ours: None,
            attempts: Vec::new(),
            fresh: false,
            not_before: Moment::ZERO,
            poll_at: Moment::ZERO,
            failure: None,
            told: None,
            notes: Vec::new(),
            metrics: ElectionMetrics::default(),
        }
    }

    /// Begins again after a panic: knows nothing but how many terms there were. A lease that it held is respected like that of
    /// somebody else, until it has run out.
    pub(crate) fn begin_again(&mut self, options: &ElectionOptions, was_leading: bool) {
        *self = Self {
            metrics: ElectionMetrics { leading: false, ..self.metrics },
            ..Self::new(self.name.clone(), options)
        };
        if was_leading {
            self.notes.push(Note::Lost(Loss::NotRenewed { last: Some("the election panicked".into()) }));
        }
    }

    /// Takes in what has happened and says what to do. `stamp` is the date and time, for people to read in the lease.
    pub(crate) fn step(&mut self, now: Moment, stamp: &str, input: Input) -> Action {
        // First of all: an answer that comes too late does not make up for the time in which nobody could be sure.
        if self.held_until().is_some_and(|until| now >= until) {
            let last = self.failure.take();
            self.lose(now, Loss::NotRenewed { last });
        }
        match input {
            Input::Wake => {}
            Input::Sighted(lease) => self.see(now, lease),
            Input::Answered(answer) => self.take_in(now, answer),
            Input::Release => self.begin_to_release(now),
        }
        let action = match self.role {
            Role::Leading => self.lead(now, stamp),
            Role::Standby => self.stand_by(now, stamp),
            Role::Releasing { deadline } => self.release(now, stamp, deadline),
            Role::Ended => Action::End,
        };
        self.metrics.leading = self.role == Role::Leading;
        action
    }

    /// Until when the lease is held for certain; `None` unless leading.
    pub(crate) fn held_until(&self) -> Option<Moment> {
        let ours = self.ours.as_ref().filter(|_| self.role == Role::Leading)?;
        Some(ours.sent.saturating_add(self.lease_duration))
    }

    /// Whether others are to be watched.
    pub(crate) fn is_standby(&self) -> bool {
        self.role == Role::Standby
    }

    pub(crate) fn take_notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }

    pub(crate) fn metrics(&self) -> ElectionMetrics {
        self.metrics
    }

    fn take_in(&mut self, now: Moment, answer: Answer) {
        match answer {
            Answer::Found(lease) => {
                self.poll_at = now.saturating_add(self.jittered());
                self.unsure = false;
                self.see(now, lease);
            }
            Answer::Written(lease) => {
                self.metrics.renewals += 1;
                self.acknowledge(self.attempts.len().saturating_sub(1));
                self.seen = Some(Seen { lease, since: now });
                (self.gone, self.unsure, self.failure) = (false, false, None);
            }
            Answer::Conflict => self.unsure = true,
            Answer::Failed { why, timed_out } => {
                self.metrics.failures += 1;
                self.failure = Some(why);
                // A request that timed out has waited long enough for both.
                self.not_before =
                    if timed_out { now } else { now.saturating_add(self.pause_after_failure()) };
            }
        }
    }

    fn pause_after_failure(&mut self) -> Duration {
        match self.role {
            Role::Standby => self.jittered(),
            Role::Leading => self.retry_period,
            Role::Releasing { .. } | Role::Ended => self.retry_period / 4,
        }
    }

    fn see(&mut self, now: Moment, lease: Option<Lease>) {
        self.gone = lease.is_none();
        let Some(lease) = lease else { return };
        if lease.holder() == Some(&self.identity)
            && let Some(index) =
                self.attempts.iter().position(|attempt| lease.stamp() == Some(&attempt.stamp))
        {
            self.acknowledge(index);
        }
        match &mut self.seen {
            Some(seen) if seen.lease.says_the_same_as(&lease) => seen.lease = lease,
            seen => *seen = Some(Seen { lease, since: now }),
        }
    }

    /// One of our writes is known to have succeeded.
    fn acknowledge(&mut self, index: usize) {
        if index < self.attempts.len() {
            self.ours = Some(self.attempts.swap_remove(index));
            self.attempts.clear();
            self.fresh = true;
        }
    }

    /// Whether a lease is as we wrote it. One that another candidate of the same name wrote is not ours.
    fn is_ours(&self, lease: &Lease) -> bool {
        let ours = self.ours.as_ref().is_some_and(|ours| lease.stamp() == Some(&ours.stamp));
        ours && lease.holder() == Some(&self.identity)
    }

    fn holds_what_was_seen(&self) -> bool {
        !self.gone && self.seen.as_ref().is_some_and(|seen| self.is_ours(&seen.lease))
    }

    fn lose(&mut self, now: Moment, loss: Loss) {
        self.role = Role::Standby;
        self.fresh = false;
        self.unsure = true;
        // Whoever could not renew should not be the first to try again.
        if matches!(loss, Loss::NotRenewed { .. }) {
            self.not_before = now.saturating_add(self.jittered());
        }
        self.told = None;
        self.notes.push(Note::Lost(loss));
    }

    /// Writes the lease: for us, or for nobody.
    fn write(&mut self, now: Moment, stamp: &str, holder: &str, timeout: Duration) -> Action {
        let released = holder.is_empty();
        let duration = if released { Duration::from_secs(1) } else { self.lease_duration };
        let begins = !released && !self.holds_what_was_seen();
        let claim = Claim { holder, duration, stamp, begins };
        self.attempts.push(Attempt { stamp: stamp.to_owned(), sent: now });
        match &self.seen {
            Some(seen) if !self.gone => Action::Replace { lease: seen.lease.claimed(&claim), timeout },
            _ => Action::Create { lease: Lease::first(&self.name, &claim), timeout },
        }
    }

    fn claim(&mut self, now: Moment, stamp: &str, timeout: Duration) -> Action {
        let identity = self.identity.clone();
        self.write(now, stamp, &identity, timeout)
    }

    /// How long a request may take, so that there is time for another.
    fn request_timeout(&self) -> Duration {
        self.renew_deadline / 2
    }

    fn jittered(&mut self) -> Duration {
        self.retry_period.mul_f64(1.0 + options::JITTER * self.random.f64())
    }
}
