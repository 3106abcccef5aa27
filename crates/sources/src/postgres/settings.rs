//! The settings of a PostgreSQL source, and the state that outlives a feed.

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::address;
use super::figures::Figures;
use super::write_back::StatusWriter;
use crate::audit::Audit;
use crate::database::Address;

#[derive(Clone)]
pub(super) struct Settings {
    /// Or what is wrong with the URL.
    pub(super) address: Result<Address, String>,
    pub(super) name: String,
    /// As the user wrote it.
    pub(super) table: String,
    pub(super) password_file: Option<PathBuf>,
    /// The columns that tell rows apart; the primary key if there are none.
    pub(super) key: Vec<String>,
    pub(super) namespace: Option<String>,
    /// Columns that are not part of an object.
    pub(super) without: Vec<String>,
    pub(super) mode: Mode,
    pub(super) interval: Duration,
    pub(super) rescan: Duration,
    /// How often what the log has told is compared with the table, if that was asked for.
    pub(super) check_drift: Option<Duration>,
    pub(super) publication: Option<String>,
    /// Whether a feed creates what is missing in the database.
    pub(super) install: bool,
    pub(super) acknowledge_after: Duration,
    pub(super) status: Option<StatusPlace>,
    pub(super) timeout: Duration,
    pub(super) max_row_bytes: usize,
    pub(super) shared: Arc<Shared>,
}

/// How it learns of changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Poll,
    Notify,
    /// By a slot of this name, or by one that nobody else sees.
    Replicate(Option<String>),
}

/// Where the status of an object goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StatusPlace {
    Column(String),
    Table(String),
}

/// What outlives a feed.
#[derive(Default)]
pub(super) struct Shared {
    /// Of the feed that was opened last.
    figures: Mutex<Figures>,
    /// Whether it was said that nothing limits what the slot keeps.
    pub(super) warned: AtomicBool,
    /// What statuses are written with.
    pub(super) writer: tokio::sync::Mutex<Option<StatusWriter>>,
    /// What the feed that was dropped last had told, for the one that goes on where it stopped.
    told: Mutex<Option<Audit>>,
}

impl Shared {
    pub(super) fn told(&self) -> MutexGuard<'_, Option<Audit>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Figures> {
        self.figures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Settings {
    pub(super) fn new(url: &str, table: Option<&str>) -> Self {
        let mut address = address::parse(url);
        let named = address.as_ref().ok().and_then(|address| address.table.clone());
        let table = table.map(str::to_owned).or(named).unwrap_or_default();
        if table.is_empty() && address.is_ok() {
            address = Err("it names no table: expected ...?table=NAME".into());
        }
        let name = match &address {
            Ok(address) => format!("{}/{table}", address.shown()),
            Err(_) => format!("postgres/{table}"),
        };
        Self {
            address,
            name,
            table,
            password_file: None,
            key: Vec::new(),
            namespace: None,
            without: Vec::new(),
            mode: Mode::Poll,
            interval: Duration::from_secs(5),
            rescan: Duration::from_secs(60),
            check_drift: None,
            publication: None,
            install: false,
            acknowledge_after: Duration::from_secs(10),
            status: None,
            timeout: Duration::from_secs(30),
            max_row_bytes: 16 << 20,
            shared: Arc::default(),
        }
    }

    /// Everything that decides what is delivered, as text. It is for comparing, not for showing.
    pub(super) fn identity(&self) -> String {
        let Self { address, table, key, namespace, without, mode, publication, max_row_bytes, .. } = self;
        let user = address.as_ref().map(|address| &address.user);
        let name = &self.name;
        format!(
            "{name} {user:?} {table} {key:?} {namespace:?} {without:?} {mode:?} {publication:?} {max_row_bytes}"
        )
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings").field("name", &self.name).field("mode", &self.mode).finish_non_exhaustive()
    }
}
