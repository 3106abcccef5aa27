//! The values of a row as an object.

use bytes::Bytes;
use watchkeeper_core::{Key, Reason, Rejection};

use super::table::Table;
use super::value;
use crate::database::{Found, keyed};

/// A row, given the values of the table's columns.
pub(super) fn found(table: &Table, values: &[Option<Bytes>], max_bytes: usize) -> Found {
    let key = match row_key(table, table.key.iter().map(|at| values.get(*at).and_then(Option::as_ref))) {
        Ok(key) => key,
        Err(rejection) => return Found::Rejected(rejection),
    };
    let reject = |reason, detail| Found::Rejected(Rejection::new(Some(key.clone()), reason, detail));
    let size: usize = values.iter().flatten().map(Bytes::len).sum();
    if size > max_bytes {
        return reject(Reason::TooLarge, format!("the row has {size} bytes, and {max_bytes} are read"));
    }
    let object = table.names.object(|at, out| match values.get(at) {
        Some(Some(value)) => value::write(&table.columns[at].form, value, out).map_err(|why| (at, why)),
        _ => {
            out.extend_from_slice(b"null");
            Ok(())
        }
    });
    match object {
        Ok(body) => Found::Row(key, body),
        Err((at, why)) => {
            reject(Reason::Unreadable, format!("the value of the column {} {why}", table.columns[at].name))
        }
    }
}

/// The key of a row, given the values of the key's columns in their order.
pub(super) fn row_key<'v>(
    table: &Table,
    values: impl Iterator<Item = Option<&'v Bytes>>,
) -> Result<Key, Rejection> {
    let texts: Vec<Option<&str>> =
        values.map(|value| value.map(|value| std::str::from_utf8(value).unwrap_or("?"))).collect();
    let names = table.key.iter().map(|at| &*table.columns[*at].name);
    keyed(names.zip(texts), table.namespace)
}
