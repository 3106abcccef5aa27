//! How servers end.

use std::process;
use std::time::Duration;

use clap::Args;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, sleep, timeout};
use watchkeeper_apiserver::ApiServer;
use watchkeeper_apiserver::front::{Drained, Front};

use crate::duration;
use crate::failure::Failure;

/// How much later each further watch ends than the one before it, at least: a few watches do not keep a server from stopping.
const WATCH_INTERVAL: Duration = Duration::from_millis(10);

/// How a server ends that is told to: kube-apiserver's words for it.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct ShutdownArgs {
    /// After the first signal, how long to go on as ever, but for /readyz: for balancers to notice that this server is going
    #[arg(long, value_name = "DURATION", value_parser = duration::parse_any, default_value = "0s")]
    shutdown_delay_duration: Duration,
    /// Then answer new requests with 429 and Retry-After until those that run are answered, instead of refusing connections
    #[arg(long)]
    shutdown_send_retry_after: bool,
    /// Over how much time watches end, one after the other, so that their clients do not all turn to another server at once
    ///
    /// A server with few watches takes less: ten milliseconds for each.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse_any, default_value = "10s")]
    shutdown_watch_termination_grace_period: Duration,
}

impl Default for ShutdownArgs {
    /// At once.
    fn default() -> Self {
        Self {
            shutdown_delay_duration: Duration::ZERO,
            shutdown_send_retry_after: false,
            shutdown_watch_termination_grace_period: Duration::ZERO,
        }
    }
}

impl ShutdownArgs {
    /// Over how much time so many watches end.
    fn spread(&self, watches: usize) -> Duration {
        let enough = WATCH_INTERVAL.saturating_mul(u32::try_from(watches).unwrap_or(u32::MAX));
        enough.min(self.shutdown_watch_termination_grace_period)
    }
}

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

/// Waits for a signal, then stops the server as it is told to, when all requests are answered or `grace` is over. A second signal ends the
/// process at once.
///
/// 1. It is not ready any more, and goes on as ever for the delay.
/// 2. If that is wanted, new requests are answered with 429 until those that run are answered and watches have ended.
/// 3. Watches end, one after the other; the server's own tasks end.
/// 4. Connections are closed when their requests are answered (GOAWAY, `Connection: close`).
pub(crate) async fn until_stopped(
    signals: &mut Signals,
    server: &ApiServer,
    front: Front,
    sockets: Sockets,
    shutdown: ShutdownArgs,
    grace: Duration,
) {
    signals.next().await;
    server.leave();
    let stop = async {
        sleep(shutdown.shutdown_delay_duration).await;
        let spread = shutdown.spread(server.watches());
        let begin = Instant::now();
        if shutdown.shutdown_send_retry_after {
            server.refuse();
            let ended = async { tokio::join!(server.stop_within(spread), server.drained(), sleep(spread)) };
            // What has not ended by then is waited for below, for as long as is left.
            let _ = timeout(grace + spread, ended).await;
        }
        let left = (grace + spread).saturating_sub(begin.elapsed());
        let drain = async {
            match sockets {
                Sockets::Closed => front.shutdown(left).await,
                Sockets::HandedOver => front.hand_over(left).await,
            }
        };
        tokio::join!(server.stop_within(spread), drain).1
    };
    tokio::select! {
        drained = stop => {
            if drained == Drained::CutOff {
                tracing::warn!("requests aborted: they did not end within {grace:?}");
            }
        }
        number = signals.next() => process::exit(128 + number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_watches_end_soon_and_many_within_the_grace_period() {
        let shutdown = ShutdownArgs {
            shutdown_watch_termination_grace_period: Duration::from_secs(10),
            ..ShutdownArgs::default()
        };
        assert_eq!(shutdown.spread(0), Duration::ZERO);
        assert_eq!(shutdown.spread(3), Duration::from_millis(30));
        assert_eq!(shutdown.spread(1_000_000), Duration::from_secs(10));
        assert_eq!(ShutdownArgs::default().spread(7), Duration::ZERO);
    }
}
