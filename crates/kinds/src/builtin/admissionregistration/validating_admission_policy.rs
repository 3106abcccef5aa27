use crate::kind::row::{STATUS, kind};
use crate::validate::field::{Errors, Field};
use crate::validate::policies::{NOT_SPECIFIED, common};
use crate::{Kind, Subresource};
use std::collections::HashSet;
use watchkeeper_schema::FieldError;
use watchkeeper_schema::metadata::label_key_problems;

pub(crate) const KIND: Kind = kind(
    "admissionregistration.k8s.io",
    "v1",
    "ValidatingAdmissionPolicy",
    "validatingadmissionpolicies",
    "validatingadmissionpolicy",
)
.categories(&["api-extensions"])
.cluster_wide()
.with(&[STATUS])
.generation()
.conditional()
.validate_with(validate)
.validate_subresources(&[(Subresource::Status, validate_status)])
.status_keeps(&["labels", "annotations", "ownerReferences", "finalizers"])
.resets(&[(Subresource::Status, &[&["metadata"], &["spec"]])])
.metadata_checks(0, 1)
.no_metadata_checks_of_subresources()
.table(table::TABLE);

fn validate(object: &Field<'_>, _: Option<&Field<'_>>, errors: &mut Errors) {
    let spec = object.get("spec");
    common(&spec, false, errors);
    let (validations, annotations) = (spec.get("validations"), spec.get("auditAnnotations"));
    if validations.is_empty() && annotations.is_empty() {
        for list in [&validations, &annotations] {
            let detail = "validations or auditAnnotations must contain at least one item";
            errors.push(FieldError::required(&list.at, detail));
        }
    }
    for validation in validations.items() {
        rule(&validation, errors);
    }
    let mut keys = HashSet::new();
    for annotation in annotations.items() {
        let (key, value) = (annotation.get("key"), annotation.get("valueExpression"));
        let full = format!("{}/{}", object.get("metadata").get("name").text(), key.text());
        for problem in label_key_problems(&full) {
            errors.push(FieldError::invalid(&key.at, full.as_str(), problem));
        }
        if value.text().trim().is_empty() {
            errors.push(FieldError::required(&value.at, "valueExpression is not specified"));
        }
        if !keys.insert(key.text()) {
            errors.push(FieldError::duplicate(&key.at, key.text()));
        }
    }
}

fn rule(validation: &Field<'_>, errors: &mut Errors) {
    let blank = |name: &str| validation.get(name).text().trim().is_empty();
    if blank("expression") {
        errors.push(FieldError::required(&validation.get("expression").at, NOT_SPECIFIED));
    }
    for name in ["messageExpression", "message"] {
        if !validation.get(name).is_empty() && blank(name) {
            validation.get(name).invalid("must be non-empty if specified", errors);
        }
    }
    let message = validation.get("message");
    if message.text().trim().contains(['\n', '\r']) {
        message.invalid("must not contain line breaks", errors);
    }
    let reasons = ["Forbidden", "Invalid", "RequestEntityTooLarge"];
    validation.get("reason").one_of(&reasons, errors);
}

/// What is wrong with what a controller says of a policy.
fn validate_status(object: &Field<'_>, _: &Field<'_>, errors: &mut Errors) {
    let status = &object.get("status");
    for warning in status.get("typeChecking").get("expressionWarnings").items() {
        warning.get("warning").required(errors);
        warning.get("fieldRef").required(errors);
    }
}

mod table {
    use crate::columns::policies::{PARAMETERS, policy};
    use watchkeeper_table::layout::{AGE, Layout, NAME, integer};

    pub(super) const TABLE: Layout =
        Layout::new(&[NAME, integer("Validations", "How many rules there are."), PARAMETERS, AGE], |view| {
            policy(view, "spec.validations")
        });
}
