//! A table of a PostgreSQL database as a source: polled, polled when a trigger says so, or read from the log.
//!
//! Each trap of doing that is a test in `tests/postgres`:
//!
//! | trap | what is done about it |
//! |---|---|
//! | sequences and clocks are taken before the commit | polling goes by transactions, from the oldest on that was running at the last read |
//! | a watermark does not see deletes | rows are counted; if some are missing, the keys are read |
//! | notifications get lost, are folded, are short | they are hints with keys; rows are read; a heartbeat says that they come; a rescan finds what was missed |
//! | a reconnect misses what was said meanwhile | connect, listen, read everything, in this order, every time |
//! | a gap or a double between snapshot and log | the rows are read in the transaction in which the slot was created |
//! | an abandoned slot fills the disk | a slot goes with its connection, unless it was asked to be durable |
//! | a slot that is gone or invalidated | [`Expired`](watchkeeper_core::Error::Expired): a new snapshot |
//! | only keys of deleted rows are logged | the key has to be part of the replica identity |
//! | large values that were not changed are not logged | they come from the old row, if that is logged, or the row is read |
//! | TRUNCATE | an empty snapshot at its place in the log |
//! | the primary key of a row changes | the old object is gone, the new one is there |
//! | columns are added, dropped, renamed | a new snapshot |
//! | huge transactions, and those that are rolled back | the server sends whole transactions that were committed; they are told as they come |
//! | failover | positions name the server and its timeline |
//! | publications with filters | the snapshot has the same filter and the same columns |
//! | two sources, one slot | the second one waits and says so |
//! | changes that never were in the log | [`check_drift`](Postgres::check_drift) compares, tells and counts |
//! | a database without traffic | the position moves with the server's keepalives |

mod address;
mod auditing;
mod bytes;
mod connection;
mod database;
mod failure;
mod figures;
mod hints;
mod install;
mod log;
mod login;
mod pgoutput;
mod polling;
mod position;
mod reading;
mod replication;
mod row;
mod settings;
mod slot;
mod socket;
mod streaming;
mod table;
mod value;
mod write_back;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use watchkeeper_core::{
    Capabilities, Error, Feed, Follow, ObjectStatus, Order, Source, SourceGauge, Start, StatusWritten,
};

pub use connection::{identifier, literal};
pub use database::{Database, Session, StatementError};
pub use figures::{Figures, Slot};
use settings::{Mode, Settings, StatusPlace};

/// The rows of a table as objects.
///
/// ```
/// use std::time::Duration;
/// use watchkeeper_sources::postgres::Postgres;
///
/// // Looked at every two seconds.
/// let routes = Postgres::table("postgres://app@db.example.com/shop", "routes").interval(Duration::from_secs(2));
/// // Told by a trigger, which `install` creates.
/// let orders = Postgres::table("postgres://app@db.example.com/shop", "sales.orders")
///     .password_file("/var/run/secrets/db/password")
///     .key(["region", "number"])
///     .namespace("region")
///     .notify();
/// // Read from the log of the server, and resumed after a restart.
/// let users = Postgres::table("postgres://app@db.example.com/shop?sslmode=verify-full", "users").replicate_durably("users_controller");
/// ```
///
/// # What rows are as objects
///
/// A JSON object with a member for each column: numbers, with all their digits; booleans; `json` and `jsonb` as they are; arrays as lists;
/// `bytea` in base64; times as in RFC 3339; everything else as the text that PostgreSQL writes. Read them as any type of serde's.
///
/// Their names are the values of the primary key or of the columns that [`key`](Self::key) names, with a slash between them.
///
/// # How it learns of changes
///
/// | | latency | on the server | after a cut connection |
/// |---|---|---|---|
/// | polling, the default | the [`interval`](Self::interval) | nothing; each look scans the table there | all rows are compared |
/// | [`notify`](Self::notify) | milliseconds | a trigger, see [`install`](Self::install) | all rows are compared |
/// | [`replicate`](Self::replicate) | milliseconds; every change, in order | `wal_level = logical`, a publication, the right REPLICATION | all rows are read |
/// | [`replicate_durably`](Self::replicate_durably) | the same | and a slot, which keeps the log until it is read | it goes on where it was |
///
/// # What it promises beyond [`Source`]
///
/// - A snapshot is of one moment. Rows come as they are read: no more than one is held at a time.
/// - Versions say what is in a row: an update that changes nothing, or only the status, is no change.
/// - A row that cannot be read is rejected, with its column. The rest goes on.
/// - No password and no content of a row is in an error or a log.
///
/// # What it does not promise
///
/// Polling and notifications tell states, not every one of them in between. A row with a value that is stored apart (TOAST, more than 2 kB) and that
/// an update did not touch is read again while the log is followed, and may then be newer than its place in the log; with `REPLICA IDENTITY FULL` it is not.
#[derive(Clone, Debug)]
pub struct Postgres {
    settings: Arc<Settings>,
}

impl Postgres {
    /// A source of the rows of a table, named as in SQL: `routes`, `shop.routes`, `"Routes"`. A URL that cannot be used is an error of the feed.
    pub fn table(url: &str, table: &str) -> Self {
        Self { settings: Arc::new(Settings::new(url, Some(table))) }
    }

    /// The rows of the table that the parameter `table` of the URL names.
    pub fn from_url(url: &str) -> Self {
        Self { settings: Arc::new(Settings::new(url, None)) }
    }

    /// The error in the URL, if there is one. Contains no secret.
    pub fn mistake(&self) -> Option<&str> {
        self.settings.address.as_ref().err().map(String::as_str)
    }

    /// Reads the password from a file, for every connection anew.
    #[must_use]
    pub fn password_file(self, path: impl Into<PathBuf>) -> Self {
        self.with(|settings| settings.password_file = Some(path.into()))
    }

    /// Sets the columns that tell rows apart. Default: the primary key.
    #[must_use]
    pub fn key<'a>(self, columns: impl IntoIterator<Item = &'a str>) -> Self {
        self.with(|settings| settings.key = columns.into_iter().map(str::to_owned).collect())
    }

    /// The column of the key that is the namespace of objects. The other ones are the name.
    #[must_use]
    pub fn namespace(self, column: &str) -> Self {
        self.with(|settings| settings.namespace = Some(column.into()))
    }

    /// Leaves columns out of objects: a change of these only is none.
    #[must_use]
    pub fn without<'a>(self, columns: impl IntoIterator<Item = &'a str>) -> Self {
        self.with(|settings| settings.without = columns.into_iter().map(str::to_owned).collect())
    }

    /// Sets how often the table is polled. Default: five seconds, give or take a tenth.
    #[must_use]
    pub fn interval(self, interval: Duration) -> Self {
        self.with(|settings| settings.interval = interval)
    }

    /// Reads the table when a trigger notifies of a change.
    #[must_use]
    pub fn notify(self) -> Self {
        self.with(|settings| settings.mode = Mode::Notify)
    }

    /// Reads the log, by a slot that goes when the feed does.
    #[must_use]
    pub fn replicate(self) -> Self {
        self.with(|settings| settings.mode = Mode::Replicate(None))
    }

    /// Reads the log, by a slot of this name that stays until [`drop_slot`](Self::drop_slot): the server keeps its log for it meanwhile, and without
    /// `max_slot_wal_keep_size` until its disk is full.
    #[must_use]
    pub fn replicate_durably(self, slot: &str) -> Self {
        self.with(|settings| settings.mode = Mode::Replicate(Some(slot.into())))
    }

    /// The publication that has the table. Default: `watchkeeper_SCHEMA_TABLE`, which [`install`](Self::install) creates.
    #[must_use]
    pub fn publication(self, name: &str) -> Self {
        self.with(|settings| settings.publication = Some(name.into()))
    }

    /// Creates what [`install`](Self::install) does when a feed finds it missing. Without this, and if the server refuses, the error of the
    /// feed has the statements, for somebody who may run them.
    #[must_use]
    pub fn install_when_opened(self) -> Self {
        self.with(|settings| settings.install = true)
    }

    /// Sets the delay after which a delivered position of the log is confirmed to the server, which then forgets what was before it. Default: ten
    /// seconds. Whoever keeps positions to resume from has to keep them more often than this.
    #[must_use]
    pub fn acknowledge_after(self, delay: Duration) -> Self {
        self.with(|settings| settings.acknowledge_after = delay)
    }

    /// Sets how often the source looks for changes that were not notified: rows, a table with other columns, the state of the slot.
    /// Default: a minute.
    #[must_use]
    pub fn rescan(self, interval: Duration) -> Self {
        self.with(|settings| settings.rescan = interval)
    }

    /// Reads the table this often while the log is followed, and compares it with what the log has told. What differs once the log has come to where
    /// the table was read is told, and counted in [`Figures::drift`]: changes that were not published, as under a publication that somebody
    /// narrowed for a while. Default: never. It costs the server a scan and this process a hundred bytes for each row. A feed that is
    /// resumed after a restart of this process knows nothing to compare with.
    #[must_use]
    pub fn check_drift(self, interval: Duration) -> Self {
        self.with(|settings| settings.check_drift = Some(interval))
    }

    /// The column that the status of an object is written to. It is not part of the object.
    #[must_use]
    pub fn status_column(self, column: &str) -> Self {
        self.with(|settings| settings.status = Some(StatusPlace::Column(column.into())))
    }

    /// The table that the status of objects is written to: it has the columns of the key, with a unique index, and `status jsonb`.
    #[must_use]
    pub fn status_table(self, table: &str) -> Self {
        self.with(|settings| settings.status = Some(StatusPlace::Table(table.into())))
    }

    /// Sets the time for which the server may be silent. Default: 30 seconds.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        self.with(|settings| settings.timeout = timeout)
    }

    /// Sets the maximum size of a row. Default: 16 MiB. Larger ones are rejected.
    #[must_use]
    pub fn max_row_bytes(self, bytes: usize) -> Self {
        self.with(|settings| settings.max_row_bytes = bytes)
    }

    /// The figures of the source: drift, lag, the slot. Of the feed that was opened last.
    pub fn figures(&self) -> Figures {
        self.settings.shared.lock().clone()
    }

    /// Creates what the database needs: for [`notify`](Self::notify) the function and the triggers `watchkeeper_SCHEMA_TABLE`, for replication the
    /// publication of that name. Needs the rights of the table's owner. Can be repeated.
    ///
    /// # Errors
    ///
    /// If the server refuses or cannot be reached, or if publishing the table would make updates of it fail, as it does without a key.
    pub async fn install(&self) -> Result<(), Error> {
        install::install(&self.settings).await.map_err(|failure| failure.classify(self.name()))
    }

    /// Removes what [`install`](Self::install) has created, and the slot of a source that is durable.
    ///
    /// # Errors
    ///
    /// If the server refuses or cannot be reached, or if the slot is in use.
    pub async fn uninstall(&self) -> Result<(), Error> {
        install::uninstall(&self.settings).await.map_err(|failure| failure.classify(self.name()))
    }

    /// Drops the slot of a source that is durable; says whether there was one. In SQL: `SELECT pg_drop_replication_slot('NAME')`.
    ///
    /// # Errors
    ///
    /// If the server refuses or cannot be reached, or if the slot is in use.
    pub async fn drop_slot(&self) -> Result<bool, Error> {
        install::drop_slot(&self.settings).await.map_err(|failure| failure.classify(self.name()))
    }

    fn with(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        let settings = Arc::make_mut(&mut self.settings);
        settings.shared = Arc::default();
        change(settings);
        self
    }
}

impl Source for Postgres {
    /// The host, the database and the table.
    fn name(&self) -> &str {
        &self.settings.name
    }

    fn identity(&self) -> String {
        self.settings.identity()
    }

    fn capabilities(&self) -> Capabilities {
        let follow = match self.settings.mode {
            Mode::Replicate(Some(_)) => Follow::Log,
            // Without a slot that stays there is nothing to resume.
            Mode::Poll | Mode::Notify | Mode::Replicate(None) => Follow::Hints,
        };
        Capabilities::new(Order::Opaque, follow).status_write_back(self.settings.status.is_some())
    }

    fn open(&self, start: Start) -> Feed {
        let settings = Arc::clone(&self.settings);
        match settings.mode {
            Mode::Replicate(_) => replication::open(settings, start),
            Mode::Poll | Mode::Notify => {
                crate::database::open(start, move || polling::Polling::open(settings))
            }
        }
    }

    fn drift(&self) -> u64 {
        self.figures().drift
    }

    /// Of a table that is replicated: how far this reader is behind, and what the server keeps for it.
    fn gauges(&self) -> Vec<SourceGauge> {
        match self.settings.mode {
            Mode::Replicate(_) => self.figures().gauges(self.name()),
            Mode::Poll | Mode::Notify => Vec::new(),
        }
    }

    /// To the column or the table that was named for it. The row has to be as it was told; a status that is what it was is not written.
    fn write_status(&self, status: ObjectStatus) -> StatusWritten {
        let settings = Arc::clone(&self.settings);
        Box::pin(async move { write_back::write(&settings, status).await })
    }
}
