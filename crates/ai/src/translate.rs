//! Every dialect by way of the one form.

use serde_json::Value;

use crate::sse::SseEvent;
use crate::{
    ApiError, ChatRequest, ChatResponse, Dialect, ErrorKind, Event, Stamp, Tally, Usage, anthropic, gemini,
    observer, openai, responses,
};

impl Dialect {
    /// Reads a request of a client. Gemini has model and streaming in its path, and not in the body.
    ///
    /// # Errors
    ///
    /// What cannot be said in other dialects, or is not of this one.
    pub fn read_request(self, body: &Value) -> Result<ChatRequest, ApiError> {
        match self {
            Self::OpenAiChat => openai::read_request(body),
            Self::OpenAiResponses => responses::read_request(body),
            Self::Anthropic => anthropic::read_request(body),
            Self::Gemini => gemini::read_request(body),
            Self::OpenAiEmbeddings | Self::GeminiEmbeddings => Err(not_chat()),
        }
    }

    /// Writes a request for a provider.
    ///
    /// # Errors
    ///
    /// What this dialect has no form for.
    pub fn write_request(self, request: &ChatRequest) -> Result<Value, ApiError> {
        match self {
            Self::OpenAiChat => openai::write_request(request),
            Self::Anthropic => anthropic::write_request(request),
            Self::Gemini => gemini::write_request(request),
            Self::OpenAiResponses | Self::OpenAiEmbeddings | Self::GeminiEmbeddings => Err(not_chat()),
        }
    }

    /// Reads a response of a provider.
    ///
    /// # Errors
    ///
    /// If it is not one.
    pub fn read_response(self, body: &Value) -> Result<ChatResponse, ApiError> {
        match self {
            Self::OpenAiChat => openai::read_response(body),
            Self::Anthropic => anthropic::read_response(body),
            Self::Gemini => gemini::read_response(body),
            Self::OpenAiResponses | Self::OpenAiEmbeddings | Self::GeminiEmbeddings => Err(not_chat()),
        }
    }

    /// Writes a response for a client.
    ///
    /// # Errors
    ///
    /// If the model called a tool with arguments that this dialect has no form for.
    pub fn write_response(self, response: &ChatResponse, stamp: &Stamp) -> Result<Value, ApiError> {
        let written = match self {
            Self::OpenAiResponses => Ok(responses::write_response(response, stamp)),
            Self::Anthropic => anthropic::write_response(response, stamp),
            Self::Gemini => gemini::write_response(response, stamp),
            Self::OpenAiChat | Self::OpenAiEmbeddings | Self::GeminiEmbeddings => {
                Ok(openai::write_response(response, stamp))
            }
        };
        written.map_err(|wrong| ApiError::new(ErrorKind::Provider, wrong))
    }

    /// What a response of a provider says of usage; what it does not count is 0.
    pub fn usage(self, body: &Value) -> Option<Usage> {
        match self {
            Self::OpenAiChat | Self::OpenAiEmbeddings => Usage::from_openai(body.get("usage")?),
            Self::OpenAiResponses => Usage::from_responses(body.get("usage")?),
            Self::Anthropic => Usage::from_anthropic(body.get("usage")?),
            Self::Gemini | Self::GeminiEmbeddings => Usage::from_gemini(body.get("usageMetadata")?),
        }
    }

    /// What was used, as a response of a provider says; `None` if it does not say all of it.
    pub fn known_usage(self, body: &Value) -> Option<Usage> {
        let mut tally = Tally::default();
        if observer::has_answer(self, body) {
            tally.wrote();
        }
        tally.told(self.usage(body)?);
        tally.known()
    }
}

fn not_chat() -> ApiError {
    ApiError::invalid("this request is not one that can be translated into the dialect of the provider")
}

/// Reads the event stream of a provider.
#[derive(Debug)]
pub struct Decoder(AnyDecoder);

#[derive(Debug)]
enum AnyDecoder {
    OpenAi(openai::Decoder),
    Anthropic(anthropic::Decoder),
    Gemini(gemini::Decoder),
}

impl Decoder {
    /// A reader of this dialect; `None` if it has no streams that can be translated.
    pub fn new(dialect: Dialect) -> Option<Self> {
        match dialect {
            Dialect::OpenAiChat => Some(Self(AnyDecoder::OpenAi(openai::Decoder::default()))),
            Dialect::Anthropic => Some(Self(AnyDecoder::Anthropic(anthropic::Decoder))),
            Dialect::Gemini => Some(Self(AnyDecoder::Gemini(gemini::Decoder::default()))),
            Dialect::OpenAiResponses | Dialect::OpenAiEmbeddings | Dialect::GeminiEmbeddings => None,
        }
    }

    /// Takes an event of the provider, and says what it means.
    pub fn take(&mut self, event: &SseEvent, out: &mut Vec<Event>) {
        if event.data == "[DONE]" {
            return;
        }
        let Ok(data) = serde_json::from_str::<Value>(&event.data) else {
            let message = "the provider sent an event that is not JSON";
            return out.push(Event::Error(ApiError::new(ErrorKind::Provider, message)));
        };
        match &mut self.0 {
            AnyDecoder::OpenAi(decoder) => decoder.take(&data, out),
            AnyDecoder::Anthropic(decoder) => decoder.take(&data, out),
            AnyDecoder::Gemini(decoder) => decoder.take(&data, out),
        }
    }
}

/// Writes an event stream for a client.
#[derive(Debug)]
pub struct Encoder(AnyEncoder);

#[derive(Debug)]
enum AnyEncoder {
    OpenAi(openai::Encoder),
    Responses(Box<responses::Encoder>),
    Anthropic(anthropic::Encoder),
    Gemini(gemini::Encoder),
}

impl Encoder {
    /// A writer of this dialect.
    pub fn new(dialect: Dialect, stamp: Stamp) -> Self {
        Self(match dialect {
            Dialect::OpenAiResponses => AnyEncoder::Responses(Box::new(responses::Encoder::new(stamp))),
            Dialect::Anthropic => AnyEncoder::Anthropic(anthropic::Encoder::new(stamp)),
            Dialect::Gemini | Dialect::GeminiEmbeddings => AnyEncoder::Gemini(gemini::Encoder::new(stamp)),
            Dialect::OpenAiChat | Dialect::OpenAiEmbeddings => {
                AnyEncoder::OpenAi(openai::Encoder::new(stamp))
            }
        })
    }

    /// Takes a piece, and writes what can be written.
    pub fn take(&mut self, event: Event, out: &mut Vec<u8>) {
        match &mut self.0 {
            AnyEncoder::OpenAi(encoder) => encoder.take(event, out),
            AnyEncoder::Responses(encoder) => encoder.take(event, out),
            AnyEncoder::Anthropic(encoder) => encoder.take(event, out),
            AnyEncoder::Gemini(encoder) => encoder.take(event, out),
        }
    }

    /// Writes the end of a stream that ended well.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        match &mut self.0 {
            AnyEncoder::OpenAi(encoder) => encoder.finish(out),
            AnyEncoder::Responses(encoder) => encoder.finish(out),
            AnyEncoder::Anthropic(encoder) => encoder.finish(out),
            AnyEncoder::Gemini(encoder) => encoder.finish(out),
        }
    }
}
