use crate::Loss;

use super::{Action, Machine, Moment};

impl Machine {
    /// Renews the lease.
    pub(super) fn lead(&mut self, now: Moment, stamp: &str) -> Action {
        if !self.unsure && !self.gone && !self.holds_what_was_seen() {
            let by = self.seen.as_ref().and_then(|seen| seen.lease.holder()).map(str::to_owned);
            self.lose(now, Loss::Taken { by });
            // What is known is the newest there is.
            self.unsure = false;
            return self.stand_by(now, stamp);
        }
        let sent = self.ours.as_ref().map(|ours| ours.sent).unwrap_or_default();
        let renew_by = sent.saturating_add(self.renew_deadline);
        if now >= renew_by {
            let last = self.failure.take();
            self.lose(now, Loss::NotRenewed { last });
            return self.stand_by(now, stamp);
        }
        let slow = self.unsure || self.gone;
        let next =
            if slow { self.not_before } else { self.not_before.max(sent.saturating_add(self.retry_period)) };
        if now < next {
            return Action::Wait { until: next.min(renew_by) };
        }
        // One request that hangs must not use up all the time there is.
        let timeout = self.request_timeout().min(renew_by.saturating_sub(now));
        if self.unsure {
            self.metrics.slow_renewals += 1;
            return Action::Read { timeout };
        }
        self.claim(now, stamp, timeout)
    }
}
