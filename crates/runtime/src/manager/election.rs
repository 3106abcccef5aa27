//! Who leads: from the events of an election to what workers and clients go by.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use watchkeeper_election::{Election, ElectionEvent, Leadership};

use crate::leadership::LeadershipSender;
use crate::metrics::{Lease, Metrics};

/// The guard of the clients: may write while the lease is held, as far as the local clock can tell.
#[derive(Clone, Default)]
pub(crate) struct Term {
    current: Arc<RwLock<Option<Leadership>>>,
}

impl Term {
    pub(crate) fn is_held(&self) -> bool {
        self.current.read().as_ref().is_some_and(Leadership::is_held)
    }
}

/// What is known of the election.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ElectionState {
    /// Nothing yet.
    Unknown,
    Standby {
        leader: Option<String>,
    },
    Leading,
}

/// How often what the election counts is shown.
const POLL_INTERVAL: Duration = Duration::from_secs(5);

/// Follows an election.
pub(crate) struct Follower {
    pub(crate) election: Election,
    pub(crate) name: Arc<str>,
    pub(crate) term: Term,
    pub(crate) leadership: LeadershipSender,
    pub(crate) state: watch::Sender<ElectionState>,
    pub(crate) metrics: Metrics,
}

impl Follower {
    /// Follows until it is told to stop, then gives the election back to be released.
    pub(crate) async fn supervised(mut self, stop: CancellationToken) -> Election {
        let supervisor = self.metrics.supervisor.clone();
        supervisor.run_with("leadership", &mut self, |follower| Box::pin(follower.run(&stop))).await;
        self.election
    }

    async fn run(&mut self, stop: &CancellationToken) {
        let lease = Lease { name: Arc::clone(&self.name) };
        let slow_renewals = self.metrics.election.slow_renewals.get_or_create_owned(&lease);
        let mut look = tokio::time::interval(POLL_INTERVAL);
        self.catch_up();
        self.show(self.leadership.borrow().is_some());
        loop {
            let slow = self.election.metrics().slow_renewals;
            slow_renewals.inc_by(slow.saturating_sub(slow_renewals.get()));
            let held = self.term.current.read().clone();
            // The term may end before the election says so: when the process was stopped for longer than the lease.
            let expired = async {
                match &held {
                    Some(leadership) => leadership.lost().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = stop.cancelled() => return,
                () = expired => {
                    tracing::warn!(lease = %self.name, "leadership is uncertain; writes are held back");
                    self.lose();
                }
                _ = look.tick() => {}
                event = self.election.next() => match event {
                    Some(event) => self.take(event),
                    None => return stop.cancelled().await,
                },
            }
        }
    }

    /// What was being told when this panicked is told again.
    fn catch_up(&mut self) {
        let held = self.term.current.read().as_ref().map(Leadership::term);
        match self.election.leadership() {
            Some(leadership) if held != Some(leadership.term()) => self.win(leadership),
            None if held.is_some() => self.lose(),
            _ => {}
        }
    }

    fn take(&mut self, event: ElectionEvent) {
        match event {
            ElectionEvent::Leading(leadership) => self.win(leadership),
            ElectionEvent::Standby { leader } => {
                tracing::info!(lease = %self.name, leader = leader.as_deref().unwrap_or("none"), "standing by");
                self.state.send_replace(ElectionState::Standby { leader });
            }
            ElectionEvent::Lost(loss) => {
                tracing::warn!(lease = %self.name, reason = %loss, "leadership lost");
                self.lose();
            }
            event => tracing::info!(lease = %self.name, ?event, "election"),
        }
    }

    fn win(&mut self, leadership: Leadership) {
        let number = leadership.term();
        tracing::info!(lease = %self.name, term = number, "leading");
        *self.term.current.write() = Some(leadership);
        self.state.send_replace(ElectionState::Leading);
        self.show(true);
        self.leadership.send_replace(Some(number));
    }

    fn lose(&mut self) {
        *self.term.current.write() = None;
        self.state.send_replace(ElectionState::Standby { leader: None });
        self.leadership.send_replace(None);
        self.show(false);
    }

    fn show(&self, is_leading: bool) {
        let gauge =
            self.metrics.election.leading.get_or_create_owned(&Lease { name: Arc::clone(&self.name) });
        gauge.set(i64::from(is_leading));
    }
}
