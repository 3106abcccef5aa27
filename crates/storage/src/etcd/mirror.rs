use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout_at};

use crate::engine::Engine;
use crate::{Error, Revision};

/// Changes are told within this time nearly always. If they are not, the revision that is waited for may be somebody else's, of which
/// nothing is told, and etcd is asked how far the watch is.
const USUAL: Duration = Duration::from_millis(5);

/// How often it is asked again.
const RETRY_DELAY: Duration = Duration::from_millis(100);

/// What is known of etcd in this process.
pub(super) struct Mirror {
    pub(super) engine: Arc<Engine>,
    /// How far it is; follows what the engine shows.
    revision: watch::Sender<Revision>,
    /// Somebody waits for a revision of which nothing was told.
    pub(super) progress_wanted: Notify,
    trouble: Mutex<Option<String>>,
}

impl Mirror {
    pub(super) fn new(engine: Engine) -> Self {
        let revision = engine.read().revision();
        Self {
            engine: Arc::new(engine),
            revision: watch::Sender::new(revision),
            progress_wanted: Notify::new(),
            trouble: Mutex::default(),
        }
    }

    pub(super) fn revision(&self) -> Revision {
        *self.revision.borrow()
    }

    /// The engine shows this revision now.
    pub(super) fn reached(&self, revision: Revision) {
        self.revision.send_replace(revision);
    }

    pub(super) fn trouble(&self) -> Option<String> {
        self.trouble.lock().clone()
    }

    pub(super) fn in_trouble(&self, reason: Option<String>) {
        *self.trouble.lock() = reason;
    }

    /// Waits until everything up to a revision is here.
    pub(super) async fn wait(&self, wanted: Revision, timeout: Duration) -> Result<(), Error> {
        if self.revision() >= wanted {
            return Ok(());
        }
        let deadline = Instant::now() + timeout;
        let mut revision = self.revision.subscribe();
        let mut next = Instant::now() + USUAL;
        loop {
            match timeout_at(next.min(deadline), revision.wait_for(|reached| *reached >= wanted)).await {
                Ok(Ok(_)) => return Ok(()),
                Ok(Err(_)) => return Err(Error::Closed),
                Err(_) if Instant::now() >= deadline => {
                    let trouble = self.trouble().map_or_else(String::new, |trouble| format!(": {trouble}"));
                    let reason = format!("revision {wanted} did not arrive within {timeout:?}{trouble}");
                    return Err(Error::Unavailable { reason });
                }
                Err(_) => {
                    self.progress_wanted.notify_one();
                    next = Instant::now() + RETRY_DELAY;
                }
            }
        }
    }
}
