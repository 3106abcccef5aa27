//! How servers end.

use std::process;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use watchkeeper_apiserver::ApiServer;
use watchkeeper_apiserver::front::{Drained, Front};

use crate::failure::Failure;

/// The signals that ask a process to end.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    pub(crate) fn listen() -> Result<Self, Failure> {
        let listen = |kind| signal(kind).map_err(Failure::running);
        Ok(Self { interrupt: listen(SignalKind::interrupt())?, terminate: listen(SignalKind::terminate())? })
    }

    /// The number of the next one.
    pub(crate) async fn next(&mut self) -> i32 {
        tokio::select! {
            _ = self.interrupt.recv() => SignalKind::interrupt().as_raw_value(),
            _ = self.terminate.recv() => SignalKind::terminate().as_raw_value(),
        }
    }
}

/// Waits for a signal, then stops the server when all requests are answered or `grace` is over. A second signal ends the
/// process at once.
pub(crate) async fn until_stopped(signals: &mut Signals, server: &ApiServer, front: Front, grace: Duration) {
    signals.next().await;
    let stop = async { tokio::join!(server.stop(), front.shutdown(grace)) };
    tokio::select! {
        ((), drained) = stop => {
            if drained == Drained::CutOff {
                tracing::warn!("requests were cut off, {grace:?} were not enough for them");
            }
        }
        number = signals.next() => process::exit(128 + number),
    }
}
