//! `etcd:` URLs.

use std::sync::Arc;

use watchkeeper_core::Source;
use watchkeeper_sources::etcd::Etcd;

use super::{Asked, Scheme, Settings, parameters, unescaped};

/// `etcd://host:2379,host:2379/PREFIX`; the prefix begins with the slash. What else is to be said stands behind a question mark or in
/// `settings`:
///
/// - `tls`: `true` for endpoints that speak TLS, as they do with a `caFile`;
/// - `caFile`: whom to trust; `certFile` and `keyFile`: the certificate to show; `serverName`: what certificates of members are for;
/// - `user` and `passwordFile`;
/// - `namespaced`: takes what comes before the first slash of a name as the namespace;
/// - `checkDrift`: how often to compare the keys with what the log told;
/// - `timeout`, `maxBytes`.
pub(super) const SCHEME: Scheme = Scheme { names: &["etcd"], settings: SETTINGS, open };

const SETTINGS: &[&str] = &[
    "tls",
    "caFile",
    "certFile",
    "keyFile",
    "serverName",
    "user",
    "passwordFile",
    "namespaced",
    "checkDrift",
    "timeout",
    "maxBytes",
];

fn open(asked: &Asked<'_>) -> Option<Arc<dyn Source>> {
    let (address, query) = asked.text.split_once('?').unwrap_or((asked.text, ""));
    let parameters = parameters(query);
    let settings = Settings::read(asked, &parameters);
    let rest = address.split_once("://").map_or("", |(_, rest)| rest);
    let (hosts, prefix) = rest.find('/').map_or((rest, "/"), |at| rest.split_at(at));
    if hosts.contains('@') {
        asked.url.wrong("has a user in it: use the settings user and passwordFile");
        return None;
    }
    if hosts.split(',').any(str::is_empty) {
        asked.url.wrong("names no host: expected etcd://host:2379/prefix");
        return None;
    }
    let is_tls = match settings.get("tls") {
        Some(node) => node.bool()?,
        None => settings.get("caFile").is_some(),
    };
    let scheme = if is_tls { "https" } else { "http" };
    let endpoints = hosts.split(',').map(|host| match host.rsplit_once(':') {
        Some((_, port)) if !port.ends_with(']') => format!("{scheme}://{host}"),
        _ => format!("{scheme}://{host}:2379"),
    });
    let mut etcd = Etcd::prefix(endpoints, &unescaped(prefix));
    if let Some(node) = settings.get("caFile") {
        etcd = etcd.ca_file(node.path(asked.base)?);
    }
    match (settings.get("certFile"), settings.get("keyFile")) {
        (Some(certificate), Some(key)) => {
            etcd = etcd.identity_files(certificate.path(asked.base)?, key.path(asked.base)?);
        }
        (Some(node), None) | (None, Some(node)) => {
            node.wrong("certFile and keyFile go together");
            return None;
        }
        (None, None) => {}
    }
    match (settings.get("user"), settings.get("passwordFile")) {
        (Some(user), Some(file)) => etcd = etcd.password_file(user.text()?, file.path(asked.base)?),
        (Some(node), None) | (None, Some(node)) => {
            node.wrong("user and passwordFile go together");
            return None;
        }
        (None, None) => {}
    }
    if let Some(node) = settings.get("serverName") {
        etcd = etcd.server_name(node.text()?);
    }
    if let Some(node) = settings.get("namespaced")
        && node.bool()?
    {
        etcd = etcd.namespaced();
    }
    if let Some(node) = settings.get("checkDrift") {
        etcd = etcd.check_drift(node.duration()?);
    }
    if let Some(node) = settings.get("timeout") {
        etcd = etcd.timeout(node.duration()?);
    }
    if let Some(node) = settings.get("maxBytes") {
        etcd = etcd.max_message_bytes(usize::try_from(node.count(1, 1 << 30)?).ok()?);
    }
    Some(Arc::new(etcd))
}
