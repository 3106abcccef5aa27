//! The stream of a provider, on its way to the client.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::time::timeout;
use watchkeeper_ai::sse::{Splitter, SseEvent, TooLarge};
use watchkeeper_ai::{ApiError, Decoder, Dialect, Encoder, ErrorKind, Event, Observer, Stamp, Usage};

use super::call::Call;
use super::guard::guard;
use super::table::AiKey;
use crate::upstream::{Active, Lease};

/// How much of a stream is held back until the model has written something, in bytes.
const HELD_BACK: usize = 256 << 10;
/// How much of what was said before is looked at again with what is said now, in bytes.
const LOOKED_BACK: usize = 4 << 10;

/// What is held while a stream runs.
pub(super) struct Held {
    pub(super) lease: Option<Lease>,
    pub(super) _active: Active,
}

/// Where a stream goes from and to.
pub(super) struct Route {
    pub(super) provider: Dialect,
    pub(super) client: Dialect,
    pub(super) strip_usage: bool,
    pub(super) stamp: Stamp,
    pub(super) between: Option<Duration>,
}

/// A stream. Pieces leave as they come: bytes of the client's own dialect as they are, others translated event by event.
pub(super) struct Relay {
    incoming: Incoming,
    held: Held,
    way: Way,
    client: Dialect,
    between: Option<Duration>,
    key: Option<Arc<AiKey>>,
    watch: Option<Watch>,
    ready: VecDeque<Bytes>,
    has_content: bool,
    error: Option<ApiError>,
    is_over: bool,
}

enum Way {
    /// As it is.
    Same { splitter: Splitter, observer: Observer, whole_events: Option<Vec<u8>> },
    /// Translated.
    Across {
        splitter: Splitter,
        decoder: Decoder,
        encoder: Box<Encoder>,
        finished: bool,
        usage: Option<Usage>,
    },
}

/// What was said, for those who look for something in it.
struct Watch {
    decoder: Option<Decoder>,
    said: String,
}

impl Relay {
    pub(super) fn new(route: Route, incoming: Incoming, held: Held, key: Option<Arc<AiKey>>) -> Self {
        let Route { provider, client, strip_usage, stamp, between } = route;
        let has_guards =
            key.as_ref().is_some_and(|key| key.policy.guards.iter().any(|guard| guard.on_response));
        let watch = has_guards.then(|| Watch { decoder: Decoder::new(provider), said: String::new() });
        let way = match Decoder::new(provider).filter(|_| provider != client) {
            Some(decoder) => Way::Across {
                splitter: Splitter::default(),
                decoder,
                encoder: Box::new(Encoder::new(client, stamp)),
                finished: false,
                usage: None,
            },
            None => Way::Same {
                splitter: Splitter::default(),
                observer: Observer::new(provider),
                whole_events: strip_usage.then(Vec::new),
            },
        };
        Self {
            incoming,
            held,
            way,
            client,
            between,
            key,
            watch,
            ready: VecDeque::new(),
            has_content: false,
            error: None,
            is_over: false,
        }
    }

    /// Waits until the model has written something; an error before that is one that another provider can make up for.
    pub(super) async fn peek(&mut self, call: &mut Call) -> Result<(), ApiError> {
        while !self.has_content && !self.is_over && self.held_back() < HELD_BACK {
            self.step(call).await;
            if let Some(error) = self.error.take() {
                return Err(error);
            }
        }
        Ok(())
    }

    fn held_back(&self) -> usize {
        self.ready.iter().map(Bytes::len).sum()
    }

    /// The next piece for the client; `None` at the end.
    pub(super) async fn next(&mut self, call: &mut Call) -> Option<Bytes> {
        loop {
            if let Some(bytes) = self.ready.pop_front() {
                return Some(bytes);
            }
            if self.is_over {
                return None;
            }
            let revoked = self.key.as_ref().map(|key| key.revoked.clone());
            let between = self.between.unwrap_or(Duration::MAX);
            let cut = tokio::select! {
                biased;
                () = async move { match revoked { Some(revoked) => revoked.cancelled().await, None => std::future::pending().await } } => {
                    Some(ApiError::new(ErrorKind::Unauthenticated, "the key was revoked"))
                }
                stepped = timeout(between, self.step(call)) => {
                    stepped.err().map(|_| ApiError::new(ErrorKind::Timeout, "the provider was silent for too long"))
                }
            };
            if let Some(error) = cut.or(self.error.take()) {
                self.fail(call, &error);
            }
        }
    }

    /// Ends the stream with an event that says why.
    fn fail(&mut self, call: &mut Call, error: &ApiError) {
        call.failed(error);
        self.is_over = true;
        self.held.lease = None;
        let event = match &mut self.way {
            Way::Across { encoder, .. } => {
                let mut bytes = Vec::new();
                encoder.take(Event::Error(error.clone()), &mut bytes);
                bytes
            }
            Way::Same { .. } => error.event(self.client),
        };
        self.ready.push_back(event.into());
    }

    /// Takes the next piece of the provider.
    async fn step(&mut self, call: &mut Call) {
        match self.incoming.frame().await {
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data()
                    && let Err(error) = self.take(data, call)
                {
                    self.error = Some(error);
                }
            }
            Some(Err(_)) => self.error = Some(ApiError::new(ErrorKind::Provider, "the provider broke off")),
            None => self.end(call),
        }
    }

    fn take(&mut self, data: Bytes, call: &mut Call) -> Result<(), ApiError> {
        let mut events: Vec<SseEvent> = Vec::new();
        let splitter = match &mut self.way {
            Way::Same { splitter, .. } | Way::Across { splitter, .. } => splitter,
        };
        splitter
            .push(&data, |event| events.push(event))
            .map_err(|error: TooLarge| ApiError::new(ErrorKind::Provider, error.to_string()))?;
        self.look(&events)?;
        match &mut self.way {
            Way::Same { observer, whole_events, .. } => match whole_events {
                None => {
                    for event in &events {
                        observer.take(event);
                    }
                    self.ready.push_back(data);
                }
                Some(raw) => {
                    // One event at a time, so that the one that was not asked for can be left out.
                    raw.extend_from_slice(&data);
                    let mut kept = Vec::with_capacity(raw.len());
                    for event in &events {
                        observer.take(event);
                        let Some(end) = event_end(raw) else { break };
                        if !observer.only_usage {
                            kept.extend_from_slice(&raw[..end]);
                        }
                        raw.drain(..end);
                    }
                    if !kept.is_empty() {
                        self.ready.push_back(kept.into());
                    }
                }
            },
            Way::Across { decoder, encoder, finished, usage, .. } => {
                let (mut between, mut bytes) = (Vec::new(), Vec::new());
                for event in &events {
                    decoder.take(event, &mut between);
                }
                for event in between {
                    match &event {
                        Event::Error(error) => {
                            self.error = Some(error.clone());
                            break;
                        }
                        Event::Finish(_) => *finished = true,
                        Event::Usage(told) => *usage = Some(usage.map_or(*told, |known| known.merged(*told))),
                        Event::Start { .. } => {}
                        Event::Text(_)
                        | Event::Thinking(_)
                        | Event::ToolStart { .. }
                        | Event::ToolArguments(_) => {
                            self.has_content = true;
                        }
                    }
                    encoder.take(event, &mut bytes);
                }
                if !bytes.is_empty() {
                    self.ready.push_back(bytes.into());
                }
            }
        }
        if let Way::Same { observer, .. } = &mut self.way {
            self.has_content |= observer.has_content;
            // After the first token, the error of the provider is passed on as it is.
            if let Some(error) = observer.error.take() {
                match self.has_content {
                    true => call.failed(&error),
                    false => self.error = Some(error),
                }
            }
        }
        if self.has_content {
            call.answering();
        }
        Ok(())
    }

    /// Looks for what the policy of the key does not want to be said.
    fn look(&mut self, events: &[SseEvent]) -> Result<(), ApiError> {
        let Some(watch) = &mut self.watch else { return Ok(()) };
        let mut decoded = Vec::new();
        for event in events {
            match &mut watch.decoder {
                Some(decoder) => decoder.take(event, &mut decoded),
                None => watch.said.push_str(&event.data),
            }
        }
        for event in decoded {
            if let Event::Text(text) | Event::ToolArguments(text) | Event::Thinking(text) = event {
                watch.said.push_str(&text);
            }
        }
        guard(self.key.as_deref(), true, &watch.said)?;
        let mut cut = watch.said.len().saturating_sub(LOOKED_BACK);
        while !watch.said.is_char_boundary(cut) {
            cut += 1;
        }
        watch.said.drain(..cut);
        Ok(())
    }

    /// The provider has said all.
    fn end(&mut self, call: &mut Call) {
        self.is_over = true;
        let broke =
            || Some(ApiError::new(ErrorKind::Provider, "the provider broke off in the middle of the stream"));
        match &mut self.way {
            Way::Same { observer, whole_events, splitter } => {
                if let Some(event) = splitter.finish() {
                    observer.take(&event);
                }
                self.has_content |= observer.has_content;
                if let Some(rest) =
                    whole_events.take().filter(|rest| !rest.is_empty() && !observer.only_usage)
                {
                    self.ready.push_back(rest.into());
                }
                match observer.is_complete {
                    true => {
                        call.is_complete = true;
                        call.used(observer.usage);
                    }
                    false if call.error.is_none() => self.error = broke(),
                    false => {}
                }
            }
            Way::Across { encoder, finished, usage, .. } => match *finished {
                true => {
                    let mut bytes = Vec::new();
                    encoder.finish(&mut bytes);
                    self.ready.push_back(bytes.into());
                    call.is_complete = true;
                    call.used(*usage);
                }
                false => self.error = broke(),
            },
        }
        if let Some(lease) = self.held.lease.take().filter(|_| self.error.is_none()) {
            lease.finish();
        }
    }
}

/// Where the first event ends: after the empty line.
fn event_end(raw: &[u8]) -> Option<usize> {
    let mut at = 0;
    let mut has_data = false;
    while at < raw.len() {
        let end = raw[at..].iter().position(|byte| *byte == b'\n' || *byte == b'\r')? + at;
        let next = if raw[end] == b'\r' && raw.get(end + 1) == Some(&b'\n') { end + 2 } else { end + 1 };
        has_data |= raw[at..end].starts_with(b"data");
        if end == at && has_data {
            return Some(next);
        }
        at = next;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_ends_after_its_empty_line() {
        assert_eq!(event_end(b"data: a\n\ndata: b\n\n"), Some(9));
        assert_eq!(event_end(b"event: x\r\ndata: a\r\n\r\nrest"), Some(21));
        assert_eq!(event_end(b": comment\n\ndata: a\n\n"), Some(20), "comments belong to what follows");
        assert_eq!(event_end(b"data: a\n"), None);
    }
}
