//! JSON as messages, byte for byte as Go writes them.

use super::clock;
use super::message::{Field, Message, Shape};
use serde_json::{Map, Value};
use watchkeeper_go::base64;
use watchkeeper_wire::protobuf::Writer;

/// The fields of a message. `None` if a value is not of the type of its field; fields that the message does not have
/// are passed over.
pub(super) fn fields(writer: &mut Writer, message: &Message, object: &Map<String, Value>) -> Option<()> {
    message.fields.iter().try_for_each(|field| match &field.shape {
        Shape::Message(place) if field.name.is_empty() => {
            writer.message(field.number, |writer| fields(writer, place.message(), object))
        }
        _ => self::field(writer, field, object.get(field.name)),
    })
}

/// A field. By value it is written even when it is zero, as a pointer only when it is there.
pub(super) fn field(writer: &mut Writer, field: &Field, value: Option<&Value>) -> Option<()> {
    let value = value.filter(|value| !value.is_null());
    match (&field.shape, value) {
        (Shape::List(element), Some(value)) => value
            .as_array()?
            .iter()
            .try_for_each(|item| self::value(writer, field.number, element, Some(item))),
        (Shape::Map(element), Some(value)) => {
            let mut entries: Vec<_> = value.as_object()?.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| *key);
            entries.into_iter().try_for_each(|(key, value)| {
                writer.message(field.number, |writer| {
                    writer.delimited(1, key.as_bytes());
                    self::value(writer, 2, element, Some(value))
                })
            })
        }
        (Shape::List(_) | Shape::Map(_), None) => Some(()),
        (_, None) if field.is_pointer => Some(()),
        (shape, value) => self::value(writer, field.number, shape, value),
    }
}

/// One element of a field that is a list.
pub(super) fn element(writer: &mut Writer, field: &Field, item: &Value) -> Option<()> {
    let Shape::List(element) = &field.shape else { return None };
    value(writer, field.number, element, Some(item))
}

/// One value; none at all is the zero of its type.
fn value(writer: &mut Writer, number: u32, shape: &Shape, value: Option<&Value>) -> Option<()> {
    let value = value.filter(|value| !value.is_null());
    match shape {
        Shape::Text => writer.delimited(number, value.map_or(Some(""), Value::as_str)?.as_bytes()),
        Shape::Flag => writer.integer(number, value.map_or(Some(false), Value::as_bool)?.into()),
        Shape::Int32 => {
            let value = i32::try_from(value.map_or(Some(0), Value::as_i64)?).ok()?;
            writer.integer(number, value.into());
        }
        Shape::Int64 => writer.integer(number, value.map_or(Some(0), Value::as_i64)?),
        Shape::Double => writer.double(number, value.map_or(Some(0.0), Value::as_f64)?),
        Shape::Bytes => {
            if let Some(value) = value {
                writer.delimited(number, &base64::decode(value.as_str()?).ok()?);
            }
        }
        Shape::Quantity => {
            let text = value.map_or(Some("0"), Value::as_str)?;
            writer.message(number, |writer| {
                writer.delimited(1, text.as_bytes());
                Some(())
            })?;
        }
        Shape::IntOrString => writer.message(number, |writer| int_or_string(writer, value))?,
        Shape::Time => writer.message(number, |writer| {
            let time = value.map_or(Some(None), |value| clock::seconds(value.as_str()?))?;
            time.map(|seconds| timestamp(writer, seconds, 0)).or(Some(()))
        })?,
        Shape::MicroTime => writer.message(number, |writer| {
            let time = value.map_or(Some(None), |value| clock::nanos(value.as_str()?))?;
            time.map(|(seconds, nanos)| timestamp(writer, seconds, nanos)).or(Some(()))
        })?,
        Shape::Json => writer.message(number, |writer| {
            let json = value.map(serde_json::to_vec).transpose().ok()?;
            json.map(|json| writer.delimited(1, &json)).or(Some(()))
        })?,
        Shape::Wrapped(element) => writer.message(number, |writer| {
            let items = value.map_or(Some(&[][..]), |value| value.as_array().map(Vec::as_slice))?;
            items.iter().try_for_each(|item| self::value(writer, 1, element, Some(item)))
        })?,
        Shape::Message(place) => writer.message(number, |writer| {
            let none = Map::new();
            fields(writer, place.message(), value.map_or(Some(&none), Value::as_object)?)
        })?,
        Shape::Union(place) => {
            let value = value.unwrap_or(&Value::Null);
            writer.message(number, |writer| union(writer, place.message(), value))?;
        }
        // There are no lists of lists, nor maps of them, that are not in a message of their own.
        Shape::List(_) | Shape::Map(_) => return None,
    }
    Some(())
}

fn int_or_string(writer: &mut Writer, value: Option<&Value>) -> Option<()> {
    let (number, text) = match value {
        Some(Value::String(text)) => (0, Some(text.as_str())),
        Some(value) => (i32::try_from(value.as_i64()?).ok()?, None),
        None => (0, None),
    };
    writer.integer(1, text.is_some().into());
    writer.integer(2, number.into());
    writer.delimited(3, text.unwrap_or_default().as_bytes());
    Some(())
}

fn timestamp(writer: &mut Writer, seconds: i64, nanos: i64) {
    writer.integer(1, seconds);
    writer.integer(2, nanos);
}

/// The form that the value has. That there is a schema also says that what it describes is allowed.
fn union(writer: &mut Writer, message: &Message, value: &Value) -> Option<()> {
    message.fields.iter().try_for_each(|field| {
        let form = match (&field.shape, value) {
            (Shape::Flag, Value::Object(_)) => Some(&Value::Bool(true)),
            (Shape::Flag, Value::Bool(_))
            | (Shape::Message(_), Value::Object(_))
            | (Shape::List(_), Value::Array(_)) => Some(value),
            _ => None,
        };
        self::field(writer, field, form)
    })
}
