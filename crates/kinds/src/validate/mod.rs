//! Whether an object keeps the rules of its kind.

pub(crate) mod addresses;
pub(crate) mod config;
pub(crate) mod containers;
pub(crate) mod cron;
pub(crate) mod devices;
pub(crate) mod difference;
pub(crate) mod field;
pub(crate) mod job_policies;
pub(crate) mod job_spec;
pub(crate) mod mounts;
pub(crate) mod names;
pub(crate) mod pod;
pub(crate) mod policies;
pub(crate) mod rbac;
mod security_context;
pub(crate) mod selector;
pub(crate) mod status;
pub(crate) mod storage;
pub(crate) mod update;
pub(crate) mod volumes;
pub(crate) mod webhooks;
pub(crate) mod workloads;

use crate::Kind;
use field::{Errors, Field};
use serde_json::Value;
use watchkeeper_schema::{FieldError, Path, metadata};

impl Kind {
    /// Validates an object that is created, or that replaces `old`. An empty list means that it is valid.
    ///
    /// The words are those of kube-apiserver. The rules are the ones users run into first, not all there are. Both objects
    /// must have been coerced, defaulted and prepared. That an update leaves name, namespace and uid alone is for the
    /// server to see to, as it does for every kind.
    ///
    /// ```
    /// use serde_json::json;
    /// let kind = watchkeeper_kinds::find("", "v1", "configmaps").unwrap();
    /// let errors = kind.validate(&json!({"metadata": {"name": "a"}, "data": {"..": "x"}}), None);
    /// assert_eq!(errors[0].to_string(), r#"data[..]: Invalid value: "..": must not be '..'"#);
    /// ```
    pub fn validate(&self, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let mut errors = Vec::new();
        if matches!(self.verbs, crate::Verbs::CreateOnly | crate::Verbs::ReadOnly) {
            return errors;
        }
        let (object, before) = (Field::root(new), old.map(Field::root));
        match (self.strategy.validate_name, &before) {
            (Some(validate), Some(_)) => validate(&object, &mut errors),
            (None, Some(_)) => {}
            (_, None) => name(self, &object, &mut errors),
        }
        let times = if before.is_some() { self.metadata_checks.on_object } else { 1 };
        for _ in 0..times {
            errors.extend(metadata::validate(&new["metadata"], &Path::root().child("metadata")));
        }
        let is_first = self.strategy.validates_changes_first;
        if let Some(old) = before.as_ref().filter(|_| is_first) {
            update::update(&self.strategy, &object, old, &mut errors);
        }
        if let Some(validate) = self.strategy.validate {
            validate(&object, before.as_ref(), &mut errors);
        }
        if let Some(old) = before.as_ref().filter(|_| !is_first) {
            update::update(&self.strategy, &object, old, &mut errors);
        }
        errors
    }

    /// Validates an object whose subresource replaces that of `old`: its status, the finalizers of a namespace, or an
    /// approval. The conditions are those of [`validate`](Self::validate).
    pub fn validate_part(&self, part: crate::Subresource, new: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let rules = self.strategy.validate_subresources.iter().find(|(of, _)| *of == part);
        if let Some((_, validate)) = rules {
            validate(&Field::root(new), &Field::root(old), &mut errors);
        }
        errors
    }
}

fn name(kind: &Kind, object: &Field<'_>, errors: &mut Errors) {
    let name = object.get("metadata").get("name");
    if name.text().is_empty() {
        errors.push(FieldError::required(&name.at, "name or generateName is required"));
        return;
    }
    if let Some(validate) = kind.strategy.validate_name {
        return validate(object, errors);
    }
    for problem in kind.name_rule.problems(name.text()) {
        name.invalid(problem, errors);
    }
}
