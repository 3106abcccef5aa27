//! YAML to values, as kube-apiserver reads it: the first document, as YAML 1.1 through the eyes of Go, then as JSON.
//!
//! - `yes`, `no`, `on`, `off`, `y` and `n` are booleans, `010` is eight, `1_000` is a thousand.
//! - A float without a fraction becomes an integer on the way through JSON.
//! - Keys that are numbers or booleans become texts; a null key is an error.
//! - `<<` merges. What aliases repeat is limited, so that no small document becomes a large one.
//! - What is decoded takes no more than [`MAX_TREE`](crate::MAX_TREE).

mod documents;
mod encode;
mod places;
mod scalar;

use crate::json::{Decoded, MAX_DEPTH, nests_within};
use crate::{Error, Weight};
pub use documents::{Part, documents};
pub use encode::encode;
pub use places::{Place, Places, places};
use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span, StrInput, Tag};
use scalar::Scalar;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::HashMap;
use watchkeeper_go as go;

/// How many bytes of JSON aliases may add up to.
const MAX_ALIASED: usize = 4 << 20;

/// How many strict decoding errors are kept of one document.
const MAX_STRICT_ERRORS: usize = 100;

/// Decodes the first document; an empty one is null.
///
/// A key given twice keeps its last value; all such keys make one error, worded as Go words it.
///
/// ```
/// use serde_json::json;
/// use watchkeeper_schema::yaml;
/// let decoded = yaml::decode(b"spec:\n  enabled: yes\n  size: 1.0\n")?;
/// assert_eq!(decoded.value, json!({"spec": {"enabled": true, "size": 1}}));
/// # Ok::<(), watchkeeper_schema::Error>(())
/// ```
pub fn decode(bytes: &[u8]) -> Result<Decoded, Error> {
    let text = std::str::from_utf8(bytes).map_err(|_| syntax("invalid Unicode"))?;
    let Document { value, doubled } = read(text).map_err(|misread| misread.error)?;
    let strict_errors = match doubled.as_slice() {
        [] => Vec::new(),
        doubled => {
            let lines = doubled
                .iter()
                .map(|Doubled { key, line, .. }| format!("line {line}: key {key} already set in map"));
            vec![format!("yaml: unmarshal errors:\n  {}", lines.collect::<Vec<_>>().join("\n  "))]
        }
    };
    Ok(Decoded { value, strict_errors })
}

/// A document that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// The value; null if it is empty.
    pub value: Value,
    /// The keys that were given more than once in their mapping, at most 100. The last value is the one in `value`.
    pub doubled: Vec<Doubled>,
}

/// A key that its mapping had already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doubled {
    /// The key, quoted as Go does.
    pub key: String,
    /// The line of its value, from 1.
    pub line: usize,
    /// The column of its value in characters, from 1.
    pub column: usize,
}

/// The error of a document that cannot be read, with its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: {error}")]
pub struct Misread {
    /// The error.
    pub error: Error,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
}

/// Reads the first document of a text, with the places of what is wrong with it.
pub fn read(text: &str) -> Result<Document, Misread> {
    let allowed = |char: char| !char.is_control() || matches!(char, '\t' | '\n' | '\r' | '\u{85}');
    if let Some((at, _)) = text.char_indices().find(|(_, char)| !allowed(*char)) {
        let before = &text[..at];
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|char| *char != '\n').count() + 1;
        return Err(Misread { error: syntax("control characters are not allowed"), line, column });
    }
    check_directives(text).map_err(|error| Misread { error, line: 1, column: 1 })?;
    let mut decoder = Decoder {
        events: Parser::new_from_str(text),
        unended: (!text.ends_with('\n')).then(|| Unended::of(text)),
        anchors: HashMap::new(),
        aliased: 0,
        weight: Weight::default(),
        doubled: Vec::new(),
        at: (1, 1),
    };
    match decoder.document() {
        Ok(value) => Ok(Document { value, doubled: decoder.doubled }),
        Err(error) => Err(Misread { error, line: decoder.at.0, column: decoder.at.1 }),
    }
}

/// Refuses what calls itself another version than 1.1, which is the one that Go reads, directives that nobody knows, and a document
/// that ends before it begins.
fn check_directives(text: &str) -> Result<(), Error> {
    let is_head = |line: &str| line.is_empty() || line.starts_with(['%', '#']);
    if text.lines().find(|line| !is_head(line)).is_some_and(|line| line.split(' ').next() == Some("...")) {
        return Err(syntax("did not find expected node content"));
    }
    let head = text.lines().take_while(|line| is_head(line));
    for directive in head.filter_map(|line| line.strip_prefix('%')) {
        let mut words = directive.split([' ', '\t']);
        match (words.next(), words.find(|word| !word.is_empty())) {
            (Some("YAML"), Some(version)) => {
                let number = |text: &str| text.parse::<u32>().ok();
                if version.split_once('.').map(|(major, minor)| (number(major), number(minor)))
                    != Some((Some(1), Some(1)))
                {
                    return Err(syntax("found incompatible YAML document"));
                }
            }
            (Some("YAML"), None) => return Err(syntax("did not find expected version number")),
            (Some("TAG"), _) => {}
            _ => return Err(syntax("found unknown directive name")),
        }
    }
    Ok(())
}

fn syntax(reason: impl std::fmt::Display) -> Error {
    Error::Syntax(format!("error converting YAML to JSON: yaml: {reason}"))
}

/// A text that ends in the middle of a line.
struct Unended {
    /// How many characters it has.
    end: usize,
    /// How many line breaks come after all that is not blank.
    breaks: usize,
}

impl Unended {
    fn of(text: &str) -> Self {
        let blank = &text[text.trim_end().len()..];
        Self { end: text.chars().count(), breaks: blank.matches('\n').count() }
    }
}

struct Decoder<'a> {
    events: Parser<'a, StrInput<'a>>,
    unended: Option<Unended>,
    anchors: HashMap<usize, Value>,
    aliased: usize,
    weight: Weight,
    doubled: Vec<Doubled>,
    /// Line and column of what was read last.
    at: (usize, usize),
}

impl<'a> Decoder<'a> {
    fn next(&mut self) -> Result<(Event<'a>, usize), Error> {
        match self.events.next() {
            Some(Ok((event, span))) => {
                self.at = (line(&span), span.start.col() + 1);
                Ok((self.as_it_ends(event, &span), self.at.0))
            }
            Some(Err(error)) => {
                self.at = (error.marker().line(), error.marker().col() + 1);
                Err(scan_error(&error))
            }
            None => Err(syntax("unexpected end of stream")),
        }
    }

    /// A block of text whose last line is not ended has no line break there either, though the parser gives it one.
    fn as_it_ends(&self, event: Event<'a>, span: &Span) -> Event<'a> {
        match (event, &self.unended) {
            (
                Event::Scalar(text, style @ (ScalarStyle::Literal | ScalarStyle::Folded), anchor, tag),
                Some(unended),
            ) if span.end.index() >= unended.end => {
                let content = text.trim_end_matches('\n').len();
                let kept = text.len().min(content + unended.breaks);
                Event::Scalar(text[..kept].to_owned().into(), style, anchor, tag)
            }
            (event, _) => event,
        }
    }

    fn document(&mut self) -> Result<Value, Error> {
        loop {
            match self.next()? {
                (Event::StreamStart | Event::Nothing, _) => {}
                (Event::DocumentStart(_), _) => {
                    let (event, _) = self.next()?;
                    return self.value(event, MAX_DEPTH);
                }
                _ => return Ok(Value::Null),
            }
        }
    }

    fn value(&mut self, event: Event<'a>, depth: usize) -> Result<Value, Error> {
        let (value, anchor) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let value = scalar(&text, style, tag)?.into_value()?;
                self.weight.value(&value)?;
                (value, anchor)
            }
            Event::SequenceStart(anchor, _) => {
                let depth = depth.checked_sub(1).ok_or(Error::TooDeep)?;
                (self.sequence(depth)?, anchor)
            }
            Event::MappingStart(anchor, _) => {
                let depth = depth.checked_sub(1).ok_or(Error::TooDeep)?;
                (self.mapping(depth)?, anchor)
            }
            Event::Alias(anchor) => return self.alias(anchor, depth),
            Event::DocumentEnd => (Value::Null, 0),
            _ => return Err(syntax("did not find expected node content")),
        };
        if anchor > 0 {
            self.repeat(&value)?;
            self.anchors.insert(anchor, value.clone());
        }
        Ok(value)
    }

    fn alias(&mut self, anchor: usize, depth: usize) -> Result<Value, Error> {
        // An anchor is known once its value is complete, so no value can contain itself.
        let Some(value) = self.anchors.get(&anchor) else {
            return Err(syntax("anchor value contains itself"));
        };
        if !nests_within(value, depth, &mut usize::MAX.clone()) {
            return Err(Error::TooDeep);
        }
        let value = value.clone();
        self.repeat(&value)?;
        Ok(value)
    }

    /// Counts a value that is about to be there once more.
    fn repeat(&mut self, value: &Value) -> Result<(), Error> {
        self.aliased += weight(value);
        if self.aliased > MAX_ALIASED {
            return Err(syntax("document contains excessive aliasing"));
        }
        self.weight.value(value)
    }

    fn sequence(&mut self, depth: usize) -> Result<Value, Error> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(Value::Array(items)),
                (event, _) => {
                    self.weight.item(items.len())?;
                    items.push(self.value(event, depth)?);
                }
            }
        }
    }

    fn mapping(&mut self, depth: usize) -> Result<Value, Error> {
        let mut fields = Map::new();
        loop {
            let key = match self.next()?.0 {
                Event::MappingEnd => return Ok(Value::Object(fields)),
                Event::Scalar(text, ScalarStyle::Plain, _, None) if text == "<<" => Key::Merge,
                Event::Scalar(text, style, anchor, tag) => {
                    if anchor > 0 {
                        self.anchors.insert(anchor, Value::String(text.to_string()));
                    }
                    Key::Field(scalar(&text, style, tag)?.into_key()?)
                }
                Event::Alias(anchor) => match self.alias(anchor, depth)? {
                    Value::String(name) => Key::Field((name.clone(), go::quote(&name))),
                    other => Key::Field((go::json::encode(&other), go::json::encode(&other))),
                },
                _ => return Err(syntax("invalid map key")),
            };
            let (event, line) = self.next()?;
            let column = self.at.1;
            let value = self.value(event, depth)?;
            match key {
                Key::Merge => merge(&mut fields, value)?,
                Key::Field((name, shown)) => {
                    self.weight.field(fields.len(), name.len())?;
                    if fields.contains_key(&name) && self.doubled.len() < MAX_STRICT_ERRORS {
                        self.doubled.push(Doubled { key: shown, line, column });
                    }
                    fields.insert(name, value);
                }
            }
        }
    }
}

enum Key {
    Merge,
    /// The name, and how Go shows it.
    Field((String, String)),
}

/// Sets the fields of a mapping, or of several with the first in front.
fn merge(fields: &mut Map<String, Value>, from: Value) -> Result<(), Error> {
    match from {
        Value::Object(merged) => fields.extend(merged),
        Value::Array(several) => {
            for merged in several.into_iter().rev() {
                let Value::Object(merged) = merged else {
                    return Err(syntax("map merge requires map or sequence of maps as the value"));
                };
                fields.extend(merged);
            }
        }
        _ => return Err(syntax("map merge requires map or sequence of maps as the value")),
    }
    Ok(())
}

/// About how many bytes a value takes.
fn weight(value: &Value) -> usize {
    const NODE: usize = 32;
    NODE + match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(weight).sum(),
        Value::Object(fields) => fields.iter().map(|(name, field)| name.len() + weight(field)).sum(),
        _ => 0,
    }
}

fn scalar<'a>(text: &'a str, style: ScalarStyle, tag: Option<Cow<'_, Tag>>) -> Result<Scalar<'a>, Error> {
    let tag = tag.filter(|tag| tag.is_yaml_core_schema());
    let tag = tag.as_ref().map(|tag| tag.suffix.as_str());
    match (tag, style) {
        (Some("str"), _) => Ok(Scalar::Text(text)),
        (Some("binary"), _) => Err(syntax("!!binary is not supported")),
        (None, style) if style != ScalarStyle::Plain => Ok(Scalar::Text(text)),
        (tag, _) => {
            let resolved = Scalar::resolve(text);
            match tag.filter(|tag| !resolved.is(tag)) {
                None => Ok(resolved),
                Some("float") if resolved.is("int") => Ok(resolved),
                Some(tag) => Err(syntax(format!("cannot decode !!{} `{text}` as a !!{tag}", resolved.tag()))),
            }
        }
    }
}

fn line(span: &Span) -> usize {
    span.start.line()
}

fn scan_error(error: &ScanError) -> Error {
    // Go leaves out what was being parsed, and counts the lines before it.
    match error.info().split_once(", ").filter(|(doing, _)| doing.starts_with("while parsing")) {
        Some((_, problem)) if error.marker().line() > 1 => {
            syntax(format!("line {}: {problem}", error.marker().line() - 1))
        }
        Some((_, problem)) => syntax(problem),
        None => syntax(format!("line {}: {}", error.marker().line(), error.info())),
    }
}

#[cfg(test)]
mod tests;
