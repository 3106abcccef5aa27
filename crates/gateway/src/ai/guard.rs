//! What policies do not want to be said.

use serde_json::Value;
use watchkeeper_ai::ApiError;

use super::table::AiKey;

/// Looks for what a policy does not want to be said.
pub(super) fn guard(key: Option<&AiKey>, on_response: bool, text: &str) -> Result<(), ApiError> {
    let Some(key) = key else { return Ok(()) };
    let mut guards = key.policy.guards.iter().filter(|guard| guard.on_response == on_response);
    match guards.find(|guard| guard.pattern.is_match(text)) {
        Some(guard) => {
            let what = if on_response { "the answer" } else { "the request" };
            Err(ApiError::invalid(format!("{what} is refused by guardrail {:?}", guard.name))
                .code("content_policy_violation"))
        }
        None => Ok(()),
    }
}

/// All texts in a document, a line each. Field names are not said by anybody.
pub(super) fn texts_of(value: &Value) -> String {
    fn collect(value: &Value, text: &mut String) {
        match value {
            Value::String(said) => {
                text.push_str(said);
                text.push('\n');
            }
            Value::Array(items) => items.iter().for_each(|item| collect(item, text)),
            Value::Object(fields) => fields.values().for_each(|field| collect(field, text)),
            _ => {}
        }
    }
    let mut text = String::new();
    collect(value, &mut text);
    text
}
