//! Whose token something is.

use serde_json::{Value, json};

use super::user_info;
use crate::server::Server;
use crate::service_accounts::Refusal;
use crate::status_error::StatusError;

/// What is said of a token that nobody knows.
const UNKNOWN: &str = "invalid bearer token";

/// The status of a review of a token.
pub(super) async fn review(server: &Server, object: &Value) -> Result<Value, StatusError> {
    let spec = &object["spec"];
    let token = spec["token"].as_str().unwrap_or_default();
    if token.is_empty() {
        return Err(StatusError::bad_request("token is required for TokenReview in authentication"));
    }
    let own = server.accounts.tokens.audiences();
    let wanted = spec["audiences"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let mut wanted: Vec<String> = wanted.map(str::to_owned).collect();
    if wanted.is_empty() {
        wanted = own.to_vec();
    }
    let refused = |reason: &str| json!({"user": {}, "error": reason});
    if let Some(identity) = server.options.tokens.as_ref().and_then(|tokens| tokens.find(token.as_bytes())) {
        // Such a token says nothing about whom it is meant for: it is meant for this server.
        let audiences: Vec<&String> = own.iter().filter(|audience| wanted.contains(audience)).collect();
        return Ok(match audiences.is_empty() {
            true => refused(UNKNOWN),
            false => {
                json!({"authenticated": true, "user": user_info(&identity), "audiences": audiences})
            }
        });
    }
    Ok(match server.accounts.of_token(token, &wanted).await {
        Some(Ok((identity, audiences))) => {
            json!({"authenticated": true, "user": user_info(&identity), "audiences": audiences})
        }
        Some(Err(Refusal::Unavailable(error))) => return Err(error.into()),
        Some(Err(Refusal::Invalid(reason))) => refused(&format!("[{UNKNOWN}, {reason}]")),
        None => refused(UNKNOWN),
    })
}
