//! Leases of budgets in a table of a PostgreSQL database.

use std::time::Duration;

use tokio::sync::Mutex;
use watchkeeper_ai::lease::{Lease, Leases};
use watchkeeper_core::Key;
use watchkeeper_sources::postgres::{Database, Session, StatementError, literal};

use super::share::{LeaseStore, Stored};

/// The name of the table if the URL names none.
const TABLE: &str = "watchkeeper_ai_budgets";
/// The number of the lock under which tables are created.
pub(super) const LOCK: i64 = 7_116_251_905_336_871;
/// How long the server may be silent: calls wait meanwhile.
const TIMEOUT: Duration = Duration::from_secs(3);

/// A table whose rows are changed only by those who know their last version. Versions are numbers of chance: a row that was removed and made anew
/// is not taken for the one before.
pub(crate) struct DatabaseStore {
    database: Database,
    session: Mutex<Option<Session>>,
}

impl DatabaseStore {
    pub(crate) fn new(database: Database) -> Self {
        Self { database: database.timeout(TIMEOUT), session: Mutex::default() }
    }

    /// Reads `postgres://user@host/database?table=NAME&passwordFile=FILE`.
    pub(crate) fn database(url: &str) -> Result<Database, String> {
        Database::from_url(url, TABLE)
    }

    async fn open(&self) -> Result<Session, StatementError> {
        let mut session = self.database.connect().await?;
        let table = self.database.table();
        // What was told to be leased has to be there after a crash of the server.
        session.query("SET synchronous_commit = on").await?;
        let found = session.query(&format!("SELECT to_regclass({})", literal(&table))).await?;
        if found.iter().flatten().all(Option::is_none) {
            // Two that create it at the same time are one too many for PostgreSQL.
            let statement = format!(
                "SELECT pg_advisory_xact_lock({LOCK}); \
                 CREATE TABLE IF NOT EXISTS {table} (namespace text, name text, version bigint NOT NULL, leases jsonb NOT NULL, PRIMARY KEY (namespace, name))"
            );
            session.query(&statement).await?;
            tracing::info!("{}: created the table for budgets", self.database.name());
        }
        Ok(session)
    }

    /// Runs a statement, over a new connection if the last one has failed.
    async fn query(&self, statement: &str) -> Result<Vec<Vec<Option<String>>>, String> {
        let mut held = self.session.lock().await;
        let mut session = match held.take() {
            Some(session) => session,
            None => self.open().await.map_err(|failed| failed.to_string())?,
        };
        let rows = session.query(statement).await.map_err(|failed| failed.to_string())?;
        *held = Some(session);
        Ok(rows)
    }

    fn row(&self, object: &Key) -> (String, String) {
        (literal(object.namespace().unwrap_or_default()), literal(object.name()))
    }
}

impl LeaseStore for DatabaseStore {
    fn read<'a>(&'a self, object: &'a Key) -> Stored<'a, (Option<String>, Leases)> {
        Box::pin(async move {
            let (namespace, name) = self.row(object);
            let statement = format!(
                "SELECT version, leases FROM {} WHERE namespace = {namespace} AND name = {name}",
                self.database.table()
            );
            let rows = self.query(&statement).await?;
            let Some([Some(version), Some(leases)]) = rows.first().map(Vec::as_slice) else {
                return Ok((None, Leases::default()));
            };
            let leases: Vec<Lease> = serde_json::from_str(leases).map_err(|error| {
                format!("{}: the leases of {object} cannot be read: {error}", self.database.name())
            })?;
            Ok((Some(version.clone()), Leases::from_list(&leases)))
        })
    }

    fn write<'a>(
        &'a self,
        object: &'a Key,
        version: Option<&'a str>,
        leases: &'a Leases,
    ) -> Stored<'a, Option<String>> {
        Box::pin(async move {
            let (namespace, name) = self.row(object);
            let (table, new) = (self.database.table(), fastrand::i64(..));
            let list = serde_json::to_string(&leases.to_list()).map_err(|error| error.to_string())?;
            let list = literal(&list);
            let statement = match version {
                Some(version) => format!(
                    "UPDATE {table} SET version = {new}, leases = {list} WHERE namespace = {namespace} AND name = {name} AND version = {} RETURNING version",
                    literal(version)
                ),
                None => format!(
                    "INSERT INTO {table} (namespace, name, version, leases) VALUES ({namespace}, {name}, {new}, {list}) \
                     ON CONFLICT DO NOTHING RETURNING version"
                ),
            };
            let rows = self.query(&statement).await?;
            // Nothing was changed: somebody else was quicker.
            Ok(rows.into_iter().next().and_then(|row| row.into_iter().next().flatten()))
        })
    }
}
