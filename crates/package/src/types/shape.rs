//! Schemas as types.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::Value;

use super::ident;

/// The names that the fields of a kind without a `spec` cannot have: the type of the object has fields of these names.
const TAKEN: [&str; 4] = ["api_version", "kind", "metadata", "status"];

/// A module that is being written: types in the order in which they are met, each with a name of its own.
pub(crate) struct Module {
    declarations: Vec<String>,
    names: BTreeSet<String>,
}

/// The type of a field.
struct Type {
    name: String,
    /// Whether there is a value to begin with.
    has_default: bool,
    /// Whether the schema that is derived has to say that anything may be in it.
    is_open: bool,
}

impl Type {
    fn new(name: impl Into<String>, has_default: bool) -> Self {
        Self { name: name.into(), has_default, is_open: false }
    }

    fn open(name: &str) -> Self {
        Self { name: name.to_owned(), has_default: true, is_open: true }
    }
}

impl Module {
    pub(crate) fn new(kind: &str) -> Self {
        // Names that the generated code uses.
        let names = [
            kind,
            "BTreeMap",
            "IntOrString",
            "Option",
            "String",
            "Vec",
            "Box",
            "Some",
            "None",
            "Ok",
            "Err",
            "Result",
        ];
        Self { declarations: Vec::new(), names: names.map(str::to_owned).into() }
    }

    pub(crate) fn has_maps(&self) -> bool {
        self.declarations.iter().any(|text| text.contains("BTreeMap<"))
    }

    pub(crate) fn has_int_or_string(&self) -> bool {
        self.declarations.iter().any(|text| text.contains("IntOrString"))
    }

    pub(crate) fn text(&self) -> String {
        self.declarations.join("\n")
    }

    /// Adds a struct of this name, with an attribute or that of a part.
    pub(crate) fn root(&mut self, name: &str, schema: &Value, attribute: Option<&str>) {
        self.names.insert(name.to_owned());
        self.structure(name, schema, attribute, &[]);
    }

    /// Adds a struct of the fields that objects of a kind have in the place of a `spec`.
    pub(crate) fn fields(&mut self, name: &str, schema: &Value, attribute: &str) {
        self.names.insert(name.to_owned());
        self.structure(name, schema, Some(attribute), &TAKEN);
    }

    /// A name for a type that no other has.
    fn unused(&mut self, name: &str) -> String {
        let mut tried = name.to_owned();
        let mut number = 2;
        while !self.names.insert(tried.clone()) {
            tried = format!("{name}{number}");
            number += 1;
        }
        tried
    }

    /// Adds a struct whose fields have other names than those that are taken. Whether there is a value to begin with.
    fn structure(&mut self, name: &str, schema: &Value, attribute: Option<&str>, taken: &[&str]) -> bool {
        // The place of the declaration is that of its name, before the types of its fields.
        let place = self.declarations.len();
        self.declarations.push(String::new());
        let required: Vec<&str> = schema
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let mut fields = String::new();
        let mut taken: BTreeSet<String> = taken.iter().map(|&name| name.to_owned()).collect();
        let mut has_default = true;
        for (key, inner) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let mut ident = ident::field(key);
            while !taken.insert(ident.clone()) {
                ident.push('_');
            }
            let of = self.type_of(&format!("{name}{}", ident::type_name(key)), inner);
            let may_be_null = inner.get("nullable").and_then(Value::as_bool) == Some(true);
            let is_required = required.contains(&key.as_str()) && !may_be_null;
            fields.push_str(&comment(inner, "    "));
            let mut serde = Vec::new();
            if ident::camel(&ident) != *key {
                serde.push(format!("rename = {key:?}"));
            }
            if !is_required {
                serde.push("default".to_owned());
                serde.push("skip_serializing_if = \"Option::is_none\"".to_owned());
            }
            if !serde.is_empty() {
                let _ = writeln!(fields, "    #[serde({})]", serde.join(", "));
            }
            if of.is_open {
                fields.push_str("    #[schemars(extend(\"x-kubernetes-preserve-unknown-fields\" = true))]\n");
            }
            let _ = match is_required {
                true => writeln!(fields, "    pub {ident}: {},", of.name),
                false => writeln!(fields, "    pub {ident}: Option<{}>,", of.name),
            };
            has_default &= !is_required || of.has_default;
        }
        if is_open(schema) {
            fields.push_str("    /// Whatever else there is.\n    #[serde(flatten)]\n    pub other: BTreeMap<String, serde_json::Value>,\n");
        }
        let derives = if has_default { "Default, PartialEq" } else { "PartialEq" };
        let attribute = attribute.unwrap_or("#[watchkeeper::schema]\n");
        self.declarations[place] = format!(
            "{}{attribute}#[derive({derives})]\npub struct {name} {{\n{fields}}}\n",
            comment(schema, "")
        );
        has_default
    }

    /// The type for a schema; what has to be declared for it gets this name, or one like it.
    fn type_of(&mut self, name: &str, schema: &Value) -> Type {
        if is_true(schema, "x-kubernetes-int-or-string") {
            return Type::new("IntOrString", true);
        }
        if is_true(schema, "x-kubernetes-embedded-resource") {
            return Type::open("serde_json::Value");
        }
        let text = |key: &str| schema.get(key).and_then(Value::as_str);
        match text("type") {
            Some("string") => self.string(name, schema),
            Some("boolean") => Type::new("bool", true),
            Some("integer") if text("format") == Some("int32") => Type::new("i32", true),
            Some("integer") => Type::new("i64", true),
            // As it was written: 1 is not 1.0 to whoever compares.
            Some("number") => Type::new("serde_json::Number", false),
            Some("array") => {
                let of = self.type_of(name, schema.get("items").unwrap_or(&Value::Null));
                Type { name: format!("Vec<{}>", of.name), has_default: true, is_open: false }
            }
            Some("object") => self.object(name, schema),
            _ => Type::open("serde_json::Value"),
        }
    }

    fn object(&mut self, name: &str, schema: &Value) -> Type {
        if schema.get("properties").and_then(Value::as_object).is_some_and(|fields| !fields.is_empty()) {
            let name = self.unused(name);
            let has_default = self.structure(&name, schema, None, &[]);
            return Type::new(name, has_default);
        }
        match schema.get("additionalProperties") {
            Some(values) if values.is_object() => {
                let of = self.type_of(name, values);
                Type::new(format!("BTreeMap<String, {}>", of.name), true)
            }
            _ => Type::open("BTreeMap<String, serde_json::Value>"),
        }
    }

    /// A text, or an enumeration if only some texts are possible.
    fn string(&mut self, name: &str, schema: &Value) -> Type {
        let Some(values) = schema.get("enum").and_then(Value::as_array) else {
            return Type::new("String", true);
        };
        let values: Vec<&str> = values.iter().filter_map(Value::as_str).collect();
        if values.is_empty() {
            return Type::new("String", true);
        }
        let name = self.unused(name);
        let mut taken = BTreeSet::new();
        let mut variants = String::new();
        for value in values {
            let mut variant = ident::type_name(value);
            while !taken.insert(variant.clone()) {
                variant.push('_');
            }
            if variant != *value {
                let _ = writeln!(variants, "    #[serde(rename = {value:?})]");
            }
            let _ = writeln!(variants, "    {variant},");
        }
        let about = comment(schema, "");
        let text = format!(
            "{about}#[watchkeeper::schema]\n#[derive(Copy, PartialEq, Eq)]\npub enum {name} {{\n{variants}}}\n"
        );
        self.declarations.push(text);
        Type::new(name, false)
    }
}

/// Whether a schema keeps fields that it does not name.
pub(crate) fn is_open(schema: &Value) -> bool {
    is_true(schema, "x-kubernetes-preserve-unknown-fields")
}

fn is_true(schema: &Value, key: &str) -> bool {
    schema.get(key).and_then(Value::as_bool) == Some(true)
}

/// The description of a schema as a doc comment. What would be taken for an example and be compiled is not left as it is.
fn comment(schema: &Value, indent: &str) -> String {
    let text = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    let lines = text.lines().map(|line| line.trim().replace("```", "'''").replace('\t', " "));
    lines.map(|line| format!("{indent}/// {line}").trim_end().to_owned() + "\n").collect()
}
