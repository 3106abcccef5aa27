//! Whether this process leads: what workers and tasks wait for.

use tokio::sync::watch;

/// The present term of this process as leader, if it leads.
///
/// Without election there is one term, which lasts as long as the manager.
#[derive(Clone)]
pub(crate) struct LeadershipWatch {
    term: watch::Receiver<Option<u64>>,
}

/// Sets the term. Receivers take its end for the end of the manager.
pub(crate) type LeadershipSender = watch::Sender<Option<u64>>;

impl LeadershipWatch {
    pub(crate) fn channel(term: Option<u64>) -> (LeadershipSender, Self) {
        let (sender, term) = watch::channel(term);
        (sender, Self { term })
    }

    pub(crate) fn is_leading(&self) -> bool {
        self.term.borrow().is_some()
    }

    /// Waits until this process leads; gives the term, or `None` if it never will because the manager is gone.
    pub(crate) async fn won(&mut self) -> Option<u64> {
        let term = self.term.wait_for(Option::is_some).await.ok().and_then(|term| *term)?;
        // What was said last stays readable when nobody can say anything any more.
        self.term.has_changed().is_ok().then_some(term)
    }

    /// Resolves when this term is over, also if the next one has begun.
    pub(crate) async fn lost(&mut self, term: u64) {
        // An error means that the manager is gone.
        let _ = self.term.wait_for(|now| *now != Some(term)).await;
    }
}
