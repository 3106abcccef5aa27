//! Streams the log: entries in, confirmations out.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::{BufMut as _, Bytes, BytesMut};
use postgres_protocol::message::frontend::CopyData;
use tokio::time::{Instant, timeout_at};
use watchkeeper_core::{Error, Event, Version};

use super::auditing::Auditing;
use super::bytes::Parts;
use super::connection::{Connection, Message, identifier, literal, unexpected};
use super::failure::Failure;
use super::figures::Slot;
use super::log::{Incomplete, Log};
use super::login::{Purpose, connect};
use super::pgoutput::Entry;
use super::position::{Lsn, Position};
use super::settings::{Mode, Settings};
use super::table::{self, Table};
use super::{reading, slot};

/// How often the server is told how far we are, and asked whether it is there.
const STATUS_INTERVAL: Duration = Duration::from_secs(10);
/// A log in which nothing concerns us moves the position this often at most.
const IDLE_POSITION_INTERVAL: Duration = Duration::from_secs(1);
/// The first look from aside comes when a feed has lasted this long.
const FIRST_RESCAN_DELAY: Duration = Duration::from_secs(1);
/// How often the server is asked how far its log is while somebody waits for it to come further.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Seconds between the beginnings of time of UNIX and of PostgreSQL.
const EPOCH: u64 = 946_684_800;

/// A connection over which the log comes.
pub(super) struct Streaming {
    settings: Settings,
    connection: Connection,
    log: Log,
    table: Arc<Table>,
    slot: String,
    queue: VecDeque<Event>,
    durable: bool,
    /// What the reader was given and when, oldest first.
    handed: VecDeque<(Instant, Lsn)>,
    confirmed: Lsn,
    /// How far the server has written.
    written: Lsn,
    status_at: Instant,
    heard_at: Instant,
    position_at: Instant,
    look_at: Instant,
    ask_at: Instant,
    /// For rows that the log does not have whole.
    reader: Option<Connection>,
    /// Whether the log tells everything is looked at, if that was asked for.
    pub(super) audit: Option<Auditing>,
}

impl Streaming {
    pub(super) async fn start(
        settings: &Settings,
        mut connection: Connection,
        log: Log,
        table: Arc<Table>,
        publication: &str,
        slot: String,
    ) -> Result<Self, Failure> {
        let start = log.reached();
        let statement = format!(
            "START_REPLICATION SLOT {} LOGICAL {start} (proto_version '1', publication_names {})",
            identifier(&slot),
            literal(&identifier(publication))
        );
        connection.begin(&statement).await?;
        let message = connection.receive().await.map_err(expired_slot)?;
        if message.tag != b'W' {
            return Err(unexpected(&message));
        }
        let now = Instant::now();
        Ok(Self {
            settings: settings.clone(),
            connection,
            log,
            table,
            slot,
            queue: VecDeque::new(),
            durable: matches!(settings.mode, Mode::Replicate(Some(_))),
            handed: VecDeque::new(),
            confirmed: start,
            written: start,
            status_at: now,
            heard_at: now,
            position_at: now,
            look_at: now + settings.rescan.min(FIRST_RESCAN_DELAY),
            ask_at: now,
            reader: None,
            audit: None,
        })
    }

    pub(super) fn version(&self) -> Version {
        self.log.version()
    }

    /// The next event, however long it takes.
    pub(super) async fn next(&mut self) -> Result<Event, Failure> {
        loop {
            let now = Instant::now();
            if now >= self.status_at {
                self.confirm(true).await?;
            }
            if let Some(event) = self.queue.pop_front() {
                self.hand_over(&event);
                if let Some(audit) = &mut self.audit {
                    audit.note(&event);
                }
                return Ok(event);
            }
            let message = match self.connection.received_message().map_err(expired_slot)? {
                Some(message) => message,
                None => {
                    if now >= self.look_at {
                        self.look().await?;
                    }
                    if now.duration_since(self.heard_at) > self.settings.timeout {
                        let silence = self.settings.timeout;
                        return Err(Failure::Connection(format!(
                            "the server has been silent for {silence:?}"
                        )));
                    }
                    if self.compare(now).await? {
                        continue;
                    }
                    match self.wait().await {
                        Some(message) => message.map_err(expired_slot)?,
                        None => continue,
                    }
                }
            };
            self.heard_at = now;
            self.take(message).await?;
        }
    }

    /// The next message, or nothing if there is something else to do.
    async fn wait(&mut self) -> Option<Result<Message, Failure>> {
        let due = self.status_at.min(self.look_at);
        let Some(audit) = &mut self.audit else {
            return timeout_at(due, self.connection.receive()).await.ok();
        };
        let due = audit.due().map_or(due, |at| due.min(at));
        let due = if audit.is_waiting_for_log() { due.min(self.ask_at) } else { due };
        let reading = audit.is_reading();
        tokio::select! {
            () = audit.read(&self.settings, &self.table), if reading => None,
            message = timeout_at(due, self.connection.receive()) => message.ok(),
        }
    }

    /// Compares what the log has told with the table, if it is time to; `true` if that gave something to tell.
    async fn compare(&mut self, now: Instant) -> Result<bool, Failure> {
        let Some(audit) = &mut self.audit else { return Ok(false) };
        if audit.due().is_some_and(|due| now >= due) {
            audit.begin(&self.settings, &self.table).await;
        }
        self.queue.extend(audit.reached(&self.settings, self.log.reached()));
        if audit.is_waiting_for_log() && now >= self.ask_at {
            self.ask_at = now + POLL_INTERVAL;
            // Its answer says how far it is.
            self.confirm(true).await?;
        }
        Ok(!self.queue.is_empty())
    }

    async fn take(&mut self, message: Message) -> Result<(), Failure> {
        match message.tag {
            b'd' => {}
            // The server ends the log when it shuts down.
            b'c' | b'C' | b'Z' => return Err(Failure::Connection("the server ended the log".into())),
            _ => return Err(unexpected(&message)),
        }
        let mut parts = Parts::new(message.body);
        match parts.u8()? {
            b'w' => {
                let (_start, end, _time) = (parts.u64()?, parts.u64()?, parts.u64()?);
                self.written = self.written.max(Lsn(end));
                let entry = Entry::parse(parts.rest())?;
                if let Some(incomplete) = self.log.take(entry, &mut self.queue)? {
                    self.read_again(incomplete).await?;
                }
            }
            b'k' => {
                let (end, _time, reply) = (Lsn(parts.u64()?), parts.u64()?, parts.u8()?);
                self.written = self.written.max(end);
                let moved = self.log.idle(end);
                let now = Instant::now();
                if moved && self.durable && now >= self.position_at {
                    self.position_at = now + IDLE_POSITION_INTERVAL;
                    self.queue.push_back(Event::Position(self.log.version()));
                } else if moved && !self.durable {
                    self.confirmed = end;
                }
                if reply != 0 {
                    self.confirm(false).await?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Notes what the reader has. It is confirmed to the server when somebody who comes back will not ask for what was before it.
    fn hand_over(&mut self, event: &Event) {
        let position = match event {
            Event::Put { position, .. } | Event::Gone { position, .. } => position.as_ref(),
            Event::Rejected(rejection) => rejection.position.as_ref(),
            Event::Position(position) => Some(position),
            _ => None,
        };
        if let Some(position) = position.and_then(Position::parse) {
            self.handed.push_back((Instant::now(), position.lsn));
        } else if !self.durable && self.queue.is_empty() {
            self.confirmed = self.confirmed.max(self.log.reached());
        }
    }

    /// Tells the server how far we are.
    async fn confirm(&mut self, reply: bool) -> Result<(), Failure> {
        let now = Instant::now();
        self.status_at = now + STATUS_INTERVAL.min(self.settings.timeout / 3);
        while let Some((when, lsn)) = self.handed.front()
            && now.duration_since(*when) >= self.settings.acknowledge_after
        {
            self.confirmed = self.confirmed.max(*lsn);
            self.handed.pop_front();
        }
        let micros = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let micros = micros.saturating_sub(Duration::from_secs(EPOCH)).as_micros();
        let mut status = BytesMut::with_capacity(34);
        status.put_u8(b'r');
        for _ in ["written", "flushed", "applied"] {
            status.put_u64(self.confirmed.0);
        }
        status.put_u64(u64::try_from(micros).unwrap_or_default());
        status.put_u8(u8::from(reply));
        self.connection
            .send(|out| {
                CopyData::new(status.freeze())?.write(out);
                Ok(())
            })
            .await?;
        let mut figures = self.settings.shared.lock();
        figures.changes = self.log.changes;
        figures.lag_bytes = self.written.0.saturating_sub(self.confirmed.0);
        Ok(())
    }

    /// Asks the server from aside how the slot is doing, and whether the table is still what it was. That it cannot be asked is no failure.
    async fn look(&mut self) -> Result<(), Failure> {
        self.look_at = Instant::now() + self.settings.rescan;
        let asked = async {
            let mut connection = connect(&self.settings, Purpose::Statements).await?;
            let slot = slot::figures(&mut connection, &self.slot).await?;
            let signature = table::signature(&mut connection, &self.settings).await?;
            Ok::<_, Failure>((slot, signature))
        };
        match asked.await {
            Ok((slot, signature)) => {
                if self.durable
                    && let Some(warning) = slot.as_ref().and_then(Slot::warning)
                    && !self.settings.shared.warned.swap(true, Ordering::Relaxed)
                {
                    tracing::warn!(source = self.settings.name, "{warning}");
                }
                self.settings.shared.lock().slot = slot;
                if signature != self.log.origin().signature {
                    return Err(Error::Expired(format!("{} was changed", self.table.sql)).into());
                }
            }
            Err(failure) => {
                let error = failure.classify(&self.settings.name);
                tracing::debug!(source = self.settings.name, %error, "replication slot could not be read");
            }
        }
        Ok(())
    }

    /// Reads a row that the log does not have whole. It may be newer than the log is: what made it so comes later, and leads there, too.
    async fn read_again(&mut self, incomplete: Incomplete) -> Result<(), Failure> {
        let reader = match &mut self.reader {
            Some(reader) => reader,
            reader => reader.insert(connect(&self.settings, Purpose::Statements).await?),
        };
        let rows = reading::rows(reader, &self.table, &[incomplete.key]).await?;
        self.log.complete(rows.first().map(|values: &Vec<Option<Bytes>>| &**values), &mut self.queue);
        Ok(())
    }
}

/// A slot or a publication that is not there where the log begins is to be made anew, with a new snapshot.
fn expired_slot(failure: Failure) -> Failure {
    match failure.code() {
        Some("42704" | "55000") => match failure {
            Failure::Server(refusal) => Error::Expired(refusal.to_string()).into(),
            failure => failure,
        },
        _ => failure,
    }
}
