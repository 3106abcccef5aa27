//! The settings of an etcd source, and its errors as those of a feed.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use watchkeeper_core::Error;
use watchkeeper_etcd::{Client, ClientBuilder, Header, Keys};

use crate::audit::Audit;

#[derive(Clone)]
pub(super) struct Settings {
    pub(super) name: String,
    pub(super) endpoints: Vec<String>,
    pub(super) prefix: String,
    pub(super) namespaced: bool,
    pub(super) status: Option<StatusKey>,
    pub(super) client: ClientBuilder,
    pub(super) timeout: Duration,
    pub(super) progress: Duration,
    pub(super) page: u32,
    /// How often what the log has told is compared with the keys, if that was asked for.
    pub(super) check_drift: Option<Duration>,
    /// The cluster that positions are of; 0 if none was seen yet. Of all feeds of a source.
    pub(super) cluster: Arc<AtomicU64>,
    pub(super) shared: Arc<Shared>,
}

/// What outlives a feed.
#[derive(Default)]
pub(super) struct Shared {
    /// How many differences were found that the log had not told.
    pub(super) drift: AtomicU64,
    /// What the feed that was dropped last had told, for the one that goes on where it stopped.
    told: Mutex<Option<Audit>>,
}

impl Shared {
    pub(super) fn told(&self) -> MutexGuard<'_, Option<Audit>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where the status of an object is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StatusKey {
    Prefix(String),
    Suffix(String),
}

impl Settings {
    pub(super) fn new(endpoints: Vec<String>, prefix: &str) -> Self {
        Self {
            name: format!("etcd:{prefix}"),
            client: Client::builder(endpoints.clone()),
            endpoints,
            prefix: prefix.into(),
            namespaced: false,
            status: None,
            timeout: Duration::from_secs(5),
            progress: Duration::from_secs(60),
            page: 500,
            check_drift: None,
            cluster: Arc::default(),
            shared: Arc::default(),
        }
    }

    pub(super) fn keys(&self) -> Keys {
        Keys::prefix(self.prefix.as_str())
    }

    /// Everything that decides what is delivered, as text.
    pub(super) fn identity(&self) -> String {
        let Self { endpoints, prefix, namespaced, status, client, .. } = self;
        format!("{endpoints:?} {prefix:?} {namespaced} {status:?} {client:?}")
    }

    /// Whether an answer comes from the cluster that positions are of, which any is if there was none yet.
    pub(super) fn is_known(&self, header: Header) -> bool {
        let known = self.cluster.load(Ordering::Relaxed);
        known == 0 || known == header.cluster
    }

    /// Positions of before are those of another cluster from here on.
    pub(super) fn forget(&self) {
        self.cluster.store(u64::MAX, Ordering::Relaxed);
    }

    pub(super) fn remember(&self, header: Header) {
        self.cluster.store(header.cluster, Ordering::Relaxed);
    }

    /// What a failure means for the reader of the feed.
    pub(super) fn failure(&self, error: watchkeeper_etcd::Error) -> Error {
        use watchkeeper_etcd::Error as Etcd;
        let said = format!("{}: {error}", self.name);
        match error {
            _ if error.is_compacted() || error.is_future_revision() => Error::Expired(said),
            _ if error.is_denied() => Error::Denied(said),
            Etcd::Settings(_) | Etcd::TooLarge { .. } => Error::Fatal(said),
            Etcd::Refused { .. } | Etcd::Protocol(_) => Error::Unavailable { answered: true, reason: said },
            _ => Error::Unavailable { answered: false, reason: said },
        }
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("name", &self.name)
            .field("client", &self.client)
            .finish_non_exhaustive()
    }
}
