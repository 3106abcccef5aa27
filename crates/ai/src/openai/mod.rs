//! Chat completions.

mod request;
mod response;
mod stream;

pub(crate) use request::{read_request, write_request};
pub(crate) use response::{read_response, write_response};
pub(crate) use stream::{Decoder, Encoder};

use crate::Stop;

fn stop_of(word: &str) -> Stop {
    match word {
        "length" => Stop::Length,
        "tool_calls" | "function_call" => Stop::Tools,
        "content_filter" => Stop::Filtered,
        _ => Stop::End,
    }
}

fn word_of(stop: Stop) -> &'static str {
    match stop {
        Stop::End | Stop::Sequence => "stop",
        Stop::Length => "length",
        Stop::Tools => "tool_calls",
        Stop::Filtered => "content_filter",
    }
}
