//! The periodic read of the table that is compared with the log.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use watchkeeper_core::{Document, Event, Start};

use super::connection::Connection;
use super::failure::Failure;
use super::login::{Purpose, connect};
use super::position::Lsn;
use super::row::found;
use super::settings::{Settings, Shared};
use super::table::Table;
use crate::audit::Audit;
use crate::database::Found;
use crate::print::Print;

/// Compares what was told with the rows, every so often.
pub(super) struct Auditing {
    shared: Arc<Shared>,
    audit: Audit,
    interval: Duration,
    stage: Stage,
}

enum Stage {
    /// Until it is time to read.
    Waiting(Instant),
    /// Rows come, as of this place of the log or an earlier one.
    Reading(Box<Connection>, Lsn),
    /// All rows were read: the log has to come here.
    Read(Lsn),
}

impl Auditing {
    /// None, if it was not asked for or the feed goes on where another one was that nobody knows.
    pub(super) fn new(settings: &Settings, start: &Start) -> Option<Self> {
        let interval = settings.check_drift?;
        let audit = match start {
            Start::Snapshot(_) => Audit::default(),
            Start::Resume(_) => settings.shared.told().take()?,
        };
        let stage = Stage::Waiting(Instant::now() + interval);
        Some(Self { shared: Arc::clone(&settings.shared), audit, interval, stage })
    }

    pub(super) fn note(&mut self, event: &Event) {
        self.audit.note(event);
    }

    /// When something has to be done that does not come by itself.
    pub(super) fn due(&self) -> Option<Instant> {
        match self.stage {
            Stage::Waiting(due) => Some(due),
            Stage::Reading(..) | Stage::Read(_) => None,
        }
    }

    /// Whether rows come.
    pub(super) fn is_reading(&self) -> bool {
        matches!(self.stage, Stage::Reading(..))
    }

    /// Whether the log has to come further.
    pub(super) fn is_waiting_for_log(&self) -> bool {
        matches!(self.stage, Stage::Read(_))
    }

    /// Begins to read. A read that fails says nothing: there will be another one.
    pub(super) async fn begin(&mut self, settings: &Settings, table: &Table) {
        self.audit.begin();
        match select(settings, table).await {
            Ok((connection, lsn)) => self.stage = Stage::Reading(Box::new(connection), lsn),
            Err(failure) => self.fail(settings, failure),
        }
    }

    /// Takes the next row. May be dropped while it waits.
    pub(super) async fn read(&mut self, settings: &Settings, table: &Table) {
        let Stage::Reading(connection, lsn) = &mut self.stage else { return };
        match connection.row().await {
            Ok(Some(values)) => match found(table, &values, settings.max_row_bytes) {
                Found::Row(key, body) => {
                    let version = Print::of(&body).version();
                    self.audit.found(Document::named(key, version, body));
                }
                Found::Rejected(rejection) => {
                    rejection.key.into_iter().for_each(|key| self.audit.unreadable(key));
                }
                Found::Key(_) => {}
            },
            Ok(None) => {
                self.audit.end();
                self.stage = Stage::Read(*lsn);
            }
            Err(failure) => self.fail(settings, failure),
        }
    }

    fn fail(&mut self, settings: &Settings, failure: Failure) {
        let error = failure.classify(&settings.name);
        tracing::debug!(source = settings.name, %error, "table could not be compared with the log");
        self.audit.abandon();
        self.stage = Stage::Waiting(Instant::now() + self.interval);
    }

    /// The log has come so far: what it should have told before.
    pub(super) fn reached(&mut self, settings: &Settings, lsn: Lsn) -> Vec<Event> {
        match self.stage {
            Stage::Read(read_at) if lsn >= read_at => {}
            _ => return Vec::new(),
        }
        self.stage = Stage::Waiting(Instant::now() + self.interval);
        let corrections = self.audit.settle();
        if !corrections.is_empty() {
            let drift = u64::try_from(corrections.len()).unwrap_or(u64::MAX);
            self.shared.lock().drift += drift;
            tracing::warn!(source = settings.name, drift, "drift: rows changed without an entry in the log");
        }
        corrections
    }
}

impl Drop for Auditing {
    fn drop(&mut self) {
        self.audit.abandon();
        let audit = std::mem::take(&mut self.audit);
        *self.shared.told() = audit.is_complete().then_some(audit);
    }
}

/// Begins to read all rows, and says up to where in the log they may be.
async fn select(settings: &Settings, table: &Table) -> Result<(Connection, Lsn), Failure> {
    let mut connection = connect(settings, Purpose::Statements).await?;
    connection.query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
    // The first statement makes the snapshot. What is committed afterwards is not read; what was before has a place in the log before this one.
    connection.query("SELECT pg_current_snapshot()").await?;
    let place = "SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_insert_lsn() END";
    let rows = connection.query(place).await?;
    let lsn = rows.first().and_then(|row| Lsn::parse(row.first()?.as_ref()?));
    let lsn = lsn.ok_or_else(|| Failure::Connection("the server does not say where its log is".into()))?;
    let statement =
        format!("SELECT {} FROM {} AS t{}", table.selected(), table.only(), table.condition(None));
    connection.begin(&statement).await?;
    Ok((connection, lsn))
}
