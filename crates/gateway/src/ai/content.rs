//! What of requests and answers is kept in records, for those policies that ask for it.
//!
//! What is kept of a call is only gathered while it runs. It is made readable, redacted and cut by the thread that writes records.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use regex::Regex;
use serde_json::Value;
use watchkeeper_ai::{ChatResponse, Part};

/// How much more than what is kept is gathered, in bytes: so that what is private is not cut in two, and then not recognized.
const MARGIN: usize = 1 << 10;
/// A text without spaces of this length, in bytes, is an image or a file, of which only the size is kept.
const BLOB: usize = 2 << 10;

/// What looks private, and what takes its place. The first that fits counts.
const PRIVATE: [(&str, &str); 9] = [
    (r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?s:.)*?(?:-----END [A-Z ]*PRIVATE KEY-----|\z)", "[key]"),
    (r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*)?", "[key]"),
    (r"(?i)\bbearer\s+[A-Za-z0-9._~+/=-]{8,}", "[key]"),
    (r"\b(?:sk|pk|rk|wk|hf|ghp|gho|ghu|ghs|glpat|xox[abprs]|github_pat)[-_][A-Za-z0-9_-]{8,}", "[key]"),
    (r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bAIza[A-Za-z0-9_-]{30,}", "[key]"),
    (r"[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+", "[email]"),
    (r"\b[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,4})?\b", "[account]"),
    (r"\b[0-9](?:[ -]?[0-9]){12,18}\b|\b[0-9]{3}-[0-9]{2}-[0-9]{4}\b", "[number]"),
    (r"\+[0-9](?:[ ()./-]{0,2}[0-9]){6,14}\b", "[phone]"),
];

/// What an expression of a policy finds is replaced by.
const REDACTED: &str = "[redacted]";

/// What is kept of requests and answers.
#[derive(Debug)]
pub struct ContentLog {
    /// Whether what clients send is kept.
    pub requests: bool,
    /// Whether what models say is kept.
    pub responses: bool,
    /// Whether what looks private is replaced.
    pub redacts: bool,
    /// What is replaced besides.
    pub patterns: Box<[Regex]>,
    /// How many bytes of either are kept.
    pub max_bytes: usize,
}

/// What is kept of a call.
#[derive(Clone, Debug)]
pub(super) struct Content {
    log: Arc<ContentLog>,
    request: Option<Bytes>,
    /// What was said, by place.
    response: Option<BTreeMap<usize, String>>,
    /// Whether more was said than is gathered.
    is_full: bool,
}

impl Content {
    pub(super) fn of(log: &Arc<ContentLog>, request: &Bytes) -> Self {
        let request = log.requests.then(|| request.clone());
        Self { log: Arc::clone(log), request, response: None, is_full: false }
    }

    /// Whether it is to be told what the model says.
    pub(super) fn wants_response(&self) -> bool {
        self.log.responses
    }

    /// Takes note of what the model says at a place of its answer: it continues what was said there.
    pub(super) fn said(&mut self, place: usize, text: &str) {
        if !self.log.responses || self.is_full {
            return;
        }
        let places = self.response.get_or_insert_default();
        let gathered: usize = places.values().map(String::len).sum();
        let said = places.entry(place).or_default();
        let room = (self.log.max_bytes + 2 * MARGIN).saturating_sub(gathered);
        let taken = start_of(text, room);
        said.push_str(taken);
        self.is_full = taken.len() < text.len();
    }

    /// How much memory it takes while it waits to be written, in bytes.
    pub(super) fn size(&self) -> usize {
        let said = self.response.iter().flat_map(BTreeMap::values).map(String::len).sum::<usize>();
        self.request.as_ref().map_or(0, Bytes::len) + said
    }

    /// The request and the answer as they are written.
    pub(super) fn to_texts(&self) -> (Option<String>, Option<String>) {
        let request = self.request.as_ref().map(|body| {
            let text = match serde_json::from_slice::<Value>(body) {
                Ok(mut value) => {
                    self.redact_value(&mut value);
                    value.to_string()
                }
                // It was refused for that.
                Err(_) => self.redacted(&String::from_utf8_lossy(body)),
            };
            self.cut(text)
        });
        let response = self.response.as_ref().map(|places| {
            let said: Vec<String> = places.values().map(|said| self.kept(said)).collect();
            self.cut(said.join("\n"))
        });
        (request, response)
    }

    /// What is kept of a place. What is cut in two at its end is not recognized, and goes.
    fn kept(&self, said: &str) -> String {
        let mut said = self.redacted(said);
        if self.is_full {
            let length = start_of(&said, said.len().saturating_sub(MARGIN)).len();
            said.truncate(length);
        }
        said
    }

    fn cut(&self, mut text: String) -> String {
        let length = start_of(&text, self.log.max_bytes).len();
        text.truncate(length);
        text
    }

    /// The texts of a document. What is spread over several of them is not recognized.
    fn redact_value(&self, value: &mut Value) {
        match value {
            Value::String(text) if text.len() > BLOB && !text.contains(' ') => {
                *text = format!("[{} bytes]", text.len());
            }
            Value::String(text) => *text = self.redacted(text),
            // A card number need not be a text.
            Value::Number(number) => {
                let text = number.to_string();
                let redacted = self.redacted(&text);
                if redacted != text {
                    *value = redacted.into();
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact_value(item)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.redact_value(field)),
            Value::Null | Value::Bool(_) => {}
        }
    }

    fn redacted(&self, text: &str) -> String {
        static COMPILED: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
            PRIVATE.iter().filter_map(|(pattern, name)| Some((Regex::new(pattern).ok()?, *name))).collect()
        });
        let mut text = text.to_owned();
        let mut replace = |pattern: &Regex, name: &str| {
            if let std::borrow::Cow::Owned(replaced) = pattern.replace_all(&text, regex::NoExpand(name)) {
                text = replaced;
            }
        };
        // Those of the policy first: what they find is whole then.
        self.log.patterns.iter().for_each(|pattern| replace(pattern, REDACTED));
        if self.log.redacts {
            COMPILED.iter().for_each(|(pattern, name)| replace(pattern, name));
        }
        text
    }
}

/// The beginning of a text, in bytes.
fn start_of(text: &str, most: usize) -> &str {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// All that a model said, a part after the other.
pub(super) fn said_by(response: &ChatResponse) -> String {
    let parts = response.parts.iter().filter_map(|part| match part {
        Part::Text(text) | Part::Thinking(text) => Some(text.clone()),
        Part::ToolCall(call) => Some(format!("{}({})", call.name, call.arguments)),
        Part::Image(_) | Part::ToolResult(_) => None,
    });
    parts.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(redacts: bool, patterns: &[&str], max_bytes: usize) -> Arc<ContentLog> {
        let patterns = patterns.iter().map(|pattern| Regex::new(pattern).unwrap()).collect();
        Arc::new(ContentLog { requests: true, responses: true, redacts, patterns, max_bytes })
    }

    fn response(log: &Arc<ContentLog>, pieces: &[&str]) -> String {
        let mut content = Content::of(log, &Bytes::new());
        pieces.iter().for_each(|piece| content.said(0, piece));
        content.to_texts().1.unwrap()
    }

    #[test]
    fn what_looks_private_is_replaced_and_the_rest_stays() {
        for (said, kept) in [
            ("write to jane.doe+x@mail.example.co.uk, now", "write to [email], now"),
            ("card 4111 1111 1111 1111 or 4111-1111-1111-1111.", "card [number] or [number]."),
            ("ssn 123-45-6789", "ssn [number]"),
            ("IBAN DE89 3704 0044 0532 0130 00 of Jo", "IBAN [account] of Jo"),
            ("call +49 (30) 1234-5678 at 9", "call [phone] at 9"),
            ("Authorization: Bearer abcdef012345", "Authorization: [key]"),
            ("use sk-proj-abcdefgh1234 and wk-0123456789abcdef", "use [key] and [key]"),
            ("AKIAABCDEFGHIJKLMNOP", "[key]"),
            ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln", "[key]"),
            ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nrest", "[key]\nrest"),
            ("-----BEGIN PRIVATE KEY-----\nMIIE", "[key]"),
            ("in 2024 there were 1,234,567 of 12 at 3:45", "in 2024 there were 1,234,567 of 12 at 3:45"),
        ] {
            assert_eq!(response(&log(true, &[], 10_000), &[said]), kept);
            assert_eq!(response(&log(false, &[], 10_000), &[said]), said);
        }
        assert_eq!(response(&log(false, &["secret \\w+"], 99), &["a secret word"]), "a [redacted]");
    }

    #[test]
    fn what_comes_in_pieces_or_is_cut_is_recognized() {
        assert_eq!(response(&log(true, &[], 100), &["4111 11", "11 1111 ", "1111 ok"]), "[number] ok");
        let text = format!("{} 4111111111111111 {}", "x".repeat(20), "y".repeat(5_000));
        let kept = response(&log(true, &[], 30), &[&text]);
        assert_eq!(kept, format!("{} [number] ", "x".repeat(20)));
        assert_eq!(response(&log(true, &[], 17), &["ääääääääääää"]).len(), 16);
    }

    #[test]
    fn what_is_said_in_turns_is_recognized_at_each_place_also_where_it_is_cut() {
        let mut content = Content::of(&log(true, &[], 10_000), &Bytes::new());
        for (place, said) in
            [(0, "one 4111 11"), (1, "two 5500 00"), (0, "11 1111 1111"), (1, "00 0000 0004")]
        {
            content.said(place, said);
        }
        assert_eq!(content.to_texts().1.unwrap(), "one [number]\ntwo [number]");
        let mut content = Content::of(&log(true, &[], 4_000), &Bytes::new());
        content.said(0, "card 4111 11");
        content.said(1, &"y ".repeat(4_000));
        content.said(0, "11 1111 1111");
        assert!(!content.to_texts().1.unwrap().contains("4111"));
    }

    #[test]
    fn a_request_keeps_its_form_and_no_image() {
        let blob = "A".repeat(5_000);
        let body = format!(
            r#"{{"model":"m","card":4111111111111111,"messages":[{{"content":"mail a@b.de"}},{{"data":"{blob}"}}]}}"#
        );
        let content = Content::of(&log(true, &[], 1_000), &body.into());
        let (request, response) = content.to_texts();
        let value: Value = serde_json::from_str(&request.unwrap()).unwrap();
        assert_eq!(value["card"], "[number]");
        assert_eq!(value["messages"][0]["content"], "mail [email]");
        assert_eq!(value["messages"][1]["data"], "[5000 bytes]");
        assert_eq!(response, None);
    }
}
