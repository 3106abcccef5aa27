//! The stream of a provider, on its way to the client.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::time::timeout;
use watchkeeper_ai::sse::{MOST, Splitter, SseEvent, TooLarge};
use watchkeeper_ai::{ApiError, Decoder, Dialect, Encoder, ErrorKind, Event, Observer, Stamp, Tally};

use super::call::{Call, Cut};
use super::guard::{Judge, Judged, UNAVAILABLE, is_guarded};
use super::table::{AiKey, Provider};
use super::watch::{Unasked, Watch};
use crate::upstream::{Active, Lease};

/// How much of a stream is held back until the model has written something, in bytes.
const HELD_BACK: usize = 256 << 10;

/// What is held while a stream runs.
pub(super) struct Held {
    pub(super) lease: Option<Lease>,
    pub(super) _active: Active,
    pub(super) provider: Arc<Provider>,
}

impl Held {
    /// Notes whether the provider did well.
    fn note(&self, ok: bool) {
        self.provider.note(ok);
    }
}

/// Where a stream goes from and to.
pub(super) struct Route {
    pub(super) provider: Dialect,
    pub(super) client: Dialect,
    pub(super) strip_usage: bool,
    pub(super) stamp: Stamp,
    /// How many answers the client asked for.
    pub(super) choices: u64,
    pub(super) between: Option<Duration>,
}

/// A stream. Events leave as they come: those of the client's own dialect as the bytes they are, others translated. A part of an event waits for the rest of
/// it, so that nothing leaves that nobody has looked at, and an error is an event of its own. Where webhooks judge answers, pieces wait for what these say of all that was
/// said up to their end.
pub(super) struct Relay {
    incoming: Incoming,
    held: Held,
    way: Way,
    client: Dialect,
    between: Option<Duration>,
    key: Option<Arc<AiKey>>,
    cut: Option<Cut>,
    watch: Option<Watch>,
    judging: Option<Judging>,
    ready: VecDeque<Bytes>,
    has_content: bool,
    error: Option<ApiError>,
    is_over: bool,
}

enum Way {
    /// As it is. `partial` is the part of an event that has come so far.
    Same { splitter: Splitter, observer: Observer, partial: Vec<u8>, strip_usage: bool },
    /// Translated.
    Across { splitter: Splitter, decoder: Decoder, encoder: Box<Encoder>, finished: bool, tally: Tally },
}

/// What webhooks are asked while a stream runs: about all that came while they were asked before.
struct Judging {
    judge: Judge,
    unasked: Unasked,
    /// What is asked now, and how many pieces wait for it, from the first that is ready.
    asked: Option<(Judged, usize)>,
    /// How many pieces may leave.
    cleared: usize,
}

impl Relay {
    pub(super) fn new(route: Route, incoming: Incoming, held: Held, call: &Call) -> Self {
        let key = call.key.clone();
        let Route { provider, client, strip_usage, stamp, choices, between } = route;
        let is_watched = is_guarded(key.as_deref(), true) || call.wants_response();
        let watch = is_watched.then(|| Watch::new(provider, client));
        let judging = Judge::of(call, true).map(|judge| Judging {
            judge,
            unasked: Unasked::default(),
            asked: None,
            cleared: 0,
        });
        let way = match Decoder::new(provider).filter(|_| provider != client) {
            Some(decoder) => Way::Across {
                splitter: Splitter::default(),
                decoder,
                encoder: Box::new(Encoder::new(client, stamp)),
                finished: false,
                tally: Tally::default(),
            },
            None => Way::Same {
                splitter: Splitter::default(),
                observer: Observer::new(provider, choices),
                partial: Vec::new(),
                strip_usage,
            },
        };
        Self {
            incoming,
            held,
            way,
            client,
            between,
            key,
            cut: Some(call.cut()),
            watch,
            judging,
            ready: VecDeque::new(),
            has_content: false,
            error: None,
            is_over: false,
        }
    }

    /// Waits until the model has written something; an error before that is one that another provider can make up for.
    pub(super) async fn peek(&mut self, call: &mut Call) -> Result<(), ApiError> {
        while !self.has_content && !self.is_over && self.held_back() < HELD_BACK {
            self.step(call, None).await;
            if let Some(error) = self.error.take() {
                self.held.note(!is_of_provider(&error));
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
            if self.judging.as_ref().is_none_or(|judging| judging.cleared > 0)
                && let Some(bytes) = self.ready.pop_front()
            {
                if let Some(judging) = &mut self.judging {
                    judging.left();
                }
                return Some(bytes);
            }
            if self.is_over && self.ready.is_empty() {
                return None;
            }
            let between = self.between;
            let mut cut = self.cut.take()?;
            let error = tokio::select! {
                biased;
                error = &mut cut => Some(error),
                () = self.step(call, between) => None,
            };
            self.cut = Some(cut);
            if let Some(error) = error.or(self.error.take()) {
                self.fail(call, &error);
            }
        }
    }

    /// Ends the stream with an event that says why.
    fn fail(&mut self, call: &mut Call, error: &ApiError) {
        call.failed(error);
        // What the gateway itself does not want is no failure of the provider.
        if is_of_provider(error) {
            self.held.note(false);
        }
        self.is_over = true;
        // Nobody has said that the rest may leave.
        if let Some(judging) = self.judging.take() {
            self.ready.truncate(judging.cleared);
        }
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

    /// Takes the next piece of the provider, which may be silent for so long, or hears what webhooks say.
    async fn step(&mut self, call: &mut Call, between: Option<Duration>) {
        if self.judging.as_mut().is_some_and(|judging| judging.ask(self.ready.len())) {
            return;
        }
        let may_read = !self.is_over && self.held_back() < HELD_BACK;
        let asked = self.judging.as_mut().and_then(|judging| judging.asked.as_mut());
        let is_asked = asked.is_some();
        let judged = async move {
            match asked {
                Some((judged, _)) => judged.await,
                None => std::future::pending().await,
            }
        };
        let incoming = &mut self.incoming;
        let frame = async move {
            match between {
                Some(between) => timeout(between, incoming.frame()).await,
                None => Ok(incoming.frame().await),
            }
        };
        tokio::select! {
            biased;
            judged = judged, if is_asked => {
                let asked = self.judging.as_mut().and_then(|judging| Some((judging.asked.take()?.1, judging)));
                match (judged, asked) {
                    (Ok(()), Some((pieces, judging))) => judging.cleared = pieces,
                    (Ok(()), None) => {}
                    (Err(error), _) => self.error = Some(error),
                }
            }
            frame = frame, if may_read => match frame {
                Ok(Some(Ok(frame))) => {
                    if let Ok(data) = frame.into_data()
                        && let Err(error) = self.take(data, call)
                    {
                        self.error = Some(error);
                    }
                }
                Ok(Some(Err(_))) => self.error = Some(ApiError::new(ErrorKind::Provider, "the provider broke off")),
                Ok(None) => self.end(call),
                Err(_) => self.error = Some(ApiError::new(ErrorKind::Timeout, "the provider was silent for too long")),
            },
            else => {}
        }
    }

    fn take(&mut self, data: Bytes, call: &mut Call) -> Result<(), ApiError> {
        let too_large = |error: TooLarge| ApiError::new(ErrorKind::Provider, error.to_string());
        let mut events: Vec<SseEvent> = Vec::new();
        let splitter = match &mut self.way {
            Way::Same { splitter, .. } | Way::Across { splitter, .. } => splitter,
        };
        let complete = splitter.push(&data, |event| events.push(event)).map_err(too_large)?;
        self.look(&events, call)?;
        match &mut self.way {
            Way::Same { observer, partial, strip_usage, .. } => {
                let mut whole = match partial.is_empty() {
                    true => data.slice(..complete),
                    // Nothing has ended: all of it waits.
                    false if complete == 0 => Bytes::new(),
                    false => {
                        partial.extend_from_slice(&data[..complete]);
                        std::mem::take(partial).into()
                    }
                };
                partial.extend_from_slice(&data[complete..]);
                // Comments are no part of an event, and are not counted there.
                if partial.len() > MOST {
                    return Err(too_large(TooLarge));
                }
                let mut unwanted = Vec::new();
                for (at, event) in events.iter().enumerate() {
                    observer.take(event);
                    if *strip_usage && observer.only_usage {
                        unwanted.push(at);
                    }
                }
                if !unwanted.is_empty() {
                    whole = without(&whole, &unwanted).into();
                }
                if !whole.is_empty() {
                    self.ready.push_back(whole);
                }
            }
            Way::Across { .. } => self.translate(&events),
        }
        self.observed(call);
        Ok(())
    }

    /// Translates events.
    fn translate(&mut self, events: &[SseEvent]) {
        let Way::Across { decoder, encoder, finished, tally, .. } = &mut self.way else { return };
        let (mut between, mut bytes) = (Vec::new(), Vec::new());
        for event in events {
            decoder.take(event, &mut between);
        }
        for event in between {
            match &event {
                Event::Error(error) => {
                    self.error = Some(error.clone());
                    break;
                }
                Event::Finish(_) => *finished = true,
                Event::Usage(told) => tally.told(*told),
                Event::Start { .. } => {}
                Event::Text(_) | Event::Thinking(_) | Event::ToolStart { .. } | Event::ToolArguments(_) => {
                    self.has_content = true;
                    tally.wrote();
                }
            }
            encoder.take(event, &mut bytes);
        }
        if !bytes.is_empty() {
            self.ready.push_back(bytes.into());
        }
    }

    /// Takes note of what passed by.
    fn observed(&mut self, call: &mut Call) {
        if let Way::Same { observer, .. } = &mut self.way {
            self.has_content |= observer.has_content;
            // After the first token, the error of the provider is passed on as it is.
            if let Some(error) = observer.error.take() {
                match self.has_content {
                    true => {
                        call.failed(&error);
                        self.held.note(false);
                    }
                    false => self.error = Some(error),
                }
            }
        }
        if self.has_content {
            call.answering();
        }
    }

    /// Looks for what the policy of the key does not want to be said.
    fn look(&mut self, events: &[SseEvent], call: &mut Call) -> Result<(), ApiError> {
        let Some(watch) = &mut self.watch else { return Ok(()) };
        let all = watch.take(events)?;
        for said in &all {
            call.said(said.place, &said.text);
        }
        watch.guard(self.key.as_deref())?;
        if let Some(judging) = &mut self.judging {
            all.iter().for_each(|said| judging.unasked.push(said));
        }
        Ok(())
    }

    /// The provider has said all.
    fn end(&mut self, call: &mut Call) {
        self.is_over = true;
        let splitter = match &mut self.way {
            Way::Same { splitter, .. } | Way::Across { splitter, .. } => splitter,
        };
        // Some servers do not end their last event.
        let last: Vec<SseEvent> = splitter.finish().into_iter().collect();
        if let Err(error) = self.look(&last, call) {
            self.error = Some(error);
            return;
        }
        let broke =
            || Some(ApiError::new(ErrorKind::Provider, "the provider broke off in the middle of the stream"));
        self.translate(&last);
        match &mut self.way {
            Way::Same { observer, partial, strip_usage, .. } => {
                last.iter().for_each(|event| observer.take(event));
                let rest = std::mem::take(partial);
                match observer.is_complete {
                    true => {
                        let is_stripped = *strip_usage && observer.only_usage && !last.is_empty();
                        if !rest.is_empty() && !is_stripped {
                            self.ready.push_back(rest.into());
                        }
                        call.is_complete = true;
                        call.used(observer.usage());
                    }
                    // A part of an event is nothing that an error could follow.
                    false if call.error.is_none() => self.error = broke(),
                    false => {}
                }
            }
            Way::Across { encoder, finished, tally, .. } => match *finished {
                true => {
                    let mut bytes = Vec::new();
                    encoder.finish(&mut bytes);
                    self.ready.push_back(bytes.into());
                    call.is_complete = true;
                    call.used(tally.known());
                }
                false if self.error.is_some() => {}
                false => self.error = broke(),
            },
        }
        self.observed(call);
        if let Some(lease) = self.held.lease.take().filter(|_| self.error.is_none()) {
            lease.finish();
        }
        if call.is_complete {
            self.held.note(true);
        }
    }
}

impl Judging {
    /// Begins to ask about what was said since, if nobody is asked now. Says whether pieces may leave that say nothing.
    fn ask(&mut self, ready: usize) -> bool {
        if self.asked.is_some() || ready == self.cleared {
            return false;
        }
        let Some(text) = self.unasked.take() else {
            self.cleared = ready;
            return true;
        };
        self.asked = Some((self.judge.ask(text), ready));
        false
    }

    /// A piece has left.
    fn left(&mut self) {
        self.cleared -= 1;
        if let Some((_, pieces)) = &mut self.asked {
            *pieces -= 1;
        }
    }
}

/// Whether it is the provider that failed: not a policy, and not who judges for it.
fn is_of_provider(error: &ApiError) -> bool {
    error.is_worth_another_try() && error.code != Some(UNAVAILABLE)
}

/// The same bytes without some of their events, by number.
fn without(whole: &[u8], unwanted: &[usize]) -> Vec<u8> {
    let (mut kept, mut rest, mut at) = (Vec::with_capacity(whole.len()), whole, 0);
    while let Some(end) = event_end(rest) {
        if !unwanted.contains(&at) {
            kept.extend_from_slice(&rest[..end]);
        }
        rest = &rest[end..];
        at += 1;
    }
    kept.extend_from_slice(rest);
    kept
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
        assert_eq!(
            without(b"data: a\n\ndata: b\n\ndata: c\n\n: x\n\n", &[1]),
            b"data: a\n\ndata: c\n\n: x\n\n"
        );
    }
}
