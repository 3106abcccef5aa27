//! The way of a call.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use tokio::time::timeout;
use watchkeeper_ai::envelope;
use watchkeeper_ai::{ApiError, Dialect, ErrorKind, Stamp, Usage, tokens_of};
use watchkeeper_front::{Body, BodyError, Response};

use super::attempt::{self, Answered, Failed, Work};
use super::cache::Slot;
use super::call::{Call, Revocation, Shared};
use super::clock::now;
use super::endpoint::{self, Endpoint, parameter};
use super::guard::{guard, is_guarded, texts_of};
use super::key::given_key;
use super::models;
use super::prompt::Prompt;
use super::relay::Relay;
use super::table::{AiGateway, AiKey, AiTable, Model, Provider, Split, limits_cost};

const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream; charset=utf-8");

/// A request that came in.
pub(crate) struct Asked {
    pub(crate) table: Arc<AiTable>,
    pub(crate) gateway: Arc<AiGateway>,
    pub(crate) shared: Arc<Shared>,
    /// The path, beginning with `/v1` or `/v1beta`.
    pub(crate) path: String,
    pub(crate) parts: Parts,
    pub(crate) body: Body,
}

/// Serves a request. Errors have the form of the dialect of its client.
pub(crate) async fn serve(asked: Asked) -> Response {
    let guessed = endpoint::dialect_of(&asked.path, &asked.parts.headers);
    let endpoint = match endpoint::read(&asked.parts.method, &asked.path, &asked.parts.headers) {
        Ok(endpoint) => endpoint,
        Err(error) => return told(guessed, &error),
    };
    let namespace = asked.gateway.key.namespace().unwrap_or_default().to_owned();
    let key = match authenticate(&asked, &namespace) {
        Ok(key) => key,
        Err(error) => return told(guessed, &error),
    };
    let gateway = Arc::clone(&asked.gateway);
    let is_limited = key.as_ref().is_some_and(|key| key.policy.limits_cost())
        || asked.table.tenant(&namespace).is_some_and(|tenant| limits_cost(&tenant.limits));
    let allows = |model: &&Arc<Model>| {
        model.is_served_by(&gateway)
            && key.as_ref().is_none_or(|key| key.may_call(&model.name))
            // Its calls are refused.
            && (model.prices.is_some() || !is_limited)
    };
    match endpoint {
        Endpoint::Models(dialect) => {
            let allowed = asked.table.models(&namespace).filter(allows).map(|model| &**model);
            page(&models::all(dialect, allowed))
        }
        Endpoint::Model(dialect, name) => match asked.table.model(&namespace, &name).filter(allows) {
            Some(model) => page(&models::one(dialect, model)),
            None => told(dialect, &no_model(&name)),
        },
        Endpoint::CountTokens => count_tokens(asked).await,
        Endpoint::Prompt { name, version, describes } => {
            prompt(asked, key, &name, version.as_deref(), describes).await
        }
        Endpoint::Call { dialect, model, stream } => call(asked, key, dialect, model, stream).await,
    }
}

/// Whose request it is; `None` if it needs no key and has none.
fn authenticate(asked: &Asked, namespace: &str) -> Result<Option<Arc<AiKey>>, ApiError> {
    let Some(given) = given_key(&asked.parts.headers, asked.parts.uri.query()) else {
        return match asked.gateway.is_open {
            true => Ok(None),
            false => Err(ApiError::new(
                ErrorKind::Unauthenticated,
                "a key is needed: send it as `Authorization: Bearer KEY`, `x-api-key: KEY` or `x-goog-api-key: KEY`",
            )),
        };
    };
    // Who knows a digest does not know its key: how long the look takes tells nothing of use.
    let known = asked.table.key(namespace, given);
    match known.filter(|key| key.is_for(&asked.gateway.key)) {
        Some(key) if key.expires.is_some_and(|end| end <= now()) => {
            Err(ApiError::new(ErrorKind::Unauthenticated, "the key has expired").code("invalid_api_key"))
        }
        Some(key) => Ok(Some(Arc::clone(key))),
        // Clients of open gateways send what their library insists on.
        None if asked.gateway.is_open => Ok(None),
        None => Err(ApiError::new(ErrorKind::Unauthenticated, "the key is not known, or was revoked")
            .code("invalid_api_key")),
    }
}

async fn call(
    asked: Asked,
    key: Option<Arc<AiKey>>,
    dialect: Dialect,
    model: Option<String>,
    stream: Option<bool>,
) -> Response {
    let mut call = Call::new(Arc::clone(&asked.shared), asked.gateway.key.clone(), dialect, key);
    let id = call.id.clone();
    let Asked { table, gateway, parts, body, .. } = asked;
    let read = read_body(body, gateway.max_body).await;
    let prepared = async {
        let work = prepared(&table, gateway, parts, read?, &mut call, model, stream)?;
        call.slot = slot(&call, &work);
        match call.slot.as_ref().and_then(Slot::answer) {
            // It uses nothing, but is a request.
            Some(answer) => {
                call.reserve(&Usage::default()).await?;
                call.refused();
                Ok((work, Some(answer)))
            }
            None => {
                call.reserve(&work.estimate).await?;
                Ok((work, None))
            }
        }
    };
    let mut response = match prepared.await {
        Ok((work, None)) => answered(call, work).await,
        Ok((work, Some(answer))) => cached(call, &work, answer),
        Err(error) => {
            let error: ApiError = error;
            call.failed(&error);
            told(dialect, &error)
        }
    };
    identify(&mut response, &id);
    response
}

/// Says by which name a call is in the records.
fn identify(response: &mut Response, id: &str) {
    if let Ok(id) = HeaderValue::from_str(id) {
        response.headers_mut().insert(HeaderName::from_static("x-request-id"), id);
    }
}

/// Reads a call, and estimates what it may use.
fn prepared(
    table: &AiTable,
    gateway: Arc<AiGateway>,
    parts: Parts,
    body: Bytes,
    call: &mut Call,
    model: Option<String>,
    stream: Option<bool>,
) -> Result<Work, ApiError> {
    let dialect = call.dialect;
    // Also what is refused.
    call.keep_content(&body);
    let mut envelope = envelope::read(dialect, &body)?;
    let name = model.unwrap_or_else(|| envelope.model.clone());
    if dialect == Dialect::Gemini && stream == Some(true) {
        let alt = parts.uri.query().and_then(|query| parameter(query, "alt"));
        if alt.as_deref() != Some("sse") {
            return Err(ApiError::invalid("streams are sent as events: ask with ?alt=sse"));
        }
    }
    if matches!(dialect, Dialect::Gemini | Dialect::GeminiEmbeddings) {
        envelope.model.clear();
    }
    let namespace = gateway.key.namespace().unwrap_or_default();
    call.tenant = table.tenant(namespace).cloned();
    if call.tenant.as_ref().is_some_and(|tenant| tenant.is_suspended) {
        return Err(ApiError::new(ErrorKind::Forbidden, "the tenant is suspended"));
    }
    let found = table.model(namespace, &name);
    let found = found.filter(|model| call.key.as_ref().is_none_or(|key| key.may_call(&model.name)));
    let Some(model) = found.cloned() else { return Err(no_model(&name)) };
    call.model = Arc::clone(&model.name);
    call.prices = model.prices;
    if call.prices.is_none() && call.limits_cost() {
        return Err(no_prices(&model));
    }
    call.stream = stream.unwrap_or(envelope.stream) && !dialect.is_embeddings();
    let mut texts = None;
    if is_guarded(call.key.as_deref(), false) {
        let value = envelope::unambiguous(&body)?;
        let said = texts_of(&value);
        guard(call.key.as_deref(), false, &said)?;
        texts = Some(said);
    }
    let order = order(&gateway, &model, call, &parts.headers);
    if order.is_empty() {
        let message = format!(
            "no provider of model {name:?} is in this gateway: see spec.targets of ModelContextMapping {}",
            model.key
        );
        return Err(ApiError::new(ErrorKind::Unavailable, message));
    }
    let output = envelope.max_tokens.unwrap_or(model.max_output).saturating_mul(envelope.choices);
    let output = if dialect.is_embeddings() { 0 } else { output };
    let estimate = Usage { input: tokens_of(&body), output, ..Usage::default() };
    call.revocation = parts.extensions.get::<Revocation>().cloned();
    let stamp = Stamp {
        id: format!("{}{}", prefix(dialect), call.id),
        model: name,
        created: now(),
        stream_usage: envelope.stream_usage || dialect != Dialect::OpenAiChat,
    };
    Ok(Work {
        gateway,
        model,
        order,
        dialect,
        envelope,
        body,
        headers: parts.headers,
        stream: call.stream,
        estimate,
        is_budgeted: call.is_budgeted(),
        texts,
        stamp,
    })
}

/// Where the answer to a call is kept, if its policy says so and the client does not say otherwise.
fn slot(call: &Call, work: &Work) -> Option<Slot> {
    let cache = call.key.as_ref()?.policy.cache.as_ref()?;
    let says_no = work.headers.get(CACHE_CONTROL).is_some_and(|value| {
        let value = String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase();
        value.contains("no-cache") || value.contains("no-store")
    });
    (!says_no).then(|| {
        // Of a model that is not drawn anew for each call, each variant has answers of its own.
        let variant = work.order.first().filter(|_| !matches!(work.model.split, Split::Random));
        let (provider, model) = variant.map_or(("", ""), |(provider, model)| (&*provider.name, &**model));
        let (dialect, name) = (work.dialect.name(), &*work.model.name);
        let mut asked: Vec<&[u8]> = [dialect, name, provider, model].map(str::as_bytes).into();
        asked.push(if work.stream { &b"stream"[..] } else { b"whole" });
        for header in attempt::SHAPING {
            let value = work.headers.get(header);
            asked.push(if value.is_some() { &b"given"[..] } else { b"none" });
            asked.push(value.map_or(&b""[..], HeaderValue::as_bytes));
        }
        asked.push(&work.body);
        let form = Arc::clone(&work.model);
        Slot::of(cache, form, &asked)
    })
}

/// An answer that was given before.
fn cached(mut call: Call, work: &Work, answer: Bytes) -> Response {
    (call.status, call.is_complete, call.is_cached, call.slot) = (200, true, true, None);
    let mut response = Response::new(Body::whole(answer));
    let kind = if work.stream { EVENTS } else { HeaderValue::from_static("application/json") };
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response.headers_mut().insert(HeaderName::from_static("x-cache"), HeaderValue::from_static("hit"));
    response
}

/// Calls a prompt that is an API, or describes it.
async fn prompt(
    asked: Asked,
    key: Option<Arc<AiKey>>,
    name: &str,
    version: Option<&str>,
    describes: bool,
) -> Response {
    let dialect = Dialect::OpenAiChat;
    let Asked { table, gateway, shared, parts, body, .. } = asked;
    let named = parts.uri.query().and_then(|query| parameter(query, "model"));
    let may_call = |prompt: &&Arc<Prompt>| {
        let model = named.as_deref().unwrap_or(&prompt.model);
        key.as_ref().is_none_or(|key| key.may_call(model))
    };
    let Some(prompt) = table.prompt(&gateway.key, name, version).filter(may_call).cloned() else {
        let message = "there is no such prompt, or no such version of it, or this key may not call its model";
        return told(dialect, &ApiError::new(ErrorKind::NotFound, message));
    };
    if describes {
        return page(&prompt.openapi());
    }
    let mut call = Call::new(shared, gateway.key.clone(), dialect, key);
    let id = call.id.clone();
    let model = named.unwrap_or_else(|| prompt.model.as_ref().to_owned());
    let answered = async {
        let body = read_body(body, gateway.max_body).await?;
        let inputs: Value = serde_json::from_slice(&body)
            .map_err(|_| ApiError::invalid("the body is not valid JSON in UTF-8"))?;
        let request = prompt.request(&model, &inputs)?.to_string();
        let work = prepared(&table, gateway, parts, request.into(), &mut call, None, Some(false))?;
        call.reserve(&work.estimate).await?;
        let answered = attempted(&mut call, &work).await.map_err(|failed| failed.error)?;
        let Answered::Whole(bytes) = answered else {
            return Err(ApiError::new(
                ErrorKind::Provider,
                "the answer is a stream, though none was asked for",
            ));
        };
        let value: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        let response = dialect.read_response(&value)?;
        (call.status, call.is_complete) = (200, true);
        Ok(page(&prompt.answer(&model, &response)))
    };
    let answered = answered.await;
    let mut response = answered.unwrap_or_else(|error: ApiError| {
        call.failed(&error);
        told(dialect, &error)
    });
    identify(&mut response, &id);
    response
}

/// The beginning of identifiers, as clients of the dialect are used to.
fn prefix(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::OpenAiChat => "chatcmpl-",
        Dialect::OpenAiResponses => "resp_",
        Dialect::Anthropic => "msg_",
        _ => "",
    }
}

async fn read_body(body: Body, limit: usize) -> Result<Bytes, ApiError> {
    body.read(limit).await.map_err(|error| match error {
        BodyError::TooLarge { .. } => ApiError::new(
            ErrorKind::TooLarge,
            format!("the request is larger than {limit} bytes: send less, or have spec.maxBodyBytes of the AIGatewayConfig raised"),
        ),
        BodyError::Stalled => ApiError::invalid("the rest of the request did not come in time"),
        BodyError::Malformed(_) => ApiError::invalid("the body of the request is malformed"),
        BodyError::Interrupted(_) => ApiError::invalid("the request broke off"),
    })
}

fn no_model(name: &str) -> ApiError {
    let shown: String = name.chars().take(100).collect();
    let message = format!(
        "there is no model {shown:?}, or this key may not call it; GET /v1/models lists those that it may"
    );
    ApiError::new(ErrorKind::NotFound, message).code("model_not_found")
}

/// What a call costs that has a limit of cost is to be known.
fn no_prices(model: &Model) -> ApiError {
    let message = format!(
        "model {:?} has no prices, so that its calls would not count for the limit of cost that this key has: set spec.prices of ModelContextMapping {}, to \"0.00\" if they cost nothing",
        model.name, model.key
    );
    ApiError::new(ErrorKind::Forbidden, message).code("model_without_prices")
}

/// Who is asked, in which order.
fn order(
    gateway: &AiGateway,
    model: &Model,
    call: &Call,
    headers: &HeaderMap,
) -> Vec<(Arc<Provider>, Arc<str>)> {
    let drawn = match &model.split {
        Split::Random => fastrand::u64(..),
        Split::Key => hash(call.key.as_ref().map_or(&b""[..], |key| key.name.as_bytes())),
        Split::Header(name) => hash(headers.get(name).map_or(&b""[..], HeaderValue::as_bytes)),
    };
    let targets = model.order(drawn).into_iter();
    let found = targets.filter_map(|target| {
        gateway
            .providers
            .get(&target.provider)
            .map(|provider| (Arc::clone(provider), Arc::clone(&target.model)))
    });
    found.collect()
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

type Attempts = Pin<Box<dyn Future<Output = (Call, Dialect, Result<Answered, Failed>)> + Send>>;

/// Asks providers until one begins to answer, or the call is cut.
async fn attempted(call: &mut Call, work: &Work) -> Result<Answered, Failed> {
    let cut = call.cut();
    tokio::select! {
        biased;
        error = cut => Err(error.into()),
        answered = attempt::all(call, work) => answered,
    }
}

/// Asks providers, and answers.
async fn answered(call: Call, work: Work) -> Response {
    // The library of Google takes comments for answers.
    let may_comment = work.stream && work.dialect != Dialect::Gemini;
    let (dialect, wait) = (work.dialect, work.gateway.keep_alive.filter(|_| may_comment));
    let mut attempts: Attempts = Box::pin(async move {
        let mut call = call;
        let answered = attempted(&mut call, &work).await;
        (call, work.dialect, answered)
    });
    let done = match wait {
        None => attempts.await,
        Some(wait) => match timeout(wait, &mut attempts).await {
            Ok(done) => done,
            // From here on, errors are told in the stream.
            Err(_) => return events(Phase::Waiting(attempts, wait)),
        },
    };
    let (mut call, _, answered) = done;
    match answered {
        Ok(Answered::Whole(bytes)) => {
            (call.status, call.is_complete) = (200, true);
            if let Some(slot) = call.slot.take() {
                slot.keep(bytes.clone());
            }
            let mut response = Response::new(Body::whole(bytes));
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            response
        }
        Ok(Answered::Stream(relay)) => {
            call.status = 200;
            events(Phase::Relaying(relay, Box::new(call)))
        }
        Err(Failed { error, said: Some((status, bytes)) }) => {
            call.failed(&error);
            let mut response = told(dialect, &error);
            *response.status_mut() = status;
            *response.body_mut() = Body::whole(bytes);
            response
        }
        Err(Failed { error, said: None }) => {
            call.failed(&error);
            told(dialect, &error)
        }
    }
}

/// Where a stream of events is.
enum Phase {
    /// Providers are asked; the client gets comments.
    Waiting(Attempts, Duration),
    /// One answers.
    Relaying(Box<Relay>, Box<Call>),
    /// All is said.
    Over,
}

/// A stream of events. When the client leaves, it is dropped, with the connection to the provider.
fn events(phase: Phase) -> Response {
    let pieces = stream::unfold(phase, |mut phase| async move {
        loop {
            match phase {
                Phase::Over => return None,
                Phase::Relaying(mut relay, mut call) => {
                    let piece = relay.next(&mut call).await;
                    match &piece {
                        Some(bytes) => call.slot.iter_mut().for_each(|slot| slot.pass(bytes)),
                        None => {
                            let slot = call.slot.take().filter(|_| call.is_complete && call.error.is_none());
                            slot.into_iter().for_each(Slot::keep_passed);
                        }
                    }
                    return piece.map(|bytes| (bytes, Phase::Relaying(relay, call)));
                }
                Phase::Waiting(mut attempts, wait) => match timeout(wait, &mut attempts).await {
                    Err(_) => {
                        return Some((
                            Bytes::from_static(b": keep-alive\n\n"),
                            Phase::Waiting(attempts, wait),
                        ));
                    }
                    Ok((mut call, _, Ok(Answered::Stream(relay)))) => {
                        call.status = 200;
                        phase = Phase::Relaying(relay, Box::new(call));
                    }
                    Ok((mut call, dialect, answered)) => {
                        let error = match answered {
                            Err(failed) => failed.error,
                            Ok(_) => ApiError::new(
                                ErrorKind::Provider,
                                "the answer is no stream, though one was asked for",
                            ),
                        };
                        call.status = 200;
                        call.failed(&error);
                        return Some((error.event(dialect).into(), Phase::Over));
                    }
                },
            }
        }
    });
    let mut response = Response::new(Body::stream(pieces));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, EVENTS);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // Proxies on the way are asked not to collect events.
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response
}

/// How many tokens a prompt has, as the gateway estimates it for budgets: rather too many than too few.
async fn count_tokens(asked: Asked) -> Response {
    match read_body(asked.body, asked.gateway.max_body).await {
        Ok(body) => match envelope::read(Dialect::Anthropic, &body) {
            Ok(_) => page(&json!({"input_tokens": tokens_of(&body)})),
            Err(error) => told(Dialect::Anthropic, &error),
        },
        Err(error) => told(Dialect::Anthropic, &error),
    }
}

fn page(value: &Value) -> Response {
    let mut response = Response::new(Body::whole(value.to_string()));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// What a client is told whose request is refused before it comes here, in the form of its dialect. `path` begins with `/v1` or `/v1beta`.
pub(crate) fn refused(path: &str, headers: &HeaderMap, code: StatusCode, text: &str) -> Response {
    let kind = match code {
        StatusCode::UNAUTHORIZED => ErrorKind::Unauthenticated,
        StatusCode::FORBIDDEN => ErrorKind::Forbidden,
        StatusCode::NOT_FOUND => ErrorKind::NotFound,
        StatusCode::GONE => ErrorKind::Gone,
        code if code.is_client_error() => ErrorKind::Invalid,
        _ => ErrorKind::Internal,
    };
    told(endpoint::dialect_of(path, headers), &ApiError::new(kind, text))
}

/// An error, as clients of a dialect expect it.
pub(super) fn told(dialect: Dialect, error: &ApiError) -> Response {
    let mut response = page(&error.body(dialect));
    *response.status_mut() =
        StatusCode::from_u16(error.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    if let Some(wait) = error.retry_after {
        headers.insert(RETRY_AFTER, wait.into());
    }
    if error.kind == ErrorKind::Unauthenticated {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    // The clients of OpenAI and Anthropic repeat 429 by themselves, also where that is of no use.
    if error.code == Some("insufficient_quota") {
        headers.insert(HeaderName::from_static("x-should-retry"), HeaderValue::from_static("false"));
    }
    response
}
