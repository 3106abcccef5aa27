use serde_json::Value;
use watchkeeper_ai::sse::{self, Splitter};

/// What is said of usage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Told {
    /// All of it.
    #[default]
    All,
    /// What the prompt was. A stream of messages says that at its start, as Anthropic does, with a token that is written.
    Input,
    /// Nothing: the fields are not there.
    Nothing,
}

/// Where usage is in bodies and events of all dialects.
const PLACES: [&str; 4] = ["/usage", "/usageMetadata", "/message/usage", "/response/usage"];
/// The fields that count what is written, and all.
const OUTPUT: [&str; 5] =
    ["completion_tokens", "output_tokens", "candidatesTokenCount", "total_tokens", "totalTokenCount"];

impl Told {
    /// Takes out of a body, or of the data of an event, what is not said.
    pub(super) fn of(self, body: &mut Value) {
        let is_start = body["type"] == "message_start";
        for place in PLACES {
            let Some((parent, field)) = place.rsplit_once('/') else { continue };
            let Some(parent) = body.pointer_mut(parent).and_then(Value::as_object_mut) else { continue };
            let says_nothing = match self {
                Self::All => false,
                Self::Input => !is_start && parent.get("type").is_some_and(|kind| kind == "message_delta"),
                Self::Nothing => true,
            };
            if says_nothing {
                parent.remove(field);
            }
            if let Some(usage) = parent.get_mut(field).and_then(Value::as_object_mut)
                && self == Self::Input
            {
                match is_start {
                    true => drop(usage.insert("output_tokens".to_owned(), 1.into())),
                    false => OUTPUT.iter().for_each(|name| drop(usage.remove(*name))),
                }
            }
        }
    }

    /// The same for the events of a piece of a stream.
    pub(super) fn of_events(self, piece: Vec<u8>) -> Vec<u8> {
        if self == Self::All {
            return piece;
        }
        let mut told = Vec::new();
        let split = Splitter::default().push(&piece, |event| {
            let data = match serde_json::from_str::<Value>(&event.data) {
                Ok(mut data) => {
                    self.of(&mut data);
                    data.to_string()
                }
                Err(_) => event.data,
            };
            sse::write(&mut told, &event.event, &data);
        });
        // What this process wrote is not too large.
        if split.is_ok() { told } else { piece }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_not_said_is_not_there() {
        let said = |told: Told, mut body: Value| {
            told.of(&mut body);
            body
        };
        let usage = json!({"input_tokens": 3, "output_tokens": 5});
        for body in [json!({"usage": usage}), json!({"message": {"usage": usage}, "type": "message_start"})] {
            assert_eq!(said(Told::All, body.clone()), body);
            assert!(!said(Told::Nothing, body).to_string().contains("usage"));
        }
        assert_eq!(said(Told::Input, json!({"usage": usage})), json!({"usage": {"input_tokens": 3}}));
        let start = json!({"type": "message_start", "message": {"usage": usage}});
        assert_eq!(
            said(Told::Input, start)["message"]["usage"],
            json!({"input_tokens": 3, "output_tokens": 1})
        );
        let delta = json!({"type": "message_delta", "usage": usage});
        assert_eq!(said(Told::Input, delta), json!({"type": "message_delta"}));
        let piece = b"event: a\ndata: {\"usage\":{}}\n\ndata: [DONE]\n\n".to_vec();
        assert_eq!(Told::Nothing.of_events(piece), b"event: a\ndata: {}\n\ndata: [DONE]\n\n");
    }
}
