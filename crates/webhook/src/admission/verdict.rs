use std::collections::BTreeMap;

use serde_json::Value;
use watchkeeper_wire::field::{FieldError, Reason, invalid_message};
use watchkeeper_wire::{Status, StatusCause, StatusDetails, reason};

use super::request::AdmissionRequest;

/// The verdict of a webhook on a write: allowed, or the errors by field; with warnings in either case.
///
/// Fields are named as Kubernetes names them, `spec.ports[0].name`, and everything that is wrong is said at once.
///
/// ```
/// use watchkeeper_webhook::Verdict;
/// let mut verdict = Verdict::allow();
/// verdict.warn("spec.size: 1 is very small");
/// verdict.invalid("spec.replicas", 11, "must be at most 10");
/// assert!(!verdict.is_allowed());
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use = "a verdict that nobody returns allows nothing and denies nothing"]
pub struct Verdict {
    errors: Vec<FieldError>,
    denial: Option<(u16, &'static str, String)>,
    warnings: Vec<String>,
    audit: BTreeMap<String, String>,
}

impl Verdict {
    /// Allows the write.
    pub fn allow() -> Self {
        Self::default()
    }

    /// Denies the write for this reason (403). Where a field is at fault, prefer [`invalid`](Self::invalid).
    pub fn deny(message: impl Into<String>) -> Self {
        Self { denial: Some((403, reason::FORBIDDEN, message.into())), ..Self::default() }
    }

    /// The webhook could not decide (500).
    pub(crate) fn failed(code: u16, message: impl Into<String>) -> Self {
        let reason = if code == 504 { reason::TIMEOUT } else { reason::INTERNAL_ERROR };
        Self { denial: Some((code, reason, message.into())), ..Self::default() }
    }

    /// Adds an error: the value of a field breaks a rule.
    pub fn invalid(&mut self, field: &str, value: impl Into<Value>, rule: impl Into<String>) -> &mut Self {
        self.error(Reason::Invalid, field, Some(value.into()), rule.into())
    }

    /// Adds an error: a required field is missing.
    pub fn required(&mut self, field: &str, why: impl Into<String>) -> &mut Self {
        self.error(Reason::Required, field, None, why.into())
    }

    /// Adds an error: a field may not be set, or not be changed.
    pub fn forbidden(&mut self, field: &str, why: impl Into<String>) -> &mut Self {
        self.error(Reason::Forbidden, field, None, why.into())
    }

    /// Adds an error: the value of a field is not one of those that are supported.
    pub fn not_supported(&mut self, field: &str, value: impl Into<Value>, supported: &[&str]) -> &mut Self {
        let quoted: Vec<String> = supported.iter().map(|one| format!("{one:?}")).collect();
        let rule = format!("supported values: {}", quoted.join(", "));
        self.error(Reason::NotSupported, field, Some(value.into()), rule)
    }

    /// Adds an error: the value of a field is a duplicate.
    pub fn duplicate(&mut self, field: &str, value: impl Into<Value>) -> &mut Self {
        self.error(Reason::Duplicate, field, Some(value.into()), String::new())
    }

    fn error(&mut self, reason: Reason, field: &str, value: Option<Value>, detail: String) -> &mut Self {
        self.errors.push(FieldError { reason, field: field.to_owned(), value, detail, shown: None });
        self
    }

    /// Adds a warning, which the client is shown whether the write is allowed or not. `kubectl` prints it as `Warning: ...`.
    pub fn warn(&mut self, warning: impl Into<String>) -> &mut Self {
        self.warnings.push(warning.into());
        self
    }

    /// Adds a line to the audit log. The key is a name such as `checked`; the server puts that of the webhook before it.
    pub fn audit(&mut self, key: impl Into<String>, value: impl Into<String>) -> &mut Self {
        self.audit.insert(key.into(), value.into());
        self
    }

    /// Whether the write is allowed.
    pub fn is_allowed(&self) -> bool {
        self.errors.is_empty() && self.denial.is_none()
    }

    /// The errors, by field.
    pub fn errors(&self) -> &[FieldError] {
        &self.errors
    }

    /// The warnings.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Joins two verdicts: all errors and warnings of both.
    pub fn and(mut self, other: Self) -> Self {
        self.errors.extend(other.errors);
        self.warnings.extend(other.warnings);
        self.audit.extend(other.audit);
        self.denial = self.denial.or(other.denial);
        self
    }

    pub(crate) fn audit_lines(&self) -> &BTreeMap<String, String> {
        &self.audit
    }

    /// The code of the answer, for the metrics.
    pub(crate) fn code(&self) -> u16 {
        match &self.denial {
            Some((code, ..)) => *code,
            None if self.errors.is_empty() => 200,
            None => 422,
        }
    }

    /// Why not, as the API says it; `None` for a yes.
    pub(crate) fn status(&self, request: &AdmissionRequest) -> Option<Status> {
        if let Some((code, reason, message)) = &self.denial {
            let (code, reason) = (Some(*code), (*reason).to_owned());
            return Some(Status { code, reason, message: message.clone(), details: None });
        }
        if self.errors.is_empty() {
            return None;
        }
        let kind = &request.kind;
        let causes = self.errors.iter().map(|error| StatusCause {
            reason: error.reason.cause().to_owned(),
            message: error.body(),
            field: error.field.clone(),
        });
        Some(Status {
            code: Some(422),
            reason: reason::INVALID.to_owned(),
            message: invalid_message(&kind.group, &kind.kind, &request.name, &self.errors),
            details: Some(StatusDetails {
                name: request.name.clone(),
                group: kind.group.clone(),
                kind: kind.kind.clone(),
                causes: causes.collect(),
                ..StatusDetails::default()
            }),
        })
    }
}

/// `Ok` is a yes, an error is a no with its text.
impl<E: std::fmt::Display> From<Result<(), E>> for Verdict {
    fn from(result: Result<(), E>) -> Self {
        match result {
            Ok(()) => Self::allow(),
            Err(error) => Self::deny(error.to_string()),
        }
    }
}
