//! The form of `x-kubernetes-validations`; what the expressions say is not looked at.

use crate::FieldError;
use crate::Path;
use crate::bounded::Bounded;
use crate::schema::{Node, Rule};

pub(super) fn check(node: &Node, at: &Path, errors: &mut Bounded<FieldError>) {
    for (index, rule) in node.rules.iter().enumerate() {
        let at = at.child("x-kubernetes-validations").index(index);
        errors.extend(check_texts(rule, &at));
        let is_blank = |text: &Option<String>| {
            text.as_deref().is_some_and(|text| !text.is_empty() && text.trim().is_empty())
        };
        if is_blank(&rule.message_expression) {
            let detail = "messageExpression must be non-empty if specified";
            errors.push(FieldError::required(&at.child("messageExpression"), detail));
        }
        const REASONS: [&str; 4] =
            ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];
        if let Some(reason) = rule.reason.as_deref().filter(|reason| !REASONS.contains(reason)) {
            errors.push(FieldError::not_supported(&at.child("reason"), reason, REASONS));
        }
        let path = rule.field_path.as_deref().unwrap_or_default();
        if is_blank(&rule.field_path) {
            let detail = "must be non-empty if specified";
            errors.push(FieldError::invalid(&at.child("fieldPath"), path, detail));
        }
        if has_line_breaks(path) {
            errors.push(FieldError::invalid(&at.child("fieldPath"), path, "must not contain line breaks"));
        }
    }
}

/// At most one error about the rule and its message.
fn check_texts(rule: &Rule, at: &Path) -> Option<FieldError> {
    let message = rule.message.as_deref().unwrap_or_default();
    let said = message.trim();
    if rule.rule.trim().is_empty() {
        Some(FieldError::required(&at.child("rule"), "rule is not specified"))
    } else if !message.is_empty() && said.is_empty() {
        Some(FieldError::invalid(&at.child("message"), message, "must be non-empty if specified"))
    } else if has_line_breaks(said) {
        Some(FieldError::invalid(&at.child("message"), message, "must not contain line breaks"))
    } else if has_line_breaks(rule.rule.trim()) && said.is_empty() {
        let detail = "message must be specified if rule contains line breaks";
        Some(FieldError::required(&at.child("message"), detail))
    } else {
        None
    }
}

fn has_line_breaks(text: &str) -> bool {
    text.contains(['\n', '\r'])
}
