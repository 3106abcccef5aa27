//! How long reconciles come after changes.

use watchkeeper_bench_target::Result;

use crate::changes::Changes;

/// Seconds from changes to their reconciles, sorted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Delays(Vec<f64>);

impl Delays {
    /// From nanoseconds.
    pub(crate) fn of(delays: impl IntoIterator<Item = u64>) -> Self {
        let mut delays: Vec<f64> = delays.into_iter().map(|delay| delay as f64 / 1e9).collect();
        delays.sort_by(f64::total_cmp);
        Self(delays)
    }

    /// From when changes were sent, and from when they were answered, to when the reconciles of their versions began.
    ///
    /// # Errors
    ///
    /// If more than one in a hundred was not seen: a state that another took the place of at once is not reconciled itself, but
    /// changes are of objects in turn.
    pub(crate) fn since(changes: &Changes, starts: &[(u64, u64)]) -> Result<(Self, Self)> {
        let pairs = starts.iter().filter_map(|(version, began)| Some((changes.0.get(version)?, *began)));
        let (sent, answered): (Vec<u64>, Vec<u64>) = pairs
            .map(|(moment, began)| (began.saturating_sub(moment.sent), began.saturating_sub(moment.answered)))
            .unzip();
        if sent.len() * 100 < changes.0.len() * 99 {
            return Err(format!("{} changes, but {} reconciles of them", changes.0.len(), sent.len()).into());
        }
        Ok((Self::of(sent), Self::of(answered)))
    }

    /// The one that this share of them is not above.
    pub(crate) fn at(&self, share: f64) -> f64 {
        let last = self.0.len().saturating_sub(1);
        self.0.get((last as f64 * share).ceil() as usize).copied().unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::changes::Moment;

    #[test]
    fn a_reconcile_is_found_by_its_version_and_is_never_before_its_change() {
        let moment = |sent, answered| Moment { sent, answered };
        let changes = Changes([(7, moment(100, 300)), (8, moment(200, 400))].into());
        let (sent, answered) = Delays::since(&changes, &[(7, 250), (8, 700), (9, 800)]).unwrap_or_default();
        assert_eq!(sent.0, [150e-9, 500e-9]);
        assert_eq!(answered.0, [0.0, 300e-9]);
        assert!(Delays::since(&changes, &[(7, 250)]).is_err());
    }

    #[test]
    fn of_a_hundred_the_last_but_one_is_not_exceeded_by_99_in_100() {
        let delays = Delays::of((1..=101).map(|n| n * 1_000_000_000));
        assert_eq!([delays.at(0.5), delays.at(0.99), delays.at(1.0)], [51.0, 100.0, 101.0]);
        assert_eq!(Delays::default().at(0.5), 0.0);
    }
}
