//! What a webhook answers, before anybody knows what it means.

use serde_json::Value;
use watchkeeper_schema::{Error, json, yaml};

use crate::crd::object::not_an_object;

/// What Go's decoder says of a value of another type than a field has.
pub(crate) fn wrong_type(found: &Value, place: &str, wanted: &str) -> String {
    let found = watchkeeper_go::json::kind(found);
    format!("json: cannot unmarshal {found} into Go struct field {place} of type {wanted}")
}

/// Reads an answer as client-go does: as JSON if it looks like an object, else as YAML. One that is nested too deeply, or that
/// takes too much memory, is refused. The error is in upstream's words.
pub(crate) fn decode_answer(answer: &[u8]) -> Result<Value, String> {
    if answer.is_empty() {
        return Err("0-length response with status code: 200 and content type: application/json".to_owned());
    }
    let unread = |error: Error| format!("couldn't get version/kind; json parse error: {error}");
    let decoded = match answer.trim_ascii_start().first() {
        Some(b'{') => json::decode(answer).map_err(unread)?,
        _ => yaml::decode(answer).map_err(unread)?,
    };
    if decoded.value.is_object() { Ok(decoded.value) } else { Err(not_an_object(&decoded.value)) }
}
