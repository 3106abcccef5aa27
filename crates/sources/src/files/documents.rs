//! Reads the objects in the content of a file.

use std::collections::HashSet;
use std::fmt::Display;
use std::path::Path;

use serde_json::Value;
use watchkeeper_core::json::Cursor;
use watchkeeper_core::{Document, Key, Projection, Reason};
use watchkeeper_schema::{Error, json, yaml};

use super::names;
use super::settings::{Identity, Settings, path_key};
use crate::print::Print;

/// What a file says.
#[derive(Debug, Default)]
pub(super) struct Parsed {
    pub(super) objects: Vec<Object>,
    pub(super) faults: Vec<Fault>,
}

#[derive(Debug)]
pub(super) struct Object {
    pub(super) print: Print,
    pub(super) document: Document,
}

/// Something in a file that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) key: Key,
    pub(super) reason: Reason,
    /// Where and what.
    pub(super) detail: String,
}

/// Where in a file a document is.
#[derive(Clone, Copy)]
struct Place {
    number: usize,
    line: usize,
    column: usize,
}

/// Reads all documents of a file.
pub(super) fn parse(settings: &Settings, below: &Path, bytes: &[u8]) -> Parsed {
    let mut reader = Reader { settings, below, parsed: Parsed::default(), keys: HashSet::new() };
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        reader.fault(Place { number: 1, line: 1, column: 1 }, Reason::Unreadable, "UTF-16; save it as UTF-8");
        return reader.parsed;
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    match std::str::from_utf8(bytes) {
        Err(error) => {
            let place = place_of(&bytes[..error.valid_up_to()], 1);
            reader.fault(place, Reason::Unreadable, "not UTF-8");
        }
        Ok(text) if names::is_json(below) => reader.json(text),
        Ok(text) => reader.yaml(text),
    }
    reader.parsed
}

/// A value that was read, as JSON. All keys are texts, so that this cannot fail.
fn json_of(value: &Value) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}

/// The place behind these bytes.
fn place_of(before: &[u8], number: usize) -> Place {
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let column = String::from_utf8_lossy(&before[start..]).chars().count() + 1;
    Place { number, line, column }
}

struct Reader<'a> {
    settings: &'a Settings,
    below: &'a Path,
    parsed: Parsed,
    keys: HashSet<Key>,
}

impl Reader<'_> {
    fn yaml(&mut self, text: &str) {
        for part in yaml::documents(text) {
            let at =
                |line: usize, column| Place { number: part.number, line: part.lines_before + line, column };
            match yaml::read(part.text) {
                Err(misread) => self.misread(at(misread.line, misread.column), &misread.error),
                Ok(yaml::Document { value, doubled }) => match doubled.first() {
                    Some(key) => {
                        let said = format!("the key {} is there twice", key.key);
                        self.fault(at(key.line, key.column), Reason::Unreadable, said);
                    }
                    None => self.value(value, at(1 + usize::from(part.text.starts_with("---\n")), 1)),
                },
            }
        }
    }

    fn json(&mut self, text: &str) {
        let mut cursor = Cursor::new(text.as_bytes());
        for number in 1.. {
            if cursor.peek().is_err() {
                return;
            }
            let place = place_of(&text.as_bytes()[..cursor.position()], number);
            match cursor.skip() {
                Err(error) => {
                    use watchkeeper_core::json::SyntaxError;
                    let at = match error {
                        SyntaxError::Truncated => text.len(),
                        SyntaxError::Unexpected { at, .. } | SyntaxError::TooDeep { at } => at,
                    };
                    let said = match error {
                        SyntaxError::Truncated => "the file ends within a value".to_owned(),
                        SyntaxError::Unexpected { expected, .. } => format!("expected {expected}"),
                        SyntaxError::TooDeep { .. } => "nested too deeply".to_owned(),
                    };
                    return self.fault(place_of(&text.as_bytes()[..at], number), Reason::Unreadable, said);
                }
                Ok(span) => match json::decode(&text.as_bytes()[span]) {
                    Err(error) => self.misread(place, &error),
                    Ok(decoded) => match decoded.strict_errors.first() {
                        Some(error) => self.fault(place, Reason::Unreadable, error),
                        None => self.value(decoded.value, place),
                    },
                },
            }
        }
    }

    fn misread(&mut self, place: Place, error: &Error) {
        let reason = if matches!(error, Error::TooLarge) { Reason::TooLarge } else { Reason::Unreadable };
        let said = error.to_string();
        let said = said.strip_prefix("error converting YAML to JSON: yaml: ").unwrap_or(&said);
        // The line is in front already.
        let said = match said.strip_prefix("line ").and_then(|rest| rest.split_once(": ")) {
            Some((_, said)) => said,
            None => said,
        };
        self.fault(place, reason, said);
    }

    fn fault(&mut self, place: Place, reason: Reason, said: impl Display) {
        let Place { number, line, column } = place;
        let file = self.settings.shown(self.below);
        let detail = format!("{file}:{line}:{column}: document {number}: {said}");
        self.parsed.faults.push(Fault { key: path_key(self.below, number), reason, detail });
    }

    fn value(&mut self, value: Value, place: Place) {
        match &self.settings.identity {
            _ if value.is_null() => {}
            Identity::Path => {
                let body = json_of(&value);
                let print = Print::of(&body);
                let key = path_key(self.below, place.number);
                self.object(Object { print, document: Document::named(key, print.version(), body) }, place);
            }
            Identity::Object | Identity::Kind(..) => self.kubernetes(value, place),
        }
    }

    fn kubernetes(&mut self, mut value: Value, place: Place) {
        let said = |value: &Value, field: &str| value[field].as_str().unwrap_or_default().to_owned();
        let (api_version, kind) = (said(&value, "apiVersion"), said(&value, "kind"));
        if api_version.is_empty() || kind.is_empty() {
            return self.fault(
                place,
                Reason::Unreadable,
                "expected an object with apiVersion and kind, unless objects are named by path",
            );
        }
        if kind.ends_with("List")
            && let Some(Value::Array(items)) = value.get_mut("items").map(Value::take)
        {
            return items.into_iter().for_each(|item| self.value(item, place));
        }
        let group = |api_version: &str| {
            api_version.split_once('/').map(|(group, _)| group.to_owned()).unwrap_or_default()
        };
        if let Identity::Kind(wanted_version, wanted_kind) = &self.settings.identity {
            if *wanted_kind != kind || group(wanted_version) != group(&api_version) {
                return;
            }
            if *wanted_version != api_version {
                let said = format!("a {kind} of {api_version}, where {wanted_version} is read");
                return self.fault(place, Reason::Unreadable, said);
            }
        }
        let body = json_of(&value);
        match Document::read(&body, &Projection::default()) {
            Ok(mut document) => {
                let print = Print::of(&document.body);
                document.header.version = print.version();
                if self.settings.identity == Identity::Object {
                    let key = &document.header.key;
                    let group = group(&api_version);
                    let dot = if group.is_empty() { "" } else { "." };
                    document.header.key =
                        Key::new(key.namespace(), &format!("{kind}{dot}{group}/{}", key.name()));
                }
                self.object(Object { print, document }, place);
            }
            Err(unreadable) => {
                self.fault(place, Reason::Unreadable, format!("{kind}: {unreadable}"));
            }
        }
    }

    fn object(&mut self, object: Object, place: Place) {
        let key = &object.document.header.key;
        if self.keys.insert(key.clone()) {
            self.parsed.objects.push(object);
        } else {
            let said = format!("{key} is in this file already");
            self.fault(place, Reason::Conflict, said);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::settings::Form;

    fn read(identity: Identity, name: &str, bytes: &[u8]) -> (Vec<String>, Vec<String>) {
        let settings = Settings { identity, ..Settings::new("d".into(), Form::Directory) };
        let parsed = parse(&settings, Path::new(name), bytes);
        let objects = parsed.objects.iter().map(|object| object.document.header.key.to_string()).collect();
        (objects, parsed.faults.into_iter().map(|fault| fault.detail).collect())
    }

    fn route(name: &str) -> String {
        format!("apiVersion: example.com/v1\nkind: Route\nmetadata:\n  name: {name}\n  namespace: shop\n")
    }

    #[test]
    fn one_bad_document_costs_itself_only_and_its_place_is_told() {
        let text = format!("{}---\nkind: [\n---\n{}", route("a"), route("b"));
        let (objects, faults) = read(Identity::Object, "a.yaml", text.as_bytes());
        assert_eq!(objects, ["shop/Route.example.com/a", "shop/Route.example.com/b"]);
        assert_eq!(faults.len(), 1);
        assert!(faults[0].starts_with("d/a.yaml:8:1: document 2: "), "{faults:?}");
    }

    #[test]
    fn doubled_keys_names_and_objects_are_faults() {
        let text = "a: 1\nb: 2\na: 3\n";
        let (_, faults) = read(Identity::Path, "a.yaml", text.as_bytes());
        assert_eq!(faults, ["d/a.yaml:3:4: document 1: the key \"a\" is there twice"]);
        let (_, faults) = read(Identity::Path, "a.json", br#"{"a": {"b": 1, "b": 2}}"#);
        assert_eq!(faults, [r#"d/a.json:1:1: document 1: duplicate field "a.b""#]);
        let text = format!("{}---\n{}", route("a"), route("a"));
        let (objects, faults) = read(Identity::Object, "a.yaml", text.as_bytes());
        assert_eq!(objects.len(), 1);
        assert_eq!(faults, ["d/a.yaml:7:1: document 2: shop/Route.example.com/a is in this file already"]);
        let (_, faults) = read(Identity::Object, "a.yaml", b"kind: Route\napiVersion: v1\n");
        assert_eq!(faults, ["d/a.yaml:1:1: document 1: Route: no metadata.name"]);
        let (_, faults) = read(Identity::Object, "a.yaml", b"- 1\n");
        assert_eq!(
            faults,
            [
                "d/a.yaml:1:1: document 1: expected an object with apiVersion and kind, unless objects are named by path"
            ]
        );
    }

    #[test]
    fn a_kind_is_picked_out_and_a_version_that_is_not_read_is_said() {
        let kind = || Identity::Kind("example.com/v1".into(), "Route".into());
        let text = format!("{}---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: x}}\n", route("a"));
        assert_eq!(read(kind(), "a.yaml", text.as_bytes()), (vec!["shop/a".into()], vec![]));
        let (objects, faults) = read(kind(), "a.yaml", route("a").replace("/v1", "/v2").as_bytes());
        assert!(objects.is_empty());
        assert_eq!(
            faults,
            ["d/a.yaml:1:1: document 1: a Route of example.com/v2, where example.com/v1 is read"]
        );
    }

    #[test]
    fn lists_stand_for_their_items_and_json_may_have_several_values() {
        let json = r#"{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}]}
            {"apiVersion":"v1","kind":"Pod","metadata":{"name":"b"}} {"x":"#;
        let (objects, faults) = read(Identity::Object, "a.json", json.as_bytes());
        assert_eq!(objects, ["Pod/a", "Pod/b"]);
        assert_eq!(faults, ["d/a.json:2:75: document 3: the file ends within a value"]);
    }

    #[test]
    fn line_ends_and_byte_order_marks_make_no_difference() {
        let unix = format!("{}---\n{}", route("a"), route("b"));
        let dos = format!("\u{feff}{}", unix.replace('\n', "\r\n"));
        assert_eq!(
            read(Identity::Object, "a.yaml", unix.as_bytes()),
            read(Identity::Object, "a.yaml", dos.as_bytes())
        );
        let utf16: Vec<u8> =
            [0xfeff].into_iter().chain("a: 1".encode_utf16()).flat_map(u16::to_le_bytes).collect();
        assert_eq!(
            read(Identity::Path, "a.yaml", &utf16).1,
            ["d/a.yaml:1:1: document 1: UTF-16; save it as UTF-8"]
        );
        assert_eq!(
            read(Identity::Path, "a.yaml", b"a: 1\nb: \xff\n").1,
            ["d/a.yaml:2:4: document 1: not UTF-8"]
        );
    }

    #[test]
    fn documents_without_a_name_are_called_after_their_file() {
        let (objects, _) = read(Identity::Path, "x/a.yaml", b"a: 1\n---\nb: 2\n");
        assert_eq!(objects, ["x/a.yaml", "x/a.yaml#2"]);
    }
}
