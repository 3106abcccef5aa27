//! How kube-apiserver shows versions and schemas in errors: in the form it keeps them in memory, every field by its Go
//! name, in the order of declaration, those that are not set as null.

use super::spec::{Parts, Spec};
use crate::crd::field::{flag, get, list, optional_text, text};
use serde_json::{Number, Value, json};
use watchkeeper_go::json as go_json;

/// How a keyword of a schema is kept.
#[derive(Clone, Copy)]
enum Form {
    Text,
    Flag,
    /// Null if it is not there.
    Any,
    Float,
    Texts,
    Schema,
    Schemas,
    Named,
    Items,
    SchemaOrFlag,
    Dependencies,
    Docs,
    Rules,
}

/// The keywords of a schema, by their names in Go.
const KEYWORDS: [(&str, &str, Form); 44] = [
    ("ID", "id", Form::Text),
    ("Schema", "$schema", Form::Text),
    ("Ref", "$ref", Form::Any),
    ("Description", "description", Form::Text),
    ("Type", "type", Form::Text),
    ("Nullable", "nullable", Form::Flag),
    ("Format", "format", Form::Text),
    ("Title", "title", Form::Text),
    ("Default", "default", Form::Any),
    ("Maximum", "maximum", Form::Float),
    ("ExclusiveMaximum", "exclusiveMaximum", Form::Flag),
    ("Minimum", "minimum", Form::Float),
    ("ExclusiveMinimum", "exclusiveMinimum", Form::Flag),
    ("MaxLength", "maxLength", Form::Any),
    ("MinLength", "minLength", Form::Any),
    ("Pattern", "pattern", Form::Text),
    ("MaxItems", "maxItems", Form::Any),
    ("MinItems", "minItems", Form::Any),
    ("UniqueItems", "uniqueItems", Form::Flag),
    ("MultipleOf", "multipleOf", Form::Float),
    ("Enum", "enum", Form::Any),
    ("MaxProperties", "maxProperties", Form::Any),
    ("MinProperties", "minProperties", Form::Any),
    ("Required", "required", Form::Texts),
    ("Items", "items", Form::Items),
    ("AllOf", "allOf", Form::Schemas),
    ("OneOf", "oneOf", Form::Schemas),
    ("AnyOf", "anyOf", Form::Schemas),
    ("Not", "not", Form::Schema),
    ("Properties", "properties", Form::Named),
    ("AdditionalProperties", "additionalProperties", Form::SchemaOrFlag),
    ("PatternProperties", "patternProperties", Form::Named),
    ("Dependencies", "dependencies", Form::Dependencies),
    ("AdditionalItems", "additionalItems", Form::SchemaOrFlag),
    ("Definitions", "definitions", Form::Named),
    ("ExternalDocs", "externalDocs", Form::Docs),
    ("Example", "example", Form::Any),
    ("XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields", Form::Any),
    ("XEmbeddedResource", "x-kubernetes-embedded-resource", Form::Flag),
    ("XIntOrString", "x-kubernetes-int-or-string", Form::Flag),
    ("XListMapKeys", "x-kubernetes-list-map-keys", Form::Texts),
    ("XListType", "x-kubernetes-list-type", Form::Any),
    ("XMapType", "x-kubernetes-map-type", Form::Any),
    ("XValidations", "x-kubernetes-validations", Form::Rules),
];

/// The versions of a spec, without what all of them say.
pub(super) fn versions(spec: &Spec<'_>) -> String {
    let Some(versions) = &spec.versions else {
        return "null".into();
    };
    array(versions.iter().map(|version| {
        object([
            ("Name", string(version.name)),
            ("Served", version.served.to_string()),
            ("Storage", version.storage.to_string()),
            ("Deprecated", version.deprecated.to_string()),
            ("DeprecationWarning", version.warning.map_or_else(null, string)),
            ("Schema", version.parts.schema.map_or_else(null, |_| validation(&version.parts))),
            ("Subresources", version.parts.subresources.map_or_else(null, subresources)),
            ("AdditionalPrinterColumns", version.parts.columns.map_or_else(null, columns)),
            ("SelectableFields", version.parts.selectable.map_or_else(null, selectable)),
        ])
    }))
}

/// A schema.
pub(super) fn schema(openapi: &Value) -> String {
    object(KEYWORDS.iter().map(|(name, keyword, form)| (*name, shown(openapi, keyword, *form))))
}

fn validation(parts: &Parts<'_>) -> String {
    object([("OpenAPIV3Schema", parts.openapi().map_or_else(null, schema))])
}

fn subresources(subresources: &Value) -> String {
    let status = get(subresources, "status").map_or_else(null, |_| "{}".into());
    let scale = get(subresources, "scale").map_or_else(null, |scale| {
        object([
            ("SpecReplicasPath", string(text(scale, "specReplicasPath"))),
            ("StatusReplicasPath", string(text(scale, "statusReplicasPath"))),
            ("LabelSelectorPath", optional_text(scale, "labelSelectorPath").map_or_else(null, string)),
        ])
    });
    object([("Status", status), ("Scale", scale)])
}

fn columns(columns: &[Value]) -> String {
    array(columns.iter().map(|column| {
        let priority = get(column, "priority").and_then(Value::as_i64).unwrap_or_default();
        object([
            ("Name", string(text(column, "name"))),
            ("Type", string(text(column, "type"))),
            ("Format", string(text(column, "format"))),
            ("Description", string(text(column, "description"))),
            ("Priority", priority.to_string()),
            ("JSONPath", string(text(column, "jsonPath"))),
        ])
    }))
}

fn selectable(fields: &[Value]) -> String {
    array(fields.iter().map(|field| object([("JSONPath", string(text(field, "jsonPath")))])))
}

fn shown(schema: &Value, keyword: &str, form: Form) -> String {
    match form {
        Form::Text => return string(text(schema, keyword)),
        Form::Flag => return flag(schema, keyword).to_string(),
        _ => {}
    }
    let Some(value) = get(schema, keyword) else {
        return null();
    };
    match form {
        Form::Float => float(value),
        Form::Schema => self::schema(value),
        Form::Schemas => schemas(value),
        Form::Named => {
            let named = value.as_object().into_iter().flatten();
            object(named.map(|(name, schema)| (name.as_str(), self::schema(schema))))
        }
        Form::Items => match value {
            Value::Array(_) => object([("Schema", null()), ("JSONSchemas", schemas(value))]),
            _ => object([("Schema", self::schema(value)), ("JSONSchemas", null())]),
        },
        Form::SchemaOrFlag => match value {
            Value::Bool(allows) => object([("Allows", allows.to_string()), ("Schema", null())]),
            _ => object([("Allows", "true".into()), ("Schema", self::schema(value))]),
        },
        Form::Dependencies => {
            let dependencies = value.as_object().into_iter().flatten();
            object(dependencies.map(|(name, dependency)| {
                let (schema, property) = match dependency {
                    Value::Array(_) => (null(), go_json::encode(dependency)),
                    _ => (self::schema(dependency), null()),
                };
                (name.as_str(), object([("Schema", schema), ("Property", property)]))
            }))
        }
        Form::Docs => {
            object([("Description", string(text(value, "description"))), ("URL", string(text(value, "url")))])
        }
        Form::Rules => array(list(schema, keyword).iter().map(rule)),
        Form::Text | Form::Flag | Form::Any | Form::Texts => go_json::encode(value),
    }
}

fn schemas(value: &Value) -> String {
    array(value.as_array().into_iter().flatten().map(schema))
}

fn rule(rule: &Value) -> String {
    let optional = |field| get(rule, field).map_or_else(null, go_json::encode);
    object([
        ("Rule", string(text(rule, "rule"))),
        ("Message", string(text(rule, "message"))),
        ("MessageExpression", string(text(rule, "messageExpression"))),
        ("Reason", optional("reason")),
        ("FieldPath", string(text(rule, "fieldPath"))),
        ("OptionalOldSelf", optional("optionalOldSelf")),
    ])
}

/// A number kept as a float: `10` and `10.0` are shown alike.
fn float(value: &Value) -> String {
    go_json::encode(&json!(value.as_f64().and_then(Number::from_f64)))
}

fn null() -> String {
    "null".into()
}

fn string(text: &str) -> String {
    go_json::encode(&Value::from(text))
}

fn array(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(","))
}

fn object<'a>(fields: impl IntoIterator<Item = (&'a str, String)>) -> String {
    let fields: Vec<String> =
        fields.into_iter().map(|(name, value)| format!("{}:{value}", string(name))).collect();
    format!("{{{}}}", fields.join(","))
}
