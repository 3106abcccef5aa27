//! What is said in a stream, for those who look for something in it.

use std::collections::BTreeMap;

use ring::digest::{Context, SHA256};
use watchkeeper_ai::sse::SseEvent;
use watchkeeper_ai::{ApiError, Dialect, ErrorKind, StreamText, StreamTexts};

use super::guard::guard;
use super::table::AiKey;

/// How much of what was said before is looked at again with what is said now, in bytes.
const LOOKED_BACK: usize = 4 << 10;
/// How many places an answer may have: choices, blocks, fields, calls of tools.
const PLACES: usize = 1_024;

/// All that a model says in a stream, place by place: what is said at one is joined, whatever is said in between at others.
pub(super) struct Watch {
    texts: StreamTexts,
    places: Vec<Place>,
}

struct Place {
    /// `None` for a text that came as a whole.
    name: Option<String>,
    /// The end of what was said here.
    said: String,
    has_news: bool,
    /// All that was said here: what repeats it says nothing new.
    length: usize,
    digest: Context,
}

/// What is said, and at which place.
pub(super) struct Said {
    pub(super) place: usize,
    pub(super) text: String,
}

impl Watch {
    pub(super) fn new(provider: Dialect, client: Dialect) -> Self {
        Self { texts: StreamTexts::new(provider, client), places: Vec::new() }
    }

    /// Takes events, and says what is said in them for the first time.
    pub(super) fn take(&mut self, events: &[SseEvent]) -> Result<Vec<Said>, ApiError> {
        let mut texts = Vec::new();
        events.iter().for_each(|event| self.texts.take(event, &mut texts));
        let mut said = Vec::with_capacity(texts.len());
        for StreamText { place, text } in texts {
            let found = match &place {
                Some(_) => self.places.iter().rposition(|known| known.name == place),
                None if self.repeats(&text) => continue,
                None => None,
            };
            let at = found.unwrap_or(self.places.len());
            if at == PLACES {
                let message = "the answer has more places than guardrails and records look at";
                return Err(ApiError::new(ErrorKind::Provider, message));
            }
            if found.is_none() {
                self.places.push(Place {
                    name: place,
                    said: String::new(),
                    has_news: false,
                    length: 0,
                    digest: Context::new(&SHA256),
                });
            }
            self.places[at].push(&text);
            said.push(Said { place: at, text });
        }
        Ok(said)
    }

    /// Whether this is all that was said at a place.
    fn repeats(&self, text: &str) -> bool {
        let mut digest = None;
        self.places.iter().filter(|place| place.length == text.len()).any(|place| {
            let digest = digest.get_or_insert_with(|| ring::digest::digest(&SHA256, text.as_bytes()));
            place.digest.clone().finish().as_ref() == digest.as_ref()
        })
    }

    /// Looks for what the policy of a key does not want to be said, in what is new.
    pub(super) fn guard(&mut self, key: Option<&AiKey>) -> Result<(), ApiError> {
        for place in self.places.iter_mut().filter(|place| place.has_news) {
            guard(key, true, &place.said)?;
            place.has_news = false;
            forget(&mut place.said);
        }
        Ok(())
    }
}

impl Place {
    fn push(&mut self, text: &str) {
        self.said.push_str(text);
        self.has_news = true;
        self.length += text.len();
        self.digest.update(text.as_bytes());
    }
}

/// What webhooks were not asked about, by place, with the end of what they were.
#[derive(Default)]
pub(super) struct Unasked {
    places: BTreeMap<usize, (String, bool)>,
}

impl Unasked {
    pub(super) fn push(&mut self, said: &Said) {
        let (text, has_news) = self.places.entry(said.place).or_default();
        text.push_str(&said.text);
        *has_news = true;
    }

    /// What is to be asked about, a line for each place; `None` if nothing was said.
    pub(super) fn take(&mut self) -> Option<String> {
        let mut lines = Vec::new();
        for (text, has_news) in self.places.values_mut().filter(|(_, has_news)| *has_news) {
            lines.push(text.clone());
            *has_news = false;
            forget(text);
        }
        (!lines.is_empty()).then(|| lines.join("\n"))
    }
}

/// Forgets all but the end of what was said.
fn forget(said: &mut String) {
    let mut cut = said.len().saturating_sub(LOOKED_BACK);
    while !said.is_char_boundary(cut) {
        cut += 1;
    }
    said.drain(..cut);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(data: &serde_json::Value) -> SseEvent {
        SseEvent { event: String::new(), data: data.to_string() }
    }

    #[test]
    fn what_is_repeated_as_a_whole_is_said_once() {
        let mut watch = Watch::new(Dialect::OpenAiResponses, Dialect::OpenAiResponses);
        let delta = |text: &str| event(&json!({"type": "response.output_text.delta", "delta": text}));
        let done = |text: &str| event(&json!({"type": "response.output_text.done", "text": text}));
        let mut said = |event: SseEvent| -> Vec<String> {
            watch.take(&[event]).unwrap().into_iter().map(|said| said.text).collect()
        };
        assert_eq!((said(delta("to")), said(delta("gether"))), (vec!["to".into()], vec!["gether".into()]));
        assert!(said(done("together")).is_empty());
        assert_eq!(said(done("otherwise")), ["otherwise"]);
        assert!(said(done("otherwise")).is_empty());
    }

    #[test]
    fn places_are_bounded() {
        let mut watch = Watch::new(Dialect::OpenAiChat, Dialect::OpenAiChat);
        let choice = |index: usize| event(&json!({"choices": [{"index": index, "delta": {"content": "x"}}]}));
        assert!((0..PLACES).all(|index| watch.take(&[choice(index)]).is_ok()));
        assert!(watch.take(&[choice(0)]).is_ok() && watch.take(&[choice(PLACES)]).is_err());
    }

    #[test]
    fn webhooks_are_asked_a_line_for_each_place_with_news() {
        let mut unasked = Unasked::default();
        let mut push = |place: usize, text: &str| unasked.push(&Said { place, text: text.to_owned() });
        push(0, "a");
        push(1, "b");
        push(0, "c");
        assert_eq!(unasked.take().as_deref(), Some("ac\nb"));
        assert_eq!(unasked.take(), None);
        unasked.push(&Said { place: 1, text: "d".to_owned() });
        assert_eq!(unasked.take().as_deref(), Some("bd"));
    }
}
