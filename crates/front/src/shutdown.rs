use tokio_util::sync::CancellationToken;

use crate::Peer;

/// Tells those who stream without end that the server is about to stop.
///
/// A service that answers with a stream ends it when the shutdown of the request begins; answers that come to an end by
/// themselves take no notice, they are waited for.
#[derive(Clone, Debug, Default)]
pub struct Shutdown(CancellationToken);

impl Shutdown {
    /// One that has not begun.
    pub fn new() -> Self {
        Self::default()
    }

    /// That of a request; one that never begins if the request did not come through a front.
    pub fn of<B>(request: &http::Request<B>) -> Self {
        Peer::of(request).map(|peer| peer.shutdown().clone()).unwrap_or_default()
    }

    /// Begins it, for everybody who has a clone.
    pub fn begin(&self) {
        self.0.cancel();
    }

    /// Whether it has begun.
    pub fn has_begun(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Waits until it begins.
    pub async fn begun(&self) {
        self.0.cancelled().await;
    }
}
