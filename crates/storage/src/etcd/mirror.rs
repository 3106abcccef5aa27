use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
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
    /// Whether what feeds it panicked, and may have left it half-done.
    in_doubt: AtomicBool,
}

/// The task that feeds a mirror, for as long as this lives.
pub(super) struct Fed(Arc<Mirror>);

impl Drop for Fed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.in_doubt.store(true, Relaxed);
            self.0.in_trouble(Some("the task that follows etcd panicked".into()));
        }
    }
}

impl Mirror {
    pub(super) fn new(engine: Engine) -> Self {
        let revision = engine.read().revision();
        Self {
            engine: Arc::new(engine),
            revision: watch::Sender::new(revision),
            progress_wanted: Notify::new(),
            trouble: Mutex::default(),
            in_doubt: AtomicBool::new(false),
        }
    }

    /// Notes that the task that calls this feeds the mirror. If the task panics, the mirror is in doubt.
    pub(super) fn fed(self: &Arc<Self>) -> Fed {
        Fed(Arc::clone(self))
    }

    pub(super) fn is_in_doubt(&self) -> bool {
        self.in_doubt.load(Relaxed)
    }

    /// Everything was read again.
    pub(super) fn mark_sound(&self) {
        self.in_doubt.store(false, Relaxed);
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
