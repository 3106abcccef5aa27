use tokio::sync::watch;

/// Whether this process does what only one of those that share a storage should do.
///
/// It is a courtesy, not a lock: for a moment, two may believe that they lead. What leaders do has to be right nevertheless, by
/// preconditions.
#[derive(Clone, Debug)]
pub struct Leadership(Option<watch::Receiver<bool>>);

impl Leadership {
    /// The leadership of a storage that is not shared.
    pub fn always() -> Self {
        Self(None)
    }

    /// Leads while the channel says so. Without a sender, for ever as it said last.
    pub fn of(leading: watch::Receiver<bool>) -> Self {
        Self(Some(leading))
    }

    /// Waits until this process leads.
    pub async fn gained(&mut self) {
        self.becomes(true).await;
    }

    /// Waits until it does not any more.
    pub async fn lost(&mut self) {
        self.becomes(false).await;
    }

    async fn becomes(&mut self, wanted: bool) {
        let reached = match &mut self.0 {
            None => wanted,
            Some(leading) => leading.wait_for(|leading| *leading == wanted).await.is_ok(),
        };
        if !reached {
            std::future::pending::<()>().await;
        }
    }
}
