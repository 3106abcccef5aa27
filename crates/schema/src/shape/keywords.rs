use super::Patch;
use crate::Error;
use crate::trail::Trail;
use serde_json::{Map as Fields, Value};

/// What the keywords of a list say about its elements.
pub(super) enum Elements<'a> {
    Whole,
    Set,
    Map(Vec<&'a str>),
}

/// `x-kubernetes-list-type` decides; without it the strategy of strategic merge patch does.
pub(super) fn keys<'a>(keywords: &'a Fields<String, Value>, at: &Trail<'_>) -> Result<Elements<'a>, Error> {
    match text(keywords, "x-kubernetes-list-type", at)? {
        Some("atomic") => return Ok(Elements::Whole),
        Some("set") => return Ok(Elements::Set),
        Some("map") => {
            let Some(Value::Array(names)) = keywords.get("x-kubernetes-list-map-keys") else {
                return Err(wrong(at, "the keys of a list map"));
            };
            let names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
            return Ok(if names.is_empty() { Elements::Set } else { Elements::Map(names) });
        }
        Some(_) => return Err(wrong(at, "a known list type")),
        None => {}
    }
    match text(keywords, "x-kubernetes-patch-strategy", at)? {
        Some("merge" | "merge,retainKeys") => {
            let key = text(keywords, "x-kubernetes-patch-merge-key", at)?;
            Ok(key.map_or(Elements::Set, |key| Elements::Map(vec![key])))
        }
        _ => Ok(Elements::Whole),
    }
}

pub(super) fn patch(property: &Value, at: &Trail<'_>) -> Result<Patch, Error> {
    let Value::Object(keywords) = property else {
        return Ok(Patch::default());
    };
    let strategies = text(keywords, "x-kubernetes-patch-strategy", at)?.unwrap_or_default();
    let mut others = strategies.split(',').filter(|strategy| *strategy != "retainKeys");
    let strategy = others.next().unwrap_or_default();
    if others.next().is_some() {
        return Err(wrong(at, "a known patch strategy"));
    }
    let merge_key = text(keywords, "x-kubernetes-patch-merge-key", at)?.unwrap_or_default();
    Ok(Patch { strategy: strategy.into(), merge_key: merge_key.into() })
}

/// The last segment of `$ref`, which may stand inside of an `allOf` of one.
pub(super) fn reference(value: &Value) -> Option<&str> {
    let own = value.get("$ref").and_then(Value::as_str);
    let name = own.or_else(|| match value.get("allOf").and_then(Value::as_array).map(Vec::as_slice) {
        Some([one]) => one.get("$ref").and_then(Value::as_str),
        _ => None,
    })?;
    name.rsplit('/').next().filter(|name| !name.is_empty())
}

pub(super) fn map_type(value: &Value, at: &Trail<'_>) -> Result<Option<bool>, Error> {
    value.as_object().map_or(Ok(None), |keywords| map_type_of(keywords, at))
}

pub(super) fn map_type_of(keywords: &Fields<String, Value>, at: &Trail<'_>) -> Result<Option<bool>, Error> {
    match text(keywords, "x-kubernetes-map-type", at)? {
        None => Ok(None),
        Some("atomic") => Ok(Some(true)),
        Some("granular") => Ok(Some(false)),
        Some(_) => Err(wrong(at, "a known map type")),
    }
}

/// The type; of several, as JSON schema has them for what may be null, the first that is not null.
pub(super) fn type_name(keywords: &Fields<String, Value>) -> &str {
    match keywords.get("type") {
        Some(Value::String(name)) => name,
        Some(Value::Array(names)) => {
            names.iter().filter_map(Value::as_str).find(|name| *name != "null").unwrap_or_default()
        }
        _ => "",
    }
}

fn text<'a>(
    keywords: &'a Fields<String, Value>,
    name: &str,
    at: &Trail<'_>,
) -> Result<Option<&'a str>, Error> {
    match keywords.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(wrong(&Trail::Property(at, name), "a string")),
    }
}

pub(super) fn wrong(at: &Trail<'_>, expected: &'static str) -> Error {
    Error::Schema { at: at.name(), expected }
}
