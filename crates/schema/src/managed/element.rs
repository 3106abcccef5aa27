use serde_json::Value;
use std::cmp::Ordering;
use std::fmt;
use watchkeeper_go as go;

/// One step of a way through an object: a field, or an element of a list by what identifies it.
///
/// Numbers are compared by what they are worth: `1` and `1.0` are the same element.
#[derive(Clone, Debug)]
pub enum PathElement {
    /// A field of an object: `f:name`.
    Field(Box<str>),
    /// The element of a list with these fields, sorted by name: `k:{"name":"a"}`.
    Key(Vec<(Box<str>, Value)>),
    /// The element of a set: `v:"a"`.
    Value(Value),
    /// The element of a list by its place: `i:0`.
    Index(i64),
}

impl PathElement {
    fn rank(&self) -> u8 {
        match self {
            Self::Field(_) => 0,
            Self::Key(_) => 1,
            Self::Value(_) => 2,
            Self::Index(_) => 3,
        }
    }
}

impl Ord for PathElement {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Field(left), Self::Field(right)) => left.cmp(right),
            (Self::Key(left), Self::Key(right)) => {
                let pairs = left.iter().zip(right).map(|((left, first), (right, second))| {
                    left.cmp(right).then_with(|| order(first, second))
                });
                first_difference(pairs).then_with(|| left.len().cmp(&right.len()))
            }
            (Self::Value(left), Self::Value(right)) => order(left, right),
            (Self::Index(left), Self::Index(right)) => left.cmp(right),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for PathElement {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PathElement {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for PathElement {}

impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(fields) => {
                f.write_str("[")?;
                for (index, (name, value)) in fields.iter().enumerate() {
                    let comma = if index > 0 { "," } else { "" };
                    write!(f, "{comma}{name}={}", shown(value))?;
                }
                f.write_str("]")
            }
            Self::Value(value) => write!(f, "[={}]", shown(value)),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::String(text) => go::quote(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(shown).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| format!("{name}={}", shown(value))).collect()
        }
        other => go::fmt::value(other),
    }
}

/// A total order of values: numbers, strings, booleans, lists, objects, null.
fn order(left: &Value, right: &Value) -> Ordering {
    match (left, right) {
        (Value::Number(first), Value::Number(second)) => match (first.as_i64(), second.as_i64()) {
            (Some(first), Some(second)) => first.cmp(&second),
            _ => first.as_f64().partial_cmp(&second.as_f64()).unwrap_or(Ordering::Equal),
        },
        (Value::String(first), Value::String(second)) => first.cmp(second),
        (Value::Bool(first), Value::Bool(second)) => first.cmp(second),
        (Value::Array(first), Value::Array(second)) => {
            first_difference(first.iter().zip(second).map(|(left, right)| order(left, right)))
                .then_with(|| first.len().cmp(&second.len()))
        }
        (Value::Object(first), Value::Object(second)) => {
            let pairs = first
                .iter()
                .zip(second)
                .map(|((left, first), (right, second))| left.cmp(right).then_with(|| order(first, second)));
            first_difference(pairs).then_with(|| first.len().cmp(&second.len()))
        }
        _ => type_rank(left).cmp(&type_rank(right)),
    }
}

fn first_difference(mut orders: impl Iterator<Item = Ordering>) -> Ordering {
    orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

fn type_rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}

/// Whether two values are the same, numbers by what they are worth.
pub(super) fn same(left: &Value, right: &Value) -> bool {
    left == right || order(left, right).is_eq()
}

/// A way from the root of an object to a field, printed as conflicts are: `.spec.ports[port=80].name`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FieldPath(pub Vec<PathElement>);

impl FieldPath {
    /// A way through fields only.
    pub fn of<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        Self(names.into_iter().map(|name| PathElement::Field(name.into())).collect())
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|element| element.fmt(f))
    }
}
