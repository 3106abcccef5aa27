use super::node::{Additional, Checks, Keywords, Node, Properties, Rule, Type};
use crate::Error;
use crate::Path;
use crate::format::Format;
use crate::pattern::{Pattern, Patterns};
use crate::prune;
use serde_json::{Map, Value};

/// Reads a schema from its JSON form.
pub(super) fn read(openapi: &Value) -> Result<Node, Error> {
    let mut patterns = Patterns::default();
    node(openapi, &Path::root(), &mut patterns)
}

fn node(value: &Value, at: &Path, patterns: &mut Patterns) -> Result<Node, Error> {
    let Value::Object(fields) = value else {
        return Err(wrong(at, "a schema"));
    };
    let keywords = Reader { fields, at };
    let kind = keywords.text("type")?.map(Type::of);
    let int_or_string = keywords.flag("x-kubernetes-int-or-string")?.unwrap_or_default();
    let (items, items_array) = keywords.items(patterns)?;
    let mut node = Node {
        checks: checks(&keywords, kind.as_ref(), int_or_string, patterns)?,
        kind,
        int_or_string,
        nullable: keywords.flag("nullable")?.unwrap_or_default(),
        preserve_unknown: keywords.flag("x-kubernetes-preserve-unknown-fields")?,
        embedded: keywords.flag("x-kubernetes-embedded-resource")?.unwrap_or_default(),
        list_type: keywords.text("x-kubernetes-list-type")?.map(Into::into),
        list_map_keys: keywords.texts("x-kubernetes-list-map-keys")?,
        map_type: keywords.text("x-kubernetes-map-type")?.map(Into::into),
        properties: keywords.properties(patterns)?,
        additional: keywords.additional(patterns)?,
        items,
        default: keywords.get("default").cloned(),
        pruned_default: None,
        rules: keywords.rules()?,
        keywords: Keywords {
            title: keywords.text("title")?.is_some_and(|text| !text.is_empty()),
            description: keywords.text("description")?.is_some_and(|text| !text.is_empty()),
            example: keywords.get("example").is_some(),
            external_docs: keywords.get("externalDocs").is_some(),
            items_array,
            id: keywords.text("id")?.is_some_and(|text| !text.is_empty()),
            schema: keywords.text("$schema")?.is_some_and(|text| !text.is_empty()),
            reference: keywords.text("$ref")?.is_some(),
            additional_items: keywords.get("additionalItems").is_some(),
            pattern_properties: keywords.holds_fields("patternProperties"),
            definitions: keywords.holds_fields("definitions"),
            dependencies: keywords.get("dependencies").is_some(),
        },
        has_embedded: false,
        has_unique_lists: false,
    };
    node.look_below();
    node.pruned_default = prune::pruned_default(&node);
    Ok(node)
}

fn checks(
    keywords: &Reader<'_>,
    kind: Option<&Type>,
    int_or_string: bool,
    patterns: &mut Patterns,
) -> Result<Checks, Error> {
    let format_name = keywords.text("format")?.unwrap_or_default();
    Ok(Checks {
        format_name: format_name.into(),
        format: Format::for_type(format_name, kind.filter(|_| !int_or_string)),
        maximum: keywords.number("maximum")?,
        exclusive_maximum: keywords.flag("exclusiveMaximum")?.unwrap_or_default(),
        minimum: keywords.number("minimum")?,
        exclusive_minimum: keywords.flag("exclusiveMinimum")?.unwrap_or_default(),
        multiple_of: keywords.number("multipleOf")?,
        max_length: keywords.integer("maxLength")?,
        min_length: keywords.integer("minLength")?,
        pattern: keywords.pattern(patterns)?,
        max_items: keywords.integer("maxItems")?,
        min_items: keywords.integer("minItems")?,
        unique_items: keywords.flag("uniqueItems")?.unwrap_or_default(),
        max_properties: keywords.integer("maxProperties")?,
        min_properties: keywords.integer("minProperties")?,
        required: keywords.texts("required")?,
        one_of_values: keywords.array("enum", "an array")?.to_vec(),
        all_of: keywords.branches("allOf", patterns)?,
        any_of: keywords.branches("anyOf", patterns)?,
        one_of: keywords.branches("oneOf", patterns)?,
        not: match keywords.get("not") {
            Some(value) => Some(Box::new(node(value, &keywords.at.child("not"), patterns)?)),
            None => None,
        },
    })
}

/// Reads the keywords of one place; `null` is as good as not there.
struct Reader<'a> {
    fields: &'a Map<String, Value>,
    at: &'a Path,
}

impl<'a> Reader<'a> {
    fn get(&self, keyword: &str) -> Option<&'a Value> {
        self.fields.get(keyword).filter(|value| !value.is_null())
    }

    fn read<T>(
        &self,
        keyword: &str,
        expected: &'static str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, Error> {
        match self.get(keyword) {
            None => Ok(None),
            Some(value) => match read(value) {
                Some(read) => Ok(Some(read)),
                None => Err(wrong(&self.at.child(keyword), expected)),
            },
        }
    }

    fn text(&self, keyword: &str) -> Result<Option<&'a str>, Error> {
        self.read(keyword, "a string", Value::as_str)
    }

    fn flag(&self, keyword: &str) -> Result<Option<bool>, Error> {
        self.read(keyword, "a boolean", Value::as_bool)
    }

    fn number(&self, keyword: &str) -> Result<Option<f64>, Error> {
        self.read(keyword, "a number", Value::as_f64)
    }

    fn integer(&self, keyword: &str) -> Result<Option<i64>, Error> {
        self.read(keyword, "an integer", Value::as_i64)
    }

    fn array(&self, keyword: &str, expected: &'static str) -> Result<&'a [Value], Error> {
        let array = self.read(keyword, expected, Value::as_array)?;
        Ok(array.map_or(&[], Vec::as_slice))
    }

    fn texts(&self, keyword: &str) -> Result<Vec<String>, Error> {
        const EXPECTED: &str = "an array of strings";
        let read = |text: &Value| {
            text.as_str().map(String::from).ok_or_else(|| wrong(&self.at.child(keyword), EXPECTED))
        };
        self.array(keyword, EXPECTED)?.iter().map(read).collect()
    }

    fn holds_fields(&self, keyword: &str) -> bool {
        self.get(keyword).is_some_and(|value| value != &Value::Object(Map::new()))
    }

    fn pattern(&self, patterns: &mut Patterns) -> Result<Option<Pattern>, Error> {
        let text = self.text("pattern")?.filter(|text| !text.is_empty());
        Ok(text.map(|text| patterns.compile(text)))
    }

    fn branches(&self, keyword: &str, patterns: &mut Patterns) -> Result<Vec<Node>, Error> {
        self.array(keyword, "an array of schemas")?
            .iter()
            .enumerate()
            .map(|(index, value)| node(value, &self.at.child(keyword).index(index), patterns))
            .collect()
    }

    fn properties(&self, patterns: &mut Patterns) -> Result<Properties, Error> {
        let Some(fields) = self.read("properties", "an object of schemas", Value::as_object)? else {
            return Ok(Properties::default());
        };
        let at = self.at.child("properties");
        let read: Result<Vec<_>, Error> = fields
            .iter()
            .map(|(name, value)| Ok((name.as_str().into(), node(value, &at.key(name), patterns)?)))
            .collect();
        read.map(Properties::new)
    }

    fn additional(&self, patterns: &mut Patterns) -> Result<Option<Additional>, Error> {
        Ok(match self.get("additionalProperties") {
            None => None,
            Some(Value::Bool(true)) => Some(Additional::Allowed),
            Some(Value::Bool(false)) => Some(Additional::Refused),
            Some(value) => {
                let schema = node(value, &self.at.child("additionalProperties"), patterns)?;
                Some(Additional::Schema(Box::new(schema)))
            }
        })
    }

    /// The schema of the elements, and whether there was an array of schemas instead, which is never allowed.
    fn items(&self, patterns: &mut Patterns) -> Result<(Option<Box<Node>>, bool), Error> {
        Ok(match self.get("items") {
            None => (None, false),
            Some(Value::Array(_)) => (None, true),
            Some(value) => (Some(Box::new(node(value, &self.at.child("items"), patterns)?)), false),
        })
    }

    fn rules(&self) -> Result<Vec<Rule>, Error> {
        const KEYWORD: &str = "x-kubernetes-validations";
        self.array(KEYWORD, "an array of rules")?
            .iter()
            .enumerate()
            .map(|(index, value)| {
                let at = self.at.child(KEYWORD).index(index);
                let Value::Object(fields) = value else {
                    return Err(wrong(&at, "a rule"));
                };
                let rule = Reader { fields, at: &at };
                let text = |keyword| Ok::<_, Error>(rule.text(keyword)?.map(String::from));
                Ok(Rule {
                    rule: text("rule")?.unwrap_or_default(),
                    message: text("message")?,
                    message_expression: text("messageExpression")?,
                    reason: text("reason")?,
                    field_path: text("fieldPath")?,
                    optional_old_self: rule.flag("optionalOldSelf")?,
                })
            })
            .collect()
    }
}

fn wrong(at: &Path, expected: &'static str) -> Error {
    Error::Schema { at: at.to_string(), expected }
}
