//! What is asked, by path.

use http::{HeaderMap, Method};
use watchkeeper_ai::{ApiError, Dialect, ErrorKind};

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Endpoint {
    /// A model is called. Gemini names it in the path, and whether the answer is a stream.
    Call { dialect: Dialect, model: Option<String>, stream: Option<bool> },
    /// A prompt that is an API is called, or described.
    Prompt { name: String, version: Option<String>, describes: bool },
    /// How many tokens a prompt has.
    CountTokens,
    /// Which models there are.
    Models(Dialect),
    /// Whether there is this model.
    Model(Dialect, String),
}

/// The dialect that a client expects errors in that asks for something nobody knows.
pub(super) fn dialect_of(path: &str, headers: &HeaderMap) -> Dialect {
    if path.starts_with("/v1beta") {
        Dialect::Gemini
    } else if headers.contains_key("anthropic-version") || path.starts_with("/v1/messages") {
        Dialect::Anthropic
    } else {
        Dialect::OpenAiChat
    }
}

/// Reads what is asked. `path` begins with `/v1` or `/v1beta`.
pub(super) fn read(method: &Method, path: &str, headers: &HeaderMap) -> Result<Endpoint, ApiError> {
    let call = |dialect| Endpoint::Call { dialect, model: None, stream: None };
    let (endpoint, expected) = match path.trim_end_matches('/') {
        "/v1/chat/completions" => (call(Dialect::OpenAiChat), Method::POST),
        "/v1/responses" => (call(Dialect::OpenAiResponses), Method::POST),
        "/v1/embeddings" => (call(Dialect::OpenAiEmbeddings), Method::POST),
        "/v1/messages" => (call(Dialect::Anthropic), Method::POST),
        "/v1/messages/count_tokens" => (Endpoint::CountTokens, Method::POST),
        "/v1/models" | "/v1beta/models" => (Endpoint::Models(dialect_of(path, headers)), Method::GET),
        path if path.starts_with("/v1/prompts/") => {
            let (endpoint, describes) = prompt(path)?;
            (endpoint, if describes { Method::GET } else { Method::POST })
        }
        path => match path.strip_prefix("/v1/models/").or_else(|| path.strip_prefix("/v1beta/models/")) {
            Some(rest) => match rest.rsplit_once(':') {
                Some((model, action)) if path.starts_with("/v1beta") && is_action(action) => {
                    (gemini(&decoded(model), action), Method::POST)
                }
                _ => (Endpoint::Model(dialect_of(path, headers), decoded(rest)), Method::GET),
            },
            None => {
                return Err(ApiError::new(
                    ErrorKind::NotFound,
                    "there is nothing at this path: /v1/chat/completions, /v1/responses, /v1/embeddings, /v1/messages, /v1/models and /v1beta/models/MODEL:generateContent are served here",
                ));
            }
        },
    };
    match *method == expected {
        true => Ok(endpoint),
        false => Err(ApiError::invalid(format!("this path is for {expected}, not for {method}"))),
    }
}

/// `/v1/prompts/NAME`, `/v1/prompts/NAME/VERSION`, and the same with `/openapi.json`.
fn prompt(path: &str) -> Result<(Endpoint, bool), ApiError> {
    let rest = path.strip_prefix("/v1/prompts/").unwrap_or(path);
    let (rest, describes) = match rest.strip_suffix("/openapi.json") {
        Some(rest) => (rest, true),
        None => (rest, false),
    };
    let (name, version) = match rest.split_once('/') {
        Some((name, version)) if !version.contains('/') => (name, Some(decoded(version))),
        Some(_) => return Err(ApiError::new(ErrorKind::NotFound, "there is nothing at this path")),
        None => (rest, None),
    };
    Ok((Endpoint::Prompt { name: decoded(name), version, describes }, describes))
}

fn is_action(action: &str) -> bool {
    ["generateContent", "streamGenerateContent", "embedContent", "batchEmbedContents"].contains(&action)
}

fn gemini(model: &str, action: &str) -> Endpoint {
    let dialect = match action {
        "embedContent" | "batchEmbedContents" => Dialect::GeminiEmbeddings,
        _ => Dialect::Gemini,
    };
    Endpoint::Call { dialect, model: Some(model.to_owned()), stream: Some(action == "streamGenerateContent") }
}

/// The first value of a parameter of a query.
pub(super) fn parameter(query: &str, name: &str) -> Option<String> {
    query.split('&').find_map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (key == name).then(|| decoded(value))
    })
}

fn decoded(text: &str) -> String {
    String::from_utf8_lossy(&watchkeeper_core::text::percent_decoded(text.as_bytes())).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(method: Method, path: &str) -> Result<Endpoint, ApiError> {
        read(&method, path, &HeaderMap::new())
    }

    #[test]
    fn paths_say_what_is_asked() {
        let generate = of(Method::POST, "/v1beta/models/a%2Fb:streamGenerateContent").unwrap();
        let expected =
            Endpoint::Call { dialect: Dialect::Gemini, model: Some("a/b".into()), stream: Some(true) };
        assert_eq!(generate, expected);
        assert_eq!(
            of(Method::GET, "/v1/models/ft:x:1"),
            Ok(Endpoint::Model(Dialect::OpenAiChat, "ft:x:1".into()))
        );
        assert_eq!(of(Method::GET, "/v1beta/models/"), Ok(Endpoint::Models(Dialect::Gemini)));
        assert_eq!(of(Method::GET, "/v1/chat/completions").unwrap_err().kind, ErrorKind::Invalid);
        assert_eq!(of(Method::POST, "/v1/files").unwrap_err().kind, ErrorKind::NotFound);
    }
}
