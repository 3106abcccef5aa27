//! A small API server for one kind that tells the truth, except where it is told not to.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{mpsc, watch};

use crate::server::{Request, Responder, Server};

/// What may go wrong with the next request.
#[derive(Clone, Debug)]
pub(crate) enum Refusal {
    /// An answer with this status.
    Status(u16),
    /// The connection is closed before an answer.
    Cut,
    /// Nothing for a moment, then the connection is reset.
    Hang,
    /// A body that is no list and no log.
    Nonsense,
    /// A list without its metadata.
    Headless,
    /// A sound beginning, cut after this share of the bytes.
    Truncated(f32),
    /// A sound answer in which one object is garbage.
    Garbled,
    /// A sound answer, in tiny pieces and slowly.
    Trickle,
}

/// What may go wrong with the logs that are open.
#[derive(Clone, Debug)]
pub(crate) enum Trouble {
    /// The connection breaks.
    Cut,
    /// The connection breaks within a line.
    CutWithin,
    /// The log is closed in good order.
    Close,
    /// A line that is no JSON, in addition.
    Garbage,
    /// The next line is replaced by garbage.
    GarbleNext,
    /// An object of another kind under the name of one of ours.
    WrongKind,
    /// An entry of a type nobody knows.
    UnknownType,
    /// Bytes that are not UTF-8.
    NotText,
    /// A line far larger than any object may be.
    Huge,
    /// The last lines once more.
    Repeat,
    /// An error entry with this status.
    Error(u16),
}

#[derive(Default)]
struct State {
    revision: u64,
    objects: BTreeMap<String, Stored>,
    log: Vec<(u64, &'static str, String)>,
    oldest: u64,
    refusals: VecDeque<Refusal>,
    logs: Vec<mpsc::UnboundedSender<Trouble>>,
}

#[derive(Clone)]
struct Stored {
    uid: u64,
    revision: u64,
    data: String,
}

/// The truth, in the hands of the test.
#[derive(Clone)]
pub(crate) struct Truth {
    state: Arc<Mutex<State>>,
    moved: watch::Sender<u64>,
}

impl Truth {
    pub(crate) fn new() -> Self {
        // No server's list is at version 0, which means "any".
        let state = State { revision: 1, ..State::default() };
        Self { state: Arc::new(Mutex::new(state)), moved: watch::Sender::new(1) }
    }

    pub(crate) async fn serve(&self) -> Server {
        let truth = self.clone();
        Server::start(move |request, responder| {
            let truth = truth.clone();
            async move { truth.answer(request, responder).await }
        })
        .await
    }

    /// Creates or changes an object; `data` is the JSON of its `data`.
    pub(crate) fn put(&self, name: &str, data: &str) {
        let mut state = self.state.lock().unwrap();
        state.revision += 1;
        let revision = state.revision;
        let known = state.objects.get(name).map(|stored| stored.uid);
        let stored = Stored { uid: known.unwrap_or(revision), revision, data: data.into() };
        let json = stored.json(name, revision);
        state.objects.insert(name.into(), stored);
        state.log.push((revision, if known.is_some() { "MODIFIED" } else { "ADDED" }, json));
        self.moved.send_replace(revision);
    }

    pub(crate) fn delete(&self, name: &str) {
        let mut state = self.state.lock().unwrap();
        if let Some(stored) = state.objects.remove(name) {
            state.revision += 1;
            let revision = state.revision;
            state.log.push((revision, "DELETED", stored.json(name, revision)));
            self.moved.send_replace(revision);
        }
    }

    /// Forgets the log up to now.
    pub(crate) fn compact(&self) {
        let mut state = self.state.lock().unwrap();
        state.revision += 1;
        state.oldest = state.revision;
        state.log.clear();
        self.moved.send_replace(state.revision);
    }

    pub(crate) fn refuse_next(&self, refusal: Refusal) {
        self.state.lock().unwrap().refusals.push_back(refusal);
    }

    pub(crate) fn trouble(&self, trouble: &Trouble) {
        self.state.lock().unwrap().logs.retain(|log| log.send(trouble.clone()).is_ok());
    }

    /// From now on, only the truth; and no object is such that it has to be refused. The others are not touched: what
    /// was missed of them has to be found.
    pub(crate) fn calm_down(&self, refused: impl Fn(&str) -> bool) {
        let names: Vec<String> = {
            let mut state = self.state.lock().unwrap();
            state.refusals.clear();
            let refused = state.objects.iter().filter(|(_, stored)| refused(&stored.data));
            refused.map(|(name, _)| name.clone()).collect()
        };
        for name in names {
            self.put(&name, r#"{"calm":"1"}"#);
        }
    }

    /// Names and versions.
    pub(crate) fn objects(&self) -> Vec<(String, u64)> {
        let state = self.state.lock().unwrap();
        state.objects.iter().map(|(name, stored)| (name.clone(), stored.revision)).collect()
    }

    async fn answer(&self, request: Request, mut responder: Responder) {
        let refusal = self.state.lock().unwrap().refusals.pop_front();
        match &refusal {
            Some(Refusal::Status(code)) => {
                let after: &[(&str, &str)] = if *code == 429 { &[("retry-after", "0")] } else { &[] };
                return responder.answer(*code, after, status(*code)).await;
            }
            Some(Refusal::Cut) => return responder.cut().await,
            Some(Refusal::Hang) => {
                tokio::time::sleep(Duration::from_millis(2)).await;
                return responder.reset().await;
            }
            Some(Refusal::Nonsense) => return responder.json(200, "<html>the proxy says hello</html>").await,
            Some(Refusal::Headless) => {
                return responder.json(200, r#"{"kind":"ConfigMapList","apiVersion":"v1","items":[]}"#).await;
            }
            _ => {}
        }
        let body = if request.is_watch() {
            let Some(body) = self.log(&request, &mut responder, refusal.as_ref()).await else { return };
            body
        } else {
            match self.list(&request) {
                Ok(body) => body,
                Err(code) => return responder.json(code, status(code)).await,
            }
        };
        send(responder, garbled(body, refusal.as_ref()), refusal.as_ref()).await;
    }

    fn list(&self, request: &Request) -> Result<Vec<u8>, u16> {
        let state = self.state.lock().unwrap();
        let version: u64 = request.param("resourceVersion").parse().unwrap_or(0);
        if version > state.revision {
            return Err(504);
        }
        let from = request.param("continue");
        // A token is the revision it was made at and the name to go on from.
        let (made_at, after) = from.split_once('.').unwrap_or(("", ""));
        if made_at.parse().is_ok_and(|made_at: u64| made_at != state.revision) {
            return Err(410);
        }
        let limit: usize = request.param("limit").parse().unwrap_or(usize::MAX);
        let rest: Vec<_> = state.objects.iter().filter(|(name, _)| name.as_str() > after).collect();
        let page = &rest[..limit.min(rest.len())];
        let next = if page.len() < rest.len() {
            format!(r#","continue":"{}.{}""#, state.revision, page.last().unwrap().0)
        } else {
            String::new()
        };
        let items: Vec<_> = page.iter().map(|(name, stored)| stored.json(name, stored.revision)).collect();
        let metadata = format!(r#""metadata":{{"resourceVersion":"{}"{next}}}"#, state.revision);
        let items = format!(r#""items":[{}]"#, items.join(","));
        // Both orders are JSON.
        let (first, second) =
            if request.number.is_multiple_of(2) { (metadata, items) } else { (items, metadata) };
        Ok(format!(r#"{{"kind":"ConfigMapList","apiVersion":"v1",{first},{second}}}"#).into_bytes())
    }

    /// Answers a watch; gives bytes back if all of the answer is known.
    async fn log(
        &self,
        request: &Request,
        responder: &mut Responder,
        refusal: Option<&Refusal>,
    ) -> Option<Vec<u8>> {
        let mut moved = self.moved.subscribe();
        let (sender, mut troubles) = mpsc::unbounded_channel();
        let version: u64 = request.param("resourceVersion").parse().unwrap_or(0);
        let mut lines = Vec::new();
        let mut position = version;
        {
            let mut state = self.state.lock().unwrap();
            if version > state.revision {
                return Some(entry("ERROR", &status(504)).into_bytes());
            }
            if request.is_streamed_list() {
                lines.extend(
                    state
                        .objects
                        .iter()
                        .map(|(name, stored)| entry("ADDED", &stored.json(name, stored.revision))),
                );
                lines.push(entry("BOOKMARK", &bookmark(state.revision, true)));
                position = state.revision;
            } else if version < state.oldest {
                return Some(entry("ERROR", &status(410)).into_bytes());
            }
            state.logs.push(sender);
        }
        if matches!(refusal, Some(Refusal::Truncated(_) | Refusal::Garbled | Refusal::Trickle))
            && !lines.is_empty()
        {
            return Some(lines.concat().into_bytes());
        }
        let mut last = lines.clone();
        responder.chunk(lines.concat()).await;
        let mut garble_next = false;
        loop {
            let Some(next) = self.since(position) else {
                // The log was cut away under this watch.
                return self.end_with(responder, &entry("ERROR", &status(410))).await;
            };
            for (revision, kind, json) in next {
                position = revision;
                let line = entry(kind, &json);
                if std::mem::take(&mut garble_next) {
                    responder.chunk(&line.as_bytes()[line.len() / 2..]).await;
                    continue;
                }
                responder.chunk(&line).await;
                last.push(line);
            }
            tokio::select! {
                _ = moved.changed() => {}
                trouble = troubles.recv() => match trouble? {
                    Trouble::Cut => return self.end_with(responder, "").await,
                    Trouble::CutWithin => return self.end_with(responder, r#"{"type":"MODIFIED","object":{"kind":"Conf"#).await,
                    Trouble::Close => return Some(Vec::new()),
                    Trouble::Garbage => responder.chunk("}{ not json\n").await,
                    Trouble::GarbleNext => garble_next = true,
                    Trouble::WrongKind => {
                        let other = r#"{"kind":"Secret","apiVersion":"v1","metadata":{"name":"n0","namespace":"d","uid":"x","resourceVersion":"1"}}"#;
                        responder.chunk(entry("MODIFIED", other)).await;
                    }
                    Trouble::UnknownType => responder.chunk(entry("PATCHED", r#"{"metadata":{"name":"n0"}}"#)).await,
                    Trouble::NotText => responder.chunk(b"{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"\xff\xfe\"}}}\n").await,
                    Trouble::Huge => {
                        let huge = format!(r#"{{"metadata":{{"name":"n0","namespace":"d"}},"data":{{"a":"{}"}}}}"#, "x".repeat(100_000));
                        responder.chunk(entry("MODIFIED", &huge)).await;
                    }
                    Trouble::Repeat => {
                        for line in last.iter().rev().take(4).rev() {
                            responder.chunk(line).await;
                        }
                    }
                    Trouble::Error(code) => return self.end_with(responder, &entry("ERROR", &status(code))).await,
                }
            }
        }
    }

    /// The log after a position, if it is still there.
    fn since(&self, position: u64) -> Option<Vec<(u64, &'static str, String)>> {
        let state = self.state.lock().unwrap();
        let there = position >= state.oldest || position == state.revision;
        there.then(|| state.log.iter().filter(|(revision, ..)| *revision > position).cloned().collect())
    }

    /// Sends this and breaks off.
    async fn end_with(&self, responder: &mut Responder, bytes: &str) -> Option<Vec<u8>> {
        responder.chunk(bytes).await;
        None
    }
}

impl Stored {
    fn json(&self, name: &str, revision: u64) -> String {
        format!(
            r#"{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"name":"{name}","namespace":"d","uid":"u-{}","resourceVersion":"{revision}"}},"data":{}}}"#,
            self.uid, self.data
        )
    }
}

fn entry(kind: &str, object: &str) -> String {
    format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n")
}

fn bookmark(revision: u64, end: bool) -> String {
    let annotations = if end { r#","annotations":{"k8s.io/initial-events-end":"true"}"# } else { "" };
    format!(
        r#"{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"resourceVersion":"{revision}"{annotations}}}}}"#
    )
}

fn status(code: u16) -> String {
    let (reason, cause) = match code {
        403 => ("Forbidden", ""),
        404 => ("NotFound", ""),
        410 => ("Expired", ""),
        429 => ("TooManyRequests", ""),
        504 => (
            "Timeout",
            r#","details":{"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}],"retryAfterSeconds":1}"#,
        ),
        _ => ("InternalError", ""),
    };
    format!(
        r#"{{"kind":"Status","apiVersion":"v1","metadata":{{}},"status":"Failure","message":"as the script says","reason":"{reason}","code":{code}{cause}}}"#
    )
}

/// Breaks one object of an answer, if that was asked for.
fn garbled(mut body: Vec<u8>, refusal: Option<&Refusal>) -> Vec<u8> {
    if matches!(refusal, Some(Refusal::Garbled)) {
        let text = String::from_utf8(body).unwrap();
        body = text.replacen(r#""name":"n"#, r#""nom":"n"#, 1).into_bytes();
    }
    body
}

async fn send(mut responder: Responder, body: Vec<u8>, refusal: Option<&Refusal>) {
    match refusal {
        Some(Refusal::Truncated(share)) => {
            let bytes = (body.len() as f32 * share) as usize;
            responder.chunk(&body[..bytes.min(body.len())]).await;
            responder.cut().await;
        }
        Some(Refusal::Trickle) => {
            for piece in body.chunks(37) {
                responder.chunk(piece).await;
                tokio::task::yield_now().await;
            }
            responder.end().await;
        }
        _ => {
            responder.chunk(&body).await;
            responder.end().await;
        }
    }
}
