//! What is asked of another server, made anew from what was authorized.

use http::Method;

use crate::request::action::{ResourceAction, Verb};
use crate::request::path::Scope;
use crate::request::query::Query;

/// A method and a path with its query.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(super) method: Method,
    pub(super) path: String,
    /// Whether the answer goes on as things happen.
    pub(super) is_watch: bool,
}

impl Target {
    /// What an action asks for; `None` if nobody is asked for such a thing.
    pub(crate) fn of(action: &ResourceAction, query: &Query) -> Option<Self> {
        let method = match action.verb {
            Verb::Get | Verb::List | Verb::Watch if action.is_head => Method::HEAD,
            Verb::Get | Verb::List | Verb::Watch => Method::GET,
            Verb::Create => Method::POST,
            Verb::Update => Method::PUT,
            Verb::Patch => Method::PATCH,
            Verb::Delete | Verb::DeleteCollection => Method::DELETE,
            Verb::Miswatch | Verb::Proxy | Verb::Unknown => return None,
        };
        let is_watch = action.verb == Verb::Watch;
        let mut segments = vec!["apis", &action.group, &action.version];
        match &action.scope {
            Scope::Cluster => segments.push(&action.resource),
            // What is in itself is a namespace by its own name.
            Scope::Itself(_) => segments.push(&action.resource),
            Scope::Namespace(namespace) => segments.extend(["namespaces", namespace, &action.resource]),
        }
        let watches_one = is_watch && action.name.is_some();
        segments.extend(action.name.as_deref().filter(|_| !is_watch));
        segments.extend(action.subresource.as_deref());
        let mut path: String = segments.iter().map(|segment| format!("/{}", escaped(segment))).collect();
        if let Some(rest) = &action.rest {
            rest.split('/').for_each(|segment| {
                path.push('/');
                path.push_str(&escaped(segment));
            });
        }
        let mut pairs: Vec<(String, String)> = query
            .pairs()
            .filter(|(name, _)| match *name {
                "watch" => !is_watch,
                "fieldSelector" => !watches_one,
                _ => true,
            })
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        if is_watch {
            pairs.push(("watch".into(), "true".into()));
        }
        if let Some(name) = action.name.as_ref().filter(|_| watches_one) {
            pairs.push(("fieldSelector".into(), format!("metadata.name={name}")));
        }
        Some(Self { method, path: with_query(path, &pairs), is_watch })
    }

    /// A page that is read.
    pub(crate) fn page(path: &str, query: &Query) -> Self {
        let pairs: Vec<(String, String)> =
            query.pairs().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let path = path.split('/').map(escaped).collect::<Vec<_>>().join("/");
        Self { method: Method::GET, path: with_query(path, &pairs), is_watch: false }
    }
}

fn with_query(mut path: String, pairs: &[(String, String)]) -> String {
    for (index, (name, value)) in pairs.iter().enumerate() {
        path.push(if index == 0 { '?' } else { '&' });
        path.push_str(&escaped(name));
        path.push('=');
        path.push_str(&escaped(value));
    }
    path
}

/// A text as a segment of a path or a part of a query: nothing in it separates.
fn escaped(text: &str) -> String {
    use std::fmt::Write;
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}"); // writing to a string does not fail
        }
    }
    // Dots alone would be taken for a way through the path.
    if matches!(text, "." | "..") { text.replace('.', "%2E") } else { out }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::action::Action;

    fn target(method: &str, uri: &str) -> Option<String> {
        let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
        let query = Query::parse(query);
        let Action::Resource(action) = Action::of(&method.parse().unwrap(), path, &query).unwrap() else {
            panic!("{uri}")
        };
        Target::of(&action, &query).map(|target| format!("{} {}", target.method, target.path))
    }

    #[test]
    fn what_is_asked_is_what_was_judged() {
        let root = "/apis/metrics.k8s.io/v1beta1";
        for (asked, handed_on) in [
            ("GET {}/nodes", "GET {}/nodes"),
            ("GET {}/nodes/a?x=1&y=a%20b", "GET {}/nodes/a?x=1&y=a%20b"),
            ("HEAD {}/nodes/a", "HEAD {}/nodes/a"),
            ("GET {}/namespaces/n/pods?labelSelector=a%3Db", "GET {}/namespaces/n/pods?labelSelector=a%3Db"),
            ("GET {}/namespaces/n/pods/p/status", "GET {}/namespaces/n/pods/p/status"),
            ("GET {}/namespaces/n", "GET {}/namespaces/n"),
            ("POST {}/namespaces/n/pods", "POST {}/namespaces/n/pods"),
            ("DELETE {}/namespaces/n/pods", "DELETE {}/namespaces/n/pods"),
            ("GET {}/pods?watch=1&limit=5", "GET {}/pods?limit=5&watch=true"),
            (
                "GET {}/watch/namespaces/n/pods/p",
                "GET {}/namespaces/n/pods?watch=true&fieldSelector=metadata.name%3Dp",
            ),
            // Escapes are read before the path is split: this is judged as the subresource of a pod, and asked for as such.
            ("GET {}/namespaces/n%2Fpods%2Fp/status", "GET {}/namespaces/n/pods/p/status"),
            ("GET {}/namespaces/n/pods/%2e%2e", "GET {}/namespaces/n/pods/%2E%2E"),
        ] {
            let (method, uri) = asked.split_once(' ').unwrap();
            let got = target(method, &uri.replace("{}", root)).unwrap();
            assert_eq!(got, handed_on.replace("{}", root), "{asked}");
        }
        assert_eq!(target("TRACE", &format!("{root}/nodes")), None);
        assert_eq!(target("GET", &format!("{root}/proxy/nodes/a")), None);
    }
}
