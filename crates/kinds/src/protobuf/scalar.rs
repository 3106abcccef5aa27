//! The values that are no messages in JSON.

use super::message::Shape;
use crate::{Error, decimal};
use serde_json::{Number, Value};
use watchkeeper_wire::protobuf::{self, Payload, Reader};

pub(super) fn number(shape: &Shape, number: u64) -> Result<Value, Error> {
    Ok(match shape {
        Shape::Flag => (number != 0).into(),
        Shape::Int32 => (number as i32).into(),
        Shape::Int64 => (number as i64).into(),
        Shape::Double => double(f64::from_bits(number))?,
        _ => return Err(Payload::Varint(number).misfit("value").into()),
    })
}

/// A number as Go writes it: without a fraction if it has none.
fn double(number: f64) -> Result<Value, Error> {
    let is_whole =
        number.fract() == 0.0 && number.abs() < 9e18 && !(number == 0.0 && number.is_sign_negative());
    if is_whole {
        return Ok((number as i64).into());
    }
    Number::from_f64(number)
        .map(Value::Number)
        .ok_or_else(|| Error::Decode(format!("json: unsupported value: {number}")))
}

/// Text as Go writes it in JSON: each byte that is no part of a character becomes one that says so.
pub(super) fn text(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        chunk.invalid().iter().for_each(|_| text.push(char::REPLACEMENT_CHARACTER));
    }
    text
}

pub(super) fn quantity(bytes: &[u8]) -> Result<Value, Error> {
    let Some(bytes) = last_bytes(bytes, 1)? else { return Ok("0".into()) };
    decimal::canonical(&text(bytes)).map(Value::String).map_err(Error::Decode)
}

pub(super) fn int_or_string(bytes: &[u8]) -> Result<Value, Error> {
    let (mut kind, mut whole, mut name, mut reader) = (0, 0_i32, String::new(), Reader::new(bytes));
    while let Some((field, payload)) = reader.next()? {
        match (field, payload) {
            (1, Payload::Varint(value)) => kind = value,
            (2, Payload::Varint(value)) => whole = value as i32,
            (3, Payload::Bytes(value)) => name = text(value),
            (1..=3, other) => return Err(other.misfit("intOrString").into()),
            _ => {}
        }
    }
    match kind {
        0 => Ok(whole.into()),
        1 => Ok(name.into()),
        _ => Err(Error::Decode("impossible IntOrString.Type".into())),
    }
}

pub(super) fn time(bytes: &[u8], write: impl Fn(i64, i32) -> Option<Option<String>>) -> Result<Value, Error> {
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    let (mut seconds, mut nanos, mut reader) = (0, 0, Reader::new(bytes));
    while let Some((field, payload)) = reader.next()? {
        match (field, payload) {
            (1, Payload::Varint(value)) => seconds = value as i64,
            (2, Payload::Varint(value)) => nanos = value as i32,
            (1 | 2, other) => return Err(other.misfit("time").into()),
            _ => {}
        }
    }
    let text = write(seconds, nanos)
        .ok_or_else(|| Error::from(protobuf::Error::new("a time must be of the years 0 to 9999")))?;
    Ok(text.map_or(Value::Null, Value::String))
}

/// The bytes of a field; the last ones count.
pub(super) fn last_bytes(message: &[u8], field: u32) -> Result<Option<&[u8]>, Error> {
    let (mut found, mut reader) = (None, Reader::new(message));
    while let Some((number, payload)) = reader.next()? {
        if number == field {
            let Payload::Bytes(bytes) = payload else { return Err(payload.misfit("value").into()) };
            found = Some(bytes);
        }
    }
    Ok(found)
}
