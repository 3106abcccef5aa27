//! Notifications of a trigger about changed rows, and the heartbeat that proves that they arrive.
//!
//! What is notified before something else is heard before it. So when a heartbeat comes back that was sent after a read, all is known that was
//! notified of what the read saw, and what it saw beyond that is drift.

use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;
use watchkeeper_core::Key;

use super::connection::{Connection, Notification, identifier, literal};
use super::failure::Failure;
use super::install::{install_missing, trigger};
use super::row::row_key;
use super::settings::Settings;
use super::table::Table;
use crate::database::Scope;

/// How often a heartbeat is sent.
const HEARTBEAT: Duration = Duration::from_secs(10);
/// What comes within this time is read together.
const TOGETHER: Duration = Duration::from_millis(5);
/// More rows than this are not read by their keys, but with all that have changed.
const MANY: usize = 500;
/// What heartbeats begin with. No key does.
const PULSE: &str = "heartbeat ";

pub(super) struct Hints {
    channel: String,
    table: Table,
    /// Which rows have changed, by the values of their keys.
    keys: BTreeSet<Vec<Bytes>>,
    /// Something has changed that was not named.
    unnamed: bool,
    beat_at: Instant,
    /// The heartbeat that has not come back, and when it was sent.
    beating: Option<(String, Instant)>,
    /// What a read has found that nobody had named yet.
    suspected: HashSet<Key>,
}

impl Hints {
    /// Begins to listen: before the first read, so that nothing falls between.
    pub(super) async fn listen(
        connection: &mut Connection,
        settings: &Settings,
        table: &Table,
    ) -> Result<Self, Failure> {
        let channel = table.companion();
        let triggers = connection
            .query(&format!(
                "SELECT tgenabled IN ('O', 'A') FROM pg_trigger WHERE tgrelid = {} AND tgname = {}",
                table.oid,
                literal(&channel)
            ))
            .await?;
        match triggers.first().map(|row| row.first().and_then(|enabled| enabled.as_deref())) {
            Some(Some("t")) => {}
            Some(_) => {
                return Err(Failure::Settings(format!(
                    "the trigger {channel} of {table} is disabled: ALTER TABLE {table} ENABLE TRIGGER {}",
                    identifier(&channel),
                    table = table.sql
                )));
            }
            None => {
                let what = format!("trigger {channel} on {}", table.sql);
                install_missing(connection, settings, &what, &trigger(table)).await?;
            }
        }
        connection.query(&format!("LISTEN {}", identifier(&channel))).await?;
        Ok(Self {
            channel,
            table: table.clone(),
            keys: BTreeSet::new(),
            unnamed: false,
            beat_at: Instant::now(),
            beating: None,
            suspected: HashSet::new(),
        })
    }

    /// Waits for hints until something is due. `None` if that is the case.
    pub(super) async fn wait(
        &mut self,
        connection: &mut Connection,
        settings: &Settings,
        scan_at: Instant,
    ) -> Result<Option<Scope>, Failure> {
        loop {
            let now = Instant::now();
            if now >= scan_at {
                return Ok(None);
            }
            if now >= self.beat_at {
                self.beat(connection, settings).await?;
            }
            if self.keys.is_empty() && !self.unnamed {
                let due = scan_at.min(self.beat_at).duration_since(now);
                self.hear(connection.notifications(due).await?, settings);
                continue;
            }
            self.hear(connection.notifications(TOGETHER).await?, settings);
            if std::mem::take(&mut self.unnamed) || self.keys.len() > MANY {
                self.keys.clear();
                return Ok(Some(Scope::Changed));
            }
            return Ok(Some(Scope::Hinted));
        }
    }

    /// The keys of the rows that are said to have changed.
    pub(super) fn take(&mut self) -> Vec<Vec<Bytes>> {
        std::mem::take(&mut self.keys).into_iter().collect()
    }

    /// A read has found that these have changed.
    pub(super) fn suspect(&mut self, keys: Vec<Key>) {
        if !keys.is_empty() {
            self.suspected.extend(keys);
            // Whether somebody has said so is known when the next heartbeat comes back.
            self.beating = None;
            self.beat_at = Instant::now();
        }
    }

    async fn beat(&mut self, connection: &mut Connection, settings: &Settings) -> Result<(), Failure> {
        let now = Instant::now();
        if let Some((_, sent)) = &self.beating {
            if now.duration_since(*sent) < settings.timeout {
                self.beat_at = now + HEARTBEAT.min(settings.timeout / 3);
                return Ok(());
            }
            return Err(Failure::Connection(format!(
                "what is notified does not come back after {:?}: a pooler that shares connections between transactions loses notifications",
                settings.timeout
            )));
        }
        let pulse = format!("{PULSE}{:016x}", fastrand::u64(..));
        let statement = format!("SELECT pg_notify({}, {})", literal(&self.channel), literal(&pulse));
        self.beating = Some((pulse, now));
        self.beat_at = now + HEARTBEAT.min(settings.timeout / 3);
        connection.query(&statement).await?;
        Ok(())
    }

    fn hear(&mut self, notifications: Vec<Notification>, settings: &Settings) {
        for Notification { channel, payload, .. } in notifications {
            if channel != self.channel {
                continue;
            }
            if payload.starts_with(PULSE) {
                if self.beating.as_ref().is_some_and(|(pulse, _)| *pulse == payload) {
                    self.beating = None;
                    settings.shared.lock().drift += self.suspected.drain().count() as u64;
                }
                continue;
            }
            match serde_json::from_str::<Vec<String>>(&payload) {
                Ok(values) => {
                    let values: Vec<Bytes> = values.into_iter().map(Bytes::from).collect();
                    if let Ok(key) = row_key(&self.table, values.iter().map(Some)) {
                        self.suspected.remove(&key);
                    }
                    self.keys.insert(values);
                }
                // All rows at once, or one whose key is too long to be said.
                Err(_) => {
                    self.suspected.clear();
                    self.unnamed = true;
                }
            }
        }
    }
}
