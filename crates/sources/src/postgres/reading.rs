//! Reads rows by their keys.

use bytes::Bytes;

use super::connection::{Connection, Values, identifier, literal};
use super::failure::Failure;
use super::table::Table;

/// A statement that selects the rows with these keys, whose values are as the server writes them.
pub(super) fn by_keys(table: &Table, keys: &[Vec<Bytes>]) -> String {
    let columns: Vec<String> = table.key.iter().map(|at| identifier(&table.columns[*at].name)).collect();
    let key = |values: &Vec<Bytes>| {
        let values = values.iter().map(|value| literal(&String::from_utf8_lossy(value)));
        format!("({})", values.collect::<Vec<_>>().join(", "))
    };
    let keys: Vec<String> = keys.iter().map(key).collect();
    let condition = format!("({}) IN ({})", columns.join(", "), keys.join(", "));
    format!(
        "SELECT {} FROM {} AS t{}{}",
        table.selected(),
        table.sql,
        table.condition(Some(condition)),
        table.order()
    )
}

/// The rows with these keys.
pub(super) async fn rows(
    connection: &mut Connection,
    table: &Table,
    keys: &[Vec<Bytes>],
) -> Result<Vec<Values>, Failure> {
    connection.begin(&by_keys(table, keys)).await?;
    let mut rows = Vec::new();
    while let Some(values) = connection.row().await? {
        rows.push(values);
    }
    Ok(rows)
}
