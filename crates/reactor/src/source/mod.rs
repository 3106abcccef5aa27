//! Sources by URL.
//!
//! | URL | what it is |
//! |---|---|
//! | `file:./routes/`, `file:/etc/app.yaml` | the YAML and JSON documents of a directory or a file |
//! | `https://host/items.json#/items` | the items of a list, at a JSON pointer |
//! | `postgres://user@host/database?table=routes` | the rows of a table |
//! | `mysql://user@host/database?table=routes`, `mariadb://...` | the rows of a table, polled |
//! | `sqlite:./app.db?table=routes` | the rows of a table in a file of SQLite |
//! | `etcd://host:2379/prefix` | the keys below a prefix |
//!
//! Each scheme is a file beside this one with a `Scheme`, and one line in `SCHEMES`.

mod cluster;
mod etcd;
mod files;
mod http;
mod mysql;
mod postgres;
mod sqlite;
mod webhook;

use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value};
use watchkeeper_core::Source;
use watchkeeper_core::text::percent_decoded;

pub(crate) use cluster::{ClusterKind, KindOrigin};

use crate::node::{Members, Node};

/// A kind of URL.
struct Scheme {
    /// What may stand before the colon.
    names: &'static [&'static str],
    /// What can be set, each of which the book explains.
    settings: &'static [&'static str],
    /// Makes a source of a URL; where something is wrong, says so and gives none. Does no I/O.
    open: fn(&Asked<'_>) -> Option<Arc<dyn Source>>,
}

/// All kinds of URLs there are.
const SCHEMES: &[Scheme] =
    &[files::SCHEME, http::SCHEME, postgres::SCHEME, mysql::SCHEME, sqlite::SCHEME, etcd::SCHEME];

/// What is asked for.
struct Asked<'a> {
    url: &'a Node<'a>,
    /// The same as text.
    text: &'a str,
    given: Option<Node<'a>>,
    /// What can be set.
    settings: &'static [&'static str],
    /// The directory that relative paths start from.
    base: &'a Path,
}

/// Where the objects of a source come from.
pub(crate) enum Origin {
    Url(Arc<dyn Source>),
    /// A kind of the cluster, which is not known yet.
    Kind(KindOrigin),
}

impl std::fmt::Debug for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Url(source) => write!(f, "Url({})", source.name()),
            Self::Kind(kind) => kind.fmt(f),
        }
    }
}

/// Whether a word on a command line is meant as the URL of a source: it has a scheme, known or not.
pub fn is_url(word: &str) -> bool {
    word.contains("://") || scheme(word).is_some()
}

/// Makes a source of a URL. Relative paths start from `base`. Nothing is asked or opened yet.
///
/// # Errors
///
/// What is wrong with the URL. The message shows no user, password or query.
pub fn open(url: &str, base: &Path) -> Result<Arc<dyn Source>, String> {
    let (value, found) = (Value::from(url), RefCell::new(Vec::new()));
    let source = open_at(&Node::root(&value, &found), None, base);
    match (source, found.into_inner().into_iter().next()) {
        (Some(source), None) => Ok(source),
        (_, Some(first)) => Err(format!("{}: {}", shown(url), first.message)),
        (None, None) => Err(format!("{}: cannot be watched", shown(url))),
    }
}

/// The source of a reactor's file: a URL with settings, or a kind.
pub(crate) fn read(members: &Members<'_>, base: &Path) -> Option<Origin> {
    let (form, node) = members.one_of(&["url", "kind"])?;
    if form == "kind" {
        return cluster::read(members).map(Origin::Kind);
    }
    for name in ["apiVersion", "namespace", "labels", "fields"] {
        if let Some(node) = members.get(name) {
            node.wrong("is for sources with a kind, not with a url");
        }
    }
    open_at(&node, members.get("settings"), base).map(Origin::Url)
}

fn open_at(url: &Node<'_>, given: Option<Node<'_>>, base: &Path) -> Option<Arc<dyn Source>> {
    let text = url.text()?;
    let Some(scheme) = scheme(text) else {
        let known: Vec<String> =
            SCHEMES.iter().flat_map(|scheme| scheme.names).map(|name| format!("{name}:")).collect();
        url.wrong(format!("is no URL that can be watched: it has to begin with one of {}", known.join(", ")));
        return None;
    };
    let asked = Asked { url, text, given, settings: scheme.settings, base };
    let source = (scheme.open)(&asked)?;
    webhook::with_webhooks(source, &asked)
}

fn scheme(url: &str) -> Option<&'static Scheme> {
    let (before, _) = url.split_once(':')?;
    SCHEMES.iter().find(|scheme| scheme.names.iter().any(|name| before.eq_ignore_ascii_case(name)))
}

/// A URL without what may be secret in it.
pub fn shown(url: &str) -> String {
    watchkeeper_sources::http::shown(url)
}

/// What is set besides the URL itself: in `settings`, or as parameters of the URL.
struct Settings<'a> {
    given: Option<Members<'a>>,
    parameters: Option<Members<'a>>,
}

impl<'a> Settings<'a> {
    /// Notes what is not known.
    fn read(asked: &Asked<'a>, parameters: &'a Value) -> Self {
        let known = [asked.settings, webhook::SETTINGS].concat();
        let given = asked.given.as_ref().and_then(|given| given.members(&known));
        let parameters = asked.url.with(parameters).members(asked.settings);
        Self { given, parameters }
    }

    /// What is set beside the URL, which was read before.
    fn given(asked: &Asked<'a>) -> Self {
        let given = asked.given.as_ref().filter(|given| given.value.is_object());
        Self { given: given.and_then(Node::any_members), parameters: None }
    }

    fn get(&self, name: &str) -> Option<Node<'a>> {
        [&self.given, &self.parameters].into_iter().flatten().find_map(|members| members.get(name))
    }
}

/// `a=1&b=2`, with what is escaped in it, as an object.
fn parameters(text: &str) -> Value {
    let pairs = text.split('&').filter(|pair| !pair.is_empty());
    let pairs = pairs.map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (unescaped(name), Value::String(unescaped(value)))
    });
    Value::Object(pairs.collect::<Map<_, _>>())
}

/// The parts of the URL of a database: where it is, those of its parameters that are ours, and those that are for its own client.
fn parted<'a>(url: &'a str, ours: &[&str]) -> (&'a str, String, String) {
    let (address, query) = url.split_once('?').unwrap_or((url, ""));
    let is_ours =
        |pair: &&str| ours.contains(&unescaped(pair.split('=').next().unwrap_or_default()).as_str());
    let (ours, theirs): (Vec<&str>, Vec<&str>) =
        query.split('&').filter(|pair| !pair.is_empty()).partition(is_ours);
    (address, ours.join("&"), theirs.join("&"))
}

/// A list of names, or their names with commas between them.
fn columns<'a>(node: &Node<'a>) -> Option<Vec<&'a str>> {
    if node.value.is_array() {
        return node.items().iter().map(Node::text).collect();
    }
    Some(node.text()?.split(',').collect())
}

/// `%2F` is `/`.
fn unescaped(text: &str) -> String {
    String::from_utf8_lossy(&percent_decoded(text.as_bytes())).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(url: &str) -> Result<(String, String), String> {
        open(url, Path::new("/base")).map(|source| (source.name().to_owned(), source.identity()))
    }

    #[test]
    fn a_url_says_which_source_is_meant() {
        for (url, name) in [
            ("file:./routes/", "/base/routes/"),
            ("file:routes", "/base/routes"),
            ("file:/etc/routes", "/etc/routes"),
            ("file:///etc/a%20b.yaml", "/etc/a b.yaml"),
            ("file://localhost/etc/routes", "/etc/routes"),
            ("FILE:x", "/base/x"),
            ("https://me:word@host:8443/items.json?token=x#/items", "https://host:8443/items.json"),
            ("http://host/#?key=/id&interval=5s", "http://host/"),
            ("postgres://me:word@host/db?table=routes&key=a,b&mode=notify&sslmode=disable", "host/db/routes"),
            (
                "mysql://me:word@host:3307/db?table=routes&key=a,b&interval=2s&ssl-mode=disabled",
                "host:3307/db/routes",
            ),
            ("mariadb://me@/db?table=routes&socket=/run/s.sock", "/run/s.sock/db/routes"),
            ("sqlite:./app.db?table=routes&key=a,b&interval=1s", "/base/app.db/routes"),
            ("sqlite:///var/lib/app.db?table=routes", "/var/lib/app.db/routes"),
            ("etcd://a:2379,[::1]/routes/", "etcd:/routes/"),
        ] {
            assert_eq!(opened(url).map(|(name, _)| name), Ok(name.to_owned()), "{url}");
        }
        let identity = opened("https://host/list?page=1#/data/items?key=/id&namespace=/group").unwrap().1;
        assert!(identity.starts_with("https://host/list?page=1 /data/items Some(\"/id\")"), "{identity}");
        assert!(opened("file:x?apiVersion=example.com/v1&kind=Route").unwrap().1.contains("example.com/v1"));
        assert!(opened("file:x?as=bundles").unwrap().1.contains("Bundles"));
    }

    #[test]
    fn what_is_wrong_with_a_url_is_said_without_secrets() {
        for (url, expected) in [
            (
                "ftp://me:word@host/x?y",
                "ftp://host/x: is no URL that can be watched: it has to begin with one of file:, http:, https:, postgres:, postgresql:, mysql:, mariadb:, sqlite:, etcd:",
            ),
            ("postgres://me:word@host/db", "postgres://host/db: it names no table: expected ...?table=NAME"),
            (
                "postgres://me:word@host/db?table=routes&mode=notfy",
                "postgres://host/db: \"notfy\" is not one of poll, notify, replicate; did you mean notify?",
            ),
            (
                "postgres://me:word@host/db?table=routes&tabel=x",
                "postgres://host/db: the parameter tabel is not known",
            ),
            ("postgres://me@host/db?table=routes&slot=x", "postgres://host/db: is for mode replicate"),
            ("mysql://me:word@host/db", "mysql://host/db: it names no table: expected ...?table=NAME"),
            (
                "mysql://me:word@host/db?table=routes&mode=notify",
                "mysql://host/db: the parameter mode is not known",
            ),
            ("sqlite:app.db", "sqlite:app.db: it names no table: expected ...?table=NAME"),
            ("sqlite:?table=routes", "sqlite:: names no file or directory"),
            (
                "sqlite://host/app.db?table=routes",
                "sqlite://host/app.db: names another machine: sqlite:path or sqlite:///path is a path on this one",
            ),
            ("etcd:///prefix", "etcd:///prefix: names no host: expected etcd://host:2379/prefix"),
            (
                "etcd://me:word@host/prefix",
                "etcd://host/prefix: has a user in it: use the settings user and passwordFile",
            ),
            ("file:", "file:: names no file or directory"),
            (
                "file://server/share",
                "file://server/share: names another machine: file:path or file:///path is a path on this one",
            ),
            (
                "file:x?as=bundle",
                "file:x: \"bundle\" is not one of documents, bundles; did you mean bundles?",
            ),
            (
                "postgres://me@host/db?table=routes&install=yes",
                "postgres://host/db: has to be true or false, and is a text",
            ),
            (
                "http://host/#?index=X-Index",
                "http://host/: is for services that wait: say how long with wait",
            ),
            (
                "http://host/#?wait=5s&indexParameter=i",
                "http://host/: is for services that say an index: name their header with index",
            ),
            (
                "http://host/#?pageParameter=page",
                "http://host/: is for lists in pages: say where a page has its token with pages",
            ),
            ("file:x?pol=5s", "file:x: is not known here; did you mean poll?"),
            ("http:///x", "http:///x: names no host"),
            (
                "http://host/#items",
                "http://host/: \"items\" is not a JSON pointer: it begins with a slash, as /items does",
            ),
        ] {
            assert_eq!(opened(url), Err(expected.to_owned()), "{url}");
        }
    }

    #[test]
    fn every_setting_is_in_the_book() {
        let book = include_str!("../../../../docs/book/run.md");
        for scheme in SCHEMES {
            let heading = scheme.names.iter().filter(|name| **name != "postgresql");
            let heading: Vec<String> = heading.map(|name| format!("{name}:")).collect();
            let section = book.split("\n### ").find_map(|part| {
                let (title, text) = part.split_once('\n')?;
                (title == heading.join(" and ")).then(|| text.split("\n## ").next().unwrap_or(text))
            });
            let section = section.unwrap_or_else(|| panic!("no section {heading:?}"));
            for setting in scheme.settings {
                let row = section.lines().find(|line| {
                    line.split('|').nth(1).is_some_and(|cell| cell.contains(&format!("`{setting}`")))
                });
                assert!(row.is_some(), "{heading:?}: {setting} is not explained");
            }
        }
        for setting in webhook::SETTINGS {
            assert!(book.contains(&format!("\n| `{setting}` |")), "{setting} is not explained");
        }
    }

    #[test]
    fn services_that_wait_by_index_and_pages_by_token_can_be_said() {
        for url in [
            "http://consul:8500/v1/catalog/services#?wait=5m&index=X-Consul-Index",
            "http://host/#?wait=5m&index=X-Index&indexParameter=since",
        ] {
            assert!(opened(url).is_ok(), "{url}");
        }
        let identity =
            opened("http://host/#/items?pages=/metadata/continue&pageParameter=continue").unwrap().1;
        let token = r#"Token { pointer: "/metadata/continue", parameter: "continue" }"#;
        assert!(identity.contains(token), "{identity}");
    }

    #[test]
    fn words_with_a_scheme_are_urls_and_kinds_are_not() {
        for word in ["file:x", "https://host", "postgres://x", "nonsense://x", "etcd:x"] {
            assert!(is_url(word), "{word}");
        }
        for word in ["pods", "deploy/web", "deployments.v1.apps", "pods,services", "file"] {
            assert!(!is_url(word), "{word}");
        }
    }
}
