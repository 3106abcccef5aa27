//! Fields of objects, read with what is wrong with them.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use regex::{Regex, RegexBuilder};

use crate::object::Problem;
use crate::proxy::path;

/// The longest regular expression.
pub(super) const REGEX_LENGTH: usize = 1_024;
/// How much memory an expression may take, in bytes; those with large repetitions take more, and are refused.
pub(super) const REGEX_BYTES: usize = 1 << 20;
/// How many segments a prefix may have. Each costs a look into the table.
const SEGMENTS: usize = 32;

/// Collects what is wrong with an object.
#[derive(Debug, Default)]
pub(super) struct Problems(Vec<Problem>);

impl Problems {
    pub(super) fn add(&mut self, field: impl Into<String>, message: impl Into<String>) {
        self.0.push(Problem::new(field, message));
    }

    /// The value, if nothing was wrong.
    pub(super) fn finish<T>(self, value: T) -> Result<T, Vec<Problem>> {
        if self.0.is_empty() { Ok(value) } else { Err(self.0) }
    }

    /// The value of a result; an error is noted.
    pub(super) fn note<T>(&mut self, field: impl Into<String>, result: Result<T, String>) -> Option<T> {
        result.map_err(|message| self.add(field, message)).ok()
    }

    /// A duration; `0s` is allowed.
    pub(super) fn duration(&mut self, field: &str, text: Option<&String>, default: Duration) -> Duration {
        let Some(text) = text else { return default };
        let nanos = watchkeeper_go::duration::parse(text).ok().and_then(|nanos| u64::try_from(nanos).ok());
        match nanos {
            Some(nanos) => Duration::from_nanos(nanos),
            None => {
                self.add(field, format!("{text:?} is not a duration such as 250ms, 5s or 1m30s"));
                default
            }
        }
    }

    /// A duration that is longer than nothing.
    pub(super) fn positive(&mut self, field: &str, text: Option<&String>, default: Duration) -> Duration {
        let duration = self.duration(field, text, default);
        if duration.is_zero() {
            self.add(field, "has to be longer than 0s");
            return default;
        }
        duration
    }

    pub(super) fn header_name(&mut self, field: &str, text: &str) -> Option<HeaderName> {
        let name = HeaderName::from_bytes(text.as_bytes());
        self.note(field, name.map_err(|_| format!("{text:?} is not the name of a header")))
    }

    pub(super) fn header_value(&mut self, field: &str, text: &str) -> Option<HeaderValue> {
        let value = HeaderValue::from_str(text);
        self.note(
            field,
            value.map_err(|_| "is not the value of a header: it has control characters".to_owned()),
        )
    }

    pub(super) fn regex(&mut self, field: &str, text: &str) -> Option<Arc<Regex>> {
        if text.len() > REGEX_LENGTH {
            self.add(field, format!("is longer than {REGEX_LENGTH} characters"));
            return None;
        }
        let regex = RegexBuilder::new(&format!("^(?:{text})$"))
            .size_limit(REGEX_BYTES)
            .dfa_size_limit(REGEX_BYTES)
            .build()
            .map_err(|error| match error {
                regex::Error::CompiledTooBig(_) => {
                    "takes too much memory: its repetitions are too large".to_owned()
                }
                error => format!("is not a regular expression: {}", last_line(&error.to_string())),
            });
        self.note(field, regex).map(Arc::new)
    }

    /// A path as requests have it.
    pub(super) fn path(&mut self, field: &str, text: &str) -> Option<String> {
        if !text.starts_with('/') {
            self.add(field, format!("{text:?} does not begin with a slash"));
            return None;
        }
        let is_path = text.parse::<http::uri::PathAndQuery>().is_ok_and(|parsed| parsed.query().is_none());
        match path::normalised(text) {
            Ok(path) if is_path && !text.contains('#') => Some(path.into_owned()),
            _ => {
                self.add(field, format!("{text:?} is not a path: it has a query, dot segments or characters that have to be escaped"));
                None
            }
        }
    }

    /// A prefix of paths, without the slash at its end.
    pub(super) fn prefix(&mut self, field: &str, text: &str) -> Option<String> {
        let mut path = self.path(field, text)?;
        path.truncate(path.trim_end_matches('/').len());
        if path.matches('/').count() > SEGMENTS {
            self.add(field, format!("has more than {SEGMENTS} segments"));
            return None;
        }
        Some(path)
    }
}

fn last_line(text: &str) -> &str {
    let line = text.lines().last().unwrap_or_default().trim();
    line.strip_prefix("error: ").unwrap_or(line)
}
