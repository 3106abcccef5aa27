//! The columns and the key of a table, and the statement that reads it.

use bytes::Bytes;
use watchkeeper_core::{Key, Reason, Rejection};

use super::connection::{Connection, identifier, literal};
use super::failure::Failure;
use super::value::{self, Form};
use super::{Settings, StatusPlace};
use crate::database::{Found, Names, keyed, split};

/// What a server is like.
#[derive(Clone, Copy, Debug)]
pub(super) struct Server {
    pub(super) is_mariadb: bool,
    /// How large a packet may be, and so a row.
    pub(super) max_packet: usize,
}

impl Server {
    pub(super) async fn read(connection: &mut Connection) -> Result<Self, Failure> {
        let rows = connection.query("SELECT VERSION(), @@max_allowed_packet").await?;
        let [Some(version), Some(max_packet)] = rows.first().map(Vec::as_slice).unwrap_or_default() else {
            return Err(Failure::garbled("a server without a version"));
        };
        Ok(Self {
            is_mariadb: version.contains("MariaDB"),
            max_packet: max_packet.parse().unwrap_or(1 << 20),
        })
    }
}

/// The columns of objects.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Table {
    sql: String,
    columns: Vec<Column>,
    /// Which columns are the key.
    key: Vec<usize>,
    /// Which column of the key is the namespace.
    namespace: Option<usize>,
    /// Whether no two rows have the same key.
    unique: bool,
    names: Names,
    /// How many bytes a row may have.
    limit: usize,
}

#[derive(Debug, PartialEq, Eq)]
struct Column {
    name: String,
    data_type: String,
    form: Form,
}

impl Table {
    pub(super) async fn read(
        connection: &mut Connection,
        server: Server,
        settings: &Settings,
    ) -> Result<Self, Failure> {
        let database = settings.address.as_ref().map(|address| &*address.database).unwrap_or_default();
        let (schema, table) = settings.table.split_once('.').unwrap_or((database, &settings.table));
        let sql = format!("{}.{}", identifier(schema), identifier(table));
        // With constants: a condition that the server cannot take apart makes it open every table it has.
        let place = format!("table_schema = {} AND table_name = {}", literal(schema), literal(table));
        let columns = format!(
            "SELECT column_name, data_type, column_type FROM information_schema.columns WHERE {place} ORDER BY ordinal_position"
        );
        let columns = connection.query(&columns).await?;
        if columns.is_empty() {
            return Err(Failure::Missing("there is no such table, or no right to read it".into()));
        }
        let primary = format!(
            "SELECT column_name FROM information_schema.statistics WHERE {place} AND index_name = 'PRIMARY' ORDER BY seq_in_index"
        );
        let primary: Vec<String> =
            connection.query(&primary).await?.into_iter().flatten().flatten().collect();
        // JSON is a text with a check in MariaDB.
        let declared: String = match server.is_mariadb {
            true => connection
                .query(&format!("SHOW CREATE TABLE {sql}"))
                .await?
                .into_iter()
                .flatten()
                .flatten()
                .collect(),
            false => String::new(),
        };
        let columns = columns.into_iter().map(|row| column(row, &declared)).collect::<Result<_, _>>()?;
        Self::new(sql, columns, primary, server, settings)
    }

    fn new(
        sql: String,
        mut columns: Vec<Column>,
        primary: Vec<String>,
        server: Server,
        settings: &Settings,
    ) -> Result<Self, Failure> {
        let wrong = |why: String| Failure::Settings(why);
        let key = if settings.key.is_empty() { primary.clone() } else { settings.key.clone() };
        if key.is_empty() {
            return Err(wrong(format!(
                "{} has no primary key: name the columns that tell its rows apart",
                settings.table
            )));
        }
        for name in key.iter().chain(&settings.without) {
            if !columns.iter().any(|column| column.name == *name) {
                return Err(wrong(format!("{} has no column {name}", settings.table)));
            }
        }
        let status = match &settings.status {
            Some(StatusPlace::Column(name)) if !columns.iter().any(|column| column.name == *name) => {
                return Err(wrong(format!("{} has no column {name} for statuses", settings.table)));
            }
            Some(StatusPlace::Column(name)) => Some(name),
            _ => None,
        };
        columns.retain(|column| !settings.without.contains(&column.name) && Some(&column.name) != status);
        let place = |name: &String| columns.iter().position(|column| column.name == *name);
        let places: Option<Vec<usize>> = key.iter().map(place).collect();
        let Some(places) = places else {
            return Err(wrong(format!("a column of the key ({}) is left out", key.join(", "))));
        };
        let namespace = match &settings.namespace {
            None => None,
            Some(name) => {
                let at = key.iter().position(|column| column == name).filter(|_| key.len() > 1);
                Some(at.ok_or_else(|| {
                    wrong(format!("the namespace {name} is not one of several columns of the key"))
                })?)
            }
        };
        let names = Names::new(columns.iter().map(|column| &*column.name));
        let unique = !primary.is_empty() && primary.iter().all(|name| key.contains(name));
        // Numbers and lengths have room beside large values.
        let limit = settings.max_row_bytes.min(server.max_packet / 2);
        Ok(Self { sql, columns, key: places, namespace, unique, names, limit })
    }

    /// Selects all rows: how large each one is, then its values. Large values of a row that is too large are not sent.
    pub(super) fn select(&self) -> String {
        // Where several rows have one key, which one comes first must not change from read to read.
        let order: Vec<String> = (2..self.columns.len() + 2).map(|number| number.to_string()).collect();
        let order = if self.unique { String::new() } else { format!(" ORDER BY {}", order.join(", ")) };
        format!("{}{order}", self.select_from())
    }

    fn select_from(&self) -> String {
        let large = self.columns.iter().filter(|column| value::is_large(&column.data_type));
        let sizes: Vec<String> =
            large.map(|column| format!("COALESCE(OCTET_LENGTH({}), 0)", identifier(&column.name))).collect();
        let size = if sizes.is_empty() { "0".to_owned() } else { sizes.join(" + ") };
        let mut selected = vec![size.clone()];
        for column in &self.columns {
            let name = identifier(&column.name);
            selected.push(match &*column.data_type {
                // Not as bits, and with all the digits that tell it from others.
                "bit" => format!("{name} + 0"),
                "float" => format!("{name} + 0e0"),
                data_type if value::is_large(data_type) => {
                    format!("IF({size} > {}, NULL, {name})", self.limit)
                }
                _ => name,
            });
        }
        format!("SELECT {} FROM {}", selected.join(", "), self.sql)
    }

    /// Selects the row with this key, and keeps others from changing it.
    pub(super) fn select_for_update(&self, values: &[String]) -> String {
        format!("{} WHERE {} FOR UPDATE", self.select_from(), self.condition(values))
    }

    /// The values of the key's columns, in their order; `None` if it is no key of this table.
    pub(super) fn values(&self, key: &Key) -> Option<Vec<String>> {
        match self.namespace {
            None if key.namespace().is_some() => None,
            None => split(key.name(), self.key.len()),
            Some(at) => {
                let mut values = split(key.name(), self.key.len() - 1)?;
                values.insert(at, key.namespace()?.to_owned());
                Some(values)
            }
        }
    }

    /// That a row has this key.
    pub(super) fn condition(&self, values: &[String]) -> String {
        let columns = self.key.iter().map(|at| &self.columns[*at]);
        let equal = columns.zip(values).map(|(column, value)| match &*column.data_type {
            "bit" => format!("{} + 0 = {}", identifier(&column.name), literal(value)),
            _ => format!("{} = {}", identifier(&column.name), stored(column, value)),
        });
        equal.collect::<Vec<_>>().join(" AND ")
    }

    /// The columns of the key, and these values of it, as they stand in a statement.
    pub(super) fn key_values(&self, values: &[String]) -> (String, String) {
        let columns: Vec<&Column> = self.key.iter().map(|at| &self.columns[*at]).collect();
        let names: Vec<String> = columns.iter().map(|column| identifier(&column.name)).collect();
        let values: Vec<String> =
            columns.iter().zip(values).map(|(column, value)| stored(column, value)).collect();
        (names.join(", "), values.join(", "))
    }

    /// Its name as it stands in a statement.
    pub(super) fn sql(&self) -> &str {
        &self.sql
    }

    /// A row, given what [`select`](Self::select) gives.
    pub(super) fn found(&self, row: &[Option<Bytes>]) -> Found {
        let Some((size, values)) = row.split_first() else {
            return Found::Rejected(reject(None, Reason::Unreadable, "a row has no values".into()));
        };
        let mut key = Vec::with_capacity(self.key.len());
        for at in &self.key {
            key.push(values.get(*at).and_then(Option::as_ref).map(|value| match self.columns[*at].form {
                Form::Bytes => watchkeeper_go::base64::encode(value),
                _ => String::from_utf8_lossy(value).into_owned(),
            }));
        }
        let columns = self.key.iter().map(|at| &*self.columns[*at].name);
        let key = match keyed(columns.zip(key.iter().map(Option::as_deref)), self.namespace) {
            Ok(key) => key,
            Err(rejection) => return Found::Rejected(rejection),
        };
        let said = size.as_ref().and_then(|size| std::str::from_utf8(size).ok()?.parse().ok()).unwrap_or(0);
        let size = values.iter().flatten().map(Bytes::len).sum::<usize>().max(said);
        if size > self.limit {
            let detail = format!("the row has {size} bytes, and {} are read", self.limit);
            return Found::Rejected(reject(Some(key), Reason::TooLarge, detail));
        }
        let object = self.names.object(|at, out| match values.get(at) {
            Some(Some(value)) => value::write(self.columns[at].form, value, out).map_err(|why| (at, why)),
            _ => {
                out.extend_from_slice(b"null");
                Ok(())
            }
        });
        match object {
            Ok(body) => Found::Row(key, body),
            Err((at, why)) => {
                let detail = format!("the value of the column {} {why}", self.columns[at].name);
                Found::Rejected(reject(Some(key), Reason::Unreadable, detail))
            }
        }
    }
}

/// A value of a key as it stands in a statement.
fn stored(column: &Column, value: &str) -> String {
    match column.form {
        Form::Bytes => format!("FROM_BASE64({})", literal(value)),
        _ => literal(value),
    }
}

fn reject(key: Option<Key>, reason: Reason, detail: String) -> Rejection {
    Rejection::new(key, reason, detail)
}

fn column(row: Vec<Option<String>>, table: &str) -> Result<Column, Failure> {
    let [Some(name), Some(data_type), Some(declared)] = &*row else {
        return Err(Failure::garbled("a column without a name"));
    };
    let is_json = table.contains(&format!("CHECK (json_valid({}))", identifier(name)));
    let form = if is_json { Form::Json } else { value::form(data_type, declared) };
    Ok(Column { name: name.clone(), data_type: data_type.clone(), form })
}
