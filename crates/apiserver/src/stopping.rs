//! Word that the server is about to stop.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// When a server stops.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stop {
    /// When it was told to.
    pub(crate) at: Instant,
    /// Over which time watches end, so that their clients do not all come to another server at once.
    pub(crate) spread: Duration,
}

/// Tells tasks and watches that the server is about to stop.
#[derive(Clone)]
pub(crate) struct Stopping {
    stop: watch::Receiver<Option<Stop>>,
    /// At which part of the time over which watches end: 0 is at once.
    share: f64,
}

impl Stopping {
    /// For what ends at once.
    pub(crate) fn new(stop: watch::Receiver<Option<Stop>>) -> Self {
        Self { stop, share: 0.0 }
    }

    /// For one of many, each of which ends at some other moment. `share` is between 0 and 1.
    pub(crate) fn at_share(self, share: f64) -> Self {
        Self { share, ..self }
    }

    /// Waits until it is time to end. May be cancelled and called again.
    pub(crate) async fn wait(&mut self) {
        // If the sender is gone, so is the server.
        let stop = self.stop.wait_for(Option::is_some).await.ok().and_then(|stop| *stop);
        if let Some(Stop { at, spread }) = stop.filter(|stop| !stop.spread.is_zero()) {
            sleep_until(at + spread.mul_f64(self.share)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn watches_end_one_after_the_other() {
        let (sender, receiver) = watch::channel(None);
        let mut all = [0.0, 0.25, 1.0].map(|share| Stopping::new(receiver.clone()).at_share(share));
        let at = Instant::now();
        sender.send_replace(Some(Stop { at, spread: Duration::from_secs(8) }));
        let mut ended = Vec::new();
        for stopping in &mut all {
            stopping.wait().await;
            ended.push(at.elapsed().as_secs());
        }
        assert_eq!(ended, [0, 2, 8]);
    }
}
