//! Who leads: from the events of an election to what workers and clients go by.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use watchkeeper_election::{Election, Event, Leadership};

use crate::lead::Leads;
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
pub(crate) enum Standing {
    /// Nothing yet.
    Unknown,
    Standby {
        leader: Option<String>,
    },
    Leading,
}

/// How often what the election counts is shown.
const LOOK: Duration = Duration::from_secs(5);

/// Follows an election until it is told to stop, then gives it back to be released.
pub(crate) async fn follow(
    mut election: Election,
    name: Arc<str>,
    term: Term,
    lead: Leads,
    standing: watch::Sender<Standing>,
    metrics: Metrics,
    stop: CancellationToken,
) -> Election {
    let gauge = metrics.leading.get_or_create_owned(&Lease { name: Arc::clone(&name) });
    gauge.set(0);
    let slow_renewals = metrics.slow_renewals.get_or_create_owned(&Lease { name: Arc::clone(&name) });
    let mut look = tokio::time::interval(LOOK);
    loop {
        slow_renewals.inc_by(election.metrics().slow_renewals.saturating_sub(slow_renewals.get()));
        let held = term.current.read().clone();
        // The term may end before the election says so: when the process was stopped for longer than the lease.
        let expired = async {
            match &held {
                Some(leadership) => leadership.lost().await,
                None => std::future::pending().await,
            }
        };
        let event = tokio::select! {
            () = stop.cancelled() => return election,
            () = expired => None,
            _ = look.tick() => continue,
            event = election.next() => match event {
                Some(event) => Some(event),
                None => {
                    stop.cancelled().await;
                    return election;
                }
            },
        };
        match event {
            Some(Event::Leading(leadership)) => {
                let number = leadership.term();
                tracing::info!(lease = %name, term = number, "leading");
                *term.current.write() = Some(leadership);
                standing.send_replace(Standing::Leading);
                gauge.set(1);
                lead.send_replace(Some(number));
            }
            Some(Event::Standby { leader }) => {
                tracing::info!(lease = %name, leader = leader.as_deref().unwrap_or("nobody"), "standing by");
                standing.send_replace(Standing::Standby { leader });
            }
            Some(Event::Lost(loss)) => {
                tracing::warn!(lease = %name, reason = %loss, "the lead is lost");
                lose(&term, &lead, &standing);
                gauge.set(0);
            }
            None => {
                tracing::warn!(lease = %name, "the lead is in doubt");
                lose(&term, &lead, &standing);
                gauge.set(0);
            }
        }
    }
}

fn lose(term: &Term, lead: &Leads, standing: &watch::Sender<Standing>) {
    *term.current.write() = None;
    standing.send_replace(Standing::Standby { leader: None });
    lead.send_replace(None);
}
