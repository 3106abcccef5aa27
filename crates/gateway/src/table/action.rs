use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{HeaderName, HeaderValue};
use http::uri::Scheme;
use http::{Method, StatusCode};
use watchkeeper_core::Key;

/// What is done with the requests of a rule.
///
/// There are as many of these as rules, and most have few of the filters: those that are large are elsewhere.
#[derive(Debug, Default)]
pub struct Action {
    /// Who may read responses in a browser.
    pub cors: Option<Box<CorsRules>>,
    /// The AIGatewayConfig whose models are called.
    pub ai: Option<Key>,
    /// The McpRoute whose tools are used.
    pub mcp: Option<Key>,
    /// An answer without a backend.
    pub answer: Option<Box<Answer>>,
    /// Another host for the backend.
    pub host: Option<Box<HeaderValue>>,
    /// Another path for the backend.
    pub path: Option<NewPath>,
    /// Changes of the headers of the request.
    pub request_headers: Option<Box<HeaderEdits>>,
    /// Changes of the headers of the response.
    pub response_headers: Option<Box<HeaderEdits>>,
    /// Which backend gets copies, and of how many of a hundred requests.
    pub mirror: Option<Box<(Key, u8)>>,
    /// Which responses are compressed.
    pub compress: Option<Box<Compression>>,
    /// Where requests go.
    pub backends: Backends,
    /// How long things may take.
    pub timeouts: Timeouts,
    /// When to try again.
    pub retry: Retry,
    /// Bytes that a request may carry.
    pub max_body: Option<u64>,
}

/// An answer without a backend.
#[derive(Debug)]
pub enum Answer {
    /// Always the same.
    Fixed {
        /// Its code.
        status: StatusCode,
        /// The type of its body.
        content_type: HeaderValue,
        /// Its body.
        body: Bytes,
    },
    /// To another place.
    Redirect {
        /// The code.
        status: StatusCode,
        /// The scheme, or that of the request.
        scheme: Option<Scheme>,
        /// The host, or that of the request.
        host: Option<Box<str>>,
        /// The port, or that of the request.
        port: Option<u16>,
        /// The path, or that of the request.
        path: Option<NewPath>,
    },
}

/// Another path.
#[derive(Clone, Debug)]
pub enum NewPath {
    /// This one.
    Full(Box<str>),
    /// This instead of the prefix that matched. Without a slash at its end.
    Prefix(Box<str>),
}

/// Changes of headers.
#[derive(Debug, Default)]
pub struct HeaderEdits {
    /// Those that go.
    pub remove: Box<[HeaderName]>,
    /// Those that have one value.
    pub set: Box<[(HeaderName, HeaderValue)]>,
    /// Those that get one more value.
    pub add: Box<[(HeaderName, HeaderValue)]>,
}

impl HeaderEdits {
    /// Makes the changes.
    pub fn apply(&self, headers: &mut http::HeaderMap) {
        for name in &self.remove {
            headers.remove(name);
        }
        for (name, value) in &self.set {
            headers.insert(name, value.clone());
        }
        for (name, value) in &self.add {
            headers.append(name, value.clone());
        }
    }
}

/// Who may read responses in a browser, and send what.
#[derive(Debug)]
pub struct CorsRules {
    /// Whether everybody may.
    pub any_origin: bool,
    /// Those who may besides.
    pub origins: Box<[Origin]>,
    /// Methods as a header lists them; `None` for whatever is asked for.
    pub methods: Option<HeaderValue>,
    /// Headers as a header lists them; `None` for whatever is asked for.
    pub headers: Option<HeaderValue>,
    /// Headers of responses that may be read.
    pub expose: Option<HeaderValue>,
    /// Whether credentials may be sent.
    pub credentials: bool,
    /// How long this may be remembered, in seconds.
    pub max_age: HeaderValue,
}

/// An origin, or what comes before and after its asterisk.
pub type Origin = (Box<str>, Option<Box<str>>);

/// Which responses are compressed.
#[derive(Debug)]
pub struct Compression {
    /// Types of content; those that end in a slash are all below it.
    pub types: Box<[Box<str>]>,
    /// Smaller ones are not.
    pub min_bytes: u64,
}

/// Backends with their shares.
#[derive(Debug, Default)]
pub struct Backends {
    /// Each with the sum of all weights up to its own.
    entries: Box<[(Key, u64)]>,
}

impl Backends {
    /// Backends with weights.
    pub fn new(weighted: impl IntoIterator<Item = (Key, u32)>) -> Self {
        let mut sum = 0;
        let entries = weighted.into_iter().map(|(key, weight)| {
            sum += u64::from(weight);
            (key, sum)
        });
        Self { entries: entries.collect() }
    }

    /// Takes one at random, by weight. `None` if there are none, or none has a weight.
    pub fn choose(&self) -> Option<&Key> {
        match &*self.entries {
            [] => None,
            [(only, weight)] => (*weight > 0).then_some(only),
            [.., (_, 0)] => None,
            entries @ [.., (_, total)] => {
                let drawn = fastrand::u64(0..*total);
                let at = entries.partition_point(|(_, sum)| *sum <= drawn);
                entries.get(at).map(|(key, _)| key)
            }
        }
    }

    /// All of them with their weights.
    pub fn iter(&self) -> impl Iterator<Item = (&Key, u64)> {
        let mut before = 0;
        self.entries.iter().map(move |(key, sum)| {
            let weight = sum - before;
            before = *sum;
            (key, weight)
        })
    }
}

/// How long things may take; `None` for ever.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// To the head of the response, over all tries.
    pub request: Option<Duration>,
    /// The same for one try.
    pub attempt: Option<Duration>,
    /// How long a response may be silent.
    pub idle: Option<Duration>,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { request: Some(Duration::from_secs(60)), attempt: None, idle: Some(Duration::from_secs(300)) }
    }
}

/// When to try again.
#[derive(Clone, Debug)]
pub struct Retry {
    /// How often.
    pub attempts: u32,
    /// Whether broken connections, time-outs and codes count, or only connections that could not be opened.
    pub after_sending: bool,
    /// Codes that are tried again.
    pub statuses: Arc<[u16]>,
    /// Whether methods that are not idempotent are repeated.
    pub non_idempotent: bool,
    /// How long to wait at first.
    pub backoff: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            attempts: 1,
            after_sending: false,
            statuses: Arc::default(),
            non_idempotent: false,
            backoff: Duration::from_millis(25),
        }
    }
}

impl Retry {
    /// Whether a request of this method may be sent a second time.
    pub fn allows(&self, method: &Method) -> bool {
        self.after_sending && (self.non_idempotent || method.is_idempotent())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backends_are_chosen_by_weight() {
        let key = |name: &str| Key::new(Some("default"), name);
        let backends = Backends::new([(key("a"), 90), (key("none"), 0), (key("b"), 10)]);
        let count =
            |wanted: &str| (0..10_000).filter(|_| backends.choose().unwrap().name() == wanted).count();
        assert!((800..1200).contains(&count("b")), "{}", count("b"));
        assert_eq!(count("none"), 0);
        assert_eq!(backends.iter().map(|(_, weight)| weight).collect::<Vec<_>>(), [90, 0, 10]);
        assert!(Backends::new([(key("a"), 0)]).choose().is_none());
        assert!(Backends::new([(key("a"), 0), (key("b"), 0)]).choose().is_none());
        assert!(Backends::default().choose().is_none());
    }
}
