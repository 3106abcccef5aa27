//! `selectableFields`.

use super::Kept;
use super::spec::Spec;
use crate::crd::canonical::canonical;
use crate::crd::field::{get, text};
use serde_json::Value;
use std::collections::HashSet;
use watchkeeper_schema::{FieldError, Path};

/// The most fields that field selectors of a version may use.
const MAX: usize = 8;

/// What is wrong with the selectable fields of a version (of all versions, if the name is empty).
pub(super) fn check(
    fields: &[Value],
    openapi: &Value,
    kept: &Kept,
    version: &str,
    at: &Path,
    errors: &mut Vec<FieldError>,
) {
    let mut seen = HashSet::new();
    for (index, field) in fields.iter().enumerate() {
        let at = at.index(index).child("jsonPath");
        let path = text(field, "jsonPath");
        if path.is_empty() {
            errors.push(FieldError::required(&at, ""));
            continue;
        }
        let found = match find(path, openapi) {
            Ok(found) => found,
            Err(problem) => {
                errors.push(FieldError::invalid(&at, path, format!("is an invalid path: {problem}")));
                continue;
            }
        };
        if found.is_in_metadata {
            errors.push(FieldError::invalid(&at, path, "must not point to fields in metadata"));
        }
        if !matches!(text(found.schema, "type"), "string" | "boolean" | "integer") {
            let detail = "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.";
            errors.push(FieldError::invalid(&at, path, detail));
        }
        if !seen.insert(found.at.to_string()) {
            errors.push(FieldError::duplicate(&at, path));
        }
    }
    if seen.len() > MAX && !kept.selectable.iter().any(|kept| kept == version) {
        errors.push(FieldError::too_many(at, seen.len(), MAX as i64));
    }
}

/// The versions that have too many selectable fields, as they had before; the empty name if all have.
pub(super) fn unchanged_excess(new: &Spec<'_>, old: &Spec<'_>) -> Vec<String> {
    let unchanged = |new: Option<&[Value]>, old: Option<&[Value]>| {
        let (new, old) = (new.unwrap_or_default(), old.unwrap_or_default());
        old.len() > MAX && new.iter().map(canonical).eq(old.iter().map(canonical))
    };
    let mut kept = Vec::new();
    if unchanged(new.shared.selectable, old.shared.selectable) {
        kept.push(String::new());
    }
    for version in new.versions() {
        let before = old.versions().iter().rfind(|before| before.name == version.name);
        if before.is_some_and(|before| unchanged(version.parts.selectable, before.parts.selectable)) {
            kept.push(version.name.into());
        }
    }
    kept
}

/// Where a path leads in a schema.
struct Found<'a> {
    at: Path,
    schema: &'a Value,
    is_in_metadata: bool,
}

/// Follows a path through a schema: `.spec.color`.
fn find<'a>(path: &str, openapi: &'a Value) -> Result<Found<'a>, String> {
    const NOWHERE: &str = "does not refer to a valid field";
    let mut found = Found { at: Path::root(), schema: openapi, is_in_metadata: false };
    let mut tokens = tokens(path).into_iter();
    while let Some(token) = tokens.next() {
        match token {
            "." => {}
            "[" => return Err("array notation is not allowed".into()),
            other => return Err(format!("expected [ or . but got: {other}")),
        }
        let name = tokens.next().ok_or("unexpected end of JSON path")?;
        let properties = get(found.schema, "properties").and_then(Value::as_object);
        if let Some(properties) = properties.filter(|properties| !properties.is_empty()) {
            found.is_in_metadata |= found.at.is_root() && name == "metadata";
            found.at = found.at.child(name);
            found.schema = properties.get(name).ok_or(NOWHERE)?;
        } else {
            found.at = found.at.key(name);
            found.schema = get(found.schema, "additionalProperties").ok_or(NOWHERE)?;
        }
    }
    Ok(found)
}

/// The delimiters of a path, and what stands between them. Delimiters in single quotes do not count.
fn tokens(path: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = path;
    while let Some(first) = rest.chars().next() {
        let bytes = rest.as_bytes();
        let end = match first {
            '.' | '[' | ']' => 1,
            '\'' => {
                let closing = (1..bytes.len()).find(|at| bytes[*at] == b'\'' && bytes[*at - 1] != b'\\');
                closing.map_or(rest.len(), |at| at + 1)
            }
            _ => rest.find(['.', '[', ']']).unwrap_or(rest.len()),
        };
        let (token, after) = rest.split_at(end);
        tokens.push(token);
        rest = after;
    }
    tokens
}
