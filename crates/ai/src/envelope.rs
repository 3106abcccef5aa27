//! What is to be known of a request that is passed on as it is.
//!
//! A request of a client that speaks the provider's dialect is not read as a whole: a few fields are looked at, and the name of the model is replaced
//! in place. All other bytes stay what they were, so that fields nobody here knows survive, and caches of prompts at the provider hold.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::{ApiError, Dialect};

/// The longest name of a model.
const MODEL_LENGTH: usize = 256;
/// How deep JSON may be nested: as deep as it can be translated.
const DEPTH: usize = 127;

/// What is looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Envelope {
    /// The model; empty for Gemini, which names it in the path.
    pub model: String,
    /// Whether the answer comes in pieces; not for Gemini.
    pub stream: bool,
    /// How much the model may write.
    pub max_tokens: Option<u64>,
    /// How many answers are asked for at once.
    pub choices: u64,
    /// Whether the client asks for usage at the end of a stream of chat completions.
    pub stream_usage: bool,
}

#[derive(Deserialize)]
struct Fields<'a> {
    #[serde(borrow)]
    model: Option<Cow<'a, str>>,
    stream: Option<bool>,
    max_tokens: Option<u64>,
    max_completion_tokens: Option<u64>,
    max_output_tokens: Option<u64>,
    n: Option<u64>,
    stream_options: Option<StreamOptions>,
    #[serde(rename = "generationConfig", alias = "generation_config")]
    generation: Option<Generation>,
}

#[derive(Deserialize)]
struct StreamOptions {
    include_usage: Option<bool>,
}

#[derive(Deserialize)]
struct Generation {
    #[serde(rename = "maxOutputTokens", alias = "max_output_tokens")]
    max_output_tokens: Option<u64>,
    #[serde(rename = "candidateCount", alias = "candidate_count")]
    candidates: Option<u64>,
}

/// Looks at a request.
///
/// # Errors
///
/// If it is not a JSON object in UTF-8, or one of the fields is there twice or of another type: gateway and provider could read it differently.
pub fn read(dialect: Dialect, body: &[u8]) -> Result<Envelope, ApiError> {
    if let Err(error) = std::str::from_utf8(body) {
        return Err(ApiError::invalid(format!(
            "the body is not UTF-8: the byte at {} is wrong; send JSON in UTF-8",
            error.valid_up_to()
        )));
    }
    let fields: Fields<'_> = serde_json::from_slice(body).map_err(|error| {
        // What serde says of the value may be a part of the prompt: only the place is told.
        let what = match error.classify() {
            serde_json::error::Category::Data => "a field of it has the wrong type or is there twice",
            _ => "it is not valid JSON",
        };
        ApiError::invalid(format!(
            "the body cannot be read: {what} (line {}, column {})",
            error.line(),
            error.column()
        ))
    })?;
    if is_deep(body) {
        return Err(ApiError::invalid(format!(
            "the body cannot be read: it is nested deeper than {DEPTH} levels"
        )));
    }
    let model = fields.model.map(Cow::into_owned).unwrap_or_default();
    if model.len() > MODEL_LENGTH {
        return Err(ApiError::invalid(format!("model: is longer than {MODEL_LENGTH} characters")));
    }
    if model.is_empty() && !matches!(dialect, Dialect::Gemini | Dialect::GeminiEmbeddings) {
        return Err(ApiError::invalid(
            "model: is missing; GET /v1/models lists those that your key may call",
        ));
    }
    // Only the fields that a provider of the dialect reads: a limit that it does not know of limits nothing.
    let (max_tokens, choices) = match dialect {
        // Which of the two counts is for the provider to say: the larger one is reserved.
        Dialect::OpenAiChat => (fields.max_completion_tokens.max(fields.max_tokens), fields.n),
        Dialect::OpenAiResponses => (fields.max_output_tokens, None),
        Dialect::Anthropic => (fields.max_tokens, None),
        Dialect::Gemini => {
            fields.generation.map_or((None, None), |config| (config.max_output_tokens, config.candidates))
        }
        Dialect::OpenAiEmbeddings | Dialect::GeminiEmbeddings => (None, None),
    };
    Ok(Envelope {
        model,
        stream: fields.stream.unwrap_or(false),
        max_tokens,
        choices: choices.unwrap_or(1).max(1),
        stream_usage: fields.stream_options.and_then(|options| options.include_usage).unwrap_or(false),
    })
}

/// Reads all of a request that is passed on as it is.
///
/// # Errors
///
/// If it is not JSON, or two fields of an object have the same name: gateway and provider could read it differently.
pub fn unambiguous(body: &[u8]) -> Result<Value, ApiError> {
    let mut doubled = None;
    let mut reader = serde_json::Deserializer::from_slice(body);
    match Unambiguous(&mut doubled).deserialize(&mut reader) {
        Ok(value) => Ok(value),
        Err(_) => Err(ApiError::invalid(match doubled {
            Some(name) => {
                let shown: String = name.chars().take(100).collect();
                format!(
                    "the body cannot be read: an object in it has the field {shown:?} twice; send it once"
                )
            }
            None => "the body is not valid JSON".to_owned(),
        })),
    }
}

/// Reads a value, and stops at the first name that is there twice in an object.
struct Unambiguous<'a>(&'a mut Option<String>);

impl<'de> DeserializeSeed<'de> for Unambiguous<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Unambiguous<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(Unambiguous(&mut *self.0))? {
            list.push(item);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = fields.next_key::<String>()? {
            if object.contains_key(&name) {
                *self.0 = Some(name);
                return Err(A::Error::custom("a field is there twice"));
            }
            object.insert(name, fields.next_value_seed(Unambiguous(&mut *self.0))?);
        }
        Ok(object.into())
    }
}

/// The same bytes with a limit of what the model may write, for requests of a dialect that have none. Messages of Anthropic always have one.
pub fn with_max_tokens(dialect: Dialect, body: &[u8], most: u64) -> Vec<u8> {
    let most = most.to_string();
    match dialect {
        Dialect::OpenAiChat => with_field(body, "max_completion_tokens", &most),
        Dialect::OpenAiResponses => with_field(body, "max_output_tokens", &most),
        Dialect::Gemini => {
            let snake = value_of(body, "generation_config").is_some();
            let (config, field) = match snake {
                true => ("generation_config", "max_output_tokens"),
                false => ("generationConfig", "maxOutputTokens"),
            };
            with_inner_field(body, config, field, &most)
        }
        Dialect::Anthropic | Dialect::OpenAiEmbeddings | Dialect::GeminiEmbeddings => body.to_vec(),
    }
}

/// The same bytes, which ask for usage at the end of a stream of chat completions.
pub fn with_stream_usage(body: &[u8]) -> Vec<u8> {
    with_inner_field(body, "stream_options", "include_usage", "true")
}

/// The same bytes with another model.
pub fn with_model(body: &[u8], model: &str) -> Vec<u8> {
    match value_of(body, "model") {
        Some(Range { start, end }) => {
            let name = serde_json::Value::from(model).to_string();
            let mut changed = Vec::with_capacity(body.len() + name.len());
            changed.extend_from_slice(&body[..start]);
            changed.extend_from_slice(name.as_bytes());
            changed.extend_from_slice(&body[end..]);
            changed
        }
        None => body.to_vec(),
    }
}

/// The same bytes with a field of the outermost object set: in its place if it is there, at the end if it is not. `value` is JSON.
fn with_field(body: &[u8], name: &str, value: &str) -> Vec<u8> {
    if let Some(Range { start, end }) = value_of(body, name) {
        return [&body[..start], value.as_bytes(), &body[end..]].concat();
    }
    let Some(end) = body.iter().rposition(|byte| *byte == b'}') else { return body.to_vec() };
    let is_empty = body[..end].iter().rev().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
    let comma = if is_empty { "" } else { "," };
    let field = format!("{comma}\"{name}\":{value}");
    [&body[..end], field.as_bytes(), &body[end..]].concat()
}

/// The same bytes with a field of an object in the outermost object set. The object is added if it is missing or null.
fn with_inner_field(body: &[u8], object: &str, name: &str, value: &str) -> Vec<u8> {
    match value_of(body, object).filter(|found| body[found.start] == b'{') {
        Some(Range { start, end }) => {
            [&body[..start], &with_field(&body[start..end], name, value), &body[end..]].concat()
        }
        None => with_field(body, object, &format!("{{\"{name}\":{value}}}")),
    }
}

/// Where the value of a field of the outermost object is. The bytes have to be valid JSON.
fn value_of(body: &[u8], name: &str) -> Option<Range<usize>> {
    let mut at = skip_space(body, 0);
    if body.get(at) != Some(&b'{') {
        return None;
    }
    at = skip_space(body, at + 1);
    while body.get(at) == Some(&b'"') {
        let key = at..string_end(body, at)?;
        at = skip_space(body, key.end);
        if body.get(at) != Some(&b':') {
            return None;
        }
        let start = skip_space(body, at + 1);
        let end = value_end(body, start)?;
        let is_it = body[key.start + 1..key.end - 1] == *name.as_bytes()
            || serde_json::from_slice::<String>(&body[key]).is_ok_and(|key| key == name);
        if is_it {
            return Some(start..end);
        }
        at = skip_space(body, end);
        if body.get(at) != Some(&b',') {
            return None;
        }
        at = skip_space(body, at + 1);
    }
    None
}

fn skip_space(body: &[u8], at: usize) -> usize {
    body[at.min(body.len())..]
        .iter()
        .position(|byte| !byte.is_ascii_whitespace())
        .map_or(body.len(), |skip| at + skip)
}

/// Where a text ends that begins here.
fn string_end(body: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        at += memchr::memchr2(b'"', b'\\', body.get(at..)?)?;
        match body[at] {
            b'"' => return Some(at + 1),
            _ => at += 2,
        }
    }
}

/// Where a value ends that begins here.
fn value_end(body: &[u8], start: usize) -> Option<usize> {
    match body.get(start)? {
        b'"' => string_end(body, start),
        b'{' | b'[' => {
            let (mut depth, mut at) = (0_usize, start);
            loop {
                match body.get(at)? {
                    b'"' => at = string_end(body, at)?,
                    byte => {
                        match byte {
                            b'{' | b'[' => depth += 1,
                            b'}' | b']' => depth -= 1,
                            _ => {}
                        }
                        at += 1;
                    }
                }
                if depth == 0 {
                    return Some(at);
                }
            }
        }
        _ => Some(
            body[start..]
                .iter()
                .position(|byte| b",]}".contains(byte) || byte.is_ascii_whitespace())
                .map_or(body.len(), |length| start + length),
        ),
    }
}

/// Whether valid JSON is nested too deep.
fn is_deep(body: &[u8]) -> bool {
    let (mut depth, mut at) = (0_usize, 0);
    while let Some(byte) = body.get(at) {
        match byte {
            b'"' => match string_end(body, at) {
                Some(end) => {
                    at = end;
                    continue;
                }
                None => return false,
            },
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEPTH {
            return true;
        }
        at += 1;
    }
    false
}

/// Whether bytes are a JSON value, without keeping any of it.
pub fn is_json(body: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(body).is_ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn only_the_model_is_replaced() {
        let body = br#" { "messages" : [{"model":"no","x":"\"}{"}], "n":1.50, "model" : "a" , "future": {"field":[ ]} }"#;
        let changed = with_model(body, "b\"c");
        let expected = String::from_utf8_lossy(body).replace("\"a\"", r#""b\"c""#);
        assert_eq!(String::from_utf8_lossy(&changed), expected);
        assert_eq!(with_model(br#"{"\u006dodel":"a"}"#, "b"), br#"{"\u006dodel":"b"}"#);
    }

    #[test]
    fn a_field_is_set_in_its_place_or_added_at_the_end() {
        assert_eq!(with_field(b"{\"a\":1}\n", "b", "2"), b"{\"a\":1,\"b\":2}\n");
        assert_eq!(with_field(b"{ }", "b", "2"), b"{ \"b\":2}");
        assert_eq!(with_field(b"{\"b\":null, \"a\":1}", "b", "2"), b"{\"b\":2, \"a\":1}");
    }

    #[test]
    fn usage_is_asked_for_whatever_the_client_says_of_streams() {
        let asked = |body: &str| String::from_utf8(with_stream_usage(body.as_bytes())).unwrap();
        assert_eq!(asked(r#"{"a":1}"#), r#"{"a":1,"stream_options":{"include_usage":true}}"#);
        assert_eq!(asked(r#"{"stream_options":null}"#), r#"{"stream_options":{"include_usage":true}}"#);
        let given = r#"{"stream_options":{"include_obfuscation":false, "include_usage":false},"a":1}"#;
        let expected = r#"{"stream_options":{"include_obfuscation":false, "include_usage":true},"a":1}"#;
        assert_eq!(asked(given), expected);
    }

    #[test]
    fn a_limit_counts_only_in_the_dialect_that_has_it() {
        let all = json!({
            "model": "m", "max_tokens": 10, "max_completion_tokens": 20, "max_output_tokens": 1, "n": 3,
            "generationConfig": {"maxOutputTokens": 40, "candidateCount": 5},
        });
        for (dialect, most, choices) in [
            (Dialect::OpenAiChat, Some(20), 3),
            (Dialect::OpenAiResponses, Some(1), 1),
            (Dialect::Anthropic, Some(10), 1),
            (Dialect::Gemini, Some(40), 5),
            (Dialect::OpenAiEmbeddings, None, 1),
        ] {
            let envelope = read(dialect, all.to_string().as_bytes()).unwrap();
            assert_eq!((envelope.max_tokens, envelope.choices), (most, choices), "{dialect:?}");
        }
        let other = json!({"model": "m", "max_output_tokens": 1}).to_string();
        assert_eq!(read(Dialect::OpenAiChat, other.as_bytes()).unwrap().max_tokens, None);
    }

    #[test]
    fn a_limit_is_added_where_the_dialect_has_it() {
        for (dialect, body) in [
            (Dialect::OpenAiChat, r#"{"model":"m","max_completion_tokens":null}"#),
            (Dialect::OpenAiChat, r#"{"model":"m"}"#),
            (Dialect::OpenAiResponses, r#"{"model":"m"}"#),
            (Dialect::Gemini, r#"{"contents":[]}"#),
            (Dialect::Gemini, r#"{"generationConfig":null}"#),
            (Dialect::Gemini, r#"{"generationConfig":{"topK":1}}"#),
            (Dialect::Gemini, r#"{"generation_config":{}}"#),
        ] {
            let changed = with_max_tokens(dialect, body.as_bytes(), 77);
            assert_eq!(read(dialect, &changed).unwrap().max_tokens, Some(77), "{body}");
        }
    }

    #[test]
    fn requests_that_could_be_read_in_two_ways_are_refused() {
        let wrong = |body: &[u8]| read(Dialect::OpenAiChat, body).unwrap_err().message;
        assert!(wrong(br#"{"model":"a","model":"b"}"#).contains("there twice"));
        assert!(wrong(br#"{"model":7}"#).contains("wrong type"));
        assert!(wrong(b"{\"model\":\"a\"").contains("not valid JSON"));
        assert!(wrong(b"{\"model\":\"\xff\"}").contains("not UTF-8: the byte at 10"));
        assert!(wrong(br#"{"messages":[]}"#).contains("model: is missing"));
        let deep = format!("{{\"model\":\"a\",\"x\":{}1{}}}", "[".repeat(1_000), "]".repeat(1_000));
        assert!(wrong(deep.as_bytes()).contains("nested deeper"));
        assert!(!wrong(br#"{"model":"a","stream":"canary-prompt"}"#).contains("canary"));
    }

    #[test]
    fn what_is_looked_at_is_found() {
        let body = json!({"model": "m", "stream": true, "max_completion_tokens": 5, "n": 2, "stream_options": {"include_usage": true}});
        let envelope = read(Dialect::OpenAiChat, body.to_string().as_bytes()).unwrap();
        let expected =
            Envelope { model: "m".into(), stream: true, max_tokens: Some(5), choices: 2, stream_usage: true };
        assert_eq!(envelope, expected);
        let body = json!({"contents": [], "generationConfig": {"maxOutputTokens": 9}});
        assert_eq!(read(Dialect::Gemini, body.to_string().as_bytes()).unwrap().max_tokens, Some(9));
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf =
            prop_oneof![any::<i64>().prop_map(Value::from), ".*".prop_map(Value::from), Just(Value::Null)];
        leaf.prop_recursive(3, 20, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::hash_map(".*", inner, 0..4).prop_map(|map| map.into_iter().collect()),
            ]
        })
    }

    proptest! {
        #[test]
        fn all_else_stays_whatever_it_is(mut fields in prop::collection::hash_map(".*", value(), 0..5), model in ".*", pretty in any::<bool>()) {
            fields.insert("model".into(), "before".into());
            let before: Value = fields.into_iter().collect();
            let text = if pretty { serde_json::to_string_pretty(&before).unwrap() } else { before.to_string() };
            let mut expected = before;
            expected["model"] = model.as_str().into();
            let changed: Value = serde_json::from_slice(&with_model(text.as_bytes(), &model)).unwrap();
            prop_assert_eq!(changed, expected);
        }
    }
}
