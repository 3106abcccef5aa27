//! `postgres:` URLs.

use std::sync::Arc;

use watchkeeper_core::Source;
use watchkeeper_sources::postgres::Postgres;

use super::{Asked, Scheme, Settings, columns, parameters, parted};

/// `postgres://user@host/database?table=NAME`, with the parameters of libpq. What else is to be said stands among them or in `settings`:
///
/// - `mode`: `poll`, `notify` (told by a trigger) or `replicate` (read from the log);
/// - `slot`: the name of a slot that stays, for `replicate`; `publication`: the one that has the table;
/// - `install`: `true` to create the trigger or the publication if it is missing;
/// - `key`: the columns that tell rows apart; `namespace`: the one of them that is the namespace; `without`: columns to leave out;
/// - `interval`: how often to poll; `rescan`: how often to look besides;
/// - `checkDrift`: how often to compare the table with what the log told;
/// - `statusColumn`, `statusTable`: where the statuses of objects go, for those who write some;
/// - `passwordFile`, `timeout`, `maxBytes`.
pub(super) const SCHEME: Scheme = Scheme { names: &["postgres", "postgresql"], settings: SETTINGS, open };

const SETTINGS: &[&str] = &[
    "mode",
    "slot",
    "publication",
    "install",
    "key",
    "namespace",
    "without",
    "interval",
    "rescan",
    "checkDrift",
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
    let mut table = Postgres::from_url(&format!("{address}?{theirs}"));
    if let Some(wrong) = table.mistake() {
        asked.url.wrong(wrong);
        return None;
    }
    table = mode(&settings, table)?;
    if let Some(node) = settings.get("publication") {
        table = table.publication(node.text()?);
    }
    if let Some(node) = settings.get("install")
        && node.bool()?
    {
        table = table.install_when_opened();
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
    if let Some(node) = settings.get("rescan") {
        table = table.rescan(node.duration()?);
    }
    if let Some(node) = settings.get("checkDrift") {
        table = table.check_drift(node.duration()?);
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

fn mode(settings: &Settings<'_>, table: Postgres) -> Option<Postgres> {
    let mode = match settings.get("mode") {
        Some(node) => node.word(&["poll", "notify", "replicate"])?,
        None => "poll",
    };
    match (mode, settings.get("slot")) {
        ("replicate", Some(slot)) => Some(table.replicate_durably(slot.text()?)),
        ("replicate", None) => Some(table.replicate()),
        (_, Some(slot)) => {
            slot.wrong("is for mode replicate");
            None
        }
        ("notify", None) => Some(table.notify()),
        (_, None) => Some(table),
    }
}
