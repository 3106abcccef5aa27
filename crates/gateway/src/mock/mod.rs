//! A provider of models that has none: for tests, and for everybody who has no account.
//!
//! It speaks the dialects of OpenAI, Anthropic and Gemini, says what it was told, and calls every tool that it is offered once. The name of a model may say
//! what is to go wrong, after a comma: `echo,delay=100ms,status=503`.
//!
//! | setting | |
//! |---|---|
//! | `delay=100ms` | waits before it answers |
//! | `pace=10ms` | waits before every piece of a stream |
//! | `words=50` | says so many words |
//! | `status=503` | refuses with this code |
//! | `error=3` | a stream has an error after so many pieces; 0 is before the first |
//! | `cut=3` | a stream breaks off after so many pieces |
//! | `tear=3` | a stream breaks off after so many pieces and all but the last byte of the next |
//! | `hang=3` | a stream says no more after so many pieces; 0 is after the headers |
//! | `usage=none` | does not say what was used |
//! | `usage=input` | says what the prompt was, and not what was written |
//! | `html=yes` | answers with a page |
//! | `fail=2` | refuses the first so many requests with 500 |

mod answer;
mod script;
mod told;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::stream;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Method, StatusCode};
use http_body::Frame;
use http_body_util::StreamBody;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::sleep;
use watchkeeper_ai::{
    ApiError, ChatRequest, ChatResponse, Dialect, EmbeddingRequest, EmbeddingResponse, Encoder, ErrorKind,
    Event, Stamp, Usage,
};
use watchkeeper_front::{Body, Front, Listener, Request, Response};

use answer::{events, say};
use script::Script;
use told::Told;

/// How long after the part of an event a stream breaks off.
const TEAR: Duration = Duration::from_millis(50);
/// The largest request, in bytes.
const BODY: usize = 64 << 20;

/// A provider that runs.
pub struct Mock {
    address: SocketAddr,
    state: Arc<State>,
    front: Front,
}

#[derive(Default)]
struct State {
    key: Option<String>,
    requests: AtomicU64,
    /// Requests by model, for those that fail at first.
    seen: Mutex<HashMap<String, u64>>,
    last: Mutex<Option<(String, Bytes)>>,
    /// Streams that were given up before their end.
    cancelled: Arc<AtomicU64>,
    /// When pieces of the last stream were sent.
    sent: Arc<Mutex<Vec<Instant>>>,
}

impl Mock {
    /// Listens on an address. With a key, requests need it.
    ///
    /// # Errors
    ///
    /// If the address is taken.
    pub fn start(address: SocketAddr, key: Option<String>) -> Result<Self, watchkeeper_front::Error> {
        let listener = Listener::bind(address)?;
        let address = listener.address();
        let state = Arc::new(State { key, ..State::default() });
        let shared = Arc::clone(&state);
        let service = move |request: Request| {
            let state = Arc::clone(&shared);
            async move { serve(&state, request).await }
        };
        Ok(Self {
            address,
            state,
            front: Front::builder(service).task("mock").http_and_h2c(listener).start()?,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many requests came.
    pub fn requests(&self) -> u64 {
        self.state.requests.load(Relaxed)
    }

    /// How many streams were given up by their clients.
    pub fn cancelled(&self) -> u64 {
        self.state.cancelled.load(Relaxed)
    }

    /// When the pieces of the last stream were sent.
    pub fn sent(&self) -> Vec<Instant> {
        self.state.sent.lock().clone()
    }

    /// Path and body of the last request.
    pub fn last(&self) -> Option<(String, Bytes)> {
        self.state.last.lock().clone()
    }

    /// Stops.
    pub async fn stop(self) {
        self.front.shutdown(Duration::from_secs(1)).await;
    }
}

async fn serve(state: &Arc<State>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let path = head.uri.path().to_owned();
    let (dialect, named, is_stream) = match kind(&path) {
        Some(kind) if head.method == Method::POST => kind,
        _ if path.ends_with("/models") => {
            return page(
                StatusCode::OK,
                &json!({"object": "list", "data": [{"id": "echo", "object": "model"}]}),
            );
        }
        _ => return refuse(Dialect::OpenAiChat, StatusCode::NOT_FOUND, "no such path"),
    };
    let shown = ["authorization", "x-api-key", "x-goog-api-key"]
        .iter()
        .find_map(|name| head.headers.get(*name)?.to_str().ok());
    if let Some(key) = &state.key
        && shown.map(|shown| shown.trim_start_matches("Bearer ")) != Some(key)
    {
        return refuse(dialect, StatusCode::UNAUTHORIZED, "Incorrect API key provided");
    }
    let Ok(body) = body.read(BODY).await else {
        return refuse(dialect, StatusCode::BAD_REQUEST, "the body broke off");
    };
    state.requests.fetch_add(1, Relaxed);
    *state.last.lock() = Some((head.uri.to_string(), body.clone()));
    let Ok(value) = serde_json::from_slice::<Value>(&body) else {
        return refuse(dialect, StatusCode::BAD_REQUEST, "the body is not JSON");
    };
    let model = named.unwrap_or_else(|| value["model"].as_str().unwrap_or_default().to_owned());
    let script = match Script::read(&model) {
        Ok(script) => script,
        Err(reason) => return refuse(dialect, StatusCode::BAD_REQUEST, &reason),
    };
    sleep(script.delay).await;
    let seen = {
        let mut seen = state.seen.lock();
        let seen = seen.entry(model.clone()).or_default();
        *seen += 1;
        *seen
    };
    if seen <= script.fail {
        return refuse(dialect, StatusCode::INTERNAL_SERVER_ERROR, "scripted to fail");
    }
    if let Some(status) = script.status {
        return refuse(dialect, status, "scripted to refuse");
    }
    if script.html {
        let mut response = Response::new(Body::whole("<html><body>It works!</body></html>"));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/html"));
        return response;
    }
    let stamp = Stamp {
        id: format!("mock-{seen}"),
        model: model.clone(),
        created: 1_700_000_000,
        stream_usage: true,
    };
    if dialect.is_embeddings() {
        return embed(dialect, &value, &stamp, script.usage);
    }
    let request = match dialect.read_request(&value) {
        Ok(request) => ChatRequest { model, stream: is_stream.unwrap_or(value["stream"] == true), ..request },
        Err(error) => return refuse(dialect, StatusCode::BAD_REQUEST, &error.message),
    };
    let answer = say(&request, &script);
    match request.stream {
        false => match dialect.write_response(&answer, &stamp) {
            Ok(mut answer) => {
                script.usage.of(&mut answer);
                page(StatusCode::OK, &answer)
            }
            Err(error) => refuse(dialect, StatusCode::INTERNAL_SERVER_ERROR, &error.message),
        },
        true => {
            // OpenAI says what was used only to those who ask.
            let asked = dialect != Dialect::OpenAiChat || request.stream_usage;
            streamed(state, dialect, &answer, Stamp { stream_usage: asked, ..stamp }, script)
        }
    }
}

/// The dialect of a path, the model that it names, and whether it asks for a stream.
fn kind(path: &str) -> Option<(Dialect, Option<String>, Option<bool>)> {
    Some(match path {
        "/v1/chat/completions" => (Dialect::OpenAiChat, None, None),
        "/v1/responses" => (Dialect::OpenAiResponses, None, None),
        "/v1/embeddings" => (Dialect::OpenAiEmbeddings, None, None),
        "/v1/messages" => (Dialect::Anthropic, None, None),
        path => {
            let (model, action) = path.strip_prefix("/v1beta/models/")?.rsplit_once(':')?;
            let model = String::from_utf8_lossy(&watchkeeper_core::text::percent_decoded(model.as_bytes()))
                .into_owned();
            match action {
                "generateContent" => (Dialect::Gemini, Some(model), Some(false)),
                "streamGenerateContent" => (Dialect::Gemini, Some(model), Some(true)),
                "embedContent" | "batchEmbedContents" => (Dialect::GeminiEmbeddings, Some(model), None),
                _ => return None,
            }
        }
    })
}

fn page(status: StatusCode, value: &Value) -> Response {
    let mut response = Response::new(Body::whole(value.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn refuse(dialect: Dialect, status: StatusCode, message: &str) -> Response {
    let kind = match status.as_u16() {
        401 => ErrorKind::Unauthenticated,
        404 => ErrorKind::NotFound,
        429 => ErrorKind::Limited,
        code if code < 500 => ErrorKind::Invalid,
        503 => ErrorKind::Unavailable,
        _ => ErrorKind::Internal,
    };
    page(status, &ApiError::new(kind, message).body(dialect))
}

/// Vectors that depend on the texts.
fn embed(dialect: Dialect, value: &Value, stamp: &Stamp, told: Told) -> Response {
    let request = match EmbeddingRequest::read(dialect, value) {
        Ok(request) => request,
        Err(error) => return refuse(dialect, StatusCode::BAD_REQUEST, &error.message),
    };
    let vector = |text: &String| {
        let sum = text.bytes().fold(7_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        (0..request.dimensions.unwrap_or(8).min(4_096))
            .map(|at| f64::from(sum.rotate_left(at as u32 % 32) % 1_000) / 1_000.0)
            .collect()
    };
    let words = request.inputs.iter().map(|input| input.split_whitespace().count() as u64).sum();
    let usage = Some(Usage { input: words, ..Usage::default() });
    let response = EmbeddingResponse { vectors: request.inputs.iter().map(vector).collect(), usage };
    let mut answer = response.write(dialect, &request, stamp);
    told.of(&mut answer);
    page(StatusCode::OK, &answer)
}

/// Counts a stream that is dropped before its end.
struct Streaming {
    pieces: std::vec::IntoIter<Vec<u8>>,
    sent: u64,
    times: Arc<Mutex<Vec<Instant>>>,
    cancelled: Arc<AtomicU64>,
    script: Script,
    dialect: Dialect,
}

impl Drop for Streaming {
    fn drop(&mut self) {
        let Script { cut, error, tear, .. } = &self.script;
        if self.pieces.len() > 0 && cut.is_none() && error.is_none() && tear.is_none() {
            self.cancelled.fetch_add(1, Relaxed);
        }
    }
}

fn streamed(
    state: &State,
    dialect: Dialect,
    answer: &ChatResponse,
    stamp: Stamp,
    script: Script,
) -> Response {
    let mut encoder = Encoder::new(dialect, stamp);
    let mut pieces: Vec<Vec<u8>> = Vec::new();
    for event in events(answer) {
        let is_piece = matches!(event, Event::Text(_) | Event::ToolArguments(_));
        let mut bytes = Vec::new();
        encoder.take(event, &mut bytes);
        match pieces.last_mut().filter(|_| !is_piece) {
            Some(last) => last.extend(bytes),
            None => pieces.push(bytes),
        }
    }
    let mut end = Vec::new();
    encoder.finish(&mut end);
    pieces.push(end);
    let pieces: Vec<Vec<u8>> = pieces.into_iter().map(|piece| script.usage.of_events(piece)).collect();
    state.sent.lock().clear();
    let streaming = Streaming {
        pieces: pieces.into_iter(),
        sent: 0,
        times: Arc::clone(&state.sent),
        cancelled: Arc::clone(&state.cancelled),
        script,
        dialect,
    };
    let body = stream::unfold(Some(streaming), |streaming| async move {
        let mut streaming = streaming?;
        if streaming.script.cut == Some(streaming.sent) {
            // The part of an event is to arrive before the connection breaks.
            if streaming.script.tear.is_some() {
                sleep(TEAR).await;
            }
            return Some((Err(std::io::Error::other("scripted to break off")), None));
        }
        if streaming.script.hang == Some(streaming.sent) {
            std::future::pending::<()>().await;
        }
        if streaming.script.error == Some(streaming.sent) {
            let error = ApiError::new(ErrorKind::Unavailable, "scripted to fail in the stream");
            return Some((Ok(Frame::data(error.event(streaming.dialect).into())), None));
        }
        sleep(streaming.script.pace).await;
        let mut piece = streaming.pieces.next()?;
        if streaming.script.tear == Some(streaming.sent) {
            piece.pop();
            streaming.script.cut = Some(streaming.sent + 1);
        }
        streaming.sent += 1;
        streaming.times.lock().push(Instant::now());
        Some((Ok::<_, std::io::Error>(Frame::data(Bytes::from(piece))), Some(streaming)))
    });
    let mut response = Response::new(Body::wrap(StreamBody::new(body)));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    response
}
