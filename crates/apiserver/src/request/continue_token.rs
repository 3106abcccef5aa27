use super::rejected::Rejected;
use serde_json::{Map, Value, json};
use watchkeeper_go::base64::RAW_URL;
use watchkeeper_go::json as go_json;

const VERSION: &str = "meta.k8s.io/v1";

/// Where a list that comes in pieces goes on.
///
/// Clients pass it back as they got it; it looks like that of kube-apiserver all the same, because some look inside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    /// The version of the state to read from; `None` for the newest, which is what a client gets offered whose state has
    /// been forgotten, and which makes the list inconsistent.
    pub(crate) revision: Option<u64>,
    /// The last key that was handed out, below the prefix of the resource: `namespace/name`. It has no empty segments and
    /// none that lead elsewhere.
    pub(crate) after: String,
}

impl Token {
    /// The token as text.
    pub(crate) fn encode(&self) -> String {
        let revision = match self.revision {
            Some(revision) => json!(revision),
            None => json!(-1),
        };
        // The first key after another is that key and a zero byte.
        let start = json!(format!("{}\0", self.after));
        let text = format!(r#"{{"v":"{VERSION}","rv":{revision},"start":{start}}}"#);
        // As Go escapes JSON; these characters occur in the key only.
        let text = text.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026");
        RAW_URL.encode(text.as_bytes())
    }

    /// Reads a token that a client sent.
    pub(crate) fn decode(token: &str) -> Result<Self, Rejected> {
        Self::read(token).map_err(|error| Rejected::BadRequest(format!("invalid continue token: {error}")))
    }

    fn read(token: &str) -> Result<Self, String> {
        let invalid = |problem: String| format!("continue key is not valid: {problem}");
        let bytes = RAW_URL.decode(token).map_err(invalid)?;
        let fields = read_fields(&bytes).map_err(invalid)?;
        let version = text_field(&fields, "v").map_err(invalid)?;
        let revision = integer_field(&fields, "rv").map_err(invalid)?;
        let start = text_field(&fields, "start").map_err(invalid)?;
        if version != VERSION {
            return Err(invalid(format!("server does not recognize this encoded version {version}")));
        }
        if revision == 0 {
            let problem = "incorrect encoded start resourceVersion (version meta.k8s.io/v1)";
            return Err(invalid(problem.into()));
        }
        if start.is_empty() {
            return Err(invalid("encoded start key empty (version meta.k8s.io/v1)".into()));
        }
        let key = start.strip_prefix('/').unwrap_or(start);
        let leads_elsewhere = |segment: &str| matches!(segment, "" | "." | "..");
        if !key.is_empty() && key.split('/').any(leads_elsewhere) {
            return Err(invalid(start.into()));
        }
        let after = key.strip_suffix('\0').unwrap_or(key);
        Ok(Self { revision: u64::try_from(revision).ok(), after: after.into() })
    }
}

fn read_fields(bytes: &[u8]) -> Result<Map<String, Value>, String> {
    let text = String::from_utf8_lossy(bytes);
    match serde_json::from_str(&text) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(Value::Null) => Ok(Map::new()),
        Ok(other) => {
            let found = go_json::kind(&other);
            Err(format!("json: cannot unmarshal {found} into Go value of type storage.continueToken"))
        }
        Err(error) => Err(go_json::syntax_error(bytes).unwrap_or_else(|| error.to_string())),
    }
}

/// A field by its name in any case, which is how Go finds it.
fn field<'a>(fields: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    let found = fields.iter().rev().find(|(key, _)| key.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value).filter(|value| !value.is_null())
}

fn text_field<'a>(fields: &'a Map<String, Value>, name: &str) -> Result<&'a str, String> {
    match field(fields, name) {
        None => Ok(""),
        Some(Value::String(text)) => Ok(text),
        Some(other) => Err(mismatch(go_json::kind(other), name, "string")),
    }
}

fn integer_field(fields: &Map<String, Value>, name: &str) -> Result<i64, String> {
    match field(fields, name) {
        None => Ok(0),
        Some(Value::Number(number)) => {
            number.as_i64().ok_or_else(|| mismatch(&format!("number {number}"), name, "int64"))
        }
        Some(other) => Err(mismatch(go_json::kind(other), name, "int64")),
    }
}

fn mismatch(found: &str, name: &str, go_type: &str) -> String {
    format!("json: cannot unmarshal {found} into Go struct field continueToken.{name} of type {go_type}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::recorded;
    use proptest::prelude::*;

    #[test]
    fn tokens_are_read_and_refused_as_kube_apiserver_does() {
        for case in recorded(include_str!("cases/continue_tokens.jsonl")) {
            match Token::decode(case["in"].as_str().unwrap()) {
                Ok(token) => {
                    let key = case["key"].as_str().unwrap();
                    assert_eq!(key.strip_suffix('\0').unwrap_or(key), token.after, "{case}");
                    let revision = token.revision.map_or(-1, |revision| i64::try_from(revision).unwrap());
                    assert_eq!(case["rv"], revision, "{case}");
                }
                Err(rejected) => {
                    assert_eq!(rejected.code(), 400);
                    assert_eq!(case["error"], rejected.message(), "{case}");
                }
            }
        }
    }

    #[test]
    fn tokens_are_written_as_kube_apiserver_writes_them() {
        for case in recorded(include_str!("cases/continue_tokens_made.jsonl")) {
            let after = case["key"].as_str().unwrap().trim_end_matches('\0').into();
            let token = Token { revision: case["rv"].as_u64(), after };
            assert_eq!(case["token"], token.encode(), "{case}");
        }
    }

    #[test]
    fn a_token_for_the_newest_state_has_the_version_minus_one() {
        let token = Token { revision: None, after: "a/b".into() };
        let text = String::from_utf8(RAW_URL.decode(token.encode()).unwrap()).unwrap();
        assert_eq!(text, r#"{"v":"meta.k8s.io/v1","rv":-1,"start":"a/b\u0000"}"#);
        assert_eq!(Token::decode(&token.encode()), Ok(token));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(crate::request::cases(512)))]

        #[test]
        fn any_text_is_read_or_refused(text in any::<String>(), inner in any::<Vec<u8>>(), json in r#"\{?("(v|rv|start)":("?[a-z0-9/.]{0,5}"?),?){0,4}\}?"#) {
            let _ = Token::decode(&text);
            let _ = Token::decode(&RAW_URL.encode(&inner));
            let _ = Token::decode(&RAW_URL.encode(json.as_bytes()));
        }

        #[test]
        fn a_token_is_read_as_it_was_written(revision in proptest::option::of(1..i64::MAX as u64), after in "[^/.\0]{1,9}(/[^/.\0]{1,9})?") {
            let token = Token { revision, after };
            prop_assert_eq!(Token::decode(&token.encode()), Ok(token));
        }

        #[test]
        fn base64_is_undone(bytes in any::<Vec<u8>>()) {
            prop_assert_eq!(RAW_URL.decode(RAW_URL.encode(&bytes)), Ok(bytes));
        }
    }
}
