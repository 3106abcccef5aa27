use tokio_util::sync::CancellationToken;

use crate::Peer;

/// A signal to endless streams that the server is about to stop.
///
/// A service that answers with a stream ends it when the shutdown of the request begins; answers that come to an end by
/// themselves take no notice, they are waited for.
#[derive(Clone, Debug, Default)]
pub struct Shutdown(CancellationToken);

impl Shutdown {
    /// A shutdown that has not begun.
    pub fn new() -> Self {
        Self::default()
    }

    /// The shutdown of the front of a request; one that never begins if the request did not come through a front.
    pub fn of<B>(request: &http::Request<B>) -> Self {
        Peer::of(request).map(|peer| peer.shutdown().clone()).unwrap_or_default()
    }

    /// Begins the shutdown, for all clones.
    pub fn begin(&self) {
        self.0.cancel();
    }

    /// Whether the shutdown has begun.
    pub fn has_begun(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Waits until it begins.
    pub async fn begun(&self) {
        self.0.cancelled().await;
    }
}
