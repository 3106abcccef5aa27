use super::{Action, Machine, Moment, Note, Role};

impl Machine {
    /// Waits for the lease to be free.
    pub(super) fn stand_by(&mut self, now: Moment, stamp: &str) -> Action {
        let ours = self.ours.as_ref().filter(|_| self.fresh && self.holds_what_was_seen());
        if ours.is_some_and(|ours| now < ours.sent.saturating_add(self.renew_deadline)) {
            self.role = Role::Leading;
            self.told = None;
            self.failure = None;
            self.not_before = now;
            self.metrics.terms += 1;
            self.notes.push(Note::Leading);
            return self.lead(now, stamp);
        }
        if now < self.not_before {
            return Action::Wait { until: self.not_before };
        }
        if self.unsure || now >= self.poll_at {
            return Action::Read { timeout: self.request_timeout() };
        }
        self.tell();
        match self.free_at() {
            Some(free_at) if now < free_at => Action::Wait { until: free_at.min(self.poll_at) },
            // If it fails, somebody else may have been faster.
            _ => {
                self.unsure = true;
                self.claim(now, stamp, self.request_timeout())
            }
        }
    }

    /// When the lease can be taken; `None` if it always could. A lease that was deleted is still respected: its holder
    /// does not know yet.
    fn free_at(&self) -> Option<Moment> {
        let seen =
            self.seen.as_ref().filter(|seen| seen.lease.holder().is_some() && !self.is_ours(&seen.lease))?;
        Some(seen.since.saturating_add(seen.lease.duration()))
    }

    /// Tells who leads, if that is news.
    fn tell(&mut self) {
        let leader = self.seen.as_ref().filter(|_| !self.gone).and_then(|seen| seen.lease.holder());
        let leader = leader.map(str::to_owned);
        if self.told.as_ref() != Some(&leader) {
            self.told = Some(leader.clone());
            self.notes.push(Note::Standby(leader));
        }
    }
}
