//! The table of a PostgreSQL database in which calls are recorded.

use std::time::SystemTime;

use serde_json::Value;
use watchkeeper_ai::{Amounts, Money, Period};
use watchkeeper_core::Error;
use watchkeeper_go::Time;
use watchkeeper_sources::postgres::{Database, Session, StatementError, identifier, literal};

use super::database_store::LOCK;
use super::records::{Spent, charge};

/// The name of the table if the URL names none.
const TABLE: &str = "watchkeeper_ai_calls";

/// The columns: their names, their types, and the fields of records. Counts have no largest value: a provider may say anything.
const COLUMNS: [(&str, &str, &str); 25] = [
    ("id", "text PRIMARY KEY", "id"),
    ("time", "timestamptz NOT NULL", "time"),
    ("namespace", "text", "namespace"),
    ("gateway", "text", "gateway"),
    ("policy", "text", "policy"),
    ("key", "text", "key"),
    ("model", "text", "model"),
    ("provider", "text", "provider"),
    ("dialect", "text", "dialect"),
    ("stream", "boolean", "stream"),
    ("status", "integer", "status"),
    ("error", "text", "error"),
    ("input_tokens", "numeric", "inputTokens"),
    ("cached_tokens", "numeric", "cachedTokens"),
    ("output_tokens", "numeric", "outputTokens"),
    ("cost", "numeric", "cost"),
    ("charged_tokens", "numeric", "chargedTokens"),
    ("charged_cost", "numeric", "chargedCost"),
    ("charged_requests", "numeric", "chargedRequests"),
    ("milliseconds", "double precision", "milliseconds"),
    ("first_token_milliseconds", "double precision", "firstTokenMilliseconds"),
    ("attempts", "integer", "attempts"),
    ("cached", "boolean", "cached"),
    ("request", "text", "request"),
    ("response", "text", "response"),
];

/// A table of calls.
#[derive(Clone, Debug)]
pub struct RecordTable(pub(super) Database);

impl RecordTable {
    /// Reads `postgres://user@host/database?table=NAME&passwordFile=FILE`. Nothing is asked yet.
    ///
    /// # Errors
    ///
    /// What is wrong with the URL.
    pub fn from_url(url: &str) -> Result<Self, String> {
        Database::from_url(url, TABLE).map(Self)
    }

    /// Connects, and creates the table if it is not there.
    pub(super) async fn open(&self) -> Result<Session, StatementError> {
        let mut session = self.0.connect().await?;
        let table = self.0.table();
        // Who may not create tables may use one that is there.
        let found = session.query(&format!("SELECT to_regclass({})", literal(&table))).await?;
        if found.iter().flatten().all(Option::is_none) {
            let columns = COLUMNS.map(|(name, kind, _)| format!("\"{name}\" {kind}")).join(", ");
            let index =
                identifier(&format!("{}_time", table.rsplit('.').next().unwrap_or(&table).replace('"', "")));
            let statements = format!(
                "SELECT pg_advisory_xact_lock({LOCK}); CREATE TABLE IF NOT EXISTS {table} ({columns}); \
                 CREATE INDEX IF NOT EXISTS {index} ON {table} (\"time\")"
            );
            session.query(&statements).await?;
            tracing::info!("{}: created the table for calls of models", self.0.name());
        }
        Ok(session)
    }

    /// The statement that inserts records, which are lines of JSON. One that is there already is left as it is: the same batch can be written again.
    pub(super) fn insert(&self, lines: &[Vec<u8>]) -> String {
        let objects: Vec<String> = lines.iter().map(|line| without_zeros(line)).collect();
        let objects = literal(&format!("[{}]", objects.join(",")));
        let names = COLUMNS.map(|(name, ..)| format!("\"{name}\"")).join(", ");
        let fields = COLUMNS.map(|(.., field)| format!("r.\"{field}\"")).join(", ");
        let typed = COLUMNS.map(|(_, kind, field)| {
            let kind = kind.trim_end_matches(" PRIMARY KEY").trim_end_matches(" NOT NULL");
            format!("\"{field}\" {kind}")
        });
        format!(
            "INSERT INTO {} ({names}) SELECT {fields} FROM jsonb_to_recordset({objects}) AS r({}) ON CONFLICT DO NOTHING",
            self.0.table(),
            typed.join(", ")
        )
    }

    /// Goes through all records since a time such as `2026-11-18T00:00:00Z`, or all there are, as [`Record::to_json`](super::records::Record::to_json) writes
    /// them, but for their content.
    ///
    /// # Errors
    ///
    /// If the server cannot be reached, or refuses.
    pub async fn read(&self, since: Option<&str>, mut each: impl FnMut(&Value)) -> Result<(), Error> {
        let fields = COLUMNS.iter().filter(|(name, ..)| !["request", "response"].contains(name));
        let fields = fields.map(|(name, kind, field)| match (*name, *kind) {
            ("time", _) => {
                "to_char(\"time\" AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"') AS \"time\""
                    .to_owned()
            }
            // Money is a text in records.
            ("cost" | "charged_cost", _) => format!("\"{name}\"::text AS \"{field}\""),
            _ => format!("\"{name}\" AS \"{field}\""),
        });
        let condition = match since {
            Some(since) => format!(" WHERE \"time\" >= {}", literal(since)),
            None => String::new(),
        };
        let statement = format!(
            "SELECT to_json(r) FROM (SELECT {} FROM {}{condition}) AS r",
            fields.collect::<Vec<_>>().join(", "),
            self.0.table()
        );
        let mut session = self.0.connect().await.map_err(|failed| failed.error)?;
        let take = |row: Vec<Option<String>>| {
            let line = row.into_iter().next().flatten();
            if let Some(record) = line.and_then(|line| serde_json::from_str::<Value>(&line).ok()) {
                each(&record);
            }
        };
        session.each(&statement, take).await.map_err(|failed| failed.error)
    }

    /// Adds up what calls that began before a moment were charged with in the periods that it is in.
    pub(super) async fn spent(&self, before: SystemTime) -> Result<Spent, StatementError> {
        let moment = format!("timestamptz {}", literal(&Time::from(before).rfc3339_micro()));
        let begin = |period: Period| {
            let unit = match period {
                Period::Minute => "minute",
                Period::Hour => "hour",
                Period::Day => "day",
                Period::Month => "month",
            };
            format!("(date_trunc('{unit}', {moment} AT TIME ZONE 'UTC') AT TIME ZONE 'UTC')")
        };
        let sums = Period::ALL.map(|period| {
            // So many digits as amounts have after the point.
            let columns = [("charged_requests", 0), ("charged_tokens", 0), ("charged_cost", 9)];
            let sum = |(name, digits)| {
                format!("round(sum(\"{name}\") FILTER (WHERE \"time\" >= {}), {digits})", begin(period))
            };
            columns.map(sum).join(", ")
        });
        let statement = format!(
            "SELECT namespace, policy, key, {} FROM {} WHERE \"time\" >= {} AND \"time\" < {moment} GROUP BY namespace, policy, key",
            sums.join(", "),
            self.0.table(),
            begin(Period::Month),
        );
        let mut spent = Spent::new();
        let take = |row: Vec<Option<String>>| {
            let text = |at: usize| row.get(at).and_then(Option::as_deref);
            // What is more than can be counted is more than any limit.
            let count = |at: usize| text(at).map_or(0, |count| count.parse().unwrap_or(u64::MAX));
            let money =
                |at: usize| text(at).map_or(0, |cost| cost.parse::<Money>().map_or(u64::MAX, |cost| cost.0));
            let charged: [Amounts; Period::ALL.len()] = std::array::from_fn(|period| {
                let at = 3 + 3 * period;
                Amounts { requests: count(at), tokens: count(at + 1), money: money(at + 2) }
            });
            charge(&mut spent, [text(0), text(1), text(2)], &charged);
        };
        self.open().await?.each(&statement, take).await?;
        Ok(spent)
    }
}

/// A line without what no text of PostgreSQL can have.
fn without_zeros(line: &[u8]) -> String {
    fn cleaned(value: &mut Value) {
        match value {
            Value::String(text) => text.retain(|letter| letter != '\0'),
            Value::Array(items) => items.iter_mut().for_each(cleaned),
            Value::Object(fields) => fields.values_mut().for_each(cleaned),
            _ => {}
        }
    }
    let line = String::from_utf8_lossy(line);
    match line.contains("\\u0000").then(|| serde_json::from_str::<Value>(&line)) {
        Some(Ok(mut value)) => {
            cleaned(&mut value);
            value.to_string()
        }
        _ => line.trim_end().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_quotes_what_records_say() {
        let table = RecordTable::from_url("postgres://me@host/db?table=a.calls").unwrap();
        let statement =
            table.insert(&[b"{\"id\":\"it's\"}\n".to_vec(), b"{\"key\":\"a\\u0000b\"}\n".to_vec()]);
        assert!(statement.starts_with("INSERT INTO \"a\".\"calls\" (\"id\", \"time\","), "{statement}");
        assert!(statement.contains("'[{\"id\":\"it''s\"},{\"key\":\"ab\"}]'"), "{statement}");
    }
}
