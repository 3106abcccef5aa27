//! The schemas of a definition.

use super::Kept;
use super::internal;
use super::spec::{Parts, Spec};
use super::versions::shown_as;
use crate::crd::canonical::canonical;
use serde_json::Value;
use watchkeeper_schema::{FieldError, Path, Schema};

/// Every version has a schema.
pub(super) fn required(spec: &Spec<'_>, kept: &Kept, at: &Path, errors: &mut Vec<FieldError>) {
    if spec.shared.openapi().is_some() || kept.schemas && spec.preserve_unknown {
        return;
    }
    for (index, version) in spec.versions().iter().enumerate() {
        if version.parts.openapi().is_some() || kept.schemas && !version.served {
            continue;
        }
        let at = at.child("versions").index(index).child("schema").child("openAPIV3Schema");
        let detail = if kept.schemas { "because otherwise all fields are pruned" } else { "" };
        errors.push(FieldError::required(&at, detail));
    }
}

/// What is wrong with the schema of a version, or of all.
pub(super) fn check(parts: &Parts<'_>, has_status: bool, at: &Path, errors: &mut Vec<FieldError>) {
    let Some(openapi) = parts.openapi() else {
        return;
    };
    let at = at.child("openAPIV3Schema");
    let schema = match Schema::read(&canonical(openapi)) {
        Ok(schema) => schema,
        Err(error) => {
            errors.push(FieldError::invalid(&at, "", error.to_string()));
            return;
        }
    };
    let field = at.to_string();
    for error in schema.check(&at, has_status) {
        // With a keyword too many at the root, the whole schema is shown.
        let is_about_root = error.field == field && error.detail.starts_with("only [");
        errors.push(if is_about_root {
            shown_as(&at, &internal::schema(openapi), &error.detail)
        } else {
            error
        });
    }
}

/// Whether any schema has a default.
pub(super) fn has_defaults(spec: &Spec<'_>) -> bool {
    let schemas = spec.versions().iter().map(|version| &version.parts).chain([&spec.shared]);
    schemas.filter_map(Parts::openapi).any(has_default)
}

fn has_default(schema: &Value) -> bool {
    match schema {
        Value::Object(fields) => fields.iter().any(|(name, value)| match name.as_str() {
            "default" => !value.is_null(),
            "enum" | "example" => false,
            "properties" | "patternProperties" | "definitions" | "dependencies" => {
                value.as_object().into_iter().flatten().any(|(_, schema)| has_default(schema))
            }
            _ => has_default(value),
        }),
        Value::Array(items) => items.iter().any(has_default),
        _ => false,
    }
}
