//! The text form of plain HTTP requests.
//!
//! ```text
//! # A line that starts with one # says something to the reader.
//!
//! ### a ConfigMap is created
//! POST /api/v1/namespaces/{namespace}/configmaps
//! Content-Type: application/json
//! @capture version metadata.resourceVersion
//!
//! {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
//!
//! ### the next one
//! GET /api/v1/namespaces/{namespace}/configmaps/a?resourceVersion={version}
//! ```
//!
//! `{namespace}` is a namespace that exists for this file alone. Lines with `@` after the request line are for us:
//! `@capture NAME PATH` keeps a value of the answer for later requests, `@structure DEPTH` records the answer's form
//! without its values, `@anonymous` sends no credentials, `@until STATUS` asks again and again until the answer has
//! that status. `@text` records the answer as a text, in which the order of fields counts; `@keys` only the names of its fields, in
//! their order.

use std::collections::BTreeMap;

/// A list of requests, to be sent in order.
#[derive(Debug, Default)]
pub struct Exchanges {
    /// What a server must have for this list to make sense: the words of its `# needs:` lines.
    pub needs: Vec<String>,
    /// Whether answers are recorded with their managed fields: the file says `# keep: managedFields`.
    pub managed_fields: bool,
    /// Whether it changes what holds for the whole cluster, so that nothing else may run meanwhile: the file says `# alone`.
    pub alone: bool,
    /// Whether the hashes of storage versions are recorded: the file says `# keep: storageVersionHash`.
    pub hashes: bool,
    /// The requests.
    pub exchanges: Vec<Exchange>,
}

/// One request.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Exchange {
    /// What it is about, in words.
    pub title: String,
    /// The verb of HTTP.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// The headers, as they are sent.
    pub headers: Vec<(String, String)>,
    /// The body; empty for none.
    pub body: String,
    /// What of the answer is kept for later requests.
    pub captures: Vec<Capture>,
    /// How deep to record the answer's form instead of its values.
    pub structure: Option<usize>,
    /// Whether the order of fields counts.
    pub order: Order,
    /// Whether to send it without credentials.
    pub anonymous: bool,
    /// The status to ask for again and again.
    pub until: Option<u16>,
}

/// What is recorded of the order of fields.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Nothing: an object is its fields.
    #[default]
    Any,
    /// Everything: the text.
    Text,
    /// The names of the outermost fields, and nothing else of the answer.
    Keys,
}

/// A value of an answer that later requests can use as `{name}`.
#[derive(Debug, Clone, PartialEq)]
pub struct Capture {
    /// Its name.
    pub name: String,
    /// Where it is in the body: names and numbers, joined with dots.
    pub path: String,
}

impl Exchanges {
    /// Reads a list of requests. Whatever stands before the first `###` is for the reader, except `# needs:`.
    pub fn parse(text: &str) -> Self {
        let mut all = Self::default();
        let mut in_body = false;
        for line in text.lines() {
            if let Some(title) = line.strip_prefix("### ") {
                all.exchanges.push(Exchange { title: title.trim().to_owned(), ..Exchange::default() });
                in_body = false;
            } else if let Some(note) = line.strip_prefix('#') {
                if let Some(words) = note.trim_start().strip_prefix("needs:") {
                    all.needs.extend(words.split_whitespace().map(str::to_owned));
                }
                all.managed_fields |= note.trim() == "keep: managedFields";
                all.alone |= note.trim() == "alone";
                all.hashes |= note.trim() == "keep: storageVersionHash";
            } else if let Some(exchange) = all.exchanges.last_mut() {
                if in_body {
                    exchange.body.push_str(line);
                    exchange.body.push('\n');
                } else if line.is_empty() {
                    in_body = !exchange.method.is_empty();
                } else {
                    exchange.head(line);
                }
            }
        }
        for exchange in &mut all.exchanges {
            exchange.body = exchange.body.trim_end().to_owned();
        }
        all
    }
}

impl Exchange {
    fn head(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["@capture", name, path] => {
                self.captures.push(Capture { name: (*name).to_owned(), path: (*path).to_owned() });
            }
            ["@structure", depth] => self.structure = depth.parse().ok(),
            ["@until", status] => self.until = status.parse().ok(),
            ["@anonymous"] => self.anonymous = true,
            ["@text"] => self.order = Order::Text,
            ["@keys"] => self.order = Order::Keys,
            [method, ..] if self.method.is_empty() => {
                self.method = (*method).to_owned();
                self.path = line[method.len()..].trim().to_owned();
            }
            _ => {
                if let Some((name, value)) = line.split_once(':') {
                    self.headers.push((name.trim().to_owned(), value.trim().to_owned()));
                }
            }
        }
    }

    /// This request with the values of earlier answers filled in.
    pub fn filled(&self, values: &BTreeMap<String, String>) -> Self {
        let fill = |text: &str| {
            values
                .iter()
                .fold(text.to_owned(), |text, (name, value)| text.replace(&format!("{{{name}}}"), value))
        };
        let headers = self.headers.iter().map(|(name, value)| (name.clone(), fill(value))).collect();
        Self { path: fill(&self.path), body: fill(&self.body), headers, ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_its_head_its_directives_and_its_body() {
        let text = "# for you\n# needs: x\n\n### first\nPOST /a/{namespace}?b=c d\nContent-Type: text/plain\n\
                    @capture uid metadata.uid\n\n{\n  1\n}\n\n### second\nGET /{uid}\n@anonymous\n@until 200\n@structure 2\n";
        let all = Exchanges::parse(text);
        assert_eq!(all.needs, ["x"]);
        let [first, second] = all.exchanges.as_slice() else { panic!("{all:?}") };
        assert_eq!((first.method.as_str(), first.path.as_str()), ("POST", "/a/{namespace}?b=c d"));
        assert_eq!(first.headers, [("Content-Type".to_owned(), "text/plain".to_owned())]);
        assert_eq!(first.body, "{\n  1\n}");
        assert_eq!(first.captures, [Capture { name: "uid".to_owned(), path: "metadata.uid".to_owned() }]);
        let filled = second.filled(&BTreeMap::from([("uid".to_owned(), "u".to_owned())]));
        assert_eq!((filled.path.as_str(), filled.anonymous, filled.structure), ("/u", true, Some(2)));
        assert_eq!(filled.until, Some(200));
    }
}
