//! The structural schema of one version of a custom resource, compiled.

mod node;
mod read;

pub(crate) use node::{Additional, Checks, Node, Properties, Type};
pub use node::{PlacedRule, Rule};

use crate::Error;
use crate::Path;
use serde_json::Value;

/// The schema of one version of a custom resource: `openAPIV3Schema`, read once and used for every object.
///
/// Reading accepts whatever has the form of an OpenAPI schema; whether the server should accept the definition is what
/// [`check`](Self::check) says. A schema that passes the check keeps these promises:
///
/// - [`prune`](Self::prune) and [`default`](Self::default) are idempotent, and an object that has been pruned and
///   defaulted has no field the schema does not know;
/// - the defaults themselves satisfy the schema they stand in.
///
/// A schema that does not pass is still safe to use: nothing panics, nothing runs without bound.
///
/// The rules of `x-kubernetes-validations` are kept as data ([`rules`](Self::rules)) and are **not evaluated** here.
///
/// The type is immutable and can be shared between threads. Regular expressions are compiled when the schema is read.
#[derive(Clone, Debug)]
pub struct Schema {
    pub(crate) root: Node,
}

impl Schema {
    /// Reads the value of `openAPIV3Schema`.
    ///
    /// Fails only if a keyword has a value of the wrong type (`type: 5`). Keywords unknown to Kubernetes are ignored.
    pub fn read(openapi: &Value) -> Result<Self, Error> {
        read::read(openapi).map(|root| Self { root })
    }

    /// Every rule of `x-kubernetes-validations`, with its place in the schema.
    ///
    /// The order is that of a walk from the root, properties by name.
    pub fn rules(&self) -> Vec<PlacedRule<'_>> {
        let mut found = Vec::new();
        self.root.collect_rules(&Path::root(), &mut found);
        found
    }

    /// Whether a field is known at the root: `spec`, `status`.
    pub fn has_property(&self, name: &str) -> bool {
        self.root.property(name).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_schema_can_be_shared_between_threads() {
        fn shared<T: Send + Sync>() {}
        shared::<Schema>();
    }

    #[test]
    fn a_keyword_of_the_wrong_type_is_refused_by_its_place() {
        let error = Schema::read(&json!({"properties": {"spec": {"required": [1]}}})).unwrap_err();
        assert_eq!(error.to_string(), "properties[spec].required: expected an array of strings");
        assert!(Schema::read(&json!({"maxLength": 1.5})).is_err());
        assert!(Schema::read(&json!([])).is_err());
        assert!(Schema::read(&json!({"items": {"items": {"pattern": 3}}})).is_err());
    }

    #[test]
    fn rules_are_kept_with_their_place() {
        let schema = Schema::read(&json!({
            "properties": {
                "spec": {
                    "x-kubernetes-validations": [{"rule": "self.a > 1", "message": "too small"}],
                    "properties": {"l": {"items": {"x-kubernetes-validations": [{"rule": "true", "reason": "FieldValueInvalid"}]}}},
                    "additionalProperties": {"x-kubernetes-validations": [{"rule": "x", "optionalOldSelf": true}]},
                },
            },
        }))
        .unwrap();
        let rules = schema.rules();
        let places: Vec<String> = rules.iter().map(|placed| placed.at.to_string()).collect();
        assert_eq!(
            places,
            [
                "properties[spec]",
                "properties[spec].properties[l].items",
                "properties[spec].additionalProperties"
            ]
        );
        assert_eq!(rules[0].rule.message.as_deref(), Some("too small"));
        assert_eq!(rules[2].rule.optional_old_self, Some(true));
    }
}
