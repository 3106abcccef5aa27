//! Generated content. Fields are written in camel case, and read in both cases, as the vendor does.

mod request;
mod response;
mod schema;
mod stream;

pub(crate) use request::{read_request, write_request};
pub(crate) use response::{read_response, write_response};
pub(crate) use stream::{Decoder, Encoder};

use serde_json::Value;

use crate::Stop;

fn stop_of(word: &str) -> Stop {
    match word {
        "MAX_TOKENS" => Stop::Length,
        "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" | "IMAGE_SAFETY" => {
            Stop::Filtered
        }
        _ => Stop::End,
    }
}

fn word_of(stop: Stop) -> &'static str {
    match stop {
        Stop::End | Stop::Tools | Stop::Sequence => "STOP",
        Stop::Length => "MAX_TOKENS",
        Stop::Filtered => "SAFETY",
    }
}

/// A field by its name in camel case, or in snake case.
fn field<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    value.get(name).or_else(|| {
        let mut snake = String::new();
        for letter in name.chars() {
            if letter.is_ascii_uppercase() {
                snake.push('_');
            }
            snake.push(letter.to_ascii_lowercase());
        }
        value.get(&snake)
    })
}
