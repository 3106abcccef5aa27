//! How authorities are replaced without a moment in which a server shows a certificate that nobody believes.
//!
//! ```text
//!             due                    all show both,            some time later
//!   steady ---------> announced ---- for a while ----> promoted ----------------> steady
//!   [A]               [A, B]                           [B, A]                     [B]
//!   A signs           A signs                          B signs                    B signs
//! ```
//!
//! Everything that is known is in the Secret and in the configurations, so that a replica that dies leaves nothing undone that
//! another would not do: [`step`] looks at both and says what comes next. Whoever is first does it, since each write is on the
//! condition that nothing was written meanwhile.

use std::time::{Duration, SystemTime};

use super::record::{Record, millis};
use crate::configuration::Shown;

/// The times after which authorities and certificates are replaced.
///
/// ```
/// # use std::time::Duration;
/// use watchkeeper_webhook::{Certificates, Rotation, WebhookOptions};
/// // Certificates that are valid for a day.
/// let mut rotation = Rotation::default();
/// rotation.certificate_life = Duration::from_secs(24 * 3600);
/// let mut options = WebhookOptions::default();
/// options.certificates = Certificates::Own(rotation);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rotation {
    /// The lifetime of an authority, which is replaced after two thirds of it. Default: a year.
    pub authority_life: Duration,
    /// The lifetime of the certificate of a server, which is replaced after two thirds of it. Default: 30 days.
    pub certificate_life: Duration,
    /// The time for which every configuration has to show a new authority before the authority signs: as long as API servers may take to hear of it.
    /// Default: 10 s.
    pub settle: Duration,
    /// The time for which configurations show an old authority after the new one has begun to sign: as long as a replica may take to hear of
    /// that. Default: an hour.
    pub overlap: Duration,
}

impl Default for Rotation {
    fn default() -> Self {
        const DAY: Duration = Duration::from_secs(24 * 3600);
        Self {
            authority_life: DAY * 365,
            certificate_life: DAY * 30,
            settle: Duration::from_secs(10),
            overlap: Duration::from_secs(3600),
        }
    }
}

/// What comes next.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Step {
    /// There is no record: write the first one, on condition that there still is none.
    Create,
    /// This configuration does not show what it should: write it, on condition that it was not written meanwhile.
    Publish(usize),
    /// It is time: write a next authority into the record.
    Announce,
    /// All configurations have shown the next authority for long enough: it signs from now on.
    Promote,
    /// Nobody shows a certificate of the previous authority any more: it is forgotten.
    Drop,
    /// Somebody knows more than was read: read again.
    ReadAgain,
    /// Nothing to do before this time has passed, or something changes.
    Wait(Duration),
}

/// What a replica saw.
pub(crate) struct View<'a> {
    pub(crate) record: Option<&'a Record>,
    /// Each configuration, `None` if it is not there. They were read **before** the record.
    pub(crate) shown: &'a [Option<Shown>],
    /// Whether this process has not published yet: then it also mends what another version of the program has applied.
    pub(crate) starting: bool,
    /// Since when every configuration shows what it should, as this replica saw it.
    pub(crate) settled_since: Option<SystemTime>,
    /// Whether somebody asked for a rotation.
    pub(crate) asked: bool,
    pub(crate) now: SystemTime,
}

/// How long to wait at most; what changes wakes earlier.
const LONGEST: Duration = Duration::from_secs(600);

/// What comes next. Pure: the same view gives the same step.
pub(crate) fn step(view: &View<'_>, rotation: &Rotation) -> Step {
    let Some(record) = view.record else { return Step::Create };
    let bundle = record.bundle();
    for (at, shown) in view.shown.iter().enumerate() {
        match shown {
            None => return Step::Publish(at),
            Some(shown) if shown.sequence > record.sequence => return Step::ReadAgain,
            Some(shown)
                if shown.bundle != bundle || shown.has_drifted || (view.starting && !shown.is_ours) =>
            {
                return Step::Publish(at);
            }
            Some(_) => {}
        }
    }
    let passed = |since: SystemTime| view.now.duration_since(since).unwrap_or_default();
    if record.next.is_some() {
        let shown_for = view.settled_since.map_or(Duration::ZERO, passed);
        return match rotation.settle.checked_sub(shown_for).filter(|left| !left.is_zero()) {
            Some(left) => Step::Wait(left.min(LONGEST)),
            None => Step::Promote,
        };
    }
    if record.previous.is_some() {
        let signs_for = Duration::from_millis(millis(view.now).saturating_sub(record.since));
        return match rotation.overlap.checked_sub(signs_for).filter(|left| !left.is_zero()) {
            Some(left) => Step::Wait(left.min(LONGEST)),
            None => Step::Drop,
        };
    }
    let Ok((begin, end)) = record.current.life() else { return Step::Announce };
    let left = due(begin, end).duration_since(view.now).unwrap_or_default();
    if view.asked || left.is_zero() { Step::Announce } else { Step::Wait(left.min(LONGEST)) }
}

/// When something that counts from one time to another has to be replaced: after two thirds.
pub(crate) fn due(begin: SystemTime, end: SystemTime) -> SystemTime {
    let life = end.duration_since(begin).unwrap_or_default();
    begin + life / 3 * 2
}

#[cfg(test)]
#[path = "step_tests.rs"]
mod tests;
