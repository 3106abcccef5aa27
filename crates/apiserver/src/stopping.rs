//! Word that the server is about to stop.

use tokio::sync::watch;

/// Tells tasks and watches that the server is about to stop.
#[derive(Clone)]
pub(crate) struct Stopping(watch::Receiver<bool>);

impl Stopping {
    pub(crate) fn new(stopping: watch::Receiver<bool>) -> Self {
        Self(stopping)
    }

    /// Waits until the server is about to stop.
    pub(crate) async fn wait(&mut self) {
        // If the sender is gone, so is the server.
        let _ = self.0.wait_for(|stopping| *stopping).await;
    }
}
