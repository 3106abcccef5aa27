//! The feed of a replicated table: a slot, the rows of its snapshot, then the log.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::stream::{self, StreamExt as _};
use watchkeeper_core::{Document, Error, Event, Feed, Freshness, Start};

use super::auditing::Auditing;
use super::connection::Connection;
use super::failure::Failure;
use super::log::Log;
use super::login::{Purpose, connect};
use super::position::{Lsn, Origin, Position};
use super::row::found;
use super::settings::{Mode, Settings};
use super::slot;
use super::streaming::Streaming;
use super::table::{self, Table};
use crate::database::Found;
use crate::print::Print;

/// Everything a feed does happens while it is polled; dropping it drops its connection, and with it a slot that is not durable.
pub(super) fn open(settings: Arc<Settings>, start: Start) -> Feed {
    let audit = Auditing::new(&settings, &start);
    let feeding = Feeding { settings, stage: Stage::Closed(start), queue: VecDeque::new(), audit };
    let events = stream::unfold(Some(Box::new(feeding)), |feeding| async move {
        let mut feeding = feeding?;
        match feeding.next().await {
            Ok(event) => Some((Ok(event), Some(feeding))),
            Err(failure) => Some((Err(failure.classify(&feeding.settings.name)), None)),
        }
    });
    Box::pin(events.fuse())
}

struct Feeding {
    settings: Arc<Settings>,
    stage: Stage,
    queue: VecDeque<Event>,
    /// Until the log is followed.
    audit: Option<Auditing>,
}

enum Stage {
    Closed(Start),
    /// Rows come, as of where the slot begins.
    Snapshot(Box<Snapshot>),
    Following(Box<Streaming>),
    Failed,
}

struct Snapshot {
    connection: Connection,
    ready: Ready,
    start: Lsn,
}

/// What was found out before the log is read.
struct Ready {
    table: Arc<Table>,
    origin: Origin,
    publication: String,
    slot: String,
    durable: bool,
}

impl Feeding {
    async fn next(&mut self) -> Result<Event, Failure> {
        loop {
            if let Some(event) = self.queue.pop_front() {
                if let Some(audit) = &mut self.audit {
                    audit.note(&event);
                }
                return Ok(event);
            }
            self.stage = match std::mem::replace(&mut self.stage, Stage::Failed) {
                Stage::Closed(Start::Snapshot(freshness)) => {
                    let snapshot = begin(&self.settings, &freshness).await?;
                    self.settings.shared.lock().snapshots += 1;
                    self.queue.push_back(Event::Begin);
                    Stage::Snapshot(Box::new(snapshot))
                }
                Stage::Closed(Start::Resume(version)) => {
                    let streaming = resume(&self.settings, Position::parse(&version)).await?;
                    // That it is there is told before there is anything to tell.
                    self.queue.push_back(Event::Position(version));
                    Stage::Following(Box::new(streaming))
                }
                Stage::Snapshot(mut snapshot) => match snapshot.connection.row().await? {
                    Some(values) => {
                        let table = &snapshot.ready.table;
                        self.queue.push_back(match found(table, &values, self.settings.max_row_bytes) {
                            Found::Row(key, body) => {
                                let version = Print::of(&body).version();
                                Event::Item(Document::named(key, version, body))
                            }
                            Found::Rejected(rejection) => Event::Rejected(rejection),
                            Found::Key(_) => continue,
                        });
                        Stage::Snapshot(snapshot)
                    }
                    None => {
                        let Snapshot { mut connection, ready, start } = *snapshot;
                        connection.query("COMMIT").await?;
                        let streaming = follow(&self.settings, connection, ready, start).await?;
                        self.queue.push_back(Event::Complete(streaming.version()));
                        Stage::Following(Box::new(streaming))
                    }
                },
                Stage::Following(mut streaming) => {
                    streaming.audit = self.audit.take().or(streaming.audit.take());
                    let event = streaming.next().await?;
                    self.stage = Stage::Following(streaming);
                    return Ok(event);
                }
                Stage::Failed => return Err(Failure::Connection("the feed has failed before".into())),
            };
        }
    }
}

/// Connects and checks that everything is there.
async fn prepare(settings: &Settings) -> Result<(Connection, Ready), Failure> {
    let (slot, durable) = match &settings.mode {
        Mode::Replicate(Some(name)) => {
            slot::check_name(name)?;
            (name.clone(), true)
        }
        _ => (format!("watchkeeper_{:016x}", fastrand::u64(..)), false),
    };
    let mut connection = connect(settings, Purpose::Replication).await?;
    slot::check_wal_level(&mut connection).await?;
    let mut table = Table::read(&mut connection, settings).await?;
    table.check_for_replication(settings)?;
    table.without_generated()?;
    let publication = slot::check_publication(&mut connection, settings, &mut table).await?;
    let origin = slot::identify(&mut connection, &table.signature).await?;
    Ok((connection, Ready { table: Arc::new(table), origin, publication, slot, durable }))
}

/// Creates a slot, and begins to read the rows as of where it begins. A durable one that is there already is at another place: it goes.
async fn begin(settings: &Settings, freshness: &Freshness) -> Result<Snapshot, Failure> {
    let (mut connection, ready) = prepare(settings).await?;
    if ready.durable {
        slot::drop_if_free(&mut connection, &ready.slot).await?;
    }
    connection.query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
    let start = slot::create(&mut connection, &ready.slot, !ready.durable).await?;
    if let Freshness::NotOlderThan(version) = freshness
        && let Some(known) = Position::parse(version)
        && (known.origin.system != ready.origin.system || known.lsn > start)
    {
        let reason = "the server is another one, or was set back to before what is known";
        return Err(Error::Expired(reason.into()).into());
    }
    // The columns were looked up before there was a slot.
    if table::signature(&mut connection, settings).await? != ready.table.signature {
        let reason = format!("{}: the table was changed just now", settings.name);
        return Err(Error::Unavailable { answered: true, reason }.into());
    }
    let table = &ready.table;
    let statement =
        format!("SELECT {} FROM {} AS t{}", table.selected(), table.only(), table.condition(None));
    connection.begin(&statement).await?;
    Ok(Snapshot { connection, ready, start })
}

/// Goes on at a position, if the slot is where it was left and the table is what it was.
async fn resume(settings: &Settings, position: Option<Position>) -> Result<Streaming, Failure> {
    let expired = |why: &str| Err(Error::Expired(why.into()).into());
    let Some(position) = position else { return expired("this is no position in the log of a server") };
    let Mode::Replicate(Some(_)) = &settings.mode else {
        return expired("the replication slot went with its connection");
    };
    let (mut connection, ready) = prepare(settings).await?;
    if position.origin.system != ready.origin.system || position.origin.timeline != ready.origin.timeline {
        return expired("the server is another one, or goes on from a backup or a replica");
    }
    if position.origin.signature != ready.origin.signature {
        return expired("the table was changed since");
    }
    match slot::find(&mut connection, &ready.slot).await? {
        None => return expired("the replication slot is gone"),
        Some(known) if known.lost => {
            return expired("the replication slot was invalidated: it was too far behind");
        }
        Some(known) if known.confirmed > position.lsn => {
            return expired("the replication slot has been moved on beyond it");
        }
        Some(_) => {}
    }
    follow(settings, connection, ready, position.lsn).await
}

async fn follow(
    settings: &Settings,
    connection: Connection,
    ready: Ready,
    start: Lsn,
) -> Result<Streaming, Failure> {
    let Ready { table, origin, publication, slot, durable } = ready;
    let log = Log::new(Arc::clone(&table), settings.max_row_bytes, origin, start, durable);
    Streaming::start(settings, connection, log, table, &publication, slot).await
}
