//! Creates and removes triggers and publications in the database, on request only.

use watchkeeper_core::Error;

use super::connection::{Connection, identifier, literal};
use super::failure::Failure;
use super::login::{Purpose, connect};
use super::settings::{Mode, Settings};
use super::slot;
use super::table::Table;

/// Creates what is missing; what is there is left, or replaced by the same.
pub(super) async fn install(settings: &Settings) -> Result<(), Failure> {
    let mut connection = connect(settings, Purpose::Statements).await?;
    let table = Table::read(&mut connection, settings).await?;
    match &settings.mode {
        Mode::Poll => Ok(()),
        Mode::Notify => in_transaction(&mut connection, &trigger(&table)).await,
        Mode::Replicate(_) => {
            table.check_for_replication(settings)?;
            let name = settings.publication.clone().unwrap_or_else(|| table.companion());
            let found = connection
                .query(&format!("SELECT FROM pg_publication WHERE pubname = {}", literal(&name)))
                .await?;
            if found.is_empty() {
                connection.query(&publication(&name, &table)).await?;
            }
            Ok(())
        }
    }
}

/// Creates what a feed needs and does not find, if the settings say so. Otherwise, and if that is refused, the error has the statements.
pub(super) async fn install_missing(
    connection: &mut Connection,
    settings: &Settings,
    what: &str,
    statements: &str,
) -> Result<(), Failure> {
    let name = &settings.name;
    if !settings.install {
        return Err(Failure::Decided(Error::Missing(format!(
            "{name}: there is no {what}: set install to true, or run as the owner of the table: {statements}"
        ))));
    }
    match in_transaction(connection, statements).await {
        Err(Failure::Server(refusal)) => Err(Failure::Decided(Error::Denied(format!(
            "{name}: there is no {what}, and it cannot be created: {refusal}; the owner of the table can run: {statements}"
        )))),
        Err(failure) => Err(failure),
        Ok(()) => {
            tracing::info!(source = name, "created the {what}");
            Ok(())
        }
    }
}

/// The statement that publishes a table.
pub(super) fn publication(name: &str, table: &Table) -> String {
    let root = if table.is_partitioned() { " WITH (publish_via_partition_root = true)" } else { "" };
    format!("CREATE PUBLICATION {} FOR TABLE {}{root}", identifier(name), table.only())
}

/// Removes what [`install`] creates, and the slot.
pub(super) async fn uninstall(settings: &Settings) -> Result<(), Failure> {
    let mut connection = connect(settings, Purpose::Statements).await?;
    match &settings.mode {
        Mode::Poll => Ok(()),
        Mode::Notify => {
            let table = Table::read(&mut connection, settings).await?;
            let name = identifier(&table.companion());
            let function = function(&table);
            let statements = format!(
                "DROP TRIGGER IF EXISTS {name} ON {sql}; DROP TRIGGER IF EXISTS {all} ON {sql}; DROP FUNCTION IF EXISTS {function}",
                all = truncate_trigger(&table),
                sql = table.sql,
            );
            in_transaction(&mut connection, &statements).await
        }
        Mode::Replicate(name) => {
            if let Some(name) = name {
                slot::drop_if_free(&mut connection, name).await?;
            }
            let table = Table::read(&mut connection, settings).await?;
            if settings.publication.is_none() {
                let statement = format!("DROP PUBLICATION IF EXISTS {}", identifier(&table.companion()));
                connection.query(&statement).await?;
            }
            Ok(())
        }
    }
}

/// Drops the slot of a source that is durable; says whether there was one.
pub(super) async fn drop_slot(settings: &Settings) -> Result<bool, Failure> {
    let Mode::Replicate(Some(name)) = &settings.mode else { return Ok(false) };
    let mut connection = connect(settings, Purpose::Statements).await?;
    slot::drop_if_free(&mut connection, name).await
}

async fn in_transaction(connection: &mut Connection, statements: &str) -> Result<(), Failure> {
    // Statements that are sent together are one transaction.
    connection.query(statements).await.map(drop)
}

fn function(table: &Table) -> String {
    format!("{}.{}()", identifier(table.schema_and_name().0), identifier(&table.companion()))
}

fn truncate_trigger(table: &Table) -> String {
    let mut name = table.companion();
    while name.len() > 59 {
        name.pop();
    }
    identifier(&format!("{name}_all"))
}

/// A trigger that says the keys of rows that change, in the form in which they are read; of a row whose key changes, both.
pub(super) fn trigger(table: &Table) -> String {
    let key = |row: &str| {
        let values =
            table.key.iter().map(|at| format!("{row}.{}::text", identifier(&table.columns[*at].name)));
        values.collect::<Vec<_>>().join(", ")
    };
    let channel = literal(&table.companion());
    let say = |row: &str| {
        // What is too long to be said is said without its name.
        format!(
            "payload := json_build_array({})::text; \
             PERFORM pg_notify({channel}, CASE WHEN octet_length(payload) < 7900 THEN payload ELSE '' END);",
            key(row)
        )
    };
    let body = format!(
        "DECLARE payload text; BEGIN \
           IF TG_LEVEL = 'STATEMENT' THEN PERFORM pg_notify({channel}, ''); RETURN NULL; END IF; \
           IF TG_OP <> 'DELETE' THEN {new} END IF; \
           IF TG_OP = 'DELETE' THEN {old} \
           ELSIF TG_OP = 'UPDATE' THEN IF ROW({old_key}) IS DISTINCT FROM ROW({new_key}) THEN {old} END IF; END IF; \
           RETURN NULL; END",
        new = say("NEW"),
        old = say("OLD"),
        old_key = key("OLD"),
        new_key = key("NEW"),
    );
    let (function, sql) = (function(table), &table.sql);
    let (name, all) = (identifier(&table.companion()), truncate_trigger(table));
    format!(
        "CREATE OR REPLACE FUNCTION {function} RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog SET datestyle = 'ISO' \
           SET timezone = 'UTC' SET intervalstyle = 'iso_8601' SET bytea_output = 'hex' SET extra_float_digits = 3 AS {body}; \
         DROP TRIGGER IF EXISTS {name} ON {sql}; \
         CREATE TRIGGER {name} AFTER INSERT OR UPDATE OR DELETE ON {sql} FOR EACH ROW EXECUTE FUNCTION {function}; \
         DROP TRIGGER IF EXISTS {all} ON {sql}; \
         CREATE TRIGGER {all} AFTER TRUNCATE ON {sql} FOR EACH STATEMENT EXECUTE FUNCTION {function}",
        body = literal(&body),
    )
}
