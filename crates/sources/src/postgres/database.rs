//! Statements of programs that keep something of their own in a database.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use watchkeeper_core::Error;
use watchkeeper_core::text::percent_decoded;

use super::connection::{Connection, identifier};
use super::failure::Failure;
use super::login::{Purpose, connect};
use super::settings::Settings;

/// A database in which a program keeps a table of its own, beside what it watches.
///
/// ```
/// use watchkeeper_sources::postgres::Database;
///
/// let calls = Database::from_url("postgres://app@db.example.com/shop?table=calls&passwordFile=/run/password", "records").unwrap();
/// assert_eq!((calls.name(), calls.table().as_str()), ("db.example.com/shop/calls", "\"calls\""));
/// ```
///
/// Nothing is asked before [`connect`](Self::connect). No password is in an error or in what `Debug` shows.
#[derive(Clone)]
pub struct Database {
    settings: Arc<Settings>,
}

impl Database {
    /// Reads `postgres://user:password@host/database` with the parameters of libpq. `table` says which table is meant, if not this one; `passwordFile` where
    /// the password is, which is read for every connection anew.
    ///
    /// # Errors
    ///
    /// What is wrong with the URL.
    pub fn from_url(url: &str, table: &str) -> Result<Self, String> {
        let (address, query) = url.split_once('?').unwrap_or((url, ""));
        let (mut kept, mut password_file) = (Vec::new(), None);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.strip_prefix("passwordFile=") {
                Some(path) => {
                    let path = String::from_utf8_lossy(&percent_decoded(path.as_bytes())).into_owned();
                    password_file = Some(PathBuf::from(path));
                }
                None => kept.push(pair),
            }
        }
        let url = format!("{address}?{}", kept.join("&"));
        let mut settings = Settings::new(&url, None);
        if settings.table.is_empty() {
            settings = Settings::new(&url, Some(table));
        }
        if let Err(wrong) = &settings.address {
            return Err(wrong.clone());
        }
        settings.password_file = password_file;
        Ok(Self { settings: Arc::new(settings) })
    }

    /// Sets the time after which a server that sends nothing has failed. Default: 30 seconds.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        Arc::make_mut(&mut self.settings).timeout = timeout;
        self
    }

    /// The host, the database and the table, for messages.
    pub fn name(&self) -> &str {
        &self.settings.name
    }

    /// The table as it stands in statements.
    pub fn table(&self) -> String {
        self.settings.table.split('.').map(identifier).collect::<Vec<_>>().join(".")
    }

    /// Connects and logs in.
    ///
    /// # Errors
    ///
    /// If the server cannot be reached, or refuses.
    pub async fn connect(&self) -> Result<Session, StatementError> {
        let connected = connect(&self.settings, Purpose::Statements).await;
        let connection = connected.map_err(|failure| StatementError::new(failure, self.name()))?;
        Ok(Session { connection, name: self.name().to_owned(), is_broken: false })
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Database").field(&self.name()).finish()
    }
}

/// A connection for statements. It is closed when it is dropped.
///
/// After an error, and after a future of it that was dropped before its end, it is of no use any more: whether the statement had an effect is not known
/// then, unless the server [said why](StatementError::code) it has none.
pub struct Session {
    connection: Connection,
    name: String,
    is_broken: bool,
}

impl Session {
    /// Runs statements, all of them or none, and reads their rows as texts.
    ///
    /// # Errors
    ///
    /// If the server refuses them, or does not answer.
    pub async fn query(&mut self, statements: &str) -> Result<Vec<Vec<Option<String>>>, StatementError> {
        let mut rows = Vec::new();
        self.each(statements, |row| rows.push(row)).await?;
        Ok(rows)
    }

    /// Runs statements, all of them or none, and calls a function with each row.
    ///
    /// # Errors
    ///
    /// If the server refuses them, or does not answer.
    pub async fn each(
        &mut self,
        statements: &str,
        mut take: impl FnMut(Vec<Option<String>>),
    ) -> Result<(), StatementError> {
        if std::mem::replace(&mut self.is_broken, true) {
            let failure = Failure::Connection("the connection has failed before".to_owned());
            return Err(StatementError::new(failure, &self.name));
        }
        let read = async {
            self.connection.begin(statements).await?;
            while let Some(values) = self.connection.row().await? {
                let text = |value: bytes::Bytes| String::from_utf8_lossy(&value).into_owned();
                take(values.into_iter().map(|value| value.map(text)).collect());
            }
            Ok(())
        };
        read.await.map_err(|failure| StatementError::new(failure, &self.name))?;
        self.is_broken = false;
        Ok(())
    }
}

/// The error of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StatementError {
    /// The SQLSTATE, if the server refused it: then it had no effect.
    pub code: Option<String>,
    /// The error, classified by what the program can do about it.
    pub error: Error,
}

impl StatementError {
    fn new(failure: Failure, name: &str) -> Self {
        Self { code: failure.code().map(str::to_owned), error: failure.classify(name) }
    }

    /// Whether the values are what is wrong, so that the same statement never succeeds: the classes 22 and 23.
    pub fn is_about_data(&self) -> bool {
        self.code.as_ref().is_some_and(|code| code.starts_with("22") || code.starts_with("23"))
    }
}

impl fmt::Display for StatementError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for StatementError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_says_which_table_and_where_the_password_is() {
        let database =
            Database::from_url("postgres://me@host/db?passwordFile=%2Frun%2Fword&sslmode=disable", "a.b")
                .unwrap();
        assert_eq!((database.name(), database.table()), ("host/db/a.b", "\"a\".\"b\"".to_owned()));
        assert_eq!(database.settings.password_file, Some(PathBuf::from("/run/word")));
        let database = Database::from_url("postgres://me:word@host/db?table=x%22y", "a").unwrap();
        assert_eq!(database.table(), "\"x\"\"y\"");
        assert!(!format!("{database:?}").contains("word"));
        assert_eq!(
            Database::from_url("postgres://host/db", "a").unwrap_err(),
            "it names no user: expected postgres://user@host/database"
        );
    }
}
