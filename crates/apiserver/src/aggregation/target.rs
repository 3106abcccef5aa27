//! What is asked of another server, made anew from what was authorized.

use http::Method;

use crate::request::action::{Action, ResourceAction, Verb};
use crate::request::path::Scope;
use crate::request::query::Query;
use crate::status_error::StatusError;

/// A method and a path with its query.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(super) method: Method,
    pub(super) path: String,
    /// Whether the answer goes on as things happen.
    pub(super) is_watch: bool,
}

impl Target {
    /// The request that reads as this action, and as nothing else.
    ///
    /// # Errors
    ///
    /// A verb that no server is asked for is refused with 405. An action that no path stands for without doubt is refused with 404: the
    /// name of the object or the namespace is missing where something follows it, or a segment is `.` or `..`, which others may
    /// resolve. Before it is returned, the request is read as any request is, and compared with the action.
    pub(crate) fn of(action: &ResourceAction, query: &Query) -> Result<Self, StatusError> {
        let method = match action.verb {
            Verb::Get | Verb::List | Verb::Watch if action.is_head => Method::HEAD,
            Verb::Get | Verb::List | Verb::Watch => Method::GET,
            Verb::Create => Method::POST,
            Verb::Update => Method::PUT,
            Verb::Patch => Method::PATCH,
            Verb::Delete | Verb::DeleteCollection => Method::DELETE,
            Verb::Miswatch | Verb::Proxy | Verb::Unknown => return Err(StatusError::unknown_method()),
        };
        let path = path_of(action).ok_or_else(StatusError::no_such_path)?;
        let query = query_of(query);
        let read = Action::of(&method, &path, &Query::parse(query.trim_start_matches('?')));
        if !matches!(read, Ok(Action::Resource(read)) if read == *action) {
            return Err(StatusError::no_such_path());
        }
        Ok(Self { method, path: path + &query, is_watch: action.verb == Verb::Watch })
    }

    /// A page that is read.
    pub(crate) fn page(path: &str, query: &Query) -> Self {
        let path = path.split('/').map(escaped).collect::<Vec<_>>().join("/");
        Self { method: Method::GET, path: path + &query_of(query), is_watch: false }
    }
}

/// The path of an action; `None` if it would have an empty segment before what follows the subresource, or one of dots.
fn path_of(action: &ResourceAction) -> Option<String> {
    let mut segments = vec!["apis", &action.group, &action.version];
    if action.is_prefixed {
        segments.push("watch");
    }
    if let Scope::Namespace(namespace) = &action.scope {
        segments.extend(["namespaces", namespace]);
    }
    // What is in itself is a namespace by its own name.
    segments.push(&action.resource);
    segments.extend(action.name.as_deref());
    segments.extend(action.subresource.as_deref());
    let rest: Vec<&str> = action.rest.iter().flat_map(|rest| rest.split('/')).collect();
    let is_doubtful = |segment: &&str| matches!(*segment, "." | "..");
    if segments.iter().any(|segment| segment.is_empty()) || segments.iter().chain(&rest).any(is_doubtful) {
        return None;
    }
    Some(segments.iter().chain(&rest).map(|segment| format!("/{}", escaped(segment))).collect())
}

/// A query with its question mark; nothing if it says nothing.
fn query_of(query: &Query) -> String {
    let pairs = query.pairs().enumerate().map(|(index, (name, value))| {
        let separator = if index == 0 { '?' } else { '&' };
        format!("{separator}{}={}", escaped(name), escaped(value))
    });
    pairs.collect()
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
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn action(method: &str, uri: &str) -> Option<(ResourceAction, Query)> {
        let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
        let query = Query::parse(query);
        match Action::of(&method.parse().unwrap(), path, &query) {
            Ok(Action::Resource(action)) => Some((action, query)),
            _ => None,
        }
    }

    fn target(method: &str, uri: &str) -> Result<String, u16> {
        let (action, query) = action(method, uri).unwrap();
        match Target::of(&action, &query) {
            Ok(target) => Ok(format!("{} {}", target.method, target.path)),
            Err(refused) => Err(refused.code),
        }
    }

    #[test]
    fn what_is_asked_is_what_was_judged() {
        let root = "/apis/metrics.k8s.io/v1beta1";
        for (asked, handed_on) in [
            ("GET {}/nodes", "GET {}/nodes"),
            ("GET {}/nodes/", "GET {}/nodes"),
            ("GET {}/nodes/a?x=1&y=a%20b", "GET {}/nodes/a?x=1&y=a%20b"),
            ("HEAD {}/nodes/a", "HEAD {}/nodes/a"),
            ("GET {}/namespaces/n/pods?labelSelector=a%3Db", "GET {}/namespaces/n/pods?labelSelector=a%3Db"),
            ("GET {}/namespaces/n/pods/p/status", "GET {}/namespaces/n/pods/p/status"),
            ("GET {}/namespaces/n/pods/p/proxy/a//b/", "GET {}/namespaces/n/pods/p/proxy/a//b/"),
            ("GET {}/namespaces/n", "GET {}/namespaces/n"),
            ("PUT {}/namespaces/n/status", "PUT {}/namespaces/n/status"),
            ("POST {}/namespaces/n/pods", "POST {}/namespaces/n/pods"),
            ("DELETE {}/namespaces/n/pods", "DELETE {}/namespaces/n/pods"),
            ("GET {}/pods?watch=1&limit=5", "GET {}/pods?watch=1&limit=5"),
            ("GET {}/watch/namespaces/n/pods/p", "GET {}/watch/namespaces/n/pods/p"),
            ("GET {}/watch/namespaces/n/pods/p/status", "GET {}/watch/namespaces/n/pods/p/status"),
            // Escapes are read before the path is split: this is judged as the subresource of a pod, and asked for as such.
            ("GET {}/namespaces/n%2Fpods%2Fp/status", "GET {}/namespaces/n/pods/p/status"),
            // What was escaped twice is a name with an escape in it.
            ("GET {}/namespaces/n/pods/p%252Fstatus", "GET {}/namespaces/n/pods/p%252Fstatus"),
        ] {
            let (method, uri) = asked.split_once(' ').unwrap();
            let got = target(method, &uri.replace("{}", root));
            assert_eq!(got, Ok(handed_on.replace("{}", root)), "{asked}");
        }
    }

    #[test]
    fn what_cannot_be_asked_for_as_it_was_judged_is_refused() {
        let root = "/apis/metrics.k8s.io/v1beta1";
        for (asked, code) in [
            ("TRACE {}/nodes", 405),
            ("GET {}/proxy/nodes/a", 405),
            ("DELETE {}/watch/nodes/a", 405),
            ("PUT {}/namespaces/n/pods/p//status", 404),
            ("DELETE {}/namespaces/n/pods//status", 404),
            ("GET {}/watch/namespaces/n/pods//status", 404),
            ("GET {}/namespaces//pods", 404),
            ("DELETE {}/namespaces//pods/p", 404),
            ("GET {}//pods", 404),
            ("GET {}/namespaces/n/pods/%2e%2e", 404),
            ("GET {}/namespaces/../pods/p", 404),
            ("GET {}/namespaces/n/pods/p/proxy/../../q", 404),
        ] {
            let (method, uri) = asked.split_once(' ').unwrap();
            assert_eq!(target(method, &uri.replace("{}", root)), Err(code), "{asked}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(crate::request::cases(4096)))]

        /// Others may join slashes and resolve dots: that must change nothing, either.
        #[test]
        fn what_is_handed_on_reads_as_what_was_judged(
            method in prop::sample::select(vec!["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "X"]),
            path in "/apis/g/v(/(namespaces|watch|proxy|pods|status|finalize|%2[Ff]|%2[Ee]{1,2}|%25|[a-z%0-9/.;é ]{0,3})){1,7}/{0,2}",
            query in "(watch(=(1|0|false))?&)?(fieldSelector=metadata.name%3D[a-z,%2C]{0,3}&)?([a-z+%;=&]{0,5})",
        ) {
            let Some((judged, query)) = action(method, &format!("{path}?{query}")) else { return Ok(()) };
            let Ok(target) = Target::of(&judged, &query) else { return Ok(()) };
            let (again, query_again) = action(target.method.as_str(), &target.path).unwrap();
            prop_assert_eq!(&again, &judged);
            prop_assert_eq!(query_again, query);
            let (path, _) = target.path.split_once('?').unwrap_or((&target.path, ""));
            let rest = judged.rest.clone().unwrap_or_default();
            let cleaned: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
            prop_assert!(!cleaned.iter().any(|segment| matches!(segment.replace("%2E", ".").as_str(), "." | "..")));
            let (cleaned, _) = action(target.method.as_str(), &format!("/{}", cleaned.join("/"))).unwrap();
            prop_assert_eq!((cleaned.resource, cleaned.name, cleaned.subresource), (judged.resource, judged.name, judged.subresource), "rest {}", rest);
        }

        #[test]
        fn what_is_written_plainly_is_handed_on(
            method in prop::sample::select(vec!["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]),
            path in "/apis/g/v(/namespaces/[a-m]{1,3})?/[n-z]{1,3}(/[a-z]{1,3}(/[a-z]{1,3}(/[a-z]{1,3})?)?)?",
        ) {
            prop_assert_eq!(target(method, &path), Ok(format!("{method} {path}")));
        }
    }
}
