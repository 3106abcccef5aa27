//! Writes the status of objects to columns that are not watched.

use bytes::Bytes;
use watchkeeper_core::{Error, Key, ObjectStatus, Version};

use super::connection::{Connection, identifier, literal};
use super::failure::Failure;
use super::login::{Purpose, connect};
use super::settings::{Settings, StatusPlace};
use super::table::Table;
use super::{reading, row};
use crate::database::{Found, split};
use crate::print::Print;

/// Another transaction changed the row first.
const SERIALIZATION_FAILURE: &str = "40001";

/// The connection was ended by the server: these codes begin so.
const SHUTDOWN: &str = "57P";

/// Writes a status for the state that it is about, over a connection that is kept. One that turns out to be closed is made anew.
pub(super) async fn write(settings: &Settings, status: ObjectStatus) -> Result<(), Error> {
    let ObjectStatus { key, version, json, .. } = status;
    let about = |failure: Failure| failure.classify(&settings.name);
    let mut kept = settings.shared.writer.lock().await;
    if let Some(mut writer) = kept.take() {
        match writer.write(&key, &version, &json).await {
            // A status that was written is written again, which changes nothing.
            Err(Failure::Connection(_)) => {}
            Err(failure) if failure.code().is_some_and(|code| code.starts_with(SHUTDOWN)) => {}
            Err(failure @ Failure::Server(_)) => return Err(about(failure)),
            done => {
                *kept = Some(writer);
                return done.map_err(about);
            }
        }
    }
    let mut writer = StatusWriter::open(settings.clone()).await.map_err(about)?;
    let done = writer.write(&key, &version, &json).await;
    if matches!(done, Ok(()) | Err(Failure::Decided(_))) {
        *kept = Some(writer);
    }
    done.map_err(about)
}

/// Writes statuses: to a column of the row, or to a row of another table.
pub(super) struct StatusWriter {
    settings: Settings,
    connection: Connection,
    table: Table,
    place: StatusPlace,
}

impl StatusWriter {
    pub(super) async fn open(settings: Settings) -> Result<Self, Failure> {
        let Some(place) = settings.status.clone() else {
            return Err(Failure::Settings("it was not said where the status of objects goes".into()));
        };
        let mut connection = connect(&settings, Purpose::Statements).await?;
        let table = Table::read(&mut connection, &settings).await?;
        Ok(Self { settings, connection, table, place })
    }

    /// Writes a status if the row is in this state.
    async fn write(&mut self, key: &Key, version: &Version, status: &[u8]) -> Result<(), Failure> {
        let (name, status) = (self.settings.name.clone(), String::from_utf8_lossy(status).into_owned());
        let Some(values) = self.values(key) else {
            return Err(Failure::Decided(Error::Missing(format!("{name}: {key} is no key of the table"))));
        };
        // What is written is what was true at the moment of the first statement, or fails.
        self.connection.query("BEGIN ISOLATION LEVEL REPEATABLE READ").await?;
        let keys = [values.iter().map(|value| Bytes::from(value.clone())).collect()];
        let rows = reading::rows(&mut self.connection, &self.table, &keys).await?;
        let decided = match rows.first().map(|row| row::found(&self.table, row, self.settings.max_row_bytes))
        {
            None => Err(Error::Missing(format!("{name}: {key} is gone"))),
            Some(Found::Row(_, body)) if Print::of(&body).version() == *version => Ok(()),
            Some(_) => Err(Error::Expired(format!("{name}: {key} has changed"))),
        };
        if let Err(error) = decided {
            self.connection.query("ROLLBACK").await?;
            return Err(Failure::Decided(error));
        }
        let statement = self.statement(&values, &status);
        match self.connection.query(&format!("{statement}; COMMIT")).await {
            Err(failure) if failure.code() == Some(SERIALIZATION_FAILURE) => {
                Err(Failure::Decided(Error::Expired(format!("{name}: {key} has changed"))))
            }
            done => done.map(drop),
        }
    }

    /// The values of the key's columns, in their order.
    fn values(&self, key: &Key) -> Option<Vec<String>> {
        match self.table.namespace {
            None if key.namespace().is_some() => None,
            None => split(key.name(), self.table.key.len()),
            Some(at) => {
                let mut values = split(key.name(), self.table.key.len() - 1)?;
                values.insert(at, key.namespace()?.to_owned());
                Some(values)
            }
        }
    }

    fn statement(&self, values: &[String], status: &str) -> String {
        let table = &self.table;
        let columns: Vec<String> = table.key.iter().map(|at| identifier(&table.columns[*at].name)).collect();
        let pairs = columns.iter().zip(values);
        let row = pairs.map(|(column, value)| format!("t.{column} = {}", literal(value)));
        let row = row.collect::<Vec<_>>().join(" AND ");
        let status = literal(status);
        match &self.place {
            StatusPlace::Column(column) => {
                let column = identifier(column);
                format!(
                    "UPDATE {} AS t SET {column} = {status} WHERE {row} AND t.{column}::jsonb IS DISTINCT FROM {status}::jsonb RETURNING 1",
                    table.sql
                )
            }
            StatusPlace::Table(name) => {
                let name = name.split('.').map(identifier).collect::<Vec<_>>().join(".");
                let columns = columns.join(", ");
                format!(
                    "INSERT INTO {name} AS s ({columns}, status) SELECT {columns}, {status}::jsonb FROM {} AS t WHERE {row} \
                     ON CONFLICT ({columns}) DO UPDATE SET status = excluded.status \
                     WHERE s.status::jsonb IS DISTINCT FROM excluded.status::jsonb RETURNING 1",
                    table.sql
                )
            }
        }
    }
}
