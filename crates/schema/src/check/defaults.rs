//! Defaults must be good values themselves: pruned, and valid where they stand.

use crate::FieldError;
use crate::Path;
use crate::bounded::Bounded;
use crate::prune;
use crate::schema::Node;
use crate::trail::Trail;
use crate::validate;
use serde_json::{Map, Value};

pub(super) fn check(root: &Node, at: &Path) -> Vec<FieldError> {
    let mut errors = Bounded::new();
    node(root, at, Place::ObjectRoot, &mut errors);
    errors.into_vec()
}

/// Where a default stands.
#[derive(Clone, Copy)]
enum Place<'a> {
    /// It is an object, or one embedded in another.
    ObjectRoot,
    /// In the `metadata`, `kind` or `apiVersion` of an object, this way down from it.
    Metadata(Trail<'a>),
    Elsewhere,
}

fn node(this: &Node, at: &Path, place: Place<'_>, errors: &mut Bounded<FieldError>) {
    if errors.is_full() {
        return;
    }
    let place = if this.embedded { Place::ObjectRoot } else { place };
    if let Some(default) = &this.default {
        let at = at.child("default");
        errors.extend(match place {
            Place::Metadata(way) => in_metadata(this, default, &way, &at),
            _ => elsewhere(this, default, &at),
        });
    }
    // Defaults of entries are allowed in form and never looked at, as in the original.
    if let Some(items) = &this.items {
        let place = match &place {
            Place::Metadata(way) => Place::Metadata(Trail::Item(way, 0)),
            _ => Place::Elsewhere,
        };
        node(items, &at.child("items"), place, errors);
    }
    for (name, property) in this.properties.iter() {
        let place = match &place {
            Place::ObjectRoot if matches!(name, "metadata" | "kind" | "apiVersion") => {
                Place::Metadata(Trail::Property(&Trail::Start, name))
            }
            Place::Metadata(way) => Place::Metadata(Trail::Property(way, name)),
            _ => Place::Elsewhere,
        };
        node(property, &at.child("properties").key(name), place, errors);
    }
}

fn elsewhere(this: &Node, default: &Value, at: &Path) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if this.pruned_default.is_some() {
        errors.push(FieldError::invalid(at, default.clone(), "must not have unknown fields"));
    }
    let embedded = validate::validate_default_embedded(this, default, at);
    if embedded.is_empty() {
        errors.extend(validate::validate_default(this, at));
    } else {
        errors.extend(embedded);
    }
    errors
}

/// The default must make good metadata in an object that is otherwise empty.
fn in_metadata(this: &Node, default: &Value, way: &Trail<'_>, at: &Path) -> Vec<FieldError> {
    let mut object = surround(way, default.clone());
    object.entry("apiVersion").or_insert_with(|| "validation/v1".into());
    object.entry("kind").or_insert_with(|| "Validation".into());
    let problem = match prune::coerce_type_and_metadata(&mut object, &Path::root(), &mut Bounded::new()) {
        Err(error) => Some(error.to_string()),
        Ok(()) => watchkeeper_wire::field::aggregate(&validate::validate_type_and_metadata(&object)),
    };
    match problem {
        Some(problem) => {
            let detail = format!("must result in valid metadata: {problem}");
            vec![FieldError::invalid(at, default.clone(), detail)]
        }
        None => validate::validate_default(this, at),
    }
}

/// The object in which a value stands at the end of a way.
fn surround(way: &Trail<'_>, value: Value) -> Map<String, Value> {
    match way {
        Trail::Start => Map::new(),
        Trail::Property(parent, name) | Trail::Entry(parent, name) => {
            let object = Map::from_iter([((*name).to_owned(), value)]);
            match parent {
                Trail::Start => object,
                parent => surround(parent, Value::Object(object)),
            }
        }
        Trail::Item(parent, _) => surround(parent, Value::Array(vec![value])),
    }
}
