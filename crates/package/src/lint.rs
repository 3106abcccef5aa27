use std::fmt;

use serde_json::Value;
use watchkeeper_schema::{Path, Schema};

use crate::definition::{Definition, Version};
use crate::walk::{self, Field};

/// Above this, `kubectl apply` without `--server-side` fails: it keeps the object in an annotation.
const CLIENT_SIDE_LIMIT: usize = 256 * 1024;
/// Above this, a definition does not fit into etcd with its usual settings.
const STORAGE_LIMIT: usize = 1024 * 1024;
/// Formats of numbers that Kubernetes knows. Others are passed over, and the server warns of them.
const NUMBER_FORMATS: [&str; 4] = ["int32", "int64", "float", "double"];

/// A mistake in a definition, or something that is missing in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The severity.
    pub severity: Severity,
    /// The definition and its version: `shops.example.com v1`.
    pub definition: String,
    /// The field as an object has it, `spec.maxSize`; empty for the definition as a whole.
    pub field: String,
    /// The message: the problem, and what to do.
    pub message: String,
}

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// A server refuses the definition, or the change breaks clients.
    Error,
    /// The definition works, and could be better.
    Warning,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        write!(f, "{severity}: {}: ", self.definition)?;
        if !self.field.is_empty() {
            let rust = walk::rust(&self.field);
            match rust == self.field {
                true => write!(f, "{}: ", self.field)?,
                false => write!(f, "{} (in Rust {rust}): ", self.field)?,
            }
        }
        f.write_str(&self.message)
    }
}

/// Looks for mistakes in a definition. Errors come first.
pub fn lint(definition: &Definition<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    size(definition, &mut findings);
    if !definition.versions().any(|version| version.is("storage")) {
        findings.push(whole(definition, Severity::Error, "no version is stored: set storage on one"));
    }
    for version in definition.versions() {
        let place = format!("{} {}", definition.name, version.name);
        let mut add = |severity, field: &str, message: String| {
            findings.push(Finding { severity, definition: place.clone(), field: field.to_owned(), message });
        };
        of_version(version, &mut add);
    }
    findings.sort_by_key(|finding| finding.severity);
    findings
}

fn whole(definition: &Definition<'_>, severity: Severity, message: impl Into<String>) -> Finding {
    Finding {
        severity,
        definition: definition.name.to_owned(),
        field: String::new(),
        message: message.into(),
    }
}

fn size(definition: &Definition<'_>, findings: &mut Vec<Finding>) {
    let bytes = definition.value.to_string().len();
    let (severity, limit) = match bytes {
        bytes if bytes > STORAGE_LIMIT => (Severity::Error, "more than etcd takes"),
        bytes if bytes > CLIENT_SIDE_LIMIT => {
            (Severity::Warning, "more than `kubectl apply` takes without --server-side")
        }
        _ => return,
    };
    let message = format!(
        "it has {bytes} bytes, {limit}: shorten descriptions, or leave the schemas of embedded types open"
    );
    findings.push(whole(definition, severity, message));
}

fn of_version(version: Version<'_>, add: &mut impl FnMut(Severity, &str, String)) {
    use Severity::{Error, Warning};
    let Some(schema) = version.schema() else {
        add(Error, "", "it has no schema: give the spec a type that derives one".to_owned());
        return;
    };
    match Schema::read(schema) {
        Err(error) => add(Error, "", format!("its schema cannot be read: {error}")),
        Ok(read) => {
            for error in read.check(&Path::root(), version.has_status()) {
                add(Error, "", format!("a server refuses it: {error}"));
            }
        }
    }
    if version.value.get("additionalPrinterColumns").and_then(Value::as_array).is_none_or(Vec::is_empty) {
        add(
            Warning,
            "",
            "it has no printer columns: `kubectl get` shows names only; add printcolumn(..)".to_owned(),
        );
    }
    if let Some(status) = schema.pointer("/properties/status") {
        if !version.has_status() {
            let message =
                "status is no subresource: whoever writes the spec writes it too; add status = \"..\"";
            add(Error, "status", message.to_owned());
        }
        if status.pointer("/properties/observedGeneration").is_none() {
            let message =
                "there is no observedGeneration: nobody can tell whether the status is about the newest spec";
            add(Warning, "status", message.to_owned());
        }
    }
    for Field { path, schema, required } in walk::fields(schema) {
        if path == "metadata" || path == "apiVersion" || path == "kind" {
            continue;
        }
        field(&path, schema, required, add);
    }
}

fn field(path: &str, schema: &Value, required: bool, add: &mut impl FnMut(Severity, &str, String)) {
    use Severity::{Error, Warning};
    let text = |key: &str| schema.get(key).and_then(Value::as_str);
    let flag = |key: &str| schema.get(key).and_then(Value::as_bool) == Some(true);
    let is_item = path.ends_with([']', '}']);
    let is_condition = path.ends_with("conditions") || path.contains("conditions[]");
    if !is_item
        && !is_condition
        && !matches!(path, "spec" | "status")
        && text("description").is_none_or(str::is_empty)
    {
        add(
            Warning,
            path,
            "it has no description: `kubectl explain` shows nothing; add a doc comment".to_owned(),
        );
    }
    if path.ends_with("conditions") && text("type") == Some("array") {
        let keys = schema.get("x-kubernetes-list-map-keys");
        if text("x-kubernetes-list-type") != Some("map") || keys != Some(&serde_json::json!(["type"])) {
            let message = "conditions are no map by type: two writers overwrite each other; add #[schemars(extend(\"x-kubernetes-list-type\" = \"map\", \"x-kubernetes-list-map-keys\" = [\"type\"]))]";
            add(Error, path, message.to_owned());
        }
    }
    if flag("nullable") && required {
        let message = "it is required and may be null: make it an Option with #[serde(default, skip_serializing_if = \"Option::is_none\")], or no Option";
        add(Error, path, message.to_owned());
    }
    if matches!(text("type"), Some("integer" | "number"))
        && let Some(format) = text("format").filter(|format| !NUMBER_FORMATS.contains(format))
    {
        let message =
            format!("Kubernetes has no format {format}: use i32 or i64, with #[schemars(range(min = 0))]");
        add(Warning, path, message);
    }
    if schema.get("x-kubernetes-validations").is_some() {
        for (inside, limit) in unbounded(schema) {
            let at = if inside.is_empty() { path.to_owned() } else { format!("{path}.{inside}") };
            let message = format!(
                "a rule of {path} reads it and it has no {limit}: the server may refuse the rule as too costly"
            );
            add(Warning, &at, message);
        }
    }
}

/// Strings, lists and maps without a limit, of a schema and all below it.
fn unbounded(schema: &Value) -> Vec<(String, &'static str)> {
    let here = Field { path: String::new(), schema, required: false };
    let all = std::iter::once(here).chain(walk::fields(schema));
    all.filter_map(|Field { path, schema, .. }| {
        let lacks = |key: &str| schema.get(key).is_none();
        let limit = match schema.get("type").and_then(Value::as_str)? {
            "string" if lacks("maxLength") && lacks("enum") && lacks("format") => "maxLength",
            "array" if lacks("maxItems") => "maxItems",
            "object" if schema.get("additionalProperties").is_some() && lacks("maxProperties") => {
                "maxProperties"
            }
            _ => return None,
        };
        Some((path, limit))
    })
    .collect()
}
