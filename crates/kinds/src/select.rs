//! Field selectors: which fields of an object they may name.

use crate::Kind;
use serde_json::Value;

impl Kind {
    /// The value that a field selector compares, or `None` if selectors may not name the field.
    ///
    /// ```
    /// use serde_json::json;
    /// let pods = watchkeeper_kinds::find("", "v1", "pods").unwrap();
    /// assert_eq!(pods.selected(&json!({"spec": {}}), "spec.hostNetwork").as_deref(), Some("false"));
    /// assert_eq!(pods.selected(&json!({"spec": {}}), "spec.zip"), None);
    /// ```
    pub fn selected(&self, object: &Value, label: &str) -> Option<String> {
        if label == "metadata.name" || label == "metadata.namespace" && self.selects_namespace() {
            return Some(text_at(object, label).unwrap_or_default());
        }
        let field = self.selectable_fields.iter().find(|field| field.label == label)?;
        let other = || text_at(object, field.or?);
        let found = text_at(object, field.path).filter(|text| !text.is_empty()).or_else(other);
        Some(found.unwrap_or_else(|| field.absent.to_owned()))
    }

    /// The message of kube-apiserver for a selector with a field that is not selectable.
    pub fn unsupported_field(&self, label: &str) -> String {
        match self.strategy.unsupported_field {
            Some(answer) => answer(label),
            None if self.selectable_fields.is_empty() => {
                format!(
                    "{label:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
                )
            }
            None => format!("field label not supported: {label}"),
        }
    }

    /// Kinds without fields of their own take the namespace even where there is none.
    fn selects_namespace(&self) -> bool {
        self.namespaced || self.selectable_fields.is_empty()
    }
}

fn text_at(object: &Value, path: &str) -> Option<String> {
    let value = path.split('.').try_fold(object, |value, name| value.get(name))?;
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        _ => None,
    }
}
