use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition as UpstreamCondition, Time};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A condition of a status, as Kubernetes defines it. A status has a list of them, one for each type:
///
/// ```
/// use schemars::JsonSchema;
/// use serde::{Deserialize, Serialize};
/// use watchkeeper_client::Condition;
///
/// #[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default)]
/// pub struct GreetingStatus {
///     #[serde(default)]
///     pub conditions: Vec<Condition>,
/// }
/// ```
///
/// The same as the type of that name in k8s-openapi, except that it describes its schema by itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// When `status` changed last.
    pub last_transition_time: Time,
    /// The message, for a person.
    pub message: String,
    /// The generation of the object that the condition is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The reason, as one word in CamelCase.
    pub reason: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// The type: `Ready`.
    #[serde(rename = "type")]
    pub type_: String,
}

impl JsonSchema for Condition {
    fn schema_name() -> Cow<'static, str> {
        "Condition".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "One aspect of the current state of an object.",
            "type": "object",
            "required": ["lastTransitionTime", "message", "reason", "status", "type"],
            "properties": {
                "type": {
                    "description": "What the condition is about, in CamelCase.",
                    "type": "string",
                    "maxLength": 316,
                    "pattern": TYPE_PATTERN,
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
        })
    }
}

/// A word, perhaps with a domain in front: `Ready`, `example.org/Ready`.
const TYPE_PATTERN: &str = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$";

/// A condition as a controller reports it. The transition time and the generation are filled in.
///
/// ```
/// use watchkeeper_client::{condition, not_ready, ready};
/// let good = ready("PageWritten");
/// let bad = not_ready("NoImage", "the image does not exist");
/// let other = condition("Progressing").is_unknown("Restarted", "not looked yet");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionUpdate {
    kind: String,
    status: &'static str,
    reason: String,
    message: String,
    generation: Option<i64>,
}

/// `Ready` is true.
pub fn ready(reason: &str) -> ConditionUpdate {
    condition("Ready").is_true(reason)
}

/// `Ready` is false, and why.
pub fn not_ready(reason: &str, message: impl Into<String>) -> ConditionUpdate {
    condition("Ready").is_false(reason, message)
}

/// A condition of this type, with status `Unknown` until another is set.
pub fn condition(kind: &str) -> ConditionUpdate {
    ConditionUpdate {
        kind: kind.to_owned(),
        status: "Unknown",
        reason: "Unknown".to_owned(),
        message: String::new(),
        generation: None,
    }
}

impl ConditionUpdate {
    /// Sets the status `True`. The reason is one word in CamelCase.
    #[must_use]
    pub fn is_true(self, reason: &str) -> Self {
        Self { status: "True", reason: reason.to_owned(), ..self }
    }

    /// Sets the status `False`. The reason is one word in CamelCase, the message is for a person.
    #[must_use]
    pub fn is_false(self, reason: &str, message: impl Into<String>) -> Self {
        Self { status: "False", reason: reason.to_owned(), message: message.into(), ..self }
    }

    /// Sets the status `Unknown`. The reason is one word in CamelCase, the message is for a person.
    #[must_use]
    pub fn is_unknown(self, reason: &str, message: impl Into<String>) -> Self {
        Self { status: "Unknown", reason: reason.to_owned(), message: message.into(), ..self }
    }

    /// The message, for a person.
    #[must_use]
    pub fn message(self, message: impl Into<String>) -> Self {
        Self { message: message.into(), ..self }
    }

    /// Sets the generation that the condition is about, if not that of the object that was given.
    #[must_use]
    pub fn at_generation(self, generation: i64) -> Self {
        Self { generation: Some(generation), ..self }
    }

    /// Merges it into a list of conditions, by type. The time of the transition moves only if the status does; `now` is
    /// that time.
    pub(crate) fn merge_into(&self, conditions: &mut Vec<Value>, generation: Option<i64>, now: &str) {
        let mut merged = json!({
            "type": self.kind,
            "status": self.status,
            "reason": self.reason,
            "message": self.message,
            "lastTransitionTime": now,
        });
        if let Some(generation) = self.generation.or(generation) {
            merged["observedGeneration"] = generation.into();
        }
        match conditions.iter_mut().find(|other| other["type"] == *self.kind) {
            None => conditions.push(merged),
            Some(old) => {
                if old["status"] == *self.status && old["lastTransitionTime"].is_string() {
                    merged["lastTransitionTime"] = old["lastTransitionTime"].take();
                }
                *old = merged;
            }
        }
    }
}

/// For conditions that come from elsewhere. Its time is not taken over.
impl From<Condition> for ConditionUpdate {
    fn from(from: Condition) -> Self {
        let status = match from.status.as_str() {
            "True" => "True",
            "False" => "False",
            _ => "Unknown",
        };
        let Condition { type_: kind, reason, message, observed_generation: generation, .. } = from;
        Self { kind, status, reason, message, generation }
    }
}

impl From<UpstreamCondition> for ConditionUpdate {
    fn from(from: UpstreamCondition) -> Self {
        Condition::from(from).into()
    }
}

impl From<UpstreamCondition> for Condition {
    fn from(from: UpstreamCondition) -> Self {
        let UpstreamCondition { last_transition_time, message, observed_generation, reason, status, type_ } =
            from;
        Self { last_transition_time, message, observed_generation, reason, status, type_ }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_is_written_as_kubernetes_writes_it() {
        let json = json!({"type": "Ready", "status": "True", "reason": "A", "message": "", "observedGeneration": 1,
            "lastTransitionTime": "2020-01-01T00:00:00Z"});
        let upstream: UpstreamCondition = serde_json::from_value(json.clone()).unwrap();
        let ours: Condition = serde_json::from_value(json.clone()).unwrap();
        assert_eq!(ours, Condition::from(upstream));
        assert_eq!(serde_json::to_value(ours).unwrap(), json);
    }

    #[test]
    fn the_time_moves_with_the_status_and_the_rest_follows() {
        let mut list = vec![json!({"type": "Other", "status": "True"})];
        ready("A").merge_into(&mut list, Some(1), "t1");
        assert_eq!(
            list[1],
            json!({"type": "Ready", "status": "True", "reason": "A", "message": "", "lastTransitionTime": "t1",
                "observedGeneration": 1})
        );
        ready("B").message("m").merge_into(&mut list, Some(2), "t2");
        assert_eq!(list[1]["lastTransitionTime"], "t1");
        assert_eq!((&list[1]["reason"], &list[1]["observedGeneration"]), (&json!("B"), &json!(2)));
        not_ready("C", "m").merge_into(&mut list, Some(2), "t3");
        assert_eq!(list[1]["lastTransitionTime"], "t3");
        assert_eq!(list.len(), 2);
        assert_eq!(list[0], json!({"type": "Other", "status": "True"}));
    }
}
