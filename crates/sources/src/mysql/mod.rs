//! A table of a MySQL or MariaDB database as a source, polled.
//!
//! Each trap of doing that is a test in `tests/mysql`:
//!
//! | trap | what is done about it |
//! |---|---|
//! | `updated_at` and numbers are taken before the commit | no column is asked: all rows are read and compared |
//! | a watermark does not see deletes | what was not among all rows is gone |
//! | a read that takes long sees rows of different moments | a read is one transaction with a snapshot (InnoDB) |
//! | zones, modes and character sets of server and user | every connection sets its own |
//! | numbers that JSON readers round, `BIT`, `BLOB`, `JSON` of MariaDB | see [`Mysql`] |
//! | rows larger than `max_allowed_packet` | their large values are not asked for, they are rejected |
//! | columns come and go | they are read before every look |
//! | the server is restarted or killed | the feed ends, and is opened again |
//! | passwords in the clear | are sent over TLS and local sockets only |
//! | a status that is written looks like a change | its column is no part of the object, and `ON UPDATE` of other columns is held back |

mod address;
mod connection;
mod failure;
mod login;
mod polling;
mod table;
mod value;
mod wire;
mod write_back;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use watchkeeper_core::{Capabilities, Feed, Follow, ObjectStatus, Order, Source, Start, StatusWritten};

use crate::database::Address;
use write_back::StatusWriter;

/// The rows of a table of MySQL or MariaDB as objects.
///
/// ```
/// use std::time::Duration;
/// use watchkeeper_sources::mysql::Mysql;
///
/// let routes = Mysql::table("mysql://app@db.example.com/shop", "routes")
///     .password_file("/var/run/secrets/db/password")
///     .interval(Duration::from_secs(2))
///     .without(["updated_at"]);
/// let local = Mysql::table("mariadb://app@/shop?socket=/run/mysqld/mysqld.sock", "orders");
/// ```
///
/// All rows are read at every [`interval`](Self::interval) and compared with what was told: for tables of a size that can be read so often. No
/// column such as `updated_at` says what has changed since, for transactions are not committed in the order of the times that they write.
///
/// # What rows are as objects
///
/// A JSON object with a member for each column: integers, `DECIMAL`, `FLOAT`, `DOUBLE`, `BIT` and `YEAR` are numbers with all their digits; `TINYINT(1)` and `BIT(1)` are booleans if
/// they are 0 or 1; `JSON` is as it is; binary types, blobs and geometries are base64; `DATETIME` is as in RFC 3339 without a zone, `TIMESTAMP`
/// with a `Z`; everything else is the text that the server writes.
///
/// Their names are the values of the primary key or of the columns that [`key`](Self::key) names, with a slash between them.
///
/// # What it promises beyond [`Source`]
///
/// - A read is of one moment, for tables of InnoDB. Rows come as they are read: no more than one is held at a time, and 32 bytes and the key of each
///   that was told.
/// - Versions say what is in a row: an update that changes nothing, or only the status, is no change.
/// - A row that cannot be read is rejected, with its column. The rest goes on.
/// - No password and no content of a row is in an error or a log.
///
/// # What it does not promise
///
/// States between two looks are not told. Columns that the account has no right to are not there.
#[derive(Clone)]
pub struct Mysql {
    settings: Arc<Settings>,
}

#[derive(Clone)]
struct Settings {
    /// Or what is wrong with the URL.
    address: Result<Address, String>,
    name: String,
    table: String,
    password_file: Option<PathBuf>,
    /// The columns that tell rows apart; the primary key if there are none.
    key: Vec<String>,
    namespace: Option<String>,
    /// Columns that are not part of an object.
    without: Vec<String>,
    interval: Duration,
    timeout: Duration,
    max_row_bytes: usize,
    status: Option<StatusPlace>,
    /// What statuses are written with, which outlives a feed.
    writer: Arc<tokio::sync::Mutex<Option<StatusWriter>>>,
}

/// Where the status of an object goes.
#[derive(Clone, Debug, PartialEq, Eq)]
enum StatusPlace {
    Column(String),
    Table(String),
}

impl Mysql {
    /// The rows of a table or a view: `routes`, or `shop.routes` for one of another database. A URL that cannot be used is an error of the feed.
    pub fn table(url: &str, table: &str) -> Self {
        Self::new(url, Some(table))
    }

    /// The rows of the table that the parameter `table` of the URL names.
    pub fn from_url(url: &str) -> Self {
        Self::new(url, None)
    }

    fn new(url: &str, table: Option<&str>) -> Self {
        let mut address = address::parse(url);
        let named = address.as_ref().ok().and_then(|address| address.table.clone());
        let table = table.map(str::to_owned).or(named).unwrap_or_default();
        if table.is_empty() && address.is_ok() {
            address = Err("it names no table: expected ...?table=NAME".into());
        }
        let name = match &address {
            Ok(address) => format!("{}/{table}", address.shown()),
            Err(_) => format!("mysql/{table}"),
        };
        let settings = Settings {
            address,
            name,
            table,
            password_file: None,
            key: Vec::new(),
            namespace: None,
            without: Vec::new(),
            interval: Duration::from_secs(5),
            timeout: Duration::from_secs(30),
            max_row_bytes: 16 << 20,
            status: None,
            writer: Arc::default(),
        };
        Self { settings: Arc::new(settings) }
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

    /// Sets how often the table is read. Default: five seconds, give or take a tenth.
    #[must_use]
    pub fn interval(self, interval: Duration) -> Self {
        self.with(|settings| settings.interval = interval)
    }

    /// Sets the time for which the server may be silent. Default: 30 seconds.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        self.with(|settings| settings.timeout = timeout)
    }

    /// Sets the maximum size of a row. Default: 16 MiB, and never more than half of the server's `max_allowed_packet`. Larger ones are rejected.
    #[must_use]
    pub fn max_row_bytes(self, bytes: usize) -> Self {
        self.with(|settings| settings.max_row_bytes = bytes)
    }

    /// Sets the column that the status of an object is written to, of type `JSON` or a text. It is not part of the object.
    #[must_use]
    pub fn status_column(self, column: &str) -> Self {
        self.with(|settings| settings.status = Some(StatusPlace::Column(column.into())))
    }

    /// Sets the table that the status of objects is written to: it has the columns of the key, with a unique index, and `status`, of type `JSON` or a
    /// text.
    #[must_use]
    pub fn status_table(self, table: &str) -> Self {
        self.with(|settings| settings.status = Some(StatusPlace::Table(table.into())))
    }

    fn with(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(Arc::make_mut(&mut self.settings));
        self
    }
}

impl fmt::Debug for Mysql {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mysql").field("name", &self.settings.name).finish_non_exhaustive()
    }
}

impl Source for Mysql {
    /// The host, the database and the table.
    fn name(&self) -> &str {
        &self.settings.name
    }

    fn identity(&self) -> String {
        let Settings { address, name, key, namespace, without, max_row_bytes, .. } = &*self.settings;
        let user = address.as_ref().map(|address| &address.user);
        format!("mysql {name} {user:?} {key:?} {namespace:?} {without:?} {max_row_bytes}")
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new(Order::Opaque, Follow::Hints).status_write_back(self.settings.status.is_some())
    }

    fn open(&self, start: Start) -> Feed {
        let settings = Arc::clone(&self.settings);
        crate::database::open(start, move || polling::Polling::open(settings))
    }

    /// To the column or the table that was named for it. The row has to be as it was told; a status that is what it was is not written.
    fn write_status(&self, status: ObjectStatus) -> StatusWritten {
        let settings = Arc::clone(&self.settings);
        Box::pin(async move { write_back::write(&settings, status).await })
    }
}
