//! JSON Schemas, as OpenAPI 3.0 and 3.1 have them, as far as they say what a value may be. Annotations and formats are not looked at.

use std::collections::{BTreeMap, HashMap};

use regex::{Regex, RegexBuilder};
use serde_json::{Map, Value};

/// How many schemas a document may have.
const SCHEMAS: usize = 10_000;
/// How deep a value may be.
const DEPTH: usize = 64;
/// How much memory an expression may take, in bytes.
const REGEX_BYTES: usize = 1 << 20;

/// The schemas of a document. They refer to each other by number, so that a schema may contain itself.
#[derive(Debug, Default)]
pub(crate) struct Schemas {
    nodes: Vec<Node>,
    /// What is compiled already, by its pointer.
    known: HashMap<String, usize>,
}

/// What a value has to be.
#[derive(Debug, Default)]
struct Node {
    types: Vec<String>,
    nullable: bool,
    allowed: Option<Vec<Value>>,
    properties: BTreeMap<String, usize>,
    required: Vec<String>,
    /// What others than `properties` are; `Some(None)` if there may be none.
    additional: Option<Option<usize>>,
    items: Option<usize>,
    lengths: Bounds,
    counts: Bounds,
    fields: Bounds,
    minimum: Option<(f64, bool)>,
    maximum: Option<(f64, bool)>,
    multiple_of: Option<f64>,
    pattern: Option<Regex>,
    all_of: Vec<usize>,
    any_of: Vec<usize>,
    one_of: Vec<usize>,
    not: Option<usize>,
    /// Nothing is right.
    never: bool,
}

#[derive(Debug, Default)]
struct Bounds {
    least: Option<u64>,
    most: Option<u64>,
}

impl Bounds {
    fn of(schema: &Map<String, Value>, least: &str, most: &str) -> Self {
        let number = |name: &str| schema.get(name).and_then(Value::as_u64);
        Self { least: number(least), most: number(most) }
    }

    fn check(&self, count: usize, what: &str) -> Result<(), String> {
        let count = count as u64;
        match (self.least.filter(|least| count < *least), self.most.filter(|most| count > *most)) {
            (Some(least), _) => Err(format!("has fewer than {least} {what}")),
            (None, Some(most)) => Err(format!("has more than {most} {what}")),
            (None, None) => Ok(()),
        }
    }
}

/// One schema by itself.
#[derive(Debug)]
pub(crate) struct JsonSchema {
    schemas: Schemas,
    root: usize,
}

impl JsonSchema {
    /// Reads it.
    ///
    /// # Errors
    ///
    /// What is wrong with it, and where.
    pub(crate) fn read(schema: &Value) -> Result<Self, String> {
        let mut schemas = Schemas::default();
        let root = schemas.compile(schema, "")?;
        Ok(Self { schemas, root })
    }

    /// Says the first thing that is wrong with a value.
    pub(crate) fn check(&self, value: &Value, place: &str) -> Result<(), Wrong> {
        self.schemas.check(self.root, value, place)
    }
}

/// What is wrong with a value: where, and what.
pub(crate) type Wrong = (String, String);

impl Schemas {
    /// Compiles the schema at a pointer of a document.
    pub(crate) fn compile(&mut self, document: &Value, pointer: &str) -> Result<usize, String> {
        if let Some(known) = self.known.get(pointer) {
            return Ok(*known);
        }
        let value = document.pointer(pointer).ok_or_else(|| format!("#{pointer}: there is nothing"))?;
        // Its number is known before its parts are compiled, which may contain it.
        let number = self.nodes.len();
        if number >= SCHEMAS {
            return Err(format!("there are more than {SCHEMAS} schemas"));
        }
        self.nodes.push(Node::default());
        self.known.insert(pointer.to_owned(), number);
        let node = match value {
            Value::Bool(is_right) => Node { never: !is_right, ..Node::default() },
            Value::Object(schema) => self.node(document, pointer, schema)?,
            _ => return Err(format!("#{pointer}: is not a schema")),
        };
        self.nodes[number] = node;
        Ok(number)
    }

    fn node(&mut self, document: &Value, pointer: &str, schema: &Map<String, Value>) -> Result<Node, String> {
        let mut node = Node::default();
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            let target = reference
                .strip_prefix('#')
                .ok_or_else(|| format!("#{pointer}: {reference:?} is in another document"))?;
            node.all_of.push(self.compile(document, target)?);
        }
        match schema.get("type") {
            Some(Value::String(name)) => node.types.push(name.clone()),
            Some(Value::Array(names)) => {
                node.types.extend(names.iter().filter_map(Value::as_str).map(str::to_owned));
            }
            _ => {}
        }
        node.nullable = schema.get("nullable") == Some(&Value::Bool(true));
        node.allowed = schema.get("enum").and_then(Value::as_array).cloned();
        if let Some(only) = schema.get("const") {
            node.allowed = Some(vec![only.clone()]);
        }
        let part = |name: &str| format!("{pointer}/{name}");
        if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
            for name in properties.keys() {
                let number = self.compile(document, &format!("{}/{}", part("properties"), escaped(name)))?;
                node.properties.insert(name.clone(), number);
            }
        }
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        node.required = required.filter_map(Value::as_str).map(str::to_owned).collect();
        node.additional = match schema.get("additionalProperties") {
            Some(Value::Bool(false)) => Some(None),
            Some(Value::Object(_)) => Some(Some(self.compile(document, &part("additionalProperties"))?)),
            _ => None,
        };
        if schema.contains_key("items") {
            node.items = Some(self.compile(document, &part("items"))?);
        }
        node.lengths = Bounds::of(schema, "minLength", "maxLength");
        node.counts = Bounds::of(schema, "minItems", "maxItems");
        node.fields = Bounds::of(schema, "minProperties", "maxProperties");
        node.minimum = limit(schema, "minimum", "exclusiveMinimum");
        node.maximum = limit(schema, "maximum", "exclusiveMaximum");
        node.multiple_of = schema.get("multipleOf").and_then(Value::as_f64).filter(|of| *of > 0.0);
        if let Some(pattern) = schema.get("pattern").and_then(Value::as_str) {
            let built =
                RegexBuilder::new(pattern).size_limit(REGEX_BYTES).dfa_size_limit(REGEX_BYTES).build();
            node.pattern = Some(
                built.map_err(|_| format!("#{pointer}/pattern: is not an expression that can be used"))?,
            );
        }
        for (name, list) in
            [("allOf", &mut node.all_of), ("anyOf", &mut node.any_of), ("oneOf", &mut node.one_of)]
        {
            let count = schema.get(name).and_then(Value::as_array).map_or(0, Vec::len);
            for at in 0..count {
                list.push(self.compile(document, &format!("{}/{at}", part(name)))?);
            }
        }
        if schema.contains_key("not") {
            node.not = Some(self.compile(document, &part("not"))?);
        }
        Ok(node)
    }

    /// Says the first thing that is wrong with a value.
    pub(crate) fn check(&self, number: usize, value: &Value, place: &str) -> Result<(), Wrong> {
        self.check_within(number, value, place, DEPTH)
    }

    fn check_within(&self, number: usize, value: &Value, place: &str, depth: usize) -> Result<(), Wrong> {
        let wrong = |message: String| Err((place.to_owned(), message));
        let Some(depth) = depth.checked_sub(1) else { return wrong("is too deep".into()) };
        let Some(node) = self.nodes.get(number) else { return Ok(()) };
        if node.never {
            return wrong("is not allowed".into());
        }
        if value.is_null() && node.nullable {
            return Ok(());
        }
        if !node.types.is_empty() && !node.types.iter().any(|name| is_of(value, name)) {
            return wrong(format!("has to be of type {}", node.types.join(" or ")));
        }
        if node.allowed.as_ref().is_some_and(|allowed| !allowed.contains(value)) {
            return wrong("is none of the values that are allowed".into());
        }
        self.check_content(node, value, place, depth)?;
        for part in &node.all_of {
            self.check_within(*part, value, place, depth)?;
        }
        let fits = |part: &usize| self.check_within(*part, value, place, depth).is_ok();
        if !node.any_of.is_empty() && !node.any_of.iter().any(fits) {
            return wrong("is none of what it may be (anyOf)".into());
        }
        if !node.one_of.is_empty() && node.one_of.iter().filter(|part| fits(part)).count() != 1 {
            return wrong("is not exactly one of what it may be (oneOf)".into());
        }
        if node.not.is_some_and(|part| fits(&part)) {
            return wrong("is what it may not be (not)".into());
        }
        Ok(())
    }

    fn check_content(&self, node: &Node, value: &Value, place: &str, depth: usize) -> Result<(), Wrong> {
        let said = |result: Result<(), String>| result.map_err(|message| (place.to_owned(), message));
        match value {
            Value::String(text) => {
                said(node.lengths.check(text.chars().count(), "characters"))?;
                let fits = node.pattern.as_ref().is_none_or(|pattern| pattern.is_match(text));
                said(if fits { Ok(()) } else { Err("does not match its pattern".into()) })
            }
            Value::Number(number) => said(in_range(node, number.as_f64().unwrap_or(f64::NAN))),
            Value::Array(items) => {
                said(node.counts.check(items.len(), "items"))?;
                let Some(schema) = node.items else { return Ok(()) };
                items.iter().enumerate().try_for_each(|(at, item)| {
                    self.check_within(schema, item, &format!("{place}[{at}]"), depth)
                })
            }
            Value::Object(fields) => {
                said(node.fields.check(fields.len(), "fields"))?;
                if let Some(missing) = node.required.iter().find(|name| !fields.contains_key(*name)) {
                    return Err((inside(place, missing), "is missing".into()));
                }
                for (name, field) in fields {
                    match (node.properties.get(name).copied(), node.additional) {
                        (Some(schema), _) | (None, Some(Some(schema))) => {
                            self.check_within(schema, field, &inside(place, name), depth)?;
                        }
                        (None, Some(None)) => return Err((inside(place, name), "is not known".into())),
                        (None, None) => {}
                    }
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Reads a parameter, which is text, as what its schema says it is: a number, a boolean, or text.
    pub(crate) fn read(&self, number: usize, text: &str) -> Value {
        let wants = |name: &str| self.wants(number, name, DEPTH);
        if (wants("integer") || wants("number"))
            && let Ok(Value::Number(read)) = serde_json::from_str(text)
        {
            return Value::Number(read);
        }
        match text {
            "true" | "false" if wants("boolean") => Value::Bool(text == "true"),
            _ => Value::String(text.to_owned()),
        }
    }

    fn wants(&self, number: usize, name: &str, depth: usize) -> bool {
        let Some((node, depth)) = self.nodes.get(number).zip(depth.checked_sub(1)) else { return false };
        node.types.iter().any(|known| known == name)
            || node.all_of.iter().any(|part| self.wants(*part, name, depth))
    }
}

fn limit(schema: &Map<String, Value>, name: &str, exclusive: &str) -> Option<(f64, bool)> {
    match schema.get(exclusive) {
        // OpenAPI 3.1.
        Some(Value::Number(number)) => number.as_f64().map(|number| (number, true)),
        flag => {
            schema.get(name).and_then(Value::as_f64).map(|number| (number, flag == Some(&Value::Bool(true))))
        }
    }
}

fn in_range(node: &Node, number: f64) -> Result<(), String> {
    if let Some((least, exclusive)) = node.minimum
        && (number < least || exclusive && number <= least)
    {
        return Err(format!("is less than {least}, or equal to what it has to be above"));
    }
    if let Some((most, exclusive)) = node.maximum
        && (number > most || exclusive && number >= most)
    {
        return Err(format!("is more than {most}, or equal to what it has to be below"));
    }
    match node.multiple_of {
        Some(of) if (number / of).fract().abs() > 1e-9 => Err(format!("is not a multiple of {of}")),
        _ => Ok(()),
    }
}

fn is_of(value: &Value, name: &str) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => {
            value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0)
        }
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => true,
    }
}

/// `a.b`.
fn inside(place: &str, name: &str) -> String {
    format!("{place}.{name}")
}

/// A name as a part of a JSON pointer.
pub(crate) fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_as_their_schema_says() {
        let document = json!({
            "tree": {
                "type": "object", "required": ["name"], "additionalProperties": false,
                "properties": {
                    "name": {"type": "string", "minLength": 1, "maxLength": 3, "pattern": "^[a-z]+$"},
                    "size": {"type": "integer", "minimum": 1, "exclusiveMaximum": 10},
                    "kind": {"enum": ["a", "b"]},
                    "note": {"type": "string", "nullable": true},
                    "children": {"type": "array", "maxItems": 2, "items": {"$ref": "#/tree"}},
                    "either": {"oneOf": [{"type": "string"}, {"type": "integer", "multipleOf": 2}]},
                    "never": {"not": {}},
                },
            },
        });
        let mut schemas = Schemas::default();
        let tree = schemas.compile(&document, "/tree").unwrap();
        for right in [
            json!({"name": "ab", "size": 9, "kind": "a", "note": null, "either": 4}),
            json!({"name": "a", "children": [{"name": "b", "children": []}]}),
            json!({"name": "a", "size": 2.0}),
        ] {
            assert_eq!(schemas.check(tree, &right, "body"), Ok(()), "{right}");
        }
        for (wrong, place) in [
            (json!([]), "body"),
            (json!({}), "body.name"),
            (json!({"name": ""}), "body.name"),
            (json!({"name": "abcd"}), "body.name"),
            (json!({"name": "A"}), "body.name"),
            (json!({"name": null}), "body.name"),
            (json!({"name": "a", "size": 10}), "body.size"),
            (json!({"name": "a", "size": 1.5}), "body.size"),
            (json!({"name": "a", "kind": "c"}), "body.kind"),
            (json!({"name": "a", "other": 1}), "body.other"),
            (json!({"name": "a", "either": 3}), "body.either"),
            (json!({"name": "a", "never": 3}), "body.never"),
            (json!({"name": "a", "children": [{"name": "b"}, {"name": 1}]}), "body.children[1].name"),
            (json!({"name": "a", "children": [1, 2, 3]}), "body.children"),
        ] {
            assert_eq!(schemas.check(tree, &wrong, "body").unwrap_err().0, place, "{wrong}");
        }
    }

    #[test]
    fn what_is_too_deep_is_wrong_and_what_leads_nowhere_is_said() {
        let document = json!({"a": {"items": {"$ref": "#/a"}}, "b": {"$ref": "#/c"}, "d": {"$ref": "#/d"}, "e": {"pattern": "("}});
        let mut schemas = Schemas::default();
        let nested = schemas.compile(&document, "/a").unwrap();
        let deep = (0..500).fold(json!([]), |inner, _| json!([inner]));
        assert_eq!(schemas.check(nested, &deep, "body").unwrap_err().1, "is too deep");
        assert!(schemas.compile(&document, "/b").is_err() && schemas.compile(&document, "/e").is_err());
        let endless = schemas.compile(&document, "/d").unwrap();
        assert!(schemas.check(endless, &json!(1), "body").is_err());
    }
}
