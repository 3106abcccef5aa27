use serde_json::{Value, json};

use crate::json::text;
use crate::{Dialect, sse};

/// What went wrong with a call, in the words that all dialects have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// 400: the request cannot be.
    Invalid,
    /// 401: the key is missing or not known.
    Unauthenticated,
    /// 403: the key may not.
    Forbidden,
    /// 404: there is no such model or path.
    NotFound,
    /// 410: there was one.
    Gone,
    /// 413: the request is too large.
    TooLarge,
    /// 429: a limit is reached.
    Limited,
    /// 500: the gateway failed.
    Internal,
    /// 502: the provider failed.
    Provider,
    /// 503: nobody can serve this now.
    Unavailable,
    /// 504: the provider took too long.
    Timeout,
}

/// An error, to be told in the dialect of a client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// What kind.
    pub kind: ErrorKind,
    /// What is wrong, and what to do.
    pub message: String,
    /// A word for programs that only some dialects have: `model_not_found`, `insufficient_quota`.
    pub code: Option<&'static str>,
    /// After how many seconds to try again.
    pub retry_after: Option<u64>,
}

impl ApiError {
    /// An error of a kind.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), code: None, retry_after: None }
    }

    /// A request that cannot be.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, message)
    }

    /// The same with a word for programs.
    pub fn code(self, code: &'static str) -> Self {
        Self { code: Some(code), ..self }
    }

    /// The status code.
    pub fn status(&self) -> u16 {
        match self.kind {
            ErrorKind::Invalid => 400,
            ErrorKind::Unauthenticated => 401,
            ErrorKind::Forbidden => 403,
            ErrorKind::NotFound => 404,
            ErrorKind::Gone => 410,
            ErrorKind::TooLarge => 413,
            ErrorKind::Limited => 429,
            ErrorKind::Internal => 500,
            ErrorKind::Provider => 502,
            ErrorKind::Unavailable => 503,
            ErrorKind::Timeout => 504,
        }
    }

    /// The body of a response in a dialect.
    pub fn body(&self, dialect: Dialect) -> Value {
        match dialect {
            Dialect::OpenAiChat | Dialect::OpenAiResponses | Dialect::OpenAiEmbeddings => json!({
                "error": {"message": self.message, "type": self.openai_type(), "param": null, "code": self.code},
            }),
            Dialect::Anthropic => json!({
                "type": "error",
                "error": {"type": self.anthropic_type(), "message": self.message},
            }),
            Dialect::Gemini | Dialect::GeminiEmbeddings => json!({
                "error": {"code": self.status(), "message": self.message, "status": self.gemini_status()},
            }),
        }
    }

    fn openai_type(&self) -> &'static str {
        match self.kind {
            ErrorKind::Invalid | ErrorKind::NotFound | ErrorKind::Gone | ErrorKind::TooLarge => {
                "invalid_request_error"
            }
            ErrorKind::Unauthenticated => "authentication_error",
            ErrorKind::Forbidden => "permission_error",
            ErrorKind::Limited => "rate_limit_error",
            ErrorKind::Internal | ErrorKind::Provider | ErrorKind::Unavailable | ErrorKind::Timeout => {
                "server_error"
            }
        }
    }

    fn anthropic_type(&self) -> &'static str {
        match self.kind {
            ErrorKind::Invalid => "invalid_request_error",
            ErrorKind::Unauthenticated => "authentication_error",
            ErrorKind::Forbidden => "permission_error",
            ErrorKind::NotFound | ErrorKind::Gone => "not_found_error",
            ErrorKind::TooLarge => "request_too_large",
            ErrorKind::Limited => "rate_limit_error",
            ErrorKind::Timeout => "timeout_error",
            ErrorKind::Unavailable => "overloaded_error",
            ErrorKind::Internal | ErrorKind::Provider => "api_error",
        }
    }

    fn gemini_status(&self) -> &'static str {
        match self.kind {
            ErrorKind::Invalid | ErrorKind::TooLarge => "INVALID_ARGUMENT",
            ErrorKind::Unauthenticated => "UNAUTHENTICATED",
            ErrorKind::Forbidden => "PERMISSION_DENIED",
            ErrorKind::NotFound | ErrorKind::Gone => "NOT_FOUND",
            ErrorKind::Limited => "RESOURCE_EXHAUSTED",
            ErrorKind::Internal => "INTERNAL",
            ErrorKind::Provider | ErrorKind::Unavailable => "UNAVAILABLE",
            ErrorKind::Timeout => "DEADLINE_EXCEEDED",
        }
    }

    /// What a provider answered with a code that is not 2xx. What it says of the gateway's own key is not repeated.
    pub fn of_provider(provider: &str, status: u16, body: &[u8]) -> Self {
        let kind = match status {
            401 | 403 => {
                let message = format!(
                    "provider {provider} refused the gateway's credentials ({status}): check spec.providers[].key of the AIGatewayConfig"
                );
                return Self::new(ErrorKind::Provider, message);
            }
            400 | 422 => ErrorKind::Invalid,
            404 => ErrorKind::NotFound,
            413 => ErrorKind::TooLarge,
            429 => ErrorKind::Limited,
            503 | 529 => ErrorKind::Unavailable,
            504 => ErrorKind::Timeout,
            _ => ErrorKind::Provider,
        };
        match serde_json::from_slice::<Value>(body).ok().and_then(|value| said(&value)) {
            Some(said) => Self::new(kind, format!("provider {provider}: {said}")),
            None => Self::new(
                kind,
                format!("provider {provider} answered with code {status} and no JSON that explains it"),
            ),
        }
    }

    /// An error that a provider told in the middle of a stream.
    pub(crate) fn of_event(event: &Value) -> Self {
        let word = |key: &str| {
            event["error"].get(key).or(event.get(key)).and_then(Value::as_str).unwrap_or_default()
        };
        let kind = match word("type").to_owned() + word("status") {
            word if word.contains("overloaded") || word.contains("UNAVAILABLE") => ErrorKind::Unavailable,
            word if word.contains("rate_limit") || word.contains("EXHAUSTED") => ErrorKind::Limited,
            word if word.contains("invalid_request") || word.contains("INVALID") => ErrorKind::Invalid,
            _ => ErrorKind::Provider,
        };
        Self::new(
            kind,
            said(event).unwrap_or_else(|| "the provider failed in the middle of the stream".to_owned()),
        )
    }

    /// The event that ends a stream of a dialect because of this error.
    pub fn event(&self, dialect: Dialect) -> Vec<u8> {
        let mut out = Vec::new();
        match dialect {
            Dialect::OpenAiResponses => {
                let code = self.code.unwrap_or("server_error");
                let data = json!({"type": "error", "code": code, "message": self.message, "param": null, "sequence_number": 0});
                sse::write(&mut out, "error", &data.to_string());
            }
            Dialect::Anthropic => sse::write(&mut out, "error", &self.body(dialect).to_string()),
            _ => sse::write(&mut out, "", &self.body(dialect).to_string()),
        }
        out
    }

    /// Whether another provider, or another try, may do better.
    pub fn is_worth_another_try(&self) -> bool {
        matches!(
            self.kind,
            ErrorKind::Limited
                | ErrorKind::Provider
                | ErrorKind::Unavailable
                | ErrorKind::Timeout
                | ErrorKind::Internal
        )
    }
}

/// What is wrong with a request.
impl From<String> for ApiError {
    fn from(message: String) -> Self {
        Self::invalid(message)
    }
}

/// The message in the body of an error of any dialect.
fn said(value: &Value) -> Option<String> {
    let found = match &value["error"] {
        Value::String(message) => Some(message.as_str()),
        error => text(error, "message"),
    };
    // The Python server of Gemini answers with a list.
    let first = value.get(0).and_then(|first| text(&first["error"], "message"));
    let found = found.or(first).or(text(value, "message"))?;
    let end = found.char_indices().nth(1_000).map_or(found.len(), |(at, _)| at);
    Some(found[..end].to_owned())
}
