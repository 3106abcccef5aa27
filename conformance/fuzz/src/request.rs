//! One request, and what came back.

use std::collections::BTreeMap;
use std::fmt;

/// A request. `{uid}`, `{version}` and `{continue}` stand for what an earlier answer said.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// The verb of HTTP.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// The headers.
    pub headers: Vec<(String, Vec<u8>)>,
    /// The body.
    pub body: Vec<u8>,
    /// Whether this request was changed at random.
    pub mutated: bool,
    /// A request that is repeated until its answer has this code, for a short time.
    pub until: Option<u16>,
    /// What of the answer later requests use: a name, and the path in the body.
    pub captures: Vec<(String, String)>,
}

impl Request {
    /// A request without headers and body.
    pub fn new(method: &str, target: impl Into<String>) -> Self {
        Self { method: method.to_owned(), target: target.into(), ..Self::default() }
    }

    /// The same with a JSON body.
    #[must_use]
    pub fn json(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.headers.push(("content-type".to_owned(), b"application/json".to_vec()));
        self.body = body.into();
        self
    }

    /// This request with the values of earlier answers filled in.
    pub fn filled(&self, values: &BTreeMap<String, String>) -> Self {
        let mut request = self.clone();
        for (name, value) in values {
            let hole = format!("{{{name}}}");
            request.target = request.target.replace(&hole, value);
            request.body = replaced(&request.body, hole.as_bytes(), value.as_bytes());
            for (_, header) in &mut request.headers {
                *header = replaced(header, hole.as_bytes(), value.as_bytes());
            }
        }
        request
    }

    /// Whether the answer may go on for ever.
    pub fn is_watch(&self) -> bool {
        self.target.contains("watch") || self.target.contains("%77atch")
    }
}

fn replaced(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(at) = rest.windows(from.len()).position(|window| window == from) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(to);
        rest = &rest[at + from.len()..];
    }
    out.extend_from_slice(rest);
    out
}

/// For whoever has to look at it: bytes escaped, long texts cut.
impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} {}", self.method, cut(self.target.as_bytes(), 2000))?;
        for (name, value) in &self.headers {
            writeln!(f, "{name}: {}", cut(value, 300))?;
        }
        write!(f, "{}", cut(&self.body, 4000))
    }
}

/// Bytes for a person.
pub fn cut(bytes: &[u8], limit: usize) -> String {
    let text = match std::str::from_utf8(&bytes[..bytes.len().min(limit)]) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes[..bytes.len().min(limit)].escape_ascii().to_string(),
    };
    if bytes.len() > limit { format!("{text}... ({} bytes)", bytes.len()) } else { text }
}

/// What came back.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// The code; 0 for a request that could not be sent.
    pub code: u16,
    /// The type of the body.
    pub content_type: String,
    /// The body, as far as it was read: of a watch what came at once.
    pub body: Vec<u8>,
}

impl Answer {
    /// What the answer says, if it is a `Status` in JSON or protobuf; otherwise its first bytes.
    pub fn message(&self) -> String {
        let status = serde_json::from_slice::<serde_json::Value>(&self.body).ok();
        let status = status.or_else(|| watchkeeper_kinds::protobuf::decode(&self.body).ok());
        let yaml = || watchkeeper_schema::yaml::decode(&self.body).ok().map(|decoded| decoded.value);
        let status = status.or_else(yaml);
        match status.as_ref().and_then(|status| status["message"].as_str()) {
            Some(message) => cut(message.as_bytes(), 1000),
            None => cut(&self.body, 300),
        }
    }

    /// Whether the request came to a resource: it was routed, and allowed.
    pub fn is_deep(&self) -> bool {
        let text = self.message();
        match self.code {
            0 | 401 | 405 | 406 | 415 => false,
            403 => !text.contains(" cannot "),
            404 => {
                !text.contains("page not found") && !text.contains("could not find the requested resource")
            }
            _ => true,
        }
    }

    /// What is wrong with the form of the answer, if anything.
    pub fn broken(&self) -> Option<String> {
        let is_json = self.content_type == "application/json" && !self.body.is_empty();
        if is_json && let Err(error) = serde_json::from_slice::<serde::de::IgnoredAny>(&self.body) {
            return Some(format!("says that it is JSON, but: {error}"));
        }
        None
    }
}
