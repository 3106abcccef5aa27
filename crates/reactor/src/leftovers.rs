//! Commands that a reactor left running when it was killed.
//!
//! All commands inherit a file with a lock on it. The lock ends with the last process that has the file, so that the next reactor sees by it
//! whether commands of the one before still run, whatever became of that one.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

use rustix::io::{FdFlags, fcntl_setfd};
use tokio::sync::OnceCell;
use tokio::time::Instant;

/// How often it is looked whether the commands of a killed reactor have ended.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The lock that commands inherit.
pub(crate) struct Leftovers {
    path: PathBuf,
    /// Open as long as this process is, so that commands get it.
    file: File,
    /// How long commands of a reactor that was killed are waited for.
    timeout: Duration,
    over: OnceCell<()>,
}

impl Leftovers {
    /// The lock at a path.
    ///
    /// # Errors
    ///
    /// If the file cannot be created.
    pub(crate) fn new(path: PathBuf, timeout: Duration) -> io::Result<Self> {
        let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path)?;
        // Commands get it because it is not closed when they begin.
        fcntl_setfd(&file, FdFlags::empty())?;
        Ok(Self { path, file, timeout, over: OnceCell::new() })
    }

    /// Resolves when no command of a reactor that was killed runs any more, or was waited for long enough.
    pub(crate) async fn over(&self) {
        self.over.get_or_init(|| self.wait()).await;
    }

    async fn wait(&self) {
        let due = Instant::now() + self.timeout;
        let mut told = false;
        while self.file.try_lock().is_err() {
            if !std::mem::replace(&mut told, true) {
                tracing::info!("waiting for commands that ran when the last run was killed");
            }
            if Instant::now() >= due {
                tracing::warn!(
                    "commands of the last run still run after {:?}: what is run now may overlap with them",
                    self.timeout
                );
                return;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// All commands have ended, as far as they are waited for: what they left running does not hold up the next reactor.
    pub(crate) fn end(&self) {
        // If it cannot be removed, the next one waits in vain, and not for ever.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[tokio::test]
    async fn a_command_of_a_reactor_that_was_killed_is_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("running");
        let first = Leftovers::new(path.clone(), Duration::from_secs(60)).unwrap();
        first.over().await;
        let mut command = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        // As if it was killed: its files are closed, and nothing else is done.
        drop(first);
        let next = Leftovers::new(path.clone(), Duration::from_secs(60)).unwrap();
        let waiting = tokio::time::timeout(3 * POLL_INTERVAL, next.over()).await;
        assert!(waiting.is_err(), "the command still runs");
        drop(command.stdin.take());
        command.wait().unwrap();
        tokio::time::timeout(Duration::from_secs(30), next.over()).await.unwrap();

        // What a command leaves behind holds up nobody after a reactor that ended in good order.
        let mut daemon = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        next.end();
        drop(next);
        let last = Leftovers::new(path.clone(), Duration::from_secs(60)).unwrap();
        tokio::time::timeout(Duration::from_secs(30), last.over()).await.unwrap();
        drop(daemon.stdin.take());
        daemon.wait().unwrap();

        let held = File::open(&path).unwrap();
        drop(last);
        held.lock().unwrap();
        let impatient = Leftovers::new(path, Duration::from_millis(1)).unwrap();
        tokio::time::timeout(Duration::from_secs(30), impatient.over()).await.unwrap();
    }
}
