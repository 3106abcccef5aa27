//! `/scale`: an object of any kind as an `autoscaling/v1` Scale, and back.

use super::compiled::ScalePaths;
use super::field::{fields_mut, get, object_mut, text};
use serde_json::{Value, json};
use watchkeeper_go::fmt::{type_name, value as plain};
use watchkeeper_go::quote as quoted;
use watchkeeper_schema::{FieldError, Path};

/// The replicas of a Scale that is to be patched, of an object that has none yet.
const UNSET: i64 = i32::MIN as i64;

/// Why there is no Scale.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ScaleError {
    /// The object does not have what the paths promise: an internal error (500, reason `InternalError`).
    #[error("Internal error occurred: {0}")]
    Missing(String),
    /// A field on the way has another type: 500 without a reason.
    #[error("{0}")]
    WrongType(String),
    /// The Scale that was sent cannot be used: a bad request (400).
    #[error("{0}")]
    BadRequest(String),
}

/// The Scale of an object, as a client gets it.
pub(crate) fn read(paths: &ScalePaths, object: &Value) -> Result<Value, ScaleError> {
    match scale(paths, object)? {
        (scale, true) => Ok(scale),
        (_, false) => {
            let path = quoted(&paths.spec);
            Err(ScaleError::Missing(format!("the spec replicas field {path} does not exist")))
        }
    }
}

/// The Scale of an object that was just written; an object without replicas has 0.
pub(crate) fn read_written(paths: &ScalePaths, object: &Value) -> Result<Value, ScaleError> {
    Ok(scale(paths, object).map_err(|error| ScaleError::BadRequest(error.to_string()))?.0)
}

/// The Scale of an object, to be patched or replaced and then given to [`write()`].
pub(crate) fn read_to_write(paths: &ScalePaths, object: &Value) -> Result<Value, ScaleError> {
    let (mut scale, has_replicas) = scale(paths, object)?;
    if !has_replicas {
        scale["spec"]["replicas"] = json!(UNSET);
    }
    Ok(scale)
}

/// The object with the replicas of a Scale. A resourceVersion in the Scale becomes the object's: a precondition.
pub(crate) fn write(paths: &ScalePaths, object: &Value, scale: &Value) -> Result<Value, ScaleError> {
    let replicas = get(scale, "spec").and_then(|spec| get(spec, "replicas")?.as_i64()).unwrap_or_default();
    if replicas == UNSET {
        let path = quoted(&paths.spec);
        return Err(ScaleError::BadRequest(format!("the spec replicas field {path} cannot be empty")));
    }
    let mut object = object.clone();
    set(&mut object, &paths.spec, json!(replicas)).map_err(ScaleError::WrongType)?;
    let version = get(scale, "metadata").map_or("", |metadata| text(metadata, "resourceVersion"));
    if !version.is_empty() {
        object_mut(&mut object, "metadata")["resourceVersion"] = json!(version);
    }
    Ok(object)
}

/// What is wrong with the numbers in an object.
pub(super) fn check(paths: &ScalePaths, object: &Value, status_only: bool) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for path in [&paths.spec, &paths.status].into_iter().skip(usize::from(status_only)) {
        let at = Path::root().child(path);
        match integer(object, path) {
            Err(error) => errors.push(FieldError::invalid(&at, 0, error)),
            Ok(Some(replicas @ ..0)) => {
                errors.push(FieldError::invalid(&at, replicas, "should be a non-negative integer"));
            }
            Ok(Some(replicas)) if replicas > i64::from(i32::MAX) => {
                let detail = format!("should be less than or equal to {}", i32::MAX);
                errors.push(FieldError::invalid(&at, replicas, detail));
            }
            Ok(_) => {}
        }
    }
    if let Some(path) = &paths.selector
        && let Err(error) = string(object, path)
    {
        errors.push(FieldError::invalid(&Path::root().child(path), "", error));
    }
    errors
}

/// The Scale, and whether the object says how many replicas it wants.
fn scale(paths: &ScalePaths, object: &Value) -> Result<(Value, bool), ScaleError> {
    let wanted = integer(object, &paths.spec).map_err(ScaleError::WrongType)?;
    let there = integer(object, &paths.status).map_err(ScaleError::WrongType)?;
    let selector = match &paths.selector {
        Some(path) => string(object, path).map_err(ScaleError::WrongType)?.unwrap_or_default(),
        None => "",
    };
    let mut scale = json!({
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {},
        "spec": {},
        "status": {"replicas": narrow(there.unwrap_or_default())},
    });
    let metadata = get(object, "metadata").unwrap_or(&Value::Null);
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if !text(metadata, field).is_empty() {
            scale["metadata"][field] = json!(text(metadata, field));
        }
    }
    if let Some(replicas) = wanted.map(narrow).filter(|replicas| *replicas != 0) {
        scale["spec"]["replicas"] = json!(replicas);
    }
    if !selector.is_empty() {
        scale["status"]["selector"] = json!(selector);
    }
    Ok((scale, wanted.is_some()))
}

/// A Scale counts in 32 bits.
fn narrow(replicas: i64) -> i32 {
    replicas as i32
}

fn steps(path: &str) -> Vec<&str> {
    path.strip_prefix('.').unwrap_or(path).split('.').collect()
}

/// What a path leads to; nothing if a step of it is not there.
fn find<'a>(object: &'a Value, steps: &[&str]) -> Result<Option<&'a Value>, String> {
    let mut value = object;
    for (index, step) in steps.iter().enumerate() {
        match value {
            Value::Null => return Ok(None),
            Value::Object(fields) => match fields.get(*step) {
                Some(next) => value = next,
                None => return Ok(None),
            },
            other => return Err(accessor_error(&steps[..=index], other, "map[string]interface{}")),
        }
    }
    Ok(Some(value))
}

fn integer(object: &Value, path: &str) -> Result<Option<i64>, String> {
    let steps = steps(path);
    let Some(value) = find(object, &steps)? else {
        return Ok(None);
    };
    value.as_i64().map(Some).ok_or_else(|| accessor_error(&steps, value, "int64"))
}

fn string<'a>(object: &'a Value, path: &str) -> Result<Option<&'a str>, String> {
    let steps = steps(path);
    let Some(value) = find(object, &steps)? else {
        return Ok(None);
    };
    value.as_str().map(Some).ok_or_else(|| accessor_error(&steps, value, "string"))
}

fn accessor_error(steps: &[&str], value: &Value, expected: &str) -> String {
    let (shown, found) = (plain(value), type_name(value));
    format!(".{} accessor error: {shown} is of the type {found}, expected {expected}", steps.join("."))
}

fn set(object: &mut Value, path: &str, value: Value) -> Result<(), String> {
    let steps = steps(path);
    let Some((last, parents)) = steps.split_last() else {
        return Ok(());
    };
    let mut place = object;
    for (index, step) in parents.iter().enumerate() {
        place = fields_mut(place).entry(*step).or_insert_with(|| json!({}));
        if !place.is_object() {
            let at = parents[..=index].join(".");
            return Err(format!("value cannot be set because .{at} is not a map[string]interface{{}}"));
        }
    }
    fields_mut(place).insert((*last).into(), value);
    Ok(())
}
