//! The settings of an HTTP source.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use http::Uri;

/// If more than this share of all items would be gone at once, a second answer has to confirm it.
pub(super) const SHRINK: f32 = 0.5;

#[derive(Clone)]
pub(super) struct Settings {
    pub(super) url: String,
    pub(super) name: String,
    pub(super) items: String,
    pub(super) key: Option<String>,
    pub(super) namespace: Option<String>,
    pub(super) interval: Duration,
    pub(super) pages: Pages,
    pub(super) waiting: Option<Waiting>,
    pub(super) events: Option<String>,
    pub(super) headers: Vec<(String, String)>,
    /// Name, what comes before the value, and where the value is.
    pub(super) header_files: Vec<(String, String, PathBuf)>,
    pub(super) ca_file: Option<PathBuf>,
    pub(super) timeout: Duration,
    pub(super) max_body_bytes: usize,
}

/// The paging of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Pages {
    /// The list is one page.
    One,
    /// The header `Link` with `rel="next"` has the URL of the next page.
    Link,
    /// A page has the URL of the next one at this JSON pointer.
    Next(String),
    /// A page has a token at a JSON pointer, and the next page is requested with the token as a parameter. As in Kubernetes, all
    /// pages of a token show the list at one moment.
    Token {
        /// The JSON pointer of the token: `/metadata/continue`.
        pointer: String,
        /// The name of the parameter: `continue`.
        parameter: String,
    },
}

/// The long polling of a service: a request waits until something has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Waiting {
    /// Requests have the header `Prefer: wait=N` (RFC 7240) and the validators of the last answer.
    Prefer(Duration),
    /// Requests have the index of the last answer, as those to Consul.
    Index {
        /// The header of answers with the index.
        header: String,
        /// The parameter of requests with the last index; `wait=Ns` is added.
        parameter: String,
        /// The time that a request waits.
        wait: Duration,
    },
}

impl Waiting {
    pub(super) fn wait(&self) -> Duration {
        match self {
            Self::Prefer(wait) | Self::Index { wait, .. } => *wait,
        }
    }
}

impl Settings {
    pub(super) fn new(url: &str) -> Self {
        Self {
            url: url.into(),
            name: shown(url),
            items: String::new(),
            key: None,
            namespace: None,
            interval: Duration::from_secs(30),
            pages: Pages::One,
            waiting: None,
            events: None,
            headers: Vec::new(),
            header_files: Vec::new(),
            ca_file: None,
            timeout: Duration::from_secs(30),
            max_body_bytes: 64 << 20,
        }
    }

    /// Everything that decides what is delivered, as text. It is for comparing, not for showing: the query is part of it.
    pub(super) fn identity(&self) -> String {
        let Self { url, items, key, namespace, pages, headers, header_files, max_body_bytes, .. } = self;
        format!("{url} {items} {key:?} {namespace:?} {pages:?} {headers:?} {header_files:?} {max_body_bytes}")
    }
}

/// A URL without the parts that may be secret: user, password, query and fragment.
pub fn shown(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    match url.split_once("://") {
        Some((scheme, rest)) => {
            let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
            let host = authority.rsplit('@').next().unwrap_or_default();
            format!("{scheme}://{host}{path}")
        }
        None => url.to_owned(),
    }
}

/// A URL with a parameter more.
pub(super) fn with_parameter(url: &Uri, name: &str, value: &str) -> Result<Uri, String> {
    let separator = if url.query().is_some() { '&' } else { '?' };
    let escaped: String = value
        .bytes()
        .map(|byte| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                char::from(byte).to_string()
            }
            byte => format!("%{byte:02X}"),
        })
        .collect();
    format!("{url}{separator}{name}={escaped}")
        .parse()
        .map_err(|_| "the parameter makes it no URL".to_owned())
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("name", &self.name)
            .field("items", &self.items)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_secret_is_not_shown() {
        for (url, expected) in [
            ("https://user:word@host:8443/a/b?token=x#y", "https://host:8443/a/b"),
            ("http://host?token=x", "http://host"),
            ("http://host/a@b", "http://host/a@b"),
            ("nonsense?x", "nonsense"),
        ] {
            assert_eq!(shown(url), expected);
        }
        let debugged = format!("{:?}", Settings::new("https://a:b@host/x?token=y"));
        assert!(!debugged.contains("token") && !debugged.contains("a:b"), "{debugged}");
    }

    #[test]
    fn parameters_are_added_and_escaped() {
        let url: Uri = "http://host/a?b=1".parse().unwrap();
        assert_eq!(
            with_parameter(&url, "continue", "x/=&").unwrap(),
            "http://host/a?b=1&continue=x%2F%3D%26"
        );
        let url: Uri = "http://host/a".parse().unwrap();
        assert_eq!(with_parameter(&url, "i", "7").unwrap(), "http://host/a?i=7");
    }
}
