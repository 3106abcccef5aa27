//! Replication slots and publications, which the log is read through.

use std::time::Duration;

use super::connection::{Connection, identifier, literal};
use super::failure::Failure;
use super::figures::Slot;
use super::install;
use super::position::{Lsn, Origin};
use super::settings::Settings;
use super::table::Table;

/// A slot that somebody else holds is waited for as long as this: a connection that was just closed is not noticed at once.
const HANDOVER_TIMEOUT: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// What the server says of itself: its identity, and where its log is.
pub(super) async fn identify(connection: &mut Connection, signature: &str) -> Result<Origin, Failure> {
    let rows = connection.query("IDENTIFY_SYSTEM").await?;
    match rows.into_iter().next().as_deref() {
        Some([Some(system), Some(timeline), ..]) => {
            Ok(Origin { system: system.clone(), timeline: timeline.clone(), signature: signature.to_owned() })
        }
        _ => Err(Failure::Connection("the server does not say who it is".into())),
    }
}

/// Without this setting, the server's log does not have what replication needs.
pub(super) async fn check_wal_level(connection: &mut Connection) -> Result<(), Failure> {
    let level = one(connection, "SHOW wal_level").await?;
    if level.as_deref() == Some("logical") {
        return Ok(());
    }
    Err(Failure::Settings(format!(
        "wal_level is {}, and replication needs logical: ALTER SYSTEM SET wal_level = logical, and restart the server",
        level.unwrap_or_default()
    )))
}

/// Looks at the publication: it has to have all changes of the table. What it leaves out is left out of the table.
pub(super) async fn check_publication(
    connection: &mut Connection,
    settings: &Settings,
    table: &mut Table,
) -> Result<String, Failure> {
    let name = settings.publication.clone().unwrap_or_else(|| table.companion());
    let (schema, relation) = table.schema_and_name();
    let (schema, relation) = (literal(schema), literal(relation));
    let described = format!(
        "SELECT pubinsert AND pubupdate AND pubdelete AND pubtruncate, pubviaroot, EXISTS (SELECT FROM pg_publication_tables t \
             WHERE t.pubname = p.pubname AND t.schemaname = {schema} AND t.tablename = {relation}) \
             FROM pg_publication p WHERE pubname = {}",
        literal(&name)
    );
    let mut rows = connection.query(&described).await?;
    if rows.is_empty() {
        let statement = install::publication(&name, table);
        install::install_missing(connection, settings, &format!("publication {name}"), &statement).await?;
        rows = connection.query(&described).await?;
    }
    let yes = Some("t".to_owned());
    let flag = |at: usize| rows.first().and_then(|row| row.get(at)).is_some_and(|value| *value == yes);
    let fatal = |why: String| Err(Failure::Settings(why));
    let publication = identifier(&name);
    if !flag(0) {
        return fatal(format!(
            "the publication {name} leaves out some changes: ALTER PUBLICATION {publication} SET (publish = 'insert, update, delete, truncate')"
        ));
    }
    if table.is_partitioned() && !flag(1) {
        return fatal(format!(
            "the publication {name} has the partitions, not their table: ALTER PUBLICATION {publication} SET (publish_via_partition_root = true)"
        ));
    }
    if !flag(2) {
        return fatal(format!(
            "the publication {name} does not have this table: ALTER PUBLICATION {publication} ADD TABLE {}",
            table.sql
        ));
    }
    let version: u32 =
        one(connection, "SHOW server_version_num").await?.and_then(|text| text.parse().ok()).unwrap_or(0);
    if version >= 150_000 {
        let rows = connection
            .query(&format!(
                "SELECT array_to_string(attnames, chr(31)), rowfilter FROM pg_publication_tables \
                 WHERE pubname = {} AND schemaname = {schema} AND tablename = {relation}",
                literal(&name)
            ))
            .await?;
        if let Some([Some(columns), filter]) = rows.first().map(|row| &**row) {
            let columns: Vec<String> = columns.split('\u{1f}').map(str::to_owned).collect();
            table.restrict(&columns, filter.clone())?;
        }
    }
    Ok(name)
}

/// What the catalog says of a slot.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) confirmed: Lsn,
    pub(super) lost: bool,
    ours: bool,
}

/// Looks a slot up, and waits a while for it to be free.
pub(super) async fn find(connection: &mut Connection, name: &str) -> Result<Option<Known>, Failure> {
    let due = tokio::time::Instant::now() + HANDOVER_TIMEOUT;
    loop {
        let rows = connection
            .query(&format!(
                "SELECT active_pid, coalesce(confirmed_flush_lsn, '0/0'), wal_status, \
                 slot_type = 'logical' AND plugin = 'pgoutput' AND database = current_database() \
                 FROM pg_replication_slots WHERE slot_name = {}",
                literal(name)
            ))
            .await?;
        let Some([pid, Some(confirmed), status, ours]) = rows.first().map(|row| &**row) else {
            return Ok(None);
        };
        let Some(pid) = pid else {
            return Ok(Some(Known {
                confirmed: Lsn::parse(confirmed).unwrap_or_default(),
                lost: status.as_deref() == Some("lost"),
                ours: ours.as_deref() == Some("t"),
            }));
        };
        if tokio::time::Instant::now() >= due {
            return Err(Failure::Connection(format!(
                "the replication slot {name} is used by another connection (process {pid}): two sources cannot share one"
            )));
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Drops a slot, if it is there, free and ours; says whether it was there.
pub(super) async fn drop_if_free(connection: &mut Connection, name: &str) -> Result<bool, Failure> {
    match find(connection, name).await? {
        None => Ok(false),
        Some(known) if known.ours => {
            connection.query(&format!("SELECT pg_drop_replication_slot({})", literal(name))).await?;
            Ok(true)
        }
        Some(_) => Err(Failure::Settings(format!(
            "the replication slot {name} is not for this: it is physical, of another database, or of another plugin than pgoutput"
        ))),
    }
}

/// The names that slots can have.
pub(super) fn check_name(name: &str) -> Result<(), Failure> {
    let fine = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    if (1..=63).contains(&name.len()) && name.bytes().all(fine) {
        return Ok(());
    }
    Err(Failure::Settings(format!(
        "{name:?} cannot be the name of a replication slot: it has to be of up to 63 lower-case letters, digits and underscores"
    )))
}

/// Creates a slot in the transaction that has just begun, which then shows the rows as of the position that it gives.
pub(super) async fn create(connection: &mut Connection, name: &str, temporary: bool) -> Result<Lsn, Failure> {
    let temporary = if temporary { " TEMPORARY" } else { "" };
    let statement =
        format!("CREATE_REPLICATION_SLOT {}{temporary} LOGICAL pgoutput USE_SNAPSHOT", identifier(name));
    let rows = connection.query(&statement).await.map_err(|failure| match failure {
        Failure::Connection(reason) => Failure::Connection(format!(
            "{reason} while it creates a replication slot: it waits for all transactions that are running, of which pg_stat_activity knows the oldest"
        )),
        Failure::Server(mut refusal) if refusal.code == "53400" => {
            refusal.message += "; raise max_replication_slots and max_wal_senders, or drop a slot that nobody uses";
            Failure::Server(refusal)
        }
        failure => failure,
    })?;
    let lsn = rows.first().and_then(|row| row.get(1)?.as_deref().and_then(Lsn::parse));
    lsn.ok_or_else(|| Failure::Connection("the server does not say where the slot begins".into()))
}

/// What somebody who runs this wants to know of a slot.
pub(super) async fn figures(connection: &mut Connection, name: &str) -> Result<Option<Slot>, Failure> {
    let rows = connection
        .query(&format!(
            "SELECT greatest(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn), 0)::bigint, safe_wal_size, wal_status \
             FROM pg_replication_slots WHERE slot_name = {}",
            literal(name)
        ))
        .await?;
    let number = |text: &Option<String>| text.as_ref().and_then(|text| text.parse::<i64>().ok());
    let natural = |number: i64| u64::try_from(number).unwrap_or(0);
    Ok(rows.first().and_then(|row| match &**row {
        [retained, safe, status] => Some(Slot {
            name: name.to_owned(),
            retained_bytes: number(retained).map(natural).unwrap_or_default(),
            safe_bytes: number(safe).map(natural),
            wal_status: status.clone().unwrap_or_default(),
        }),
        _ => None,
    }))
}

async fn one(connection: &mut Connection, statement: &str) -> Result<Option<String>, Failure> {
    let rows = connection.query(statement).await?;
    Ok(rows.into_iter().next().and_then(|row| row.into_iter().next().flatten()))
}
