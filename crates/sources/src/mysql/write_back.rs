//! Writes the status of objects to columns that are not watched.

use watchkeeper_core::{Error, Key, ObjectStatus, Version};

use super::connection::{Connection, identifier, literal};
use super::failure::Failure;
use super::login::connect;
use super::table::{Server, Table};
use super::{Settings, StatusPlace};
use crate::database::Found;
use crate::print::Print;

/// Writes a status for the state that it is about, over a connection that is kept. One that turns out to be closed is made anew.
pub(super) async fn write(settings: &Settings, status: ObjectStatus) -> Result<(), Error> {
    let ObjectStatus { key, version, json, .. } = status;
    let about = |failure: Failure| failure.classify(&settings.name);
    let mut kept = settings.writer.lock().await;
    if let Some(mut writer) = kept.take() {
        match writer.write(settings, &key, &version, &json).await {
            // A status that was written is written again, which changes nothing. The server says that it ends connections.
            Err(Failure::Connection(_)) => {}
            Err(Failure::Server(refusal)) if refusal.ends_connections() => {}
            Err(failure @ Failure::Server(_)) => return Err(about(failure)),
            done => {
                *kept = Some(writer);
                return done.map_err(about);
            }
        }
    }
    let mut writer = StatusWriter::open(settings).await.map_err(about)?;
    let done = writer.write(settings, &key, &version, &json).await;
    if matches!(done, Ok(()) | Err(Failure::Decided(_))) {
        *kept = Some(writer);
    }
    done.map_err(about)
}

/// Writes statuses: to a column of the row, or to a row of another table.
pub(super) struct StatusWriter {
    connection: Connection,
    server: Server,
    place: StatusPlace,
}

impl StatusWriter {
    async fn open(settings: &Settings) -> Result<Self, Failure> {
        let Some(place) = settings.status.clone() else {
            return Err(Failure::Settings("it was not said where the status of objects goes".into()));
        };
        let mut connection = connect(settings).await?;
        let server = Server::read(&mut connection).await?;
        Ok(Self { connection, server, place })
    }

    /// Writes a status if the row is in this state.
    async fn write(
        &mut self,
        settings: &Settings,
        key: &Key,
        version: &Version,
        status: &[u8],
    ) -> Result<(), Failure> {
        let name = &settings.name;
        // The columns of now, as the reader has them: another set of columns is another object.
        let table = Table::read(&mut self.connection, self.server, settings).await?;
        let Some(values) = table.values(key) else {
            return Err(Failure::Decided(Error::Missing(format!("{name}: {key} is no key of the table"))));
        };
        self.connection.query("START TRANSACTION").await?;
        self.connection.begin(&table.select_for_update(&values)).await?;
        let mut found = None;
        while let Some(row) = self.connection.row().await? {
            found.get_or_insert(table.found(&row));
        }
        let decided = match found {
            None => Err(Error::Missing(format!("{name}: {key} is gone"))),
            Some(Found::Row(_, body)) if Print::of(&body).version() == *version => Ok(()),
            Some(_) => Err(Error::Expired(format!("{name}: {key} has changed"))),
        };
        if let Err(error) = decided {
            self.connection.query("ROLLBACK").await?;
            return Err(Failure::Decided(error));
        }
        let status = literal(&String::from_utf8_lossy(status));
        let statement = match &self.place {
            StatusPlace::Column(column) => {
                let column = identifier(column);
                let held = held_back(&mut self.connection, &table).await?;
                let held: String = held.iter().map(|name| format!(", {name} = {name}")).collect();
                let row = table.condition(&values);
                format!(
                    "UPDATE {} SET {column} = {status}{held} WHERE {row} AND NOT ({column} <=> {status})",
                    table.sql()
                )
            }
            StatusPlace::Table(other) => {
                let other = other.split('.').map(identifier).collect::<Vec<_>>().join(".");
                let (columns, values) = table.key_values(&values);
                format!(
                    "INSERT INTO {other} ({columns}, status) VALUES ({values}, {status}) ON DUPLICATE KEY UPDATE status = {status}"
                )
            }
        };
        if let Err(failure) = self.connection.query(&statement).await {
            self.connection.query("ROLLBACK").await?;
            return Err(failure);
        }
        self.connection.query("COMMIT").await.map(drop)
    }
}

/// The columns that the server would set by itself when a row is updated (`ON UPDATE CURRENT_TIMESTAMP`). A status is no update of the object.
async fn held_back(connection: &mut Connection, table: &Table) -> Result<Vec<String>, Failure> {
    let columns = format!("SHOW COLUMNS FROM {} WHERE Extra LIKE '%on update%'", table.sql());
    let rows = connection.query(&columns).await?;
    let names = rows.into_iter().filter_map(|row| row.into_iter().next().flatten());
    Ok(names.map(|name| identifier(&name)).collect())
}
