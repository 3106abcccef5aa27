//! What is in the place of an election in programs that are built without the feature `election`: there is none, and every
//! replica works.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use watchkeeper_client::Guard;
use watchkeeper_sources::kubernetes::Connection;

use crate::health::Checks;
use crate::leadership::LeadershipSender;
use crate::manager::{Manager, StartError};
use crate::metrics::Metrics;

/// There is no lease to lead by.
#[allow(dead_code, reason = "there is none")]
pub(crate) struct Lease {
    never: Infallible,
}

impl Lease {
    pub(super) fn guard(&self) -> Arc<dyn Guard> {
        match self.never {}
    }

    pub(super) fn start(
        self,
        _: &str,
        _: Connection,
        _: LeadershipSender,
        _: &Checks,
        _: &Metrics,
    ) -> Result<RunningElection, StartError> {
        match self.never {}
    }
}

/// There is no election.
#[allow(dead_code, reason = "there is none")]
pub(crate) struct RunningElection {
    never: Infallible,
}

impl RunningElection {
    pub(super) fn leader(&self) -> Option<String> {
        match self.never {}
    }

    pub(super) async fn release(self, _: Duration) {
        match self.never {}
    }

    pub(super) fn abort(&self) {
        match self.never {}
    }
}

impl Manager {
    pub(super) fn election_described(&self) -> Option<watchkeeper_description::Election> {
        None
    }
}
