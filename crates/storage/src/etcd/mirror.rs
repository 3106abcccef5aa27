use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout_at};

use crate::engine::Engine;
use crate::tree::Tree;
use crate::{ClusterStats, Error, Revision};

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
    /// Why etcd takes nothing more, if so.
    full: Mutex<Option<String>>,
    database_bytes: AtomicU64,
    /// The newest revision that etcd was known to have.
    newest: AtomicU64,
    /// The cluster that it mirrors.
    cluster: AtomicU64,
    /// How often it was read anew.
    epoch: AtomicU64,
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
    pub(super) fn new(engine: Engine, cluster: u64) -> Self {
        let revision = engine.read().revision();
        Self {
            engine: Arc::new(engine),
            revision: watch::Sender::new(revision),
            progress_wanted: Notify::new(),
            trouble: Mutex::default(),
            full: Mutex::default(),
            database_bytes: AtomicU64::new(0),
            newest: AtomicU64::new(revision),
            cluster: AtomicU64::new(cluster),
            epoch: AtomicU64::new(0),
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

    /// How often everything was read again.
    pub(super) fn epoch(&self) -> u64 {
        self.epoch.load(Relaxed)
    }

    pub(super) fn cluster(&self) -> u64 {
        self.cluster.load(Relaxed)
    }

    /// Notes that etcd takes nothing more, or that it does.
    pub(super) fn set_full(&self, reason: Option<String>) {
        *self.full.lock() = reason;
    }

    pub(super) fn set_database_bytes(&self, bytes: u64) {
        self.database_bytes.store(bytes, Relaxed);
    }

    /// Notes that etcd has come so far.
    pub(super) fn heard_of(&self, revision: Revision) {
        self.newest.fetch_max(revision, Relaxed);
    }

    /// What is known of the cluster, but for who leads.
    pub(super) fn stats(&self) -> ClusterStats {
        ClusterStats {
            leading: false,
            lag: self.newest.load(Relaxed).saturating_sub(self.revision()),
            database_bytes: self.database_bytes.load(Relaxed),
            full: self.full.lock().clone(),
        }
    }

    /// Shows what was read again, from this cluster.
    pub(super) fn replace(&self, tree: Tree, cluster: u64) {
        let revision = tree.revision();
        self.cluster.store(cluster, Relaxed);
        // First: what is seen from then on is of the new one.
        self.epoch.fetch_add(1, Relaxed);
        self.engine.replace(tree);
        self.newest.store(revision, Relaxed);
        self.reached(revision);
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
