use std::time::Duration;

/// How long the steps in the life of a pod take.
///
/// ```
/// use std::time::Duration;
/// use watchkeeper_workloads::Timing;
///
/// let patient = Timing { pull: Duration::from_secs(20), ..Timing::default() };
/// let hasty = Timing::default().scaled(0.1);
/// # assert!(hasty.pull < patient.pull);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// From the creation of a pod until it has a node.
    pub schedule: Duration,
    /// Until its images are there, or it is known that they cannot be had.
    pub pull: Duration,
    /// Until its containers run. Each phase of init containers takes as long.
    pub start: Duration,
    /// Until it is ready.
    pub ready: Duration,
    /// How long pods run that are not always restarted (those of Jobs among them), and those that
    /// [fail](crate::annotation::FAILS).
    pub run: Duration,
    /// From the deletion of a pod until it is gone, at most the grace that it has.
    pub stop: Duration,
    /// How long a container that crashed waits for its first restart; doubled each time, up to thirty times as long.
    pub restart: Duration,
}

impl Default for Timing {
    /// As a small cluster with warm images feels: a pod is ready after about a second.
    fn default() -> Self {
        let millis = Duration::from_millis;
        Self {
            schedule: millis(50),
            pull: millis(400),
            start: millis(200),
            ready: millis(400),
            run: millis(2_000),
            stop: millis(500),
            restart: Duration::from_secs(10),
        }
    }
}

impl Timing {
    /// No step takes any time, except that of a container that crashes, which would never come to rest.
    pub fn instant() -> Self {
        let zero = Duration::ZERO;
        Self { restart: Self::default().restart, ..Self::default().each(|_| zero) }
    }

    /// Everything takes this many times as long. What is not a positive number changes nothing.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        self.each(|time| Duration::try_from_secs_f64(time.as_secs_f64() * factor).unwrap_or(time))
    }

    fn each(self, change: impl Fn(Duration) -> Duration) -> Self {
        let Self { schedule, pull, start, ready, run, stop, restart } = self;
        Self {
            schedule: change(schedule),
            pull: change(pull),
            start: change(start),
            ready: change(ready),
            run: change(run),
            stop: change(stop),
            restart: change(restart),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_factor_scales_everything() {
        let (usual, twice) = (Timing::default(), Timing::default().scaled(2.0));
        assert_eq!(twice.schedule, usual.schedule * 2);
        assert_eq!(twice.restart, usual.restart * 2);
        assert_eq!(usual.scaled(-1.0), usual);
        assert_eq!(usual.scaled(f64::NAN), usual);
        assert_eq!(Timing::instant().ready, Duration::ZERO);
        assert_ne!(Timing::instant().restart, Duration::ZERO);
    }
}
