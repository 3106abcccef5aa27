//! `http:` and `https:` URLs.

use std::sync::Arc;
use std::time::Duration;

use ::http::Uri;
use watchkeeper_core::Source;
use watchkeeper_go::base64;
use watchkeeper_sources::http::{Http, Pages, Waiting};

use super::{Asked, Scheme, Settings, parameters, unescaped};
use crate::node::Node;

/// `https://host/path?query#/pointer`. What else is to be said stands in the fragment, as in `#/items?key=/id&interval=5s`, or in
/// `settings`:
///
/// - `items`: where the items are, as a JSON pointer, which the fragment can say too;
/// - `key`, `namespace`: where an item has its name, and its namespace;
/// - `interval`: how often to ask; `wait`: how long the service may wait for something new, as RFC 7240 asks it to;
/// - `index`: the header in which an answer says its index, for services that wait as Consul does; `indexParameter`: the parameter that is sent
///   with it, `index` if nothing is said;
/// - `pages`: `link`, or a JSON pointer to the URL of the next page; with `pageParameter`, to a token that is sent as this parameter;
/// - `events`: a stream of server-sent events that says when to ask;
/// - `bearerFile`, `caFile`, `headers`, `headerFiles`: credentials, and whom to trust;
/// - `timeout`, `maxBytes`.
///
/// A user and a password in the URL are sent as `Authorization: Basic`.
pub(super) const SCHEME: Scheme = Scheme { names: &["http", "https"], settings: SETTINGS, open };

const SETTINGS: &[&str] = &[
    "items",
    "key",
    "namespace",
    "interval",
    "wait",
    "index",
    "indexParameter",
    "pages",
    "pageParameter",
    "events",
    "bearerFile",
    "caFile",
    "headers",
    "headerFiles",
    "timeout",
    "maxBytes",
];

fn open(asked: &Asked<'_>) -> Option<Arc<dyn Source>> {
    let (url, fragment) = asked.text.split_once('#').unwrap_or((asked.text, ""));
    let (items, query) = fragment.split_once('?').unwrap_or((fragment, ""));
    let parameters = parameters(query);
    let settings = Settings::read(asked, &parameters);
    let (url, user) = without_user(url);
    let parsed: Option<Uri> = url.parse().ok();
    if parsed.and_then(|uri| uri.host().map(|host| !host.is_empty())) != Some(true) {
        asked.url.wrong("names no host");
        return None;
    }
    let mut http = Http::get(&url);
    if let Some(user) = user {
        http =
            http.header("authorization", &format!("Basic {}", base64::encode(unescaped(&user).as_bytes())));
    }
    let items = unescaped(items);
    if !items.is_empty() {
        check_pointer(asked.url, &items)?;
        http = http.items(&items);
    }
    if let Some(node) = settings.get("items") {
        http = http.items(pointer(&node)?);
    }
    if let Some(node) = settings.get("key") {
        http = http.key(pointer(&node)?);
    }
    if let Some(node) = settings.get("namespace") {
        http = http.namespace(pointer(&node)?);
    }
    if let Some(node) = settings.get("interval") {
        http = http.interval(node.duration()?);
    }
    http = waiting(&settings, http)?;
    http = pages(&settings, http)?;
    if let Some(node) = settings.get("events") {
        http = http.events(node.text()?);
    }
    if let Some(node) = settings.get("timeout") {
        http = http.timeout(node.duration()?);
    }
    if let Some(node) = settings.get("maxBytes") {
        http = http.max_body_bytes(usize::try_from(node.count(1, 1 << 32)?).ok()?);
    }
    credentials(asked, &settings, http).map(|http| Arc::new(http) as Arc<dyn Source>)
}

fn waiting(settings: &Settings<'_>, http: Http) -> Option<Http> {
    let (wait, index) = (settings.get("wait"), settings.get("index"));
    let parameter = settings.get("indexParameter");
    match (wait, index) {
        (Some(wait), Some(index)) => {
            let wait = wait.duration()?.max(Duration::from_secs(1));
            let parameter = parameter.map_or(Some("index"), |node| node.text())?.to_owned();
            Some(http.waiting(Waiting::Index { header: index.text()?.to_owned(), parameter, wait }))
        }
        (Some(wait), None) => {
            if let Some(node) = parameter {
                node.wrong("is for services that say an index: name their header with index");
                return None;
            }
            Some(http.waiting(Waiting::Prefer(wait.duration()?.max(Duration::from_secs(1)))))
        }
        (None, index) => match index.or(parameter) {
            Some(node) => {
                node.wrong("is for services that wait: say how long with wait");
                None
            }
            None => Some(http),
        },
    }
}

fn pages(settings: &Settings<'_>, http: Http) -> Option<Http> {
    let (pages, parameter) = (settings.get("pages"), settings.get("pageParameter"));
    match (pages, parameter) {
        (Some(pages), Some(parameter)) => {
            let (pointer, parameter) = (pointer(&pages)?.to_owned(), parameter.text()?.to_owned());
            Some(http.pages(Pages::Token { pointer, parameter }))
        }
        (Some(pages), None) if pages.text()? == "link" => Some(http.pages(Pages::Link)),
        (Some(pages), None) => Some(http.pages(Pages::Next(pointer(&pages)?.to_owned()))),
        (None, Some(parameter)) => {
            parameter.wrong("is for lists in pages: say where a page has its token with pages");
            None
        }
        (None, None) => Some(http),
    }
}

fn credentials(asked: &Asked<'_>, settings: &Settings<'_>, mut http: Http) -> Option<Http> {
    if let Some(node) = settings.get("bearerFile") {
        http = http.bearer_file(node.path(asked.base)?);
    }
    if let Some(node) = settings.get("caFile") {
        http = http.ca_file(node.path(asked.base)?);
    }
    for (name, node) in
        settings.get("headers").and_then(|node| node.any_members()).iter().flat_map(|all| all.all())
    {
        http = http.header(name, node.text()?);
    }
    for (name, node) in
        settings.get("headerFiles").and_then(|node| node.any_members()).iter().flat_map(|all| all.all())
    {
        http = http.header_file(name, node.path(asked.base)?);
    }
    Some(http)
}

/// A URL without its user, and the user.
fn without_user(url: &str) -> (String, Option<String>) {
    let Some((scheme, rest)) = url.split_once("://") else { return (url.to_owned(), None) };
    let (authority, after) = rest.find(['/', '?']).map_or((rest, ""), |at| rest.split_at(at));
    match authority.rsplit_once('@') {
        Some((user, host)) => (format!("{scheme}://{host}{after}"), Some(user.to_owned())),
        None => (url.to_owned(), None),
    }
}

fn pointer<'a>(node: &Node<'a>) -> Option<&'a str> {
    let text = node.text()?;
    check_pointer(node, text).map(|()| text)
}

fn check_pointer(node: &Node<'_>, text: &str) -> Option<()> {
    if !text.starts_with('/') {
        node.wrong(format!("{text:?} is not a JSON pointer: it begins with a slash, as /items does"));
        return None;
    }
    Some(())
}
