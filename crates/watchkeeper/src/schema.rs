//! Schemas for the fields of custom resources whose types have none of their own.

use schemars::{Schema, SchemaGenerator, json_schema};

/// The schema of the conditions in a status, with the rules of Kubernetes: a list with one entry for each type, so that
/// several programs can write their own.
///
/// [`Condition`](crate::client::Condition) has a schema only with the feature `schemars` of `k8s-openapi`, which makes those
/// of hundreds of other types as well.
///
/// ```
/// use watchkeeper::prelude::*;
///
/// #[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default)]
/// struct GreetingStatus {
///     #[serde(default)]
///     #[schemars(schema_with = "watchkeeper::schema::conditions")]
///     conditions: Vec<Condition>,
/// }
/// ```
pub fn conditions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["lastTransitionTime", "message", "reason", "status", "type"],
            "properties": {
                "type": {
                    "description": "What the condition is about, in CamelCase.",
                    "type": "string",
                    "maxLength": 316,
                    "pattern": r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
                },
                "status": {
                    "description": "Whether it holds.",
                    "type": "string",
                    "enum": ["True", "False", "Unknown"],
                },
                "reason": {
                    "description": "Why, in one word for programs.",
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 1024,
                    "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
                },
                "message": {
                    "description": "Why, in a sentence for people.",
                    "type": "string",
                    "maxLength": 32768,
                },
                "lastTransitionTime": {
                    "description": "When the status changed.",
                    "type": "string",
                    "format": "date-time",
                },
                "observedGeneration": {
                    "description": "The generation of the object that this is about.",
                    "type": "integer",
                    "format": "int64",
                    "minimum": 0,
                },
            },
        },
    })
}
