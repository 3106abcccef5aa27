//! `sqlite:` URLs.

use std::sync::Arc;

use watchkeeper_core::Source;
use watchkeeper_sources::sqlite::Sqlite;

use super::files::path;
use super::{Asked, Scheme, Settings, columns, parameters};

/// `sqlite:./app.db?table=NAME`. What else is to be said stands beside the table or in `settings`:
///
/// - `key`: the columns that tell rows apart; `without`: columns to leave out;
/// - `interval`: how often SQLite is asked whether something was committed;
/// - `maxBytes`.
pub(super) const SCHEME: Scheme = Scheme { names: &["sqlite"], settings: SETTINGS, open };

const SETTINGS: &[&str] = &["table", "key", "without", "interval", "maxBytes"];

fn open(asked: &Asked<'_>) -> Option<Arc<dyn Source>> {
    let rest = asked.text.split_once(':').map_or("", |(_, rest)| rest);
    let (written, query) = rest.split_once('?').unwrap_or((rest, ""));
    let parameters = parameters(query);
    let settings = Settings::read(asked, &parameters);
    let path = path(asked, written)?;
    let name = match settings.get("table") {
        Some(node) => node.text()?,
        None => {
            asked.url.wrong("it names no table: expected ...?table=NAME");
            return None;
        }
    };
    let mut table = Sqlite::table(path, name);
    if let Some(node) = settings.get("key") {
        table = table.key(columns(&node)?);
    }
    if let Some(node) = settings.get("without") {
        table = table.without(columns(&node)?);
    }
    if let Some(node) = settings.get("interval") {
        table = table.interval(node.duration()?);
    }
    if let Some(node) = settings.get("maxBytes") {
        table = table.max_row_bytes(usize::try_from(node.count(1, 1 << 30)?).ok()?);
    }
    Some(Arc::new(table))
}
