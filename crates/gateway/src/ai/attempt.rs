//! Providers, one after the other, until one answers.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderName, HeaderValue, RETRY_AFTER,
};
use http::{HeaderMap, Method, Request, StatusCode, Uri};
use hyper::body::Incoming;
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout_at};
use watchkeeper_ai::envelope::{self, Envelope};
use watchkeeper_ai::{
    ApiError, ChatRequest, Dialect, EmbeddingRequest, EmbeddingResponse, ErrorKind, Expression, Order, Stamp,
    Usage,
};
use watchkeeper_front::Body;

use super::call::Call;
use super::content::said_by;
use super::guard::{Judge, guard, is_guarded, texts_of};
use super::provider_key::ProviderKey;
use super::relay::{Held, Relay, Route};
use super::table::{AiGateway, Model, Provider};
use crate::upstream::{EndpointState, Lease};

/// The largest answer that is no stream, in bytes.
const ANSWER: usize = 32 << 20;
/// The largest error that is read, in bytes.
const ERROR: usize = 64 << 10;
/// How long is waited for the first token if nobody said: longer than any connection lives.
const FOR_EVER: Duration = Duration::from_secs(86_400);
/// The version of messages that providers are asked in, if the client does not say.
const ANTHROPIC_VERSION: HeaderValue = HeaderValue::from_static("2023-06-01");
/// Headers of clients that providers of the same dialect get, and that change what they answer.
pub(super) const SHAPING: [&str; 3] = ["anthropic-version", "anthropic-beta", "openai-beta"];
/// Headers that they get besides.
const PASSED: [&str; 2] = ["idempotency-key", "traceparent"];

/// What is to be done.
pub(super) struct Work {
    pub(super) gateway: Arc<AiGateway>,
    pub(super) model: Arc<Model>,
    /// Who is asked, in this order, and for which model.
    pub(super) order: Vec<(Arc<Provider>, Arc<str>)>,
    pub(super) dialect: Dialect,
    pub(super) envelope: Envelope,
    pub(super) body: Bytes,
    pub(super) headers: HeaderMap,
    pub(super) stream: bool,
    /// What is reserved.
    pub(super) estimate: Usage,
    /// Whether tokens or money are limited: then no answer may be longer than what is reserved for it.
    pub(super) is_budgeted: bool,
    /// All texts of the request, if webhooks are to be asked about them.
    pub(super) texts: Option<String>,
    pub(super) stamp: Stamp,
}

/// What a provider answered.
pub(super) enum Answered {
    /// All of it.
    Whole(Bytes),
    /// A stream that has begun.
    Stream(Box<Relay>),
}

/// Why there is no answer.
pub(super) struct Failed {
    pub(super) error: ApiError,
    /// What the provider said, if the client speaks its dialect.
    pub(super) said: Option<(StatusCode, Bytes)>,
}

impl From<ApiError> for Failed {
    fn from(error: ApiError) -> Self {
        Self { error, said: None }
    }
}

/// Asks providers until one begins to answer. Those are asked before that have to judge the request.
pub(super) async fn all(call: &mut Call, work: &Work) -> Result<Answered, Failed> {
    if let Some((judge, texts)) = Judge::of(call, false).zip(work.texts.clone())
        && let Err(error) = judge.ask(texts).await
    {
        // It costs a request, as it has cost the webhook one.
        call.refused();
        return Err(error.into());
    }
    let retry = work.gateway.retry;
    let available: Vec<&(Arc<Provider>, Arc<str>)> = work
        .order
        .iter()
        .filter(|(provider, _)| server(provider).is_some_and(|server| server.is_available()))
        .collect();
    // Those that are left out are asked nevertheless if there are no others.
    let order = if available.is_empty() { work.order.iter().collect() } else { available };
    let mut failed =
        Failed::from(ApiError::new(ErrorKind::Unavailable, "no provider of this model is there"));
    for number in 0..=retry.attempts {
        let Some((provider, model)) = order.get(number as usize % order.len().max(1)) else { break };
        let round = number / order.len().max(1) as u32;
        if round > 0 {
            let wait = retry.backoff * 2_u32.saturating_pow(round - 1).min(64);
            sleep(wait.mul_f64(0.5 + fastrand::f64() / 2.0)).await;
        }
        match one(call, work, provider, model).await {
            Ok(answered) => return Ok(answered),
            Err(error) => failed = error,
        }
        tracing::debug!(provider = &*provider.name, error = ?failed.error.kind, "a provider did not answer");
        let may_go_on = match failed.error.kind {
            // What one provider has no words for, another one may have.
            ErrorKind::Invalid => failed.said.is_none() && number as usize + 1 < order.len(),
            // A budget that does not allow another try.
            ErrorKind::Limited | ErrorKind::Unavailable if failed.error.code.is_some() => false,
            _ => failed.error.is_worth_another_try(),
        };
        if !may_go_on {
            break;
        }
    }
    Err(failed)
}

/// A provider has one address.
fn server(provider: &Provider) -> Option<&Arc<EndpointState>> {
    provider.backend.endpoints.first().map(|endpoint| &endpoint.state)
}

/// How a request of a client becomes one for a provider, and its answer one for the client.
struct Translation {
    dialect: Dialect,
    body: Vec<u8>,
    /// Whether the client did not ask for the usage that ends the stream.
    strip_usage: bool,
    embeddings: Option<EmbeddingRequest>,
}

fn translate(work: &Work, provider: &Provider, model: &str) -> Result<Translation, ApiError> {
    let Some(dialect) = provider.speaks(work.dialect) else {
        return Err(ApiError::invalid(format!("model {:?} makes no vectors", work.model.name)));
    };
    let mut translation = Translation { dialect, body: Vec::new(), strip_usage: false, embeddings: None };
    let parsed = || -> Result<Value, ApiError> {
        serde_json::from_slice(&work.body).map_err(|_| ApiError::invalid("the body is not valid JSON"))
    };
    if work.dialect.is_embeddings() && (dialect != work.dialect || dialect == Dialect::GeminiEmbeddings) {
        let mut request = EmbeddingRequest::read(work.dialect, &parsed()?)?;
        request.model = model.to_owned();
        translation.body = request.write(dialect).to_string().into_bytes();
        translation.embeddings = Some(request);
    } else if dialect == work.dialect {
        let is_named = !work.envelope.model.is_empty() && work.envelope.model != model;
        translation.body = match is_named {
            true => envelope::with_model(&work.body, model),
            false => work.body.to_vec(),
        };
        let asks = dialect == Dialect::OpenAiChat && work.stream && provider.stream_usage;
        if asks && !work.envelope.stream_usage {
            translation.body = envelope::with_stream_usage(&translation.body);
            translation.strip_usage = true;
        }
        if work.is_budgeted && work.envelope.max_tokens.is_none() {
            translation.body = envelope::with_max_tokens(dialect, &translation.body, work.model.max_output);
        }
    } else {
        let mut request: ChatRequest = work.dialect.read_request(&parsed()?)?;
        request.model = model.to_owned();
        request.stream = work.stream;
        // Messages need a number, and what is reserved is what may be written.
        let needs = work.is_budgeted || dialect == Dialect::Anthropic;
        request.max_tokens = request.max_tokens.or(needs.then_some(work.model.max_output));
        translation.body = Order::of(&work.body).write(&dialect.write_request(&request)?);
    }
    if let Some(expression) = &work.model.request {
        translation.body = changed(expression, "request", &translation.body)?;
    }
    Ok(translation)
}

/// Makes of a document what an expression of the mapping says.
fn changed(expression: &Expression, what: &str, body: &[u8]) -> Result<Vec<u8>, ApiError> {
    let failed = |reason: &str| {
        let message = format!("spec.{what} of the ModelContextMapping cannot be applied: {reason}");
        ApiError::new(ErrorKind::Internal, message)
    };
    let value: Value = serde_json::from_slice(body).map_err(|_| failed("it is not given JSON"))?;
    match expression.apply(&value).map_err(|reason| failed(&reason))? {
        Some(value @ Value::Object(_)) => Ok(value.to_string().into_bytes()),
        _ => Err(failed("its result is not an object")),
    }
}

async fn one(
    call: &mut Call,
    work: &Work,
    provider: &Arc<Provider>,
    model: &Arc<str>,
) -> Result<Answered, Failed> {
    let name = &provider.name;
    let unavailable =
        |reason: &str| ApiError::new(ErrorKind::Unavailable, format!("provider {name} {reason}"));
    let Some(server) = server(provider) else { return Err(unavailable("has no address").into()) };
    if matches!(provider.key, ProviderKey::Missing) {
        return Err(unavailable(
            "has no key: the Secret or file that spec.providers[].key names is not there",
        )
        .into());
    }
    let translation = translate(work, provider, model)?;
    let Some(active) = provider.backend.state.begin(provider.backend.max_requests) else {
        return Err(unavailable("has as many requests under way as it may have").into());
    };
    let dialect = translation.dialect;
    let request = request(work, provider, model, &translation)
        .ok_or_else(|| ApiError::new(ErrorKind::Internal, "the request cannot be sent to the provider"))?;
    call.sending(name, &work.estimate).await?;
    let deadline = Instant::now() + work.gateway.timeouts.first_token.unwrap_or(FOR_EVER);
    let late =
        || ApiError::new(ErrorKind::Timeout, format!("provider {name} did not begin to answer in time"));
    let sent = timeout_at(deadline, server.send(&provider.backend.transport, request)).await;
    let (response, lease) = match sent {
        Ok(Ok(answered)) => answered,
        Ok(Err(unsent)) => {
            provider.note(false);
            if unsent.request.is_some() {
                call.unsent();
            }
            return Err(ApiError::new(
                ErrorKind::Provider,
                format!("provider {name} cannot be reached, or broke off"),
            )
            .into());
        }
        Err(_) => {
            provider.note(false);
            return Err(late().into());
        }
    };
    let status = response.status();
    if !status.is_success() {
        provider.note(status.as_u16() < 500 && status != StatusCode::TOO_MANY_REQUESTS);
        return Err(refused(call, work, provider, dialect, response, lease, deadline).await);
    }
    let is_stream = response
        .headers()
        .get(CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
    if work.stream && is_stream {
        let route = Route {
            provider: dialect,
            client: work.dialect,
            strip_usage: translation.strip_usage,
            stamp: work.stamp.clone(),
            choices: work.envelope.choices,
            between: work.gateway.timeouts.between_tokens,
        };
        let held = Held { lease: Some(lease), _active: active, provider: Arc::clone(provider) };
        let mut relay = Relay::new(route, response.into_body(), held, call);
        return match timeout_at(deadline, relay.peek(call)).await {
            Ok(Ok(())) => Ok(Answered::Stream(Box::new(relay))),
            Ok(Err(error)) => Err(error.into()),
            Err(_) => {
                provider.note(false);
                Err(late().into())
            }
        };
    }
    let bytes = match timeout_at(deadline, read(response.into_body(), ANSWER)).await {
        Ok(Some(bytes)) => bytes,
        Ok(None) => {
            provider.note(false);
            let message = format!("provider {name} broke off, or its answer is larger than {ANSWER} bytes");
            return Err(ApiError::new(ErrorKind::Provider, message).into());
        }
        Err(_) => {
            provider.note(false);
            return Err(late().into());
        }
    };
    lease.finish();
    call.answering();
    let bytes = match &work.model.response {
        Some(expression) if envelope::is_json(&bytes) => {
            Bytes::from(changed(expression, "response", &bytes)?)
        }
        _ => bytes,
    };
    let answer = whole(call, work, dialect, translation.embeddings.as_ref(), bytes);
    provider.note(answer.as_ref().map_or_else(|error| !error.is_worth_another_try(), |_| true));
    let (bytes, texts) = answer.map_err(|error| {
        let message = format!("provider {name}: {}", error.message);
        ApiError { message, ..error }
    })?;
    if let Some((judge, texts)) = Judge::of(call, true).zip(texts) {
        judge.ask(texts).await?;
    }
    Ok(Answered::Whole(bytes))
}

/// Makes of an answer that is no stream that for the client. Says all its texts, if somebody looks for something in them.
fn whole(
    call: &mut Call,
    work: &Work,
    dialect: Dialect,
    embeddings: Option<&EmbeddingRequest>,
    bytes: Bytes,
) -> Result<(Bytes, Option<String>), ApiError> {
    let Ok(body) = serde_json::from_slice::<Value>(&bytes) else {
        return Err(ApiError::new(
            ErrorKind::Provider,
            "the answer is not JSON; check the URL of the provider",
        ));
    };
    if work.stream {
        return Err(ApiError::new(ErrorKind::Provider, "the answer is no stream, though one was asked for"));
    }
    call.used(dialect.known_usage(&body));
    if let Some(request) = embeddings {
        let response = EmbeddingResponse::read(dialect, &body)?;
        return Ok((response.write(work.dialect, request, &work.stamp).to_string().into(), None));
    }
    let translated = match dialect == work.dialect {
        true => None,
        false => Some(dialect.read_response(&body)?),
    };
    if call.wants_response() {
        let said = match &translated {
            Some(response) => said_by(response),
            None => {
                dialect.read_response(&body).map_or_else(|_| texts_of(&body), |response| said_by(&response))
            }
        };
        call.said(0, &said);
    }
    let (answer, bytes) = match translated {
        None => (body, bytes),
        Some(response) => {
            let answer = work.dialect.write_response(&response, &work.stamp)?;
            let bytes = answer.to_string().into();
            (answer, bytes)
        }
    };
    let texts = is_guarded(call.key.as_deref(), true).then(|| texts_of(&answer));
    if let Some(texts) = &texts {
        guard(call.key.as_deref(), true, texts)?;
    }
    Ok((bytes, texts))
}

/// A provider that refuses.
async fn refused(
    call: &mut Call,
    work: &Work,
    provider: &Provider,
    dialect: Dialect,
    response: http::Response<Incoming>,
    lease: Lease,
    deadline: Instant,
) -> Failed {
    call.refused();
    let status = response.status();
    let wait = response.headers().get(RETRY_AFTER).and_then(|wait| wait.to_str().ok()?.parse().ok());
    let bytes = timeout_at(deadline, read(response.into_body(), ERROR)).await.ok().flatten();
    if bytes.is_some() {
        lease.finish();
    }
    let bytes = bytes.unwrap_or_default();
    let mut error = ApiError::of_provider(&provider.name, status.as_u16(), &bytes);
    error.retry_after = wait;
    let is_ours = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    let passes = dialect == work.dialect && !is_ours && status.is_client_error() && envelope::is_json(&bytes);
    Failed { error, said: passes.then_some((status, bytes)) }
}

/// All of a body; `None` if it breaks off, or is larger.
async fn read(body: Incoming, limit: usize) -> Option<Bytes> {
    Body::wrap(body).read(limit).await.ok()
}

fn request(
    work: &Work,
    provider: &Provider,
    model: &str,
    translation: &Translation,
) -> Option<Request<Body>> {
    let dialect = translation.dialect;
    let path = match dialect {
        Dialect::OpenAiChat => "/v1/chat/completions".to_owned(),
        Dialect::OpenAiResponses => "/v1/responses".to_owned(),
        Dialect::OpenAiEmbeddings => "/v1/embeddings".to_owned(),
        Dialect::Anthropic => "/v1/messages".to_owned(),
        Dialect::Gemini if work.stream => {
            format!("/v1beta/models/{}:streamGenerateContent?alt=sse", escaped(model))
        }
        Dialect::Gemini => format!("/v1beta/models/{}:generateContent", escaped(model)),
        Dialect::GeminiEmbeddings => format!("/v1beta/models/{}:batchEmbedContents", escaped(model)),
    };
    // Many write the URL of OpenAI-compatible servers with the version.
    let base = provider.backend.path.strip_suffix("/v1").unwrap_or(&provider.backend.path);
    let target: Uri = format!("{base}{path}").parse().ok()?;
    let mut request = Request::new(Body::whole(Bytes::copy_from_slice(&translation.body)));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = target;
    let headers = request.headers_mut();
    if dialect == work.dialect {
        for name in SHAPING.into_iter().chain(PASSED).map(HeaderName::from_static) {
            headers.extend(work.headers.get(&name).cloned().map(|value| (name, value)));
        }
    }
    let address = provider.backend.endpoints.first().map(|endpoint| Arc::clone(&endpoint.state.address))?;
    headers
        .insert(HOST, HeaderValue::from_str(host(&address, provider.backend.transport.tls.is_some())).ok()?);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    let accepted = if work.stream { "text/event-stream" } else { "application/json" };
    headers.insert(ACCEPT, HeaderValue::from_static(accepted));
    if dialect == Dialect::Anthropic {
        headers.entry("anthropic-version").or_insert(ANTHROPIC_VERSION);
    }
    if let ProviderKey::Given(key) = &provider.key {
        let (name, value) = match dialect {
            Dialect::Anthropic => (HeaderName::from_static("x-api-key"), key.clone()),
            Dialect::Gemini | Dialect::GeminiEmbeddings => {
                (HeaderName::from_static("x-goog-api-key"), key.clone())
            }
            _ => (AUTHORIZATION, provider.key.bearer()?),
        };
        headers.insert(name, value);
    }
    for (name, value) in &provider.headers {
        headers.insert(name, value.clone());
    }
    Some(request)
}

/// The host of a server as requests name it: without the usual port.
fn host(address: &str, is_tls: bool) -> &str {
    address.strip_suffix(if is_tls { ":443" } else { ":80" }).unwrap_or(address)
}

/// The name of a model as part of a path.
fn escaped(model: &str) -> String {
    let mut text = String::with_capacity(model.len());
    for byte in model.bytes() {
        match byte.is_ascii_alphanumeric() || b"-._~,=".contains(&byte) {
            true => text.push(char::from(byte)),
            false => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}
