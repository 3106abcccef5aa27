//! `mysql:` and `mariadb:` URLs.

use std::sync::Arc;

use watchkeeper_core::Source;
use watchkeeper_sources::mysql::Mysql;

use super::{Asked, Scheme, Settings, columns, parameters, parted};

/// `mysql://user@host/database?table=NAME`, with `ssl-mode`, `ssl-ca` and `socket` as the clients of MySQL have them. What else is to be said
/// stands among them or in `settings`:
///
/// - `key`: the columns that tell rows apart; `namespace`: the one of them that is the namespace; `without`: columns to leave out;
/// - `interval`: how often to poll;
/// - `statusColumn`, `statusTable`: where the statuses of objects go, for those who write some;
/// - `passwordFile`, `timeout`, `maxBytes`.
pub(super) const SCHEME: Scheme = Scheme { names: &["mysql", "mariadb"], settings: SETTINGS, open };

const SETTINGS: &[&str] = &[
    "key",
    "namespace",
    "without",
    "interval",
    "statusColumn",
    "statusTable",
    "passwordFile",
    "timeout",
    "maxBytes",
];

fn open(asked: &Asked<'_>) -> Option<Arc<dyn Source>> {
    let (address, ours, theirs) = parted(asked.text, asked.settings);
    let parameters = parameters(&ours);
    let settings = Settings::read(asked, &parameters);
    let mut table = Mysql::from_url(&format!("{address}?{theirs}"));
    if let Some(wrong) = table.mistake() {
        asked.url.wrong(wrong);
        return None;
    }
    if let Some(node) = settings.get("key") {
        table = table.key(columns(&node)?);
    }
    if let Some(node) = settings.get("namespace") {
        table = table.namespace(node.text()?);
    }
    if let Some(node) = settings.get("without") {
        table = table.without(columns(&node)?);
    }
    if let Some(node) = settings.get("interval") {
        table = table.interval(node.duration()?);
    }
    if let Some(node) = settings.get("statusColumn") {
        table = table.status_column(node.text()?);
    }
    if let Some(node) = settings.get("statusTable") {
        table = table.status_table(node.text()?);
    }
    if let Some(node) = settings.get("passwordFile") {
        table = table.password_file(node.path(asked.base)?);
    }
    if let Some(node) = settings.get("timeout") {
        table = table.timeout(node.duration()?);
    }
    if let Some(node) = settings.get("maxBytes") {
        table = table.max_row_bytes(usize::try_from(node.count(1, 1 << 30)?).ok()?);
    }
    Some(Arc::new(table))
}
