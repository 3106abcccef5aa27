use crate::cell;
use crate::column::{AGE, Column, NAME};
use crate::duration::age;
use crate::fields::Fields;
use crate::{Error, JsonPath};
use serde_json::Value;
use std::borrow::Cow;
use watchkeeper_go::Time;

/// Below this, floats without a fraction are whole numbers exactly. Go writes them without a point.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// How objects of a custom resource fill the columns after the name.
#[derive(Debug)]
pub(crate) struct CustomCells(Vec<(Kind, JsonPath)>);

/// The type of a column.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Integer,
    Number,
    Boolean,
    String,
    Date,
    /// A CustomResourceDefinition with such a column is not valid; its cells are null.
    Other,
}

impl CustomCells {
    /// Reads `additionalPrinterColumns`.
    pub(crate) fn read(definitions: &[Value]) -> Result<(Vec<Column<String>>, Self), Error> {
        let mut columns = vec![NAME.to_owned()];
        let mut cells = Vec::with_capacity(definitions.len().max(1));
        if definitions.is_empty() {
            columns.push(Column { kind: "date", ..AGE }.to_owned());
            cells.push((Kind::Date, JsonPath::parse_inside(".metadata.creationTimestamp")?));
        }
        for (index, definition) in definitions.iter().enumerate() {
            let column = |reason| Error::Column { index, path: definition.text("jsonPath").into(), reason };
            for field in ["name", "type", "jsonPath"] {
                if !definition.at(field).is_string() {
                    return Err(column(format!("{field} must be a string")));
                }
            }
            let path = definition.text("jsonPath");
            let parsed = JsonPath::parse_inside(path).map_err(|error| column(error.to_string()))?;
            cells.push((Kind::read(definition.text("type")), parsed));
            columns.push(Column {
                name: definition.text("name").into(),
                kind: definition.text("type").into(),
                format: definition.text("format").into(),
                description: match definition.text("description") {
                    "" => format!("Custom resource definition column (in JSONPath format): {path}"),
                    description => description.into(),
                },
                priority: definition.int("priority"),
            });
        }
        Ok((columns, Self(cells)))
    }

    /// The cells of an object, the name first.
    pub(crate) fn of(&self, object: &Value, now: Time) -> Vec<Value> {
        let mut cells = Vec::with_capacity(self.0.len() + 1);
        cells.push(object.text("metadata.name").into());
        cells.extend(self.0.iter().map(|(kind, path)| match path.first(object) {
            Some(value) => kind.cell(value, now),
            None => Value::Null,
        }));
        cells
    }
}

impl Kind {
    fn read(text: &str) -> Self {
        match text {
            "integer" => Self::Integer,
            "number" => Self::Number,
            "boolean" => Self::Boolean,
            "string" => Self::String,
            "date" => Self::Date,
            _ => Self::Other,
        }
    }

    /// The cell for a value; null if the value is not of this type.
    fn cell(self, value: &Value, now: Time) -> Value {
        match (self, value) {
            (Self::String, value) => cell::text(value).into(),
            (Self::Integer, Value::Number(number)) => match number.as_i64() {
                Some(_) => value.clone(),
                None => truncated(number.as_f64().unwrap_or_default()).into(),
            },
            (Self::Number, Value::Number(number)) => match number.as_f64() {
                Some(float) if float.fract() == 0.0 && float.abs() < EXACT => (float as i64).into(),
                _ => value.clone(),
            },
            (Self::Boolean, Value::Bool(_)) => value.clone(),
            (Self::Date, Value::String(text)) => date(text, now).into(),
            _ => Value::Null,
        }
    }
}

/// A float without its fraction. What does not fit becomes the least number, as it does in Go on common machines.
fn truncated(float: f64) -> i64 {
    let fits = (-(2f64.powi(63))..2f64.powi(63)).contains(&float);
    if fits { float as i64 } else { i64::MIN }
}

fn date(text: &str, now: Time) -> Cow<'static, str> {
    if matches!(text, "" | "null") {
        return "<unknown>".into();
    }
    match Time::parse(text) {
        Err(_) => "<invalid>".into(),
        Ok(time) if time.is_zero() => "<unknown>".into(),
        Ok(time) => age(time, now).into(),
    }
}
