use tokio::sync::watch;

/// Whether this process leads, and since when: the number of its term.
///
/// Without election there is one term, which lasts as long as the manager.
#[derive(Clone)]
pub(crate) struct Lead {
    term: watch::Receiver<Option<u64>>,
}

/// Says who leads. The manager is gone when this is.
pub(crate) type Leads = watch::Sender<Option<u64>>;

impl Lead {
    pub(crate) fn channel(term: Option<u64>) -> (Leads, Self) {
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
