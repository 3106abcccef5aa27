//! Messages as JSON: what Go writes as JSON after it has read the message into its type.

use super::clock;
use super::message::{Field, Message, Place, Shape};
use super::scalar;
use crate::Error;
use serde_json::{Map, Value};
use std::borrow::Cow;
use watchkeeper_go::base64;
use watchkeeper_schema::Weight;
use watchkeeper_wire::protobuf::{self, Payload, Reader};

/// What JSON may nest, so that it can be read again by parsers that have a limit.
const DEPTH: usize = 120;
/// What an object costs; see [`Decoder::charge`].
const PRICE_OF_AN_OBJECT: usize = 8;

/// What was found of a field.
enum Found<'a> {
    Nothing,
    Number(u64),
    Bytes(Cow<'a, [u8]>),
    Many(Vec<Payload<'a>>),
}

/// Reads one message and what is in it.
pub(super) struct Decoder {
    /// How much may still be made of the bytes.
    credit: usize,
    weight: Weight,
    depth: usize,
}

impl Decoder {
    pub(super) fn new(bytes: &[u8]) -> Self {
        Self { credit: 16_384 + 2 * bytes.len(), weight: Weight::default(), depth: 0 }
    }

    /// A message as an object.
    pub(super) fn object(&mut self, place: Place, bytes: &[u8]) -> Result<Value, Error> {
        self.nested(|decoder| {
            decoder.charge(PRICE_OF_AN_OBJECT)?;
            let mut fields = Map::new();
            decoder.fields(place.message(), bytes, &mut fields)?;
            Ok(Value::Object(fields))
        })
    }

    fn fields(
        &mut self,
        message: &Message,
        bytes: &[u8],
        into: &mut Map<String, Value>,
    ) -> Result<(), Error> {
        for (field, found) in message.fields.iter().zip(self.gather(message, bytes)?) {
            match (&field.shape, found) {
                (Shape::Message(place), found) if field.name.is_empty() => {
                    let bytes = if let Found::Bytes(bytes) = found { bytes } else { Cow::default() };
                    self.nested(|decoder| decoder.fields(place.message(), &bytes, into))?;
                }
                (_, found) => {
                    if let Some(value) = self.field(field, found)? {
                        self.charge(1)?;
                        self.weigh(|weight| weight.field(into.len(), field.name.len()))?;
                        into.insert(field.name.to_owned(), value);
                    }
                }
            }
        }
        Ok(())
    }

    /// The value of a field, `None` if it is not written.
    fn field(&mut self, field: &Field, found: Found<'_>) -> Result<Option<Value>, Error> {
        let absent = field.is_kept.then_some(Value::Null);
        let value = match (&field.shape, found) {
            (Shape::List(element), Found::Many(items)) => return Ok(self.list(element, &items)?.or(absent)),
            (Shape::Map(element), Found::Many(entries)) => {
                return Ok(self.map(element, &entries)?.or(absent));
            }
            (Shape::List(_) | Shape::Map(_) | Shape::Bytes, Found::Nothing) => return Ok(absent),
            (_, Found::Nothing) if field.is_pointer => return Ok(absent),
            (shape, Found::Number(number)) => scalar::number(shape, number)?,
            (shape, Found::Bytes(bytes)) => self.value(shape, &bytes)?,
            (shape, _) => self.zero(shape)?,
        };
        let is_empty = matches!(&value, Value::Null | Value::Bool(false))
            || value.as_str().is_some_and(str::is_empty)
            || value.as_f64() == Some(0.0);
        let is_written = field.is_pointer || field.is_kept || !is_empty;
        Ok(is_written.then_some(value))
    }

    fn list(&mut self, element: &Shape, items: &[Payload<'_>]) -> Result<Option<Value>, Error> {
        let items: Vec<_> = self.nested(|decoder| {
            let item = |(index, item): (usize, &Payload<'_>)| {
                decoder.charge(1)?;
                decoder.weigh(|weight| weight.item(index))?;
                decoder.payload(element, *item)
            };
            items.iter().enumerate().map(item).collect::<Result<_, _>>()
        })?;
        Ok((!items.is_empty()).then_some(Value::Array(items)))
    }

    fn map(&mut self, element: &Shape, entries: &[Payload<'_>]) -> Result<Option<Value>, Error> {
        self.nested(|decoder| {
            let mut map = Map::new();
            for entry in entries {
                decoder.charge(1)?;
                let Payload::Bytes(bytes) = entry else { return Err(entry.misfit("map").into()) };
                let (mut key, mut value, mut reader) = (String::new(), None, Reader::new(bytes));
                while let Some((number, payload)) = reader.next()? {
                    match (number, payload) {
                        (1, Payload::Bytes(bytes)) => key = scalar::text(bytes),
                        (1, other) => return Err(other.misfit("map key").into()),
                        (2, payload) => value = Some(decoder.payload(element, payload)?),
                        _ => {}
                    }
                }
                let value = value.map_or_else(|| decoder.zero(element), Ok)?;
                decoder.weigh(|weight| weight.field(map.len(), key.len()))?;
                map.insert(key, value);
            }
            Ok((!map.is_empty()).then_some(Value::Object(map)))
        })
    }

    fn payload(&mut self, shape: &Shape, payload: Payload<'_>) -> Result<Value, Error> {
        match payload {
            Payload::Bytes(bytes) => self.value(shape, bytes),
            Payload::Varint(number) | Payload::Fixed64(number) if fits(shape, payload) => {
                scalar::number(shape, number)
            }
            _ => Err(payload.misfit("value").into()),
        }
    }

    /// The value of what has a length.
    fn value(&mut self, shape: &Shape, bytes: &[u8]) -> Result<Value, Error> {
        match shape {
            Shape::Text => self.weigh(|weight| weight.text(bytes.len()))?,
            Shape::Bytes => self.weigh(|weight| weight.text(bytes.len().div_ceil(3) * 4))?,
            _ => {}
        }
        Ok(match shape {
            Shape::Text => scalar::text(bytes).into(),
            Shape::Bytes => base64::encode(bytes).into(),
            Shape::Quantity => scalar::quantity(bytes)?,
            Shape::IntOrString => scalar::int_or_string(bytes)?,
            Shape::Time => scalar::time(bytes, |seconds, _| clock::text(seconds))?,
            Shape::MicroTime => scalar::time(bytes, clock::micro_text)?,
            Shape::Json => self.json(bytes)?,
            Shape::Message(place) => self.object(*place, bytes)?,
            Shape::Union(place) => {
                let Value::Object(mut forms) = self.object(*place, bytes)? else { return Ok(Value::Null) };
                let last = place.message().fields.iter().rev().find(|field| forms.contains_key(field.name));
                last.and_then(|field| forms.remove(field.name)).unwrap_or_default()
            }
            Shape::Wrapped(element) => {
                let (mut items, mut reader) = (Vec::new(), Reader::new(bytes));
                while let Some((number, payload)) = reader.next()? {
                    if number == 1 {
                        self.weigh(|weight| weight.item(items.len()))?;
                        items.push(payload);
                    }
                }
                self.list(element, &items)?.unwrap_or_else(|| Value::Array(Vec::new()))
            }
            _ => return Err(Payload::Bytes(bytes).misfit("value").into()),
        })
    }

    /// The zero of a type that is there by value.
    fn zero(&mut self, shape: &Shape) -> Result<Value, Error> {
        match shape {
            Shape::Flag | Shape::Int32 | Shape::Int64 | Shape::Double => scalar::number(shape, 0),
            _ => self.value(shape, &[]),
        }
    }

    /// JSON as it is.
    fn json(&mut self, bytes: &[u8]) -> Result<Value, Error> {
        let text = scalar::last_bytes(bytes, 1)?.unwrap_or_default();
        if text.is_empty() {
            return Ok(Value::Null);
        }
        self.weigh(|weight| weight.json(text).map(drop))?;
        let value = serde_json::from_slice(text).map_err(|error| Error::Decode(error.to_string()))?;
        if self.depth + depth(&value) > DEPTH { Err(too_deep()) } else { Ok(value) }
    }

    /// Counts the memory of what is made.
    fn weigh(
        &mut self,
        add: impl FnOnce(&mut Weight) -> Result<(), watchkeeper_schema::Error>,
    ) -> Result<(), Error> {
        add(&mut self.weight).map_err(|_| Error::TooLarge)
    }

    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        if self.depth == DEPTH {
            return Err(too_deep());
        }
        self.depth += 1;
        let read = read(self);
        self.depth -= 1;
        read
    }

    /// Counts what is made. Two bytes can stand for an object with many zeros; a message full of such bytes would become
    /// a thousand times as large, and nobody sends it in good faith.
    fn charge(&mut self, price: usize) -> Result<(), Error> {
        self.credit = self
            .credit
            .checked_sub(price)
            .ok_or_else(|| Error::from(protobuf::Error::new("too many empty values")))?;
        Ok(())
    }

    /// What the bytes say of each field. Fields that the message does not have are passed over.
    fn gather<'a>(&mut self, message: &Message, bytes: &'a [u8]) -> Result<Vec<Found<'a>>, Error> {
        let mut all: Vec<Found<'a>> = message.fields.iter().map(|_| Found::Nothing).collect();
        let mut reader = Reader::new(bytes);
        while let Some((number, payload)) = reader.next()? {
            let Some(index) = message.field(number) else { continue };
            let (field, found) = (&message.fields[index], &mut all[index]);
            match (&field.shape, payload) {
                (Shape::List(element), Payload::Bytes(packed)) if is_varint(element) => {
                    let mut packed = Reader::new(packed);
                    while !packed.is_empty() {
                        found.push(Payload::Varint(packed.varint()?), &mut self.weight)?;
                    }
                }
                (Shape::List(element), payload) if fits(element, payload) => {
                    found.push(payload, &mut self.weight)?;
                }
                (Shape::Map(_), Payload::Bytes(_)) => found.push(payload, &mut self.weight)?,
                // What is there twice is one message, written in two parts.
                (Shape::Message(_) | Shape::Union(_) | Shape::IntOrString, Payload::Bytes(bytes)) => {
                    match found {
                        Found::Bytes(before) => before.to_mut().extend_from_slice(bytes),
                        _ => *found = Found::Bytes(Cow::Borrowed(bytes)),
                    }
                }
                (shape, Payload::Bytes(bytes)) if fits(shape, payload) => {
                    *found = Found::Bytes(Cow::Borrowed(bytes));
                }
                (shape, Payload::Varint(number) | Payload::Fixed64(number)) if fits(shape, payload) => {
                    *found = Found::Number(number);
                }
                _ => return Err(payload.misfit(field.name).into()),
            }
        }
        Ok(all)
    }
}

impl<'a> Found<'a> {
    fn push(&mut self, payload: Payload<'a>, weight: &mut Weight) -> Result<(), Error> {
        let known = if let Found::Many(items) = self { items.len() } else { 0 };
        // No larger than a value, and there as long as the message is read.
        weight.item(known).map_err(|_| Error::TooLarge)?;
        match self {
            Found::Many(items) => items.push(payload),
            _ => *self = Found::Many(vec![payload]),
        }
        Ok(())
    }
}

fn is_varint(shape: &Shape) -> bool {
    matches!(shape, Shape::Flag | Shape::Int32 | Shape::Int64)
}

fn fits(shape: &Shape, payload: Payload<'_>) -> bool {
    match payload {
        Payload::Varint(_) => is_varint(shape),
        Payload::Fixed64(_) => matches!(shape, Shape::Double),
        Payload::Fixed32 => false,
        Payload::Bytes(_) => {
            !is_varint(shape) && !matches!(shape, Shape::Double | Shape::List(_) | Shape::Map(_))
        }
    }
}

/// How deep a value nests. It was just parsed, so the parser's limit is its limit.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or_default(),
        _ => 0,
    }
}

fn too_deep() -> Error {
    protobuf::Error::new("exceeded max depth").into()
}
