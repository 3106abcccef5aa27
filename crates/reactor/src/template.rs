//! Values and texts with `${...}` in them.

use std::fmt;

use serde_json::{Map, Value};
use watchkeeper_table::JsonPath;

use crate::change::Change;

/// A value in which texts may have holes, to be filled in for each change.
///
/// | written | stands for |
/// |---|---|
/// | `${.spec.port}` | what is at this path of the newest state |
/// | `${old.spec.port}`, `${new.spec.port}` | the same of the state before, or the state after |
/// | `${event}`, `${source}`, `${key}`, `${namespace}`, `${name}` | the parts of the change |
/// | `${.spec.port:-80}` | the path, or 80 if there is nothing |
/// | `$${` | `${` itself |
///
/// A text that is one hole and nothing else becomes what is there, with its type: a number stays a number, an object an object. In a longer
/// text, texts are filled in as they are, everything else as JSON. A path that finds several values stands for a list of them.
#[derive(Clone, Debug)]
pub(crate) enum Template {
    Literal(Value),
    Text(TextTemplate),
    List(Vec<Template>),
    Object(Vec<(String, Template)>),
}

/// A text with holes.
#[derive(Clone, Debug)]
pub(crate) struct TextTemplate {
    parts: Vec<Part>,
}

#[derive(Clone, Debug)]
enum Part {
    Text(String),
    Hole(Hole),
}

#[derive(Clone, Debug)]
struct Hole {
    /// As it is written, for messages.
    written: String,
    of: Of,
    default: Option<Value>,
}

#[derive(Clone, Debug)]
enum Of {
    Newest(JsonPath),
    Old(JsonPath),
    New(JsonPath),
    Event,
    Source,
    Key,
    Namespace,
    Name,
}

/// A hole that nothing fills.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unfilled {
    written: String,
}

impl fmt::Display for Unfilled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "${{{}}} finds nothing; ${{{}:-...}} would have a default", self.written, self.written)
    }
}

impl Template {
    /// Reads a value; an error says at which JSON pointer below it something is wrong, and what.
    pub(crate) fn read(value: &Value) -> Result<Self, (String, String)> {
        let below = |part: &dyn fmt::Display| {
            let part = part.to_string().replace('~', "~0").replace('/', "~1");
            move |(pointer, message): (String, String)| (format!("/{part}{pointer}"), message)
        };
        Ok(match value {
            Value::String(text) => {
                let template = TextTemplate::read(text).map_err(|message| (String::new(), message))?;
                if let Some(text) = template.literal() {
                    return Ok(Self::Literal(text.into()));
                }
                Self::Text(template)
            }
            Value::Array(items) => {
                let items = items.iter().enumerate();
                Self::List(
                    items.map(|(at, item)| Self::read(item).map_err(below(&at))).collect::<Result<_, _>>()?,
                )
            }
            Value::Object(members) => {
                let read = members.iter().map(|(name, member)| {
                    Self::read(member).map(|member| (name.clone(), member)).map_err(below(name))
                });
                Self::Object(read.collect::<Result<_, _>>()?)
            }
            other => Self::Literal(other.clone()),
        })
    }

    /// The value for a change.
    pub(crate) fn fill(&self, change: &Change) -> Result<Value, Unfilled> {
        Ok(match self {
            Self::Literal(value) => value.clone(),
            Self::Text(text) => text.value(change)?,
            Self::List(items) => items.iter().map(|item| item.fill(change)).collect::<Result<_, _>>()?,
            Self::Object(members) => {
                let filled = members.iter().map(|(name, member)| Ok((name.clone(), member.fill(change)?)));
                Value::Object(filled.collect::<Result<Map<_, _>, _>>()?)
            }
        })
    }

    /// A member that has no holes and is a text.
    pub(crate) fn literal_text(&self, name: &str) -> Option<&str> {
        let Self::Object(members) = self else { return None };
        match members.iter().find(|(member, _)| member == name) {
            Some((_, Self::Literal(Value::String(text)))) => Some(text),
            _ => None,
        }
    }
}

impl TextTemplate {
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(at) = rest.find("${") {
            if rest[..at].ends_with('$') {
                plain.push_str(&rest[..at]);
                plain.push('{');
                rest = &rest[at + 2..];
                continue;
            }
            plain.push_str(&rest[..at]);
            let inside = &rest[at + 2..];
            let Some(end) = end_of_hole(inside) else {
                return Err("${ is not closed by }; $${ stands for ${ itself".into());
            };
            if !plain.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut plain)));
            }
            parts.push(Part::Hole(Hole::read(&inside[..end])?));
            rest = &inside[end + 1..];
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            parts.push(Part::Text(plain));
        }
        Ok(Self { parts })
    }

    /// The text, if there are no holes in it.
    pub(crate) fn literal(&self) -> Option<String> {
        match self.parts.as_slice() {
            [] => Some(String::new()),
            [Part::Text(text)] => Some(text.clone()),
            _ => None,
        }
    }

    /// The text for a change.
    pub(crate) fn fill(&self, change: &Change) -> Result<String, Unfilled> {
        let mut text = String::new();
        for part in &self.parts {
            match part {
                Part::Text(plain) => text.push_str(plain),
                Part::Hole(hole) => match hole.value(change)? {
                    Value::String(value) => text.push_str(&value),
                    Value::Null => return Err(hole.unfilled()),
                    other => text.push_str(&other.to_string()),
                },
            }
        }
        Ok(text)
    }

    fn value(&self, change: &Change) -> Result<Value, Unfilled> {
        match self.parts.as_slice() {
            [Part::Hole(hole)] => hole.value(change),
            _ => self.fill(change).map(Value::String),
        }
    }
}

/// Where the brace is that closes a hole: not one between quotes.
fn end_of_hole(text: &str) -> Option<usize> {
    let mut quote = None;
    for (at, char) in text.char_indices() {
        match (char, quote) {
            ('}', None) => return Some(at),
            ('"' | '\'', None) => quote = Some(char),
            (char, Some(open)) if char == open => quote = None,
            _ => {}
        }
    }
    None
}

impl Hole {
    fn read(written: &str) -> Result<Self, String> {
        let (path, default) = match default_at(written) {
            Some(at) => (&written[..at], Some(&written[at + 2..])),
            None => (written, None),
        };
        let default =
            default.map(|text| serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned())));
        let of = match path {
            "event" => Of::Event,
            "source" => Of::Source,
            "key" => Of::Key,
            "namespace" => Of::Namespace,
            "name" => Of::Name,
            path if path.starts_with("old.") => Of::Old(read_path(&path[3..])?),
            path if path.starts_with("new.") => Of::New(read_path(&path[3..])?),
            path if path.starts_with('.') || path.starts_with('[') => Of::Newest(read_path(path)?),
            other => {
                return Err(format!(
                    "${{{other}}} is neither a path such as ${{.spec.name}}, ${{old.spec.name}} or ${{new.spec.name}}, nor one of \
                     event, source, key, namespace and name"
                ));
            }
        };
        Ok(Self { written: path.to_owned(), of, default })
    }

    fn value(&self, change: &Change) -> Result<Value, Unfilled> {
        let found = match &self.of {
            Of::Newest(path) => change.newest().and_then(|state| at(path, state)),
            Of::Old(path) => change.old.as_deref().and_then(|state| at(path, state)),
            Of::New(path) => change.new.as_deref().and_then(|state| at(path, state)),
            Of::Event => Some(change.event.word().into()),
            Of::Source => Some((*change.source).into()),
            Of::Key => Some(change.key.to_string().into()),
            Of::Namespace => change.key.namespace().map(Value::from),
            Of::Name => Some(change.key.name().into()),
        };
        found.or_else(|| self.default.clone()).ok_or_else(|| self.unfilled())
    }

    fn unfilled(&self) -> Unfilled {
        Unfilled { written: self.written.clone() }
    }
}

/// Where `:-` is, not counting that of a slice.
fn default_at(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, char) in text.char_indices() {
        match char {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            ':' if depth == 0 && text[at..].starts_with(":-") => return Some(at),
            _ => {}
        }
    }
    None
}

/// One value, or a list of several.
fn at(path: &JsonPath, state: &Value) -> Option<Value> {
    match path.find(state).as_slice() {
        [] => None,
        [one] => Some((*one).clone()),
        several => Some(several.iter().map(|&value| value.clone()).collect()),
    }
}

/// A path as templates and filters have it: it begins with a dot or a bracket.
pub(crate) fn read_path(text: &str) -> Result<JsonPath, String> {
    if !text.starts_with(['.', '[']) {
        return Err(format!("{text:?} is not a path: paths begin with a dot, as in .spec.name"));
    }
    JsonPath::parse(text).map_err(|error| format!("{text:?} is not a path: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::Event;
    use serde_json::json;
    use std::sync::Arc;
    use watchkeeper_core::Key;

    fn change() -> Change {
        Change {
            source: "routes".into(),
            key: Key::new(Some("shop"), "cart"),
            event: Event::Changed,
            old: Some(Arc::new(json!({"spec": {"port": 79}}))),
            new: Some(Arc::new(
                json!({"spec": {"port": 80, "tags": ["a", "b"], "none": null}, "a.b": true, "text": "x}y"}),
            )),
        }
    }

    fn filled(template: &Value) -> Result<Value, String> {
        let template =
            Template::read(template).map_err(|(pointer, message)| format!("{pointer}: {message}"))?;
        template.fill(&change()).map_err(|unfilled| unfilled.to_string())
    }

    #[test]
    fn a_hole_alone_keeps_the_type_and_in_a_text_becomes_text() {
        for (template, expected) in [
            (json!("${.spec.port}"), json!(80)),
            (json!("port ${.spec.port}!"), json!("port 80!")),
            (json!("${old.spec.port}->${new.spec.port}"), json!("79->80")),
            (json!("${.spec.tags}"), json!(["a", "b"])),
            (json!("${.spec.tags[*]}"), json!(["a", "b"])),
            (json!("${.spec.tags[-1:]}"), json!("b")),
            (json!("tags ${.spec.tags}"), json!("tags [\"a\",\"b\"]")),
            (json!("${['a\\.b']}"), json!(true)),
            (json!("${.spec.none}"), json!(null)),
            (
                json!("${event} ${source} ${key} ${namespace} ${name}"),
                json!("changed routes shop/cart shop cart"),
            ),
            (json!({"a": ["${.text}", 1, null]}), json!({"a": ["x}y", 1, null]})),
            (json!("$${.spec.port} $5 {x}"), json!("${.spec.port} $5 {x}")),
            (json!("${.missing:-80}"), json!(80)),
            (json!("${.missing:-a b}"), json!("a b")),
            (json!("${.missing:-}"), json!("")),
            (json!("${.spec.port:-1}"), json!(80)),
            (json!(""), json!("")),
        ] {
            assert_eq!(filled(&template), Ok(expected), "{template}");
        }
    }

    #[test]
    fn what_finds_nothing_is_an_error_that_names_it() {
        let nothing =
            |path: &str| Err(format!("${{{path}}} finds nothing; ${{{path}:-...}} would have a default"));
        assert_eq!(filled(&json!({"a": "x ${.spec.prot}"})), nothing(".spec.prot"));
        assert_eq!(filled(&json!("${old.spec.tags[9]}")), nothing("old.spec.tags[9]"));
        assert_eq!(filled(&json!("x ${.spec.none}")), nothing(".spec.none"));
    }

    #[test]
    fn what_is_no_template_is_placed() {
        for (template, expected) in [
            (json!({"a": [1, "${.x"]}), "/a/1: ${ is not closed by }; $${ stands for ${ itself"),
            (
                json!({"a/b": "${spec.x}"}),
                "/a~1b: ${spec.x} is neither a path such as ${.spec.name}, ${old.spec.name} or ${new.spec.name}, nor one of event, \
                 source, key, namespace and name",
            ),
            (json!("${.a[}"), ": \".a[\" is not a path: unterminated array"),
        ] {
            assert_eq!(filled(&template), Err(expected.to_owned()), "{template}");
        }
    }
}
