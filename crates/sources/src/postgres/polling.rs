//! Polls a table, at intervals or after a notification, and compares its rows with those already reported.
//!
//! Of a table that was read before, only rows of transactions are read that the last read may not have seen: those from the oldest on that
//! was running then (`xmin` of its snapshot). No clock and no sequence is asked, both of which say a value before the transaction that takes it is
//! committed. Every row that is new is among these rows. So if there are fewer rows than are known then, some were deleted.

use std::sync::Arc;

use tokio::time::Instant;
use watchkeeper_core::{Error, Key};

use super::connection::Connection;
use super::failure::Failure;
use super::hints::Hints;
use super::login::{Purpose, connect};
use super::reading;
use super::row::{found, row_key};
use super::settings::{Mode, Settings};
use super::table::{self, Table};
use crate::database::{Count, Database, Extent, Found, Scope};

/// So many transactions later, the numbers of transactions say nothing any more: there are only 2³² of them.
const TOO_MANY: u64 = 1 << 30;
/// So often everything is read, at most: changes that leave no trace in rows (of permissions, of what a view means).
const FULL_EVERY: u32 = 10;

pub(super) struct Polling {
    settings: Arc<Settings>,
    connection: Connection,
    table: Table,
    /// What is being read.
    scope: Scope,
    /// All transactions before this one were seen to their end.
    seen: Option<u64>,
    /// The same of the read that is under way.
    sees: u64,
    scan_at: Instant,
    full_at: Instant,
    hints: Option<Hints>,
    /// The keys that are being read.
    asked: Vec<Key>,
}

impl Polling {
    pub(super) async fn open(settings: Arc<Settings>) -> Result<Self, Error> {
        let opened = Self::connect(&settings).await;
        opened.map_err(|failure| failure.classify(&settings.name))
    }

    async fn connect(settings: &Arc<Settings>) -> Result<Self, Failure> {
        let mut connection = connect(settings, Purpose::Statements).await?;
        let table = Table::read(&mut connection, settings).await?;
        let hints = match settings.mode {
            Mode::Notify => Some(Hints::listen(&mut connection, settings, &table).await?),
            _ => None,
        };
        settings.shared.lock().snapshots += 1;
        Ok(Self {
            settings: Arc::clone(settings),
            connection,
            table,
            scope: Scope::All,
            seen: None,
            sees: 0,
            scan_at: Instant::now(),
            full_at: Instant::now(),
            hints,
            asked: Vec::new(),
        })
    }

    async fn begin_read(&mut self, scope: Scope) -> Result<(), Failure> {
        self.scope = scope;
        self.connection.query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
        if table::signature(&mut self.connection, &self.settings).await? != self.table.signature {
            self.table = Table::read(&mut self.connection, &self.settings).await?;
            self.scope = Scope::All;
        }
        let rows = self.connection.query("SELECT pg_snapshot_xmin(pg_current_snapshot())").await?;
        let xmin = rows.first().and_then(|row| row.first()?.as_ref()?.parse().ok());
        self.sees = xmin.ok_or_else(|| Failure::Connection("a snapshot has no xmin".into()))?;
        let since = self.seen.filter(|seen| {
            self.table.has_transactions()
                && self.sees.checked_sub(*seen).is_some_and(|passed| passed < TOO_MANY)
        });
        if self.scope == Scope::Changed && since.is_none() {
            self.scope = Scope::All;
        }
        let table = &self.table;
        let (columns, condition) = match (self.scope, since) {
            (Scope::Changed, Some(since)) => {
                let since = since & 0xffff_ffff;
                (table.selected(), Some(format!("age(t.xmin) <= age('{since}'::xid)")))
            }
            (Scope::Keys, _) => (table.selected_key(), None),
            (Scope::Hinted, _) => {
                let keys = self.hints.as_mut().map(Hints::take).unwrap_or_default();
                // A key that cannot be one is that of another table, whose channel is called the same.
                let keys: Vec<_> = keys.into_iter().filter(|key| key.len() == table.key.len()).collect();
                let key = |values: &Vec<_>| row_key(table, values.iter().map(Some)).ok();
                self.asked = keys.iter().filter_map(key).collect();
                if keys.is_empty() {
                    (table.selected(), Some("false".into()))
                } else {
                    return self.connection.begin(&reading::by_keys(table, &keys)).await;
                }
            }
            _ => (table.selected(), None),
        };
        let (condition, order) = (table.condition(condition), table.order());
        let statement = format!("SELECT {columns} FROM {} AS t{condition}{order}", table.sql);
        self.connection.begin(&statement).await
    }

    async fn next_row(&mut self) -> Result<Option<Found>, Failure> {
        let Some(values) = self.connection.row().await? else { return Ok(None) };
        Ok(Some(match self.scope {
            Scope::Keys => {
                let key = row_key(&self.table, values.iter().map(Option::as_ref));
                key.map_or_else(Found::Rejected, Found::Key)
            }
            _ => found(&self.table, &values, self.settings.max_row_bytes),
        }))
    }

    async fn end_read(&mut self) -> Result<Extent, Failure> {
        let extent = match self.scope {
            Scope::All | Scope::Keys => Extent::All,
            Scope::Hinted => Extent::Of(std::mem::take(&mut self.asked)),
            Scope::Changed => {
                let statement =
                    format!("SELECT count(*) FROM {} AS t{}", self.table.sql, self.table.condition(None));
                let rows = self.connection.query(&statement).await?;
                let count = rows.first().and_then(|row| row.first()?.as_ref()?.parse().ok());
                Extent::Changed(count.map_or(Count::Unknown, Count::Exactly))
            }
        };
        self.connection.query("COMMIT").await?;
        let now = Instant::now();
        let interval = match self.hints {
            None => self.settings.interval,
            Some(_) => self.settings.rescan,
        };
        if matches!(self.scope, Scope::All | Scope::Changed) {
            self.seen = Some(self.sees);
            // Give or take a tenth, so that those who began together do not ask together.
            self.scan_at = now + interval.mul_f64(0.9 + 0.2 * fastrand::f64());
        }
        if self.scope == Scope::All {
            self.full_at = now + self.settings.rescan * FULL_EVERY;
        }
        Ok(extent)
    }

    async fn wait_for(&mut self) -> Result<Scope, Failure> {
        match &mut self.hints {
            None => tokio::time::sleep_until(self.scan_at).await,
            Some(hints) => {
                if let Some(scope) = hints.wait(&mut self.connection, &self.settings, self.scan_at).await? {
                    return Ok(scope);
                }
            }
        }
        Ok(if Instant::now() >= self.full_at { Scope::All } else { Scope::Changed })
    }
}

impl Database for Polling {
    async fn begin(&mut self, scope: Scope) -> Result<(), Error> {
        self.begin_read(scope).await.map_err(|failure| failure.classify(&self.settings.name))
    }

    async fn next(&mut self) -> Result<Option<Found>, Error> {
        self.next_row().await.map_err(|failure| failure.classify(&self.settings.name))
    }

    async fn end(&mut self) -> Result<Extent, Error> {
        self.end_read().await.map_err(|failure| failure.classify(&self.settings.name))
    }

    async fn wait(&mut self) -> Result<Scope, Error> {
        self.wait_for().await.map_err(|failure| failure.classify(&self.settings.name))
    }

    fn found_unasked(&mut self, keys: Vec<Key>) {
        if let Some(hints) = &mut self.hints {
            hints.suspect(keys);
        }
    }
}
