use std::time::{Duration, SystemTime};

use watchkeeper_supervision::Supervisor;

use crate::{MonotonicClock, identity};

/// How much longer than the retry period a pause can be: it is jittered.
pub(crate) const JITTER: f64 = 1.2;

/// Options of an [`Election`](crate::Election). The default times are those of client-go.
///
/// ```
/// # use std::time::Duration;
/// # use watchkeeper_election::ElectionOptions;
/// // A leader that dies is replaced within six seconds.
/// let mut options = ElectionOptions::default();
/// options.lease_duration = Duration::from_secs(6);
/// options.renew_deadline = Duration::from_secs(4);
/// options.retry_period = Duration::from_secs(1);
/// assert!(options.validate().is_ok());
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ElectionOptions {
    /// The identity of the candidate. Must differ from that of all others; by default `host_pid_random`.
    pub identity: String,
    /// The time after which a lease that is not renewed can be taken: 15 s. Whole seconds.
    pub lease_duration: Duration,
    /// The time for which the leader retries a renewal before it gives up: 10 s.
    pub renew_deadline: Duration,
    /// The interval at which the leader renews, and at which the others look: 2 s. The latter wait up to 2.2 times longer, so that they
    /// do not come all at once; since they also watch the lease, they need it only when watches fail.
    pub retry_period: Duration,
    /// Whether to watch the lease, so as to take over at once when it is released. Without the permission to watch, the
    /// candidate looks every retry period.
    pub watch: bool,
    /// The clock that measures all of these.
    pub clock: MonotonicClock,
    /// The clock of the times in the Lease, which are for people: no decision depends on it.
    pub wall_clock: fn() -> SystemTime,
    /// The seed of the jitter.
    pub seed: u64,
    /// The supervisor of the task.
    pub supervisor: Supervisor,
}

impl Default for ElectionOptions {
    fn default() -> Self {
        Self {
            identity: identity::unique(),
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
            watch: true,
            clock: MonotonicClock::default(),
            wall_clock: SystemTime::now,
            seed: fastrand::u64(..),
            supervisor: Supervisor::default(),
        }
    }
}

/// The error of [`ElectionOptions`] that do not fit together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidOptions {
    /// The identity must not be empty.
    #[error("the identity is empty")]
    NoIdentity,
    /// The lease duration must be in whole seconds.
    #[error("the lease duration ({0:?}) is not one or more whole seconds")]
    NotSeconds(Duration),
    /// The leader has to give up before others take over.
    #[error(
        "the renew deadline ({renew_deadline:?}) is not shorter than the lease duration ({lease_duration:?})"
    )]
    RenewDeadline {
        /// The one.
        renew_deadline: Duration,
        /// The other.
        lease_duration: Duration,
    },
    /// There has to be time for another try.
    #[error(
        "the retry period ({retry_period:?}) times 1.2 is not shorter than the renew deadline ({renew_deadline:?})"
    )]
    RetryPeriod {
        /// The one.
        retry_period: Duration,
        /// The other.
        renew_deadline: Duration,
    },
    /// The retry period must not be zero.
    #[error("the retry period is zero")]
    NoRetryPeriod,
}

impl ElectionOptions {
    /// Checks that the options fit together.
    pub fn validate(&self) -> Result<(), InvalidOptions> {
        let Self { lease_duration, renew_deadline, retry_period, .. } = *self;
        if self.identity.is_empty() {
            return Err(InvalidOptions::NoIdentity);
        }
        if lease_duration.as_secs() == 0 || lease_duration.subsec_nanos() != 0 {
            return Err(InvalidOptions::NotSeconds(lease_duration));
        }
        if renew_deadline >= lease_duration {
            return Err(InvalidOptions::RenewDeadline { renew_deadline, lease_duration });
        }
        if retry_period.mul_f64(JITTER) >= renew_deadline {
            return Err(InvalidOptions::RetryPeriod { retry_period, renew_deadline });
        }
        if retry_period.is_zero() {
            return Err(InvalidOptions::NoRetryPeriod);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(lease: u64, renew: u64, retry: u64) -> Result<(), InvalidOptions> {
        let seconds = Duration::from_millis;
        ElectionOptions {
            lease_duration: seconds(lease),
            renew_deadline: seconds(renew),
            retry_period: seconds(retry),
            ..ElectionOptions::default()
        }
        .validate()
    }

    #[test]
    fn what_cannot_work_is_refused() {
        assert_eq!(ElectionOptions::default().validate(), Ok(()));
        assert_eq!(with(15_000, 10_000, 8_000), Ok(()));
        assert!(matches!(with(15_000, 15_000, 2_000), Err(InvalidOptions::RenewDeadline { .. })));
        assert!(matches!(with(15_000, 10_000, 8_400), Err(InvalidOptions::RetryPeriod { .. })));
        assert!(matches!(with(1_500, 1_000, 100), Err(InvalidOptions::NotSeconds(_))));
        assert!(matches!(with(0, 0, 0), Err(InvalidOptions::NotSeconds(_))));
        assert_eq!(with(2_000, 1_000, 0), Err(InvalidOptions::NoRetryPeriod));
        let nobody = ElectionOptions { identity: String::new(), ..ElectionOptions::default() };
        assert_eq!(nobody.validate(), Err(InvalidOptions::NoIdentity));
    }
}
