use std::cmp::Reverse;
use std::fmt;
use std::sync::Arc;

use http::{HeaderMap, HeaderName, Method};
use regex::Regex;
use watchkeeper_core::Key;

use super::action::Action;
use super::listener::Listener;
use crate::query::parameter;
use crate::stats::RouteStats;

/// What all rules of a route have in common.
#[derive(Debug)]
pub struct RouteHead {
    /// Which route.
    pub key: Key,
    /// When it was created. Objects of sources that do not know are younger than all others.
    pub created: Option<Arc<str>>,
    /// The listeners that serve it; `None` for all.
    pub listeners: Option<Box<[Key]>>,
    /// Whether it is an `HTTPRoute` of Gateway API.
    pub standard: bool,
    /// What is counted.
    pub stats: Arc<RouteStats>,
}

/// One way to match a rule of a route, and what is done with the requests that do.
#[derive(Debug)]
pub struct Rule {
    /// The route.
    pub route: Arc<RouteHead>,
    /// Which rule of the route, and which of its matches.
    pub index: (u16, u16),
    /// The path.
    pub path: PathPattern,
    /// The method.
    pub method: Option<Method>,
    /// Headers.
    pub headers: Box<[(HeaderName, ValuePattern)]>,
    /// Parameters of the query.
    pub query: Box<[(Box<str>, ValuePattern)]>,
    /// What is done.
    pub action: Arc<Action>,
}

/// Which paths.
#[derive(Clone, Debug)]
pub enum PathPattern {
    /// This one.
    Exact(Arc<str>),
    /// This one and those below it. Without a slash at its end: all paths are below the empty one.
    Prefix(Arc<str>),
    /// Those that the expression matches as a whole.
    Regex(Arc<Regex>),
}

/// Which values.
#[derive(Clone, Debug)]
pub enum ValuePattern {
    /// Any.
    Present,
    /// This one.
    Exact(Box<str>),
    /// Those that the expression matches as a whole.
    Regex(Arc<Regex>),
}

/// What a request is matched by.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The listener that it came in by.
    pub listener: &'a Listener,
    /// The host, in lower case and without port.
    pub host: &'a str,
    /// The path.
    pub path: &'a str,
    /// The query, without the question mark.
    pub query: Option<&'a str>,
    /// The method.
    pub method: &'a Method,
    /// The headers.
    pub headers: &'a HeaderMap,
}

/// Why a rule does not match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// The route is for other listeners, or the listener is not for its namespace.
    Listener,
    /// Another method is expected.
    Method(Method),
    /// The expression does not match the path.
    Path,
    /// A header is missing or has another value.
    Header(HeaderName),
    /// A parameter is missing or has another value.
    Query(String),
}

impl Rule {
    /// Whether a request whose host and path lead here matches in all other respects.
    pub fn matches(&self, asked: &Asked<'_>) -> bool {
        self.mismatch(asked).is_none()
    }

    /// The first respect in which a request does not match.
    pub fn mismatch(&self, asked: &Asked<'_>) -> Option<Mismatch> {
        let route = &self.route;
        let listed = match &route.listeners {
            Some(listeners) => listeners.contains(&asked.listener.key),
            None => asked.listener.gateway.is_none(),
        };
        if !listed || !asked.listener.allows(route.key.namespace().unwrap_or_default()) {
            return Some(Mismatch::Listener);
        }
        if let Some(method) = &self.method
            && method != asked.method
        {
            return Some(Mismatch::Method(method.clone()));
        }
        if let PathPattern::Regex(regex) = &self.path
            && !regex.is_match(asked.path)
        {
            return Some(Mismatch::Path);
        }
        for (name, pattern) in &self.headers {
            let mut values = asked.headers.get_all(name).iter();
            if !values.any(|value| value.to_str().is_ok_and(|value| pattern.matches(value))) {
                return Some(Mismatch::Header(name.clone()));
            }
        }
        for (name, pattern) in &self.query {
            // The first value of a parameter counts, as Gateway API wants it.
            let found = asked.query.and_then(|query| parameter(query, name));
            if !found.is_some_and(|value| pattern.matches(&value)) {
                return Some(Mismatch::Query(name.to_string()));
            }
        }
        None
    }

    /// Where a rule stands among those of the same host and path: smaller comes first.
    pub(super) fn rank(&self) -> impl Ord + '_ {
        (
            self.regex_length(),
            self.method.is_none(),
            Reverse(self.headers.len()),
            Reverse(self.query.len()),
            // Without a time is younger than with one.
            (self.route.created.is_none(), &self.route.created),
            &self.route.key,
            self.index,
        )
    }

    fn regex_length(&self) -> Reverse<usize> {
        match &self.path {
            PathPattern::Regex(regex) => Reverse(regex.as_str().len()),
            _ => Reverse(0),
        }
    }

    /// Whether both match exactly the same requests of the same host, on a listener that they share. Then one of them never serves.
    pub(super) fn is_double(&self, other: &Self) -> bool {
        let shared = match (&self.route.listeners, &other.route.listeners) {
            (Some(one), Some(other)) => one.iter().any(|listener| other.contains(listener)),
            _ => self.route.standard == other.route.standard,
        };
        shared && self.signature() == other.signature()
    }

    /// What it matches besides host and path, written down: equal texts match the same.
    fn signature(&self) -> String {
        use fmt::Write as _;
        let mut text = format!("{} {:?}", self.path, self.method);
        let mut parts: Vec<String> =
            self.headers.iter().map(|(name, pattern)| format!("h {name} {pattern}")).collect();
        parts.extend(self.query.iter().map(|(name, pattern)| format!("q {name:?} {pattern}")));
        parts.sort();
        for part in parts {
            let _ = write!(text, " {part}"); // writing to a text does not fail
        }
        text
    }
}

impl ValuePattern {
    fn matches(&self, value: &str) -> bool {
        match self {
            Self::Present => true,
            Self::Exact(expected) => **expected == *value,
            Self::Regex(regex) => regex.is_match(value),
        }
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(path) => write!(f, "exact {path}"),
            Self::Prefix(path) if path.is_empty() => f.write_str("prefix /"),
            Self::Prefix(path) => write!(f, "prefix {path}"),
            Self::Regex(regex) => write!(f, "regex {}", inner(regex)),
        }
    }
}

impl fmt::Display for ValuePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Present => f.write_str("present"),
            Self::Exact(value) => write!(f, "= {value:?}"),
            Self::Regex(regex) => write!(f, "~ {:?}", inner(regex)),
        }
    }
}

/// The expression as the user wrote it.
fn inner(regex: &Regex) -> &str {
    let text = regex.as_str();
    text.strip_prefix("^(?:").and_then(|text| text.strip_suffix(")$")).unwrap_or(text)
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listener => {
                f.write_str("the route is for other listeners, or the listener for other namespaces")
            }
            Self::Method(expected) => write!(f, "the method is not {expected}"),
            Self::Path => f.write_str("the expression does not match the path"),
            Self::Header(name) => write!(f, "the header {name} is missing or another"),
            Self::Query(name) => write!(f, "the parameter {name} of the query is missing or another"),
        }
    }
}
