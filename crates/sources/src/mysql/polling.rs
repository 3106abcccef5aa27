//! Polls a table and compares its rows with those already reported.

use std::sync::Arc;

use watchkeeper_core::Error;

use super::Settings;
use super::connection::Connection;
use super::failure::Failure;
use super::login::connect;
use super::table::{Server, Table};
use crate::database::{Database, Extent, Found, Scope};

pub(super) struct Polling {
    settings: Arc<Settings>,
    connection: Connection,
    server: Server,
    table: Option<Table>,
}

impl Polling {
    pub(super) async fn open(settings: Arc<Settings>) -> Result<Self, Error> {
        let opened = async {
            let mut connection = connect(&settings).await?;
            let server = Server::read(&mut connection).await?;
            Ok((connection, server))
        };
        let (connection, server) =
            opened.await.map_err(|failure: Failure| failure.classify(&settings.name))?;
        Ok(Self { settings, connection, server, table: None })
    }

    async fn begin_read(&mut self) -> Result<(), Failure> {
        // What is read is what was committed at this moment, however long reading takes.
        self.connection.query("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY").await?;
        // The columns of now: a table that was changed is another statement.
        let table = Table::read(&mut self.connection, self.server, &self.settings).await?;
        self.connection.begin(&table.select()).await?;
        self.table = Some(table);
        Ok(())
    }

    async fn next_row(&mut self) -> Result<Option<Found>, Failure> {
        let Some(row) = self.connection.row().await? else { return Ok(None) };
        Ok(self.table.as_ref().map(|table| table.found(&row)))
    }
}

impl Database for Polling {
    async fn begin(&mut self, _: Scope) -> Result<(), Error> {
        self.begin_read().await.map_err(|failure| failure.classify(&self.settings.name))
    }

    async fn next(&mut self) -> Result<Option<Found>, Error> {
        self.next_row().await.map_err(|failure| failure.classify(&self.settings.name))
    }

    async fn end(&mut self) -> Result<Extent, Error> {
        let committed = self.connection.query("COMMIT").await;
        committed.map_err(|failure| failure.classify(&self.settings.name))?;
        Ok(Extent::All)
    }

    async fn wait(&mut self) -> Result<Scope, Error> {
        // Give or take a tenth, so that those who began together do not ask together.
        tokio::time::sleep(self.settings.interval.mul_f64(0.9 + 0.2 * fastrand::f64())).await;
        Ok(Scope::All)
    }
}
