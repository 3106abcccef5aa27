use std::fmt;
use std::str::FromStr;

use serde_json::Value;

use crate::visible::is_unseen;

/// The path of a field in an object: `spec.containers[name=web].image`, `metadata.labels["app.kubernetes.io/name"]`, `spec.args[2]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Path(pub Vec<Segment>);

/// One step of a [`Path`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Segment {
    /// A member of a map.
    Field(String),
    /// The item of a list whose `key` has this value.
    Item {
        /// The field that tells the list's items apart.
        key: String,
        /// The value of the key, as text.
        value: String,
    },
    /// The item of a list at this index.
    Index(usize),
}

impl Path {
    /// This path, one step further.
    #[must_use]
    pub fn then(&self, segment: Segment) -> Self {
        let mut segments = Vec::with_capacity(self.0.len() + 1);
        segments.extend_from_slice(&self.0);
        segments.push(segment);
        Self(segments)
    }

    /// The names of the maps' members along the way, without the steps into lists.
    pub fn fields(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|segment| match segment {
            Segment::Field(name) => Some(name.as_str()),
            Segment::Item { .. } | Segment::Index(_) => None,
        })
    }

    /// Whether one of the two lies at or below the other. Steps into lists that only one of them names are passed over, so
    /// that `spec.containers.image` covers the images of all containers.
    pub fn covers(&self, other: &Self) -> bool {
        let (mut left, mut right) = (self.0.iter().peekable(), other.0.iter().peekable());
        loop {
            let (Some(one), Some(another)) = (left.peek(), right.peek()) else { return true };
            match (one, another) {
                (one, another) if one == another => {
                    left.next();
                    right.next();
                }
                (Segment::Field(_), Segment::Item { .. } | Segment::Index(_)) => {
                    right.next();
                }
                (Segment::Item { .. } | Segment::Index(_), Segment::Field(_)) => {
                    left.next();
                }
                _ => return false,
            }
        }
    }
}

impl Segment {
    /// A member of a map.
    pub fn field(name: impl Into<String>) -> Self {
        Self::Field(name.into())
    }

    pub(crate) fn item(key: &str, value: &Value) -> Self {
        let value = match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        Self::Item { key: key.to_owned(), value }
    }
}

/// Whether a name can stand in a path without quotes.
fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && name.chars().all(|char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-' | '$' | '/'))
}

/// Whether a value can stand behind `key=` without quotes.
fn is_plain_value(value: &str) -> bool {
    let plain = |char: char| {
        !is_unseen(char) && !char.is_whitespace() && !matches!(char, '[' | ']' | '"' | '=' | '\\')
    };
    !value.is_empty() && value.chars().all(plain)
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, segment) in self.0.iter().enumerate() {
            match segment {
                Segment::Field(name) if is_plain(name) => {
                    if at > 0 {
                        f.write_str(".")?;
                    }
                    f.write_str(name)?;
                }
                Segment::Field(name) => write!(f, "[{}]", quoted(name))?,
                Segment::Item { key, value } if is_plain(key) && is_plain_value(value) => {
                    write!(f, "[{key}={value}]")?;
                }
                Segment::Item { key, value } if is_plain(key) => write!(f, "[{key}={}]", quoted(value))?,
                Segment::Item { key, value } => write!(f, "[{}={}]", quoted(key), quoted(value))?,
                Segment::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// The error of a text that is not a [`Path`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathError {
    text: String,
    at: usize,
    wanted: &'static str,
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { text, at, wanted } = self;
        write!(
            f,
            "{text:?} is not a path of fields such as spec.containers[name=web].image: {wanted} expected at position {at}"
        )
    }
}

impl std::error::Error for PathError {}

impl FromStr for Path {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        let mut reader = Reader { text, rest: text };
        let mut path = Self::default();
        // A dot at the beginning is how jq and kubectl write it.
        if !reader.rest.starts_with(".[") {
            reader.take('.');
        }
        loop {
            if reader.take('[') {
                path.0.push(reader.bracket()?);
            } else {
                path.0.push(Segment::Field(reader.name()?));
            }
            if reader.rest.is_empty() {
                return Ok(path);
            }
            if !reader.rest.starts_with('[') && !reader.take('.') {
                return Err(reader.wanted("a dot or a bracket"));
            }
        }
    }
}

struct Reader<'a> {
    text: &'a str,
    rest: &'a str,
}

impl Reader<'_> {
    fn take(&mut self, char: char) -> bool {
        match self.rest.strip_prefix(char) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn wanted(&self, wanted: &'static str) -> PathError {
        PathError { text: self.text.to_owned(), at: self.text.len() - self.rest.len(), wanted }
    }

    fn until(&mut self, ends: &[char], wanted: &'static str) -> Result<String, PathError> {
        let end = self.rest.find(ends).unwrap_or(self.rest.len());
        if end == 0 {
            return Err(self.wanted(wanted));
        }
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        Ok(word.to_owned())
    }

    fn name(&mut self) -> Result<String, PathError> {
        self.until(&['.', '['], "a field's name")
    }

    /// A text in quotes, or as far as one of `ends`.
    fn text(&mut self, ends: &[char]) -> Result<(String, bool), PathError> {
        if !self.rest.starts_with('"') {
            return Ok((self.until(ends, "a field's name, a key=value or a number")?, false));
        }
        let mut values = serde_json::Deserializer::from_str(self.rest).into_iter::<String>();
        match values.next() {
            Some(Ok(text)) => {
                self.rest = &self.rest[values.byte_offset()..];
                Ok((text, true))
            }
            _ => Err(self.wanted("a text in quotes")),
        }
    }

    fn bracket(&mut self) -> Result<Segment, PathError> {
        let (first, in_quotes) = self.text(&['=', ']'])?;
        let segment = if self.take('=') {
            Segment::Item { key: first, value: self.text(&[']'])?.0 }
        } else {
            match first.parse() {
                Ok(index) if !in_quotes => Segment::Index(index),
                _ => Segment::Field(first),
            }
        };
        if self.take(']') { Ok(segment) } else { Err(self.wanted("a closing bracket")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> Path {
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn a_path_is_written_as_people_do_and_read_back() {
        let item = |key: &str, value: &str| Segment::Item { key: key.into(), value: value.into() };
        for (segments, text) in [
            (vec![Segment::field("spec")], "spec"),
            (vec![Segment::field("spec"), Segment::field("replicas")], "spec.replicas"),
            (
                vec![
                    Segment::field("spec"),
                    Segment::field("containers"),
                    item("name", "web"),
                    Segment::field("image"),
                ],
                "spec.containers[name=web].image",
            ),
            (vec![Segment::field("args"), Segment::Index(2)], "args[2]"),
            (vec![Segment::field("labels"), Segment::field("app.io/name")], r#"labels["app.io/name"]"#),
            (vec![Segment::field("data"), Segment::field("7")], "data.7"),
            (vec![Segment::field("data"), Segment::field("a \"b\"\n")], r#"data["a \"b\"\n"]"#),
            (vec![Segment::field("x"), item("key", "a]b=c")], r#"x[key="a]b=c"]"#),
            (vec![Segment::field("x"), item("mountPath", "/var/run")], "x[mountPath=/var/run]"),
            (vec![Segment::field("")], r#"[""]"#),
        ] {
            let written = Path(segments);
            assert_eq!(written.to_string(), text);
            assert_eq!(path(text), written);
        }
        assert_eq!(path(".spec.replicas"), path("spec.replicas"));
        assert_eq!(path(r#"data["7"]"#), path("data.7"));
    }

    #[test]
    fn what_is_no_path_is_refused_with_the_place() {
        for (text, at) in [
            ("", 0),
            ("spec..x", 5),
            ("spec.", 5),
            ("a[", 2),
            ("a[b", 3),
            ("a[b]c", 4),
            ("a[\"b]", 2),
            ("a[b=]", 4),
        ] {
            let error = text.parse::<Path>().unwrap_err();
            assert_eq!(error.at, at, "{error}");
        }
    }

    #[test]
    fn a_path_covers_what_is_below_it_and_passes_lists_over() {
        for (left, right, covers) in [
            ("spec", "spec.replicas", true),
            ("spec.replicas", "spec", true),
            ("spec", "status.replicas", false),
            ("spec.containers.image", "spec.containers[name=web].image", true),
            ("spec.containers[name=web]", "spec.containers[name=web].image", true),
            ("spec.containers[name=web]", "spec.containers[name=db].image", false),
            ("spec.containers[name=web].image", "spec.containers[name=web].name", false),
            ("spec.containers", "spec.containersX", false),
            ("args[0]", "args[1]", false),
        ] {
            assert_eq!(path(left).covers(&path(right)), covers, "{left} {right}");
        }
    }
}
