//! Messages.

mod request;
mod response;
mod stream;

pub(crate) use request::{read_request, write_request};
pub(crate) use response::{read_response, write_response};
pub(crate) use stream::{Decoder, Encoder};

use crate::Stop;

fn stop_of(word: &str) -> Stop {
    match word {
        "max_tokens" | "model_context_window_exceeded" => Stop::Length,
        "tool_use" => Stop::Tools,
        "stop_sequence" => Stop::Sequence,
        "refusal" => Stop::Filtered,
        _ => Stop::End,
    }
}

fn word_of(stop: Stop) -> &'static str {
    match stop {
        Stop::End => "end_turn",
        Stop::Length => "max_tokens",
        Stop::Tools => "tool_use",
        Stop::Sequence => "stop_sequence",
        Stop::Filtered => "refusal",
    }
}
