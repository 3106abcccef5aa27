//! Which models there are, in the form of each dialect.

use serde_json::{Value, json};
use watchkeeper_ai::Dialect;

use super::table::Model;

/// One model. When it was created is told of the mapping, not of the model.
pub(super) fn one(dialect: Dialect, model: &Model) -> Value {
    let name = &*model.name;
    let created = model.created.as_deref().unwrap_or("1970-01-01T00:00:00Z");
    match dialect {
        Dialect::Anthropic => {
            json!({"type": "model", "id": name, "display_name": name, "created_at": created})
        }
        Dialect::Gemini | Dialect::GeminiEmbeddings => json!({
            "name": format!("models/{name}"), "displayName": name, "version": "1", "outputTokenLimit": model.max_output,
            "supportedGenerationMethods": ["generateContent", "streamGenerateContent"],
        }),
        _ => {
            let seconds = watchkeeper_go::Time::parse(created).map_or(0, |time| time.seconds());
            json!({"id": name, "object": "model", "created": seconds, "owned_by": "gateway"})
        }
    }
}

/// All models.
pub(super) fn all<'a>(dialect: Dialect, models: impl Iterator<Item = &'a Model>) -> Value {
    let models: Vec<Value> = models.map(|model| one(dialect, model)).collect();
    match dialect {
        Dialect::Anthropic => json!({
            "first_id": models.first().map(|model| model["id"].clone()),
            "last_id": models.last().map(|model| model["id"].clone()),
            "has_more": false,
            "data": models,
        }),
        Dialect::Gemini | Dialect::GeminiEmbeddings => json!({"models": models}),
        _ => json!({"object": "list", "data": models}),
    }
}
