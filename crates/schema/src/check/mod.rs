//! Whether a schema may be part of a CustomResourceDefinition.

mod defaults;
mod keywords;
mod lists;
mod rules;
mod structural;

use crate::FieldError;
use crate::Path;
use crate::schema::{Node, Schema, Type};

impl Schema {
    /// What is wrong with this schema as `openAPIV3Schema` of a version, in the words of kube-apiserver; nothing if the
    /// list is empty.
    ///
    /// `at` is where the schema stands (`spec.versions[0].schema.openAPIV3Schema`). `status_subresource` says whether the
    /// version has one: then few keywords are allowed at the root.
    ///
    /// The order: what makes the schema not structural, sorted by text; if nothing does, what is wrong with defaults;
    /// then everything else from the root down, fields by name.
    ///
    /// Not covered: CEL expressions are neither compiled nor estimated, so nothing is said about the contents of
    /// `rule`, `messageExpression` and `fieldPath`; defaults are not checked against CEL rules; and if there are too
    /// many keywords at the root the error shows the keyword instead of the whole schema.
    pub fn check(&self, at: &Path, status_subresource: bool) -> Vec<FieldError> {
        let mut errors = Vec::new();
        if status_subresource {
            errors.extend(check_root_with_status(&self.root, at));
        }
        if self.root.nullable {
            let detail = "nullable cannot be true at the root";
            errors.push(FieldError::forbidden(&at.child("nullable"), detail));
        }
        let unsupported = structural::unsupported(&self.root);
        if unsupported.is_none() {
            let problems = structural::check(&self.root, at);
            let found = !problems.is_empty();
            errors.extend(problems);
            if !found {
                errors.extend(defaults::check(&self.root, at));
            }
        }
        errors.extend(keywords::check(&self.root, at));
        match unsupported {
            Some(reason) if errors.is_empty() => vec![FieldError::invalid(at, "", reason)],
            _ => errors,
        }
    }
}

/// With a status subresource, `status` is validated alone; what stands at the root must not be lost by that.
fn check_root_with_status(root: &Node, at: &Path) -> Option<FieldError> {
    const ALLOWED: &str = "[Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields XValidations]";
    if root.kind.as_ref().is_some_and(|kind| *kind != Type::Object) {
        return Some(FieldError::invalid(
            &at.child("type"),
            root.type_name(),
            "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled",
        ));
    }
    let checks = &root.checks;
    let refused = [
        ("id", root.keywords.id),
        ("$schema", root.keywords.schema),
        ("$ref", root.keywords.reference),
        ("nullable", root.nullable),
        ("default", root.default.is_some()),
        ("enum", !checks.one_of_values.is_empty()),
        ("maxProperties", checks.max_properties.is_some()),
        ("minProperties", checks.min_properties.is_some()),
        ("allOf", !checks.all_of.is_empty()),
        ("oneOf", !checks.one_of.is_empty()),
        ("anyOf", !checks.any_of.is_empty()),
        ("not", checks.not.is_some()),
        ("additionalProperties", root.additional.is_some()),
        ("patternProperties", root.keywords.pattern_properties),
        ("dependencies", root.keywords.dependencies),
        ("additionalItems", root.keywords.additional_items),
        ("definitions", root.keywords.definitions),
        ("x-kubernetes-embedded-resource", root.embedded),
        ("x-kubernetes-int-or-string", root.int_or_string),
        ("x-kubernetes-list-map-keys", !root.list_map_keys.is_empty()),
        ("x-kubernetes-list-type", root.list_type.is_some()),
        ("x-kubernetes-map-type", root.map_type.is_some()),
    ];
    let (keyword, _) = refused.into_iter().find(|(_, is_set)| *is_set)?;
    let detail = format!(
        "only {ALLOWED} fields are allowed at the root of the schema if the status subresource is enabled"
    );
    Some(FieldError::invalid(at, keyword, detail))
}
