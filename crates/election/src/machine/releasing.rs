use crate::Loss;

use super::{Action, Machine, Moment, Note, Role};

impl Machine {
    /// Begins to give the lease up.
    pub(super) fn begin_to_release(&mut self, now: Moment) {
        let deadline = now.saturating_add(self.renew_deadline);
        match self.role {
            Role::Leading => {
                self.notes.push(Note::Lost(Loss::Released));
                self.role = Role::Releasing { deadline: self.held_until().unwrap_or(deadline).min(deadline) };
            }
            // A claim whose answer never came may have succeeded.
            Role::Standby if !self.attempts.is_empty() => {
                self.unsure = true;
                self.role = Role::Releasing { deadline };
            }
            Role::Standby => self.role = Role::Ended,
            Role::Releasing { .. } | Role::Ended => {}
        }
        self.not_before = now;
    }

    /// Leaves the lease to others, as far as it is ours.
    pub(super) fn release(&mut self, now: Moment, stamp: &str, deadline: Moment) -> Action {
        if now < self.not_before && self.not_before < deadline {
            return Action::Wait { until: self.not_before };
        }
        if now >= self.not_before && now < deadline {
            let timeout = self.request_timeout().min(deadline.saturating_sub(now));
            if self.unsure {
                return Action::Read { timeout };
            }
            if self.holds_what_was_seen() {
                return self.write(now, stamp, "", timeout);
            }
        }
        self.role = Role::Ended;
        Action::End
    }
}
