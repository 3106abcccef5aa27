//! A table of an SQLite database as a source.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use watchkeeper_core::json::Cursor;
use watchkeeper_core::{Capabilities, Error, Feed, Follow, Key, Order, Reason, Rejection, Source, Start};

use crate::database::{Database, Extent, Found, Names, Scope, join, open, text};

/// The rows of a table in a file of SQLite.
///
/// ```
/// use std::time::Duration;
/// use watchkeeper_sources::sqlite::Sqlite;
///
/// let settings = Sqlite::table("/var/lib/app/app.db", "settings").interval(Duration::from_millis(100));
/// ```
///
/// It asks SQLite every [`interval`](Self::interval) whether anybody has committed something (`PRAGMA data_version`), in whichever process, and if so
/// compares all rows with what it told. A file that is exchanged for another one is noticed, and read anew.
///
/// Rows are JSON objects: integers and reals are numbers, texts are texts, blobs are base64; in a column whose declared type is `JSON` a text is JSON,
/// in one whose type is `BOOLEAN` 0 and 1 are `false` and `true`. They are called by the primary key or by the columns that [`key`](Self::key)
/// names, with a slash between them. A read is of one moment. The file is opened for reading only.
#[derive(Clone)]
pub struct Sqlite {
    settings: Arc<Settings>,
}

#[derive(Clone)]
struct Settings {
    path: PathBuf,
    table: String,
    name: String,
    key: Vec<String>,
    without: Vec<String>,
    interval: Duration,
    max_row_bytes: usize,
}

/// So many rows are handed over at once.
const BATCH: usize = 256;

impl Sqlite {
    /// The rows of a table or a view.
    pub fn table(path: impl Into<PathBuf>, table: &str) -> Self {
        let path = path.into();
        let name = format!("{}/{table}", path.display());
        let settings = Settings {
            path,
            table: table.into(),
            name,
            key: Vec::new(),
            without: Vec::new(),
            interval: Duration::from_millis(250),
            max_row_bytes: 16 << 20,
        };
        Self { settings: Arc::new(settings) }
    }

    /// The columns that tell rows apart. Default: the primary key.
    #[must_use]
    pub fn key<'a>(self, columns: impl IntoIterator<Item = &'a str>) -> Self {
        self.with(|settings| settings.key = columns.into_iter().map(str::to_owned).collect())
    }

    /// Leaves columns out of objects: a change of these only is none.
    #[must_use]
    pub fn without<'a>(self, columns: impl IntoIterator<Item = &'a str>) -> Self {
        self.with(|settings| settings.without = columns.into_iter().map(str::to_owned).collect())
    }

    /// Sets how often the database is asked whether something has changed. Default: a quarter of a second.
    #[must_use]
    pub fn interval(self, interval: Duration) -> Self {
        self.with(|settings| settings.interval = interval)
    }

    /// Sets the maximum size of a row. Default: 16 MiB. Larger ones are rejected.
    #[must_use]
    pub fn max_row_bytes(self, bytes: usize) -> Self {
        self.with(|settings| settings.max_row_bytes = bytes)
    }

    fn with(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(Arc::make_mut(&mut self.settings));
        self
    }
}

impl fmt::Debug for Sqlite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sqlite").field("name", &self.settings.name).finish_non_exhaustive()
    }
}

impl Source for Sqlite {
    fn name(&self) -> &str {
        &self.settings.name
    }

    fn identity(&self) -> String {
        let Settings { name, key, without, max_row_bytes, .. } = &*self.settings;
        format!("{name} {key:?} {without:?} {max_row_bytes}")
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new(Order::Opaque, Follow::Hints)
    }

    fn open(&self, start: Start) -> Feed {
        let settings = Arc::clone(&self.settings);
        open(start, move || async move { Ok(File { settings, state: State::Closed }) })
    }
}

/// An open file, in the hands of a feed. What may block runs aside, and has the connection meanwhile.
struct File {
    settings: Arc<Settings>,
    state: State,
}

enum State {
    Closed,
    Idle(Opened),
    Reading {
        batches: mpsc::Receiver<Vec<Found>>,
        rows: std::vec::IntoIter<Found>,
        reader: JoinHandle<Result<Opened, Error>>,
    },
}

struct Opened {
    connection: Connection,
    /// Of the file: device and number.
    file: (u64, u64),
    /// What `PRAGMA data_version` said when the rows were read.
    version: i64,
}

impl Database for File {
    async fn begin(&mut self, _: Scope) -> Result<(), Error> {
        let opened = match std::mem::replace(&mut self.state, State::Closed) {
            State::Idle(opened) => Some(opened),
            _ => None,
        };
        let (sender, batches) = mpsc::channel(2);
        let settings = Arc::clone(&self.settings);
        let reader = tokio::task::spawn_blocking(move || {
            let mut opened = opened.map_or_else(|| Opened::new(&settings), Ok)?;
            opened.read(&settings, &sender)?;
            Ok(opened)
        });
        self.state = State::Reading { batches, rows: Vec::new().into_iter(), reader };
        Ok(())
    }

    async fn next(&mut self) -> Result<Option<Found>, Error> {
        let State::Reading { batches, rows, .. } = &mut self.state else { return Ok(None) };
        loop {
            if let Some(found) = rows.next() {
                return Ok(Some(found));
            }
            match batches.recv().await {
                Some(batch) => *rows = batch.into_iter(),
                None => return Ok(None),
            }
        }
    }

    async fn end(&mut self) -> Result<Extent, Error> {
        if let State::Reading { reader, .. } = std::mem::replace(&mut self.state, State::Closed) {
            self.state = State::Idle(reader.await.map_err(|_| lost())??);
        }
        Ok(Extent::All)
    }

    async fn wait(&mut self) -> Result<Scope, Error> {
        loop {
            tokio::time::sleep(self.settings.interval).await;
            let State::Idle(opened) = std::mem::replace(&mut self.state, State::Closed) else {
                return Ok(Scope::All);
            };
            let settings = Arc::clone(&self.settings);
            let looked =
                tokio::task::spawn_blocking(move || opened.has_changed(&settings).map(|news| (news, opened)));
            let (news, opened) = looked.await.map_err(|_| lost())??;
            self.state = State::Idle(opened);
            if news {
                return Ok(Scope::All);
            }
        }
    }
}

impl Opened {
    fn new(settings: &Settings) -> Result<Self, Error> {
        let file = file(settings)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection =
            Connection::open_with_flags(&settings.path, flags).map_err(|error| classify(settings, &error))?;
        connection.busy_timeout(Duration::from_secs(5)).map_err(|error| classify(settings, &error))?;
        Ok(Self { connection, file, version: 0 })
    }

    /// Whether somebody has committed something since the rows were read.
    fn has_changed(&self, settings: &Settings) -> Result<bool, Error> {
        if file(settings)? != self.file {
            let reason = format!("{}: the file was exchanged for another one", settings.name);
            return Err(Error::Unavailable { answered: true, reason });
        }
        Ok(version(&self.connection).map_err(|error| classify(settings, &error))? != self.version)
    }

    /// Reads all rows, as of one moment.
    fn read(&mut self, settings: &Settings, sender: &mpsc::Sender<Vec<Found>>) -> Result<(), Error> {
        let failed = |error: rusqlite::Error| classify(settings, &error);
        let transaction = self.connection.unchecked_transaction().map_err(failed)?;
        let table = Table::find(settings, &transaction)?;
        let mut statement = transaction.prepare(&table.select(settings)).map_err(failed)?;
        let mut rows = statement.query([]).map_err(failed)?;
        // The first row is what makes the moment.
        let mut batch = Vec::with_capacity(BATCH);
        let mut row = rows.next().map_err(failed)?;
        let moment = version(&transaction).map_err(failed)?;
        while let Some(values) = row {
            batch.push(table.row(settings, values).map_err(failed)?);
            // Whoever was to get them is gone, if that fails.
            if batch.len() == BATCH && sender.blocking_send(std::mem::take(&mut batch)).is_err() {
                return Ok(());
            }
            row = rows.next().map_err(failed)?;
        }
        let _ = sender.blocking_send(batch);
        drop(rows);
        drop(statement);
        drop(transaction);
        self.version = moment;
        Ok(())
    }
}

/// The columns of objects.
struct Table {
    columns: Vec<Column>,
    key: Vec<usize>,
    names: Names,
}

struct Column {
    name: String,
    /// As it was declared, in capitals.
    kind: String,
    /// Its place in the primary key, from 1 on, or 0.
    in_key: i64,
}

impl Table {
    fn find(settings: &Settings, connection: &Connection) -> Result<Self, Error> {
        let failed = |error: rusqlite::Error| classify(settings, &error);
        let mut statement =
            connection.prepare("SELECT name, upper(type), pk FROM pragma_table_info(?1)").map_err(failed)?;
        let column = |row: &rusqlite::Row<'_>| {
            Ok(Column { name: row.get(0)?, kind: row.get(1)?, in_key: row.get(2)? })
        };
        let columns: Result<Vec<Column>, _> =
            statement.query_map([&settings.table], column).map_err(failed)?.collect();
        let mut columns = columns.map_err(failed)?;
        if columns.is_empty() {
            return Err(Error::Missing(format!("{}: there is no such table", settings.name)));
        }
        let fatal = |why: String| Error::Fatal(format!("{}: {why}", settings.name));
        let mut key: Vec<String> = settings.key.clone();
        if key.is_empty() {
            let mut primary: Vec<&Column> = columns.iter().filter(|column| column.in_key > 0).collect();
            primary.sort_by_key(|column| column.in_key);
            key = primary.into_iter().map(|column| column.name.clone()).collect();
        }
        if key.is_empty() {
            return Err(fatal("it has no primary key: name the columns that tell its rows apart".into()));
        }
        columns.retain(|column| !settings.without.contains(&column.name));
        let place = |name: &String| {
            let at = columns.iter().position(|column| column.name == *name);
            at.ok_or_else(|| {
                fatal(format!("it has no column {name}, or it is left out, and it is part of the key"))
            })
        };
        let key = key.iter().map(place).collect::<Result<_, _>>()?;
        let names = Names::new(columns.iter().map(|column| &*column.name));
        Ok(Self { columns, key, names })
    }

    fn select(&self, settings: &Settings) -> String {
        let columns: Vec<String> = self.columns.iter().map(|column| quoted(&column.name)).collect();
        let key: Vec<String> = self.key.iter().map(|at| quoted(&self.columns[*at].name)).collect();
        // Where several rows have one key, the same one comes first every time.
        format!("SELECT {} FROM {} ORDER BY {}", columns.join(", "), quoted(&settings.table), key.join(", "))
    }

    fn row(&self, settings: &Settings, row: &rusqlite::Row<'_>) -> rusqlite::Result<Found> {
        let mut values = Vec::with_capacity(self.columns.len());
        for at in 0..self.columns.len() {
            values.push(row.get_ref(at)?);
        }
        let parts: Vec<String> = self.key.iter().map(|at| part(values[*at])).collect();
        let key = join(None, &parts.iter().map(String::as_str).collect::<Vec<_>>());
        let reject = |key: &Key, reason, detail| {
            Ok(Found::Rejected(Rejection::new(Some(key.clone()), reason, detail)))
        };
        if let Some(at) = self.key.iter().find(|at| values[**at] == ValueRef::Null) {
            let detail = format!("the column {} is part of the key, and is NULL", self.columns[*at].name);
            return reject(&key, Reason::Unreadable, detail);
        }
        if key.name().is_empty() {
            return reject(&Key::new(None, "NULL"), Reason::Unreadable, "its key is empty".into());
        }
        let size: usize = values.iter().map(|value| value.as_bytes().map_or(8, <[u8]>::len)).sum();
        if size > settings.max_row_bytes {
            let detail = format!("the row has {size} bytes, and {} are read", settings.max_row_bytes);
            return reject(&key, Reason::TooLarge, detail);
        }
        let object =
            self.names.object(|at, out| self.columns[at].write(values[at], out).map_err(|why| (at, why)));
        match object {
            Ok(body) => Ok(Found::Row(key, body)),
            Err((at, why)) => {
                let detail = format!("the value of the column {} {why}", self.columns[at].name);
                reject(&key, Reason::Unreadable, detail)
            }
        }
    }
}

impl Column {
    fn write(&self, value: ValueRef<'_>, out: &mut Vec<u8>) -> Result<(), &'static str> {
        match value {
            ValueRef::Null => out.extend_from_slice(b"null"),
            ValueRef::Integer(flag @ (0 | 1)) if self.kind.starts_with("BOOL") => {
                out.extend_from_slice(if flag == 1 { b"true" } else { b"false" });
            }
            ValueRef::Integer(number) => out.extend_from_slice(number.to_string().as_bytes()),
            ValueRef::Real(number) if number.is_finite() => {
                out.extend_from_slice(serde_json::Value::from(number).to_string().as_bytes());
            }
            ValueRef::Real(number) => text(&number.to_string(), out),
            ValueRef::Text(bytes) => {
                let value = std::str::from_utf8(bytes).map_err(|_| "is not UTF-8")?;
                if self.kind.starts_with("JSON") {
                    let mut cursor = Cursor::new(bytes);
                    cursor.skip().and_then(|_| cursor.end()).map_err(|_| "is not JSON")?;
                    out.extend_from_slice(bytes);
                } else {
                    text(value, out);
                }
            }
            ValueRef::Blob(bytes) => text(&watchkeeper_go::base64::encode(bytes), out),
        }
        Ok(())
    }
}

/// A value as part of a key.
fn part(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Null => "NULL".into(),
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(number) => number.to_string(),
        ValueRef::Text(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        ValueRef::Blob(bytes) => watchkeeper_go::base64::encode(bytes),
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("PRAGMA data_version", [], |row| row.get(0))
}

/// Which file it is.
fn file(settings: &Settings) -> Result<(u64, u64), Error> {
    let metadata = std::fs::metadata(&settings.path).map_err(|error| {
        let reason = format!("{}: {error}", settings.path.display());
        match error.kind() {
            std::io::ErrorKind::NotFound => Error::Missing(reason),
            std::io::ErrorKind::PermissionDenied => Error::Denied(reason),
            _ => Error::Unavailable { answered: false, reason },
        }
    })?;
    Ok(identity(&metadata))
}

#[cfg(unix)]
fn identity(metadata: &std::fs::Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt as _;
    (metadata.dev(), metadata.ino())
}

/// A file that SQLite has open cannot be exchanged there.
#[cfg(not(unix))]
fn identity(_: &std::fs::Metadata) -> (u64, u64) {
    (0, 0)
}

fn classify(settings: &Settings, error: &rusqlite::Error) -> Error {
    let code = error.sqlite_error_code();
    // What SQLite says beyond that may quote a statement, and a statement has names only.
    let reason = format!("{}: {error}", settings.name);
    match code {
        Some(ErrorCode::CannotOpen) => Error::Missing(reason),
        Some(ErrorCode::PermissionDenied | ErrorCode::AuthorizationForStatementDenied) => {
            Error::Denied(reason)
        }
        Some(ErrorCode::NotADatabase) => Error::Fatal(reason),
        _ => Error::Unavailable { answered: true, reason },
    }
}

fn lost() -> Error {
    Error::Unavailable { answered: false, reason: "the rows were not read to the end".into() }
}
