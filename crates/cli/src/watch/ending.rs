//! Why a watch ends that nothing else ends.

use std::time::Duration;
use std::{io, process, thread};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use tokio::sync::oneshot;
use tokio::time;

use crate::failure::Failure;
use crate::stopping::Signals;

/// If nobody takes what is written, the second thing that a signal stops is this program.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

/// Resolves at the first signal. Whoever is then stuck in writing to somebody who does not read is ended all the same.
pub(super) fn stopped() -> Result<oneshot::Receiver<()>, Failure> {
    let mut signals = Signals::listen()?;
    let (stop, stopped) = oneshot::channel();
    tokio::spawn(async move {
        let number = signals.next().await;
        let _ = stop.send(());
        tokio::select! {
            () = time::sleep(SHUTDOWN_TIMEOUT) => {}
            _ = signals.next() => {}
        }
        process::exit(128 + number);
    });
    Ok(stopped)
}

pub(super) async fn until(deadline: Option<time::Instant>) {
    match deadline {
        Some(deadline) => time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// Resolves when stdout is a pipe and its reader is gone, which would otherwise be noticed at the next change only. A thread
/// waits for that, since a file, which stdout may be as well, cannot be waited for in any other way.
pub(super) fn nobody_reads() -> Result<oneshot::Receiver<()>, Failure> {
    let (tell, told) = oneshot::channel();
    let wait = move || {
        let stdout = io::stdout();
        // Asked for nothing, it tells of errors only.
        let mut asked = [PollFd::new(&stdout, PollFlags::empty())];
        while let Err(Errno::INTR) = poll(&mut asked, None) {}
        if asked[0].revents().intersects(PollFlags::ERR | PollFlags::HUP) {
            let _ = tell.send(());
        } else {
            // Nothing will ever come of it, but it must not look as if something had.
            std::mem::forget(tell);
        }
    };
    thread::Builder::new().name("stdout".into()).spawn(wait).map_err(Failure::running)?;
    Ok(told)
}
