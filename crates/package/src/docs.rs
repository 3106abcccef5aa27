//! The reference of the API, as Markdown.

use std::fmt::Write as _;

use serde_json::Value;
use watchkeeper_schema::yaml;

use crate::Renderer;
use crate::definition::{Definition, Version};
use crate::error::Error;
use crate::file::{File, HEADER};
use crate::operator::Operator;
use crate::walk::{self, Field};

pub(crate) const RENDERER: Renderer =
    Renderer { name: "docs", about: "the reference of the API, as Markdown", owns: &["docs/"], render };

fn render(operator: &Operator<'_>) -> Result<Vec<File>, Error> {
    let mut text = format!("<!-- {HEADER} -->\n# {}\n\n{}\n", operator.name(), sentence(&operator.about()));
    for definition in &operator.definitions {
        for version in definition.versions() {
            kind(operator, definition, version, &mut text);
        }
    }
    rights(operator, &mut text);
    Ok(vec![File::generated("docs/api.md", text)])
}

fn kind(operator: &Operator<'_>, definition: &Definition<'_>, version: Version<'_>, text: &mut String) {
    let api_version = format!("{}/{}", definition.group, version.name);
    let _ = write!(text, "\n## {} ({api_version})\n\n", definition.kind);
    if let Some(warning) = version.value.get("deprecationWarning").and_then(Value::as_str) {
        let _ = write!(text, "**Deprecated:** {}\n\n", sentence(warning));
    } else if version.is("deprecated") {
        text.push_str("**Deprecated.**\n\n");
    }
    if !version.is("served") {
        text.push_str("This version is not served.\n\n");
    }
    let schema = version.schema().unwrap_or(&Value::Null);
    let about = ["/properties/spec/description", "/description"];
    // What derives make up says nothing.
    let about = about
        .iter()
        .filter_map(|at| schema.pointer(at)?.as_str())
        .find(|text| !text.starts_with("Auto-generated"));
    if let Some(about) = about {
        let _ = write!(text, "{}\n\n", sentence(about));
    }
    let names = definition.value.pointer("/spec/names/shortNames").and_then(Value::as_array);
    let short = names.into_iter().flatten().filter_map(Value::as_str).map(|name| format!(", `{name}`"));
    let scope = if definition.namespaced { "in namespaces" } else { "in no namespace" };
    let _ = writeln!(
        text,
        "`kubectl get {}`{}; objects live {scope}.",
        definition.plural,
        short.collect::<String>()
    );
    columns(version, text);
    for (title, field) in [("Spec", "spec"), ("Status", "status")] {
        let Some(schema) = schema.pointer(&format!("/properties/{field}")) else { continue };
        let fields = walk::fields(schema);
        if fields.is_empty() {
            continue;
        }
        let _ = write!(text, "\n### {title}\n\n| field | type | |\n|---|---|---|\n");
        for Field { path, schema, required } in
            fields.iter().filter(|field| !field.path.ends_with(['}', ']']))
        {
            let _ =
                writeln!(text, "| `{field}.{path}` | {} | {} |", type_of(schema), cell(schema, *required));
        }
        rules(schema, field, text);
    }
    sample(operator, definition, &api_version, text);
}

fn columns(version: Version<'_>, text: &mut String) {
    let columns = version.value.get("additionalPrinterColumns").and_then(Value::as_array);
    let names = columns.into_iter().flatten().filter_map(|column| column.get("name")?.as_str());
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    if !names.is_empty() {
        let _ = writeln!(text, "It shows {}.", names.join(", "));
    }
}

/// The type of a field in a few words.
fn type_of(schema: &Value) -> String {
    if schema.get("x-kubernetes-int-or-string").and_then(Value::as_bool) == Some(true) {
        return "integer or string".to_owned();
    }
    let of = |key: &str| schema.get(key).filter(|inner| inner.is_object()).map(type_of);
    let name = schema.get("type").and_then(Value::as_str).unwrap_or("any");
    match name {
        "array" => format!("list of {}", of("items").unwrap_or_else(|| "any".to_owned())),
        "object" => of("additionalProperties")
            .map_or_else(|| "object".to_owned(), |values| format!("map of {values}")),
        name => name.to_owned(),
    }
}

/// What is said about a field, its default and its limits.
fn cell(schema: &Value, required: bool) -> String {
    let mut parts = Vec::new();
    if required {
        parts.push("**Required.**".to_owned());
    }
    if let Some(about) = schema.get("description").and_then(Value::as_str) {
        parts.push(sentence(about));
    }
    if let Some(default) = schema.get("default") {
        parts.push(format!("Default: `{default}`."));
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        let values: Vec<String> = values
            .iter()
            .filter(|value| !value.is_null())
            .map(|value| format!("`{}`", plain(value)))
            .collect();
        parts.push(format!("One of {}.", values.join(", ")));
    }
    let limits = [
        ("minimum", "at least"),
        ("maximum", "at most"),
        ("minLength", "characters: at least"),
        ("maxLength", "characters: at most"),
        ("minItems", "items: at least"),
        ("maxItems", "items: at most"),
        ("maxProperties", "entries: at most"),
        ("pattern", "matches"),
        ("format", "format"),
    ];
    let limits: Vec<String> = limits
        .iter()
        .filter_map(|(key, words)| Some(format!("{words} `{}`", plain(schema.get(*key)?))))
        .collect();
    if !limits.is_empty() {
        parts.push(format!("({})", limits.join(", ")));
    }
    parts.join(" ").replace('|', "\\|")
}

/// The rules that the server checks, of all fields below a schema.
fn rules(schema: &Value, field: &str, text: &mut String) {
    let mut found = Vec::new();
    let here = Field { path: String::new(), schema, required: false };
    for Field { path, schema, .. } in std::iter::once(here).chain(walk::fields(schema)) {
        let path = if path.is_empty() { field.to_owned() } else { format!("{field}.{path}") };
        for rule in schema.get("x-kubernetes-validations").and_then(Value::as_array).into_iter().flatten() {
            let rule_text = rule.get("rule").map(plain).unwrap_or_default();
            let message = rule
                .get("message")
                .map(plain)
                .map(|text| format!(": {}", sentence(&text)))
                .unwrap_or_default();
            found.push(format!("- `{path}`: `{rule_text}`{message}"));
        }
    }
    if !found.is_empty() {
        let _ = write!(text, "\nRules:\n\n{}\n", found.join("\n"));
    }
}

fn sample(operator: &Operator<'_>, definition: &Definition<'_>, api_version: &str, text: &mut String) {
    let is_it = |sample: &&Value| {
        sample.get("kind").and_then(Value::as_str) == Some(definition.kind)
            && sample.get("apiVersion").and_then(Value::as_str) == Some(api_version)
    };
    if let Some(sample) = operator.samples().into_iter().find(is_it) {
        let _ = write!(text, "\n### Example\n\n```yaml\n{}```\n", yaml::encode(sample));
    }
}

/// What the operator may do in a cluster, and why.
fn rights(operator: &Operator<'_>, text: &mut String) {
    let mut rights = operator.description.rights.iter().peekable();
    if rights.peek().is_none() {
        return;
    }
    text.push_str(
        "\n## Rights of the operator\n\n| group | resource | verbs | because |\n|---|---|---|---|\n",
    );
    for right in rights {
        let group = if right.resource.group.is_empty() { "(core)" } else { &right.resource.group };
        let named = match right.names.as_slice() {
            [] => String::new(),
            names => format!(" named {}", names.join(", ")),
        };
        let because = right.because.join("; ").replace('|', "\\|");
        let _ = writeln!(text, "| {group} | `{}`{named} | {} | {because} |", right.target(), right.verbs);
    }
    if !operator.description.rights.complete() {
        text.push_str("\nThe program also sends requests that it has not declared; whoever installs it has to add the rights for them.\n");
    }
}

/// A text as one line that ends with a full stop.
fn sentence(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ").replace('<', "&lt;");
    if line.is_empty() || line.ends_with(['.', '!', '?', ':']) { line } else { format!("{line}.") }
}

/// A value as people write it: texts without quotes, whole numbers without a fraction.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => match number.as_f64() {
            Some(float) if float.fract() == 0.0 && float.abs() < 1e15 => format!("{float:.0}"),
            _ => number.to_string(),
        },
        other => other.to_string(),
    }
}
