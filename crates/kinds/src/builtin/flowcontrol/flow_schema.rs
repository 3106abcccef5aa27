use super::conditions::conditions;
use super::{bootstrap, rules, table};
use crate::Kind;
use crate::kind::row::{STATUS, kind};
use crate::prepare::same;
use crate::validate::field::{Errors, Field};
use serde_json::json;
use watchkeeper_schema::FieldError;

pub(crate) const KIND: Kind =
    kind("flowcontrol.apiserver.k8s.io", "v1", "FlowSchema", "flowschemas", "flowschema")
        .cluster_wide()
        .with(&[STATUS])
        .generation()
        .status_keeps(&["labels", "annotations", "finalizers", "ownerReferences"])
        .validate_with(validate)
        .table(table::FLOW_SCHEMA);

/// The highest number that a schema may have, which is that of the last one to be asked.
const LAST: i64 = 10_000;

fn validate(object: &Field<'_>, _: Option<&Field<'_>>, errors: &mut Errors) {
    let (spec, name) = (&object.get("spec"), object.get("metadata").get("name").text());
    let precedence = spec.get("matchingPrecedence");
    let number = precedence.number().unwrap_or_default();
    if number <= 0 {
        precedence.invalid("must be a positive value", errors);
    }
    if number > LAST {
        precedence.invalid(format!("must not be greater than {LAST}"), errors);
    }
    if number == 1 && name != "exempt" {
        precedence.invalid("only the schema named 'exempt' may have matchingPrecedence 1", errors);
    }
    let method = spec.get("distinguisherMethod");
    if method.is_set() && !matches!(method.get("type").text(), "ByNamespace" | "ByUser") {
        let at = method.get("type").at;
        let shown = json!({"Type": method.get("type").value});
        errors.push(FieldError::not_supported(&at, shown, ["ByNamespace", "ByUser"]));
    }
    let level = spec.get("priorityLevelConfiguration").get("name");
    if level.required_as("must reference a priority level", errors) {
        level.dns_subdomain(errors);
    }
    spec.get("rules").items().for_each(|rule| rules::rule(&rule, errors));
    if let Some(fixed) = bootstrap::fixed_schema(name)
        && !same(Some(spec.value), Some(&fixed))
    {
        let detail = format!("spec of '{name}' must equal the fixed value");
        let field = |name: &str| spec.value[name].clone();
        errors.push(FieldError::invalid(&spec.at, spec.value.clone(), detail).structure(&[
            ("PriorityLevelConfiguration", field("priorityLevelConfiguration")),
            ("MatchingPrecedence", field("matchingPrecedence")),
            ("DistinguisherMethod", field("distinguisherMethod")),
            ("Rules", field("rules")),
        ]));
    }
    conditions(&object.get("status").get("conditions"), errors);
}
