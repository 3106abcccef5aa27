//! Keys of several columns as one name.

use watchkeeper_core::Key;
#[cfg(any(feature = "mysql", feature = "postgres"))]
use watchkeeper_core::{Reason, Rejection};

/// The key of a row, given the names and the values of the key's columns in their order, and which of them is the namespace. A row
/// without a key is rejected, under a name that no other row has in its place: it puts no other row in doubt.
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) fn keyed<'v>(
    columns: impl ExactSizeIterator<Item = (&'v str, Option<&'v str>)>,
    namespace: Option<usize>,
) -> Result<Key, Rejection> {
    let is_only = columns.len() == 1;
    let mut parts = Vec::with_capacity(columns.len());
    let mut null = None;
    for (name, value) in columns {
        if value.is_none_or(|value| value.is_empty() && is_only) {
            null = Some(name);
        }
        parts.push(value.unwrap_or("NULL"));
    }
    let namespace = namespace.map(|at| parts.remove(at));
    let key = join(namespace, &parts);
    let Some(column) = null else { return Ok(key) };
    let detail = format!("the column {column} is part of the key, and is empty or NULL");
    let key = if key.name().is_empty() { Key::new(key.namespace(), "NULL") } else { key };
    Err(Rejection::new(Some(key), Reason::Unreadable, detail))
}

/// The key of a row: the namespace, if a column has it, and the values of the other columns of the key, with a slash between them. Where there
/// are several, a slash or a percent sign in a value is written as in URLs.
pub(crate) fn join(namespace: Option<&str>, values: &[&str]) -> Key {
    match values {
        [value] => Key::new(namespace, value),
        values => {
            let escaped: Vec<String> =
                values.iter().map(|value| value.replace('%', "%25").replace('/', "%2F")).collect();
            Key::new(namespace, &escaped.join("/"))
        }
    }
}

/// The values that [`join`] made a name of, or `None` if it was not made of so many.
pub(crate) fn split(name: &str, columns: usize) -> Option<Vec<String>> {
    if columns == 1 {
        return Some(vec![name.to_owned()]);
    }
    let values: Vec<String> =
        name.split('/').map(|value| value.replace("%2F", "/").replace("%25", "%")).collect();
    (values.len() == columns).then_some(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn keys_of_one_column_are_its_values_as_they_are() {
        assert_eq!(join(None, &["a/b%"]).to_string(), "a/b%");
        assert_eq!(join(Some("shop"), &["cart"]), Key::new(Some("shop"), "cart"));
        assert_eq!(join(None, &["a/b", "c"]).name(), "a%2Fb/c");
    }

    proptest! {
        #[test]
        fn names_are_taken_apart_as_they_were_put_together(values in proptest::collection::vec("[a/%25F]{0,6}", 1..4)) {
            let columns: Vec<&str> = values.iter().map(String::as_str).collect();
            prop_assert_eq!(split(join(None, &columns).name(), values.len()), Some(values));
        }
    }
}
