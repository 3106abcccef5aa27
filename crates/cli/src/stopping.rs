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

/// What becomes of the sockets of a server that stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sockets {
    /// They are closed, and who connects is refused.
    Closed,
    /// Whoever they were inherited from still has them: another process goes on with them.
    HandedOver,
}

/// Waits for a signal, then stops the server when all requests are answered or `grace` is over. A second signal ends the
/// process at once.
pub(crate) async fn until_stopped(
    signals: &mut Signals,
    server: &ApiServer,
    front: Front,
    sockets: Sockets,
    grace: Duration,
) {
    signals.next().await;
    let drain = async {
        match sockets {
            Sockets::Closed => front.shutdown(grace).await,
            Sockets::HandedOver => front.hand_over(grace).await,
        }
    };
    let stop = async { tokio::join!(server.stop(), drain) };
    tokio::select! {
        ((), drained) = stop => {
            if drained == Drained::CutOff {
                tracing::warn!("requests aborted: they did not end within {grace:?}");
            }
        }
        number = signals.next() => process::exit(128 + number),
    }
}
