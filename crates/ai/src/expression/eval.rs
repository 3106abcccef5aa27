use std::cmp::Ordering;

use serde_json::{Map, Number, Value};

use super::{Assignment, Function, Node, Operator, STEPS, Step};

pub(super) fn apply(node: &Node, input: &Value) -> Result<Option<Value>, String> {
    Machine { left: STEPS }.eval(node, input)
}

struct Machine {
    left: u64,
}

/// A value, or none.
type Made = Result<Option<Value>, String>;

/// The value of something, or the end: where there is none, there is no result.
macro_rules! some {
    ($made:expr) => {
        match $made? {
            Some(value) => value,
            None => return Ok(None),
        }
    };
}

impl Machine {
    fn spend(&mut self, steps: u64) -> Result<(), String> {
        self.left = self.left.checked_sub(steps).ok_or_else(|| format!("takes more than {STEPS} steps"))?;
        Ok(())
    }

    /// A copy, which costs as many steps as it has parts.
    fn copied(&mut self, value: &Value) -> Result<Value, String> {
        self.spend(weight(value))?;
        Ok(value.clone())
    }

    fn eval(&mut self, node: &Node, input: &Value) -> Made {
        self.spend(1)?;
        match node {
            Node::Input => self.copied(input).map(Some),
            Node::Literal(value) => self.copied(value).map(Some),
            Node::Path(from, steps) => match &**from {
                Node::Input => {
                    let found = walk(input, steps)?;
                    self.copied(found).map(Some)
                }
                from => {
                    let from = some!(self.eval(from, input));
                    let found = walk(&from, steps)?;
                    self.copied(found).map(Some)
                }
            },
            Node::Object(fields) => {
                let mut object = Map::new();
                for (key, value) in fields {
                    let Value::String(key) = some!(self.eval(key, input)) else {
                        return Err("the name of a field is not a text".to_owned());
                    };
                    object.insert(key, some!(self.eval(value, input)));
                }
                Ok(Some(object.into()))
            }
            Node::List(items) => {
                let mut list = Vec::new();
                for item in items {
                    list.extend(self.eval(item, input)?);
                }
                Ok(Some(list.into()))
            }
            Node::Pipe(before, next) => {
                let between = some!(self.eval(before, input));
                self.eval(next, &between)
            }
            Node::If(condition, then, otherwise) => {
                let condition = some!(self.eval(condition, input));
                self.eval(if is_true(&condition) { then } else { otherwise }, input)
            }
            Node::Binary(operator, left, right) => self.binary(*operator, left, right, input),
            Node::Assign(assignment, path, value) => self.assign(*assignment, path, value, input),
            Node::Delete(paths) => {
                let mut changed = self.copied(input)?;
                for path in paths {
                    delete(&mut changed, path)?;
                }
                Ok(Some(changed))
            }
            Node::Call(function, arguments) => self.call(*function, arguments.first(), input),
        }
    }

    fn binary(&mut self, operator: Operator, left: &Node, right: &Node, input: &Value) -> Made {
        if operator == Operator::Alternative {
            return match self.eval(left, input) {
                Ok(Some(value)) if is_true(&value) => Ok(Some(value)),
                _ => self.eval(right, input),
            };
        }
        let one = some!(self.eval(left, input));
        match (operator, is_true(&one)) {
            (Operator::And, false) => return Ok(Some(false.into())),
            (Operator::Or, true) => return Ok(Some(true.into())),
            _ => {}
        }
        let other = some!(self.eval(right, input));
        Ok(Some(match operator {
            Operator::And | Operator::Or => is_true(&other).into(),
            Operator::Alternative => other,
            Operator::Equal => (order(&one, &other) == Ordering::Equal).into(),
            Operator::NotEqual => (order(&one, &other) != Ordering::Equal).into(),
            Operator::Less => (order(&one, &other) == Ordering::Less).into(),
            Operator::LessOrEqual => (order(&one, &other) != Ordering::Greater).into(),
            Operator::Greater => (order(&one, &other) == Ordering::Greater).into(),
            Operator::GreaterOrEqual => (order(&one, &other) != Ordering::Less).into(),
            Operator::Add | Operator::Subtract | Operator::Multiply | Operator::Divide => {
                self.spend(weight(&one) + weight(&other))?;
                compute(operator, one, other)?
            }
        }))
    }

    fn assign(&mut self, assignment: Assignment, path: &[Step], value: &Node, input: &Value) -> Made {
        let mut changed = self.copied(input)?;
        let given = match assignment {
            Assignment::Update => None,
            Assignment::Set | Assignment::Add => Some(some!(self.eval(value, input))),
        };
        let mut change = |place: &mut Value| -> Result<(), String> {
            self.spend(1)?;
            let made = match (&given, assignment) {
                (Some(given), Assignment::Add) => {
                    self.spend(weight(place) + weight(given))?;
                    Some(compute(Operator::Add, place.take(), given.clone())?)
                }
                (Some(given), _) => Some(self.copied(given)?),
                (None, _) => self.eval(value, place)?,
            };
            *place = made.ok_or_else(|| "an update has no result".to_owned())?;
            Ok(())
        };
        update(&mut changed, path, &mut change)?;
        Ok(Some(changed))
    }

    fn call(&mut self, function: Function, argument: Option<&Node>, input: &Value) -> Made {
        let none = Node::Input;
        let argument = argument.unwrap_or(&none);
        Ok(Some(match function {
            Function::Empty => return Ok(None),
            Function::Map => {
                let Value::Array(items) = input else {
                    return Err(format!("map needs a list, not {}", kind(input)));
                };
                let mut list = Vec::new();
                for item in items {
                    list.extend(self.eval(argument, item)?);
                }
                list.into()
            }
            Function::Select => match is_true(&some!(self.eval(argument, input))) {
                true => self.copied(input)?,
                false => return Ok(None),
            },
            Function::Has => match (some!(self.eval(argument, input)), input) {
                (Value::String(key), Value::Object(fields)) => fields.contains_key(&key).into(),
                (Value::Number(index), Value::Array(items)) => {
                    index.as_u64().is_some_and(|index| index < items.len() as u64).into()
                }
                (key, _) => return Err(format!("{} has no {} to look for", kind(input), kind(&key))),
            },
            Function::Join => {
                let (Value::String(between), Value::Array(items)) =
                    (some!(self.eval(argument, input)), input)
                else {
                    return Err("join needs a list, and a text to put between".to_owned());
                };
                self.spend(weight(input) + items.len() as u64 * (between.len() as u64 / 16 + 1))?;
                let texts: Vec<String> = items
                    .iter()
                    .map(|item| match item {
                        Value::String(text) => text.clone(),
                        Value::Null => String::new(),
                        other => other.to_string(),
                    })
                    .collect();
                texts.join(&between).into()
            }
            Function::Not => (!is_true(input)).into(),
            Function::Length => match input {
                Value::Null => 0.into(),
                Value::String(text) => text.chars().count().into(),
                Value::Array(items) => items.len().into(),
                Value::Object(fields) => fields.len().into(),
                other => return Err(format!("{} has no length", kind(other))),
            },
            Function::Keys => match input {
                Value::Object(fields) => {
                    self.spend(weight(input))?;
                    let mut keys: Vec<&String> = fields.keys().collect();
                    keys.sort();
                    keys.into_iter().map(|key| Value::from(key.as_str())).collect()
                }
                Value::Array(items) => (0..items.len()).map(Value::from).collect(),
                other => return Err(format!("{} has no keys", kind(other))),
            },
            Function::Type => kind(input).into(),
            Function::ToString => match input {
                Value::String(_) => self.copied(input)?,
                other => {
                    self.spend(weight(other))?;
                    other.to_string().into()
                }
            },
            Function::ToNumber => match input {
                Value::Number(_) => input.clone(),
                Value::String(text) => {
                    let parsed =
                        text.trim().parse::<f64>().map_err(|_| "the text is not a number".to_owned());
                    number(parsed?)
                }
                other => return Err(format!("{} is not a number", kind(other))),
            },
            Function::Downcase => match input {
                Value::String(text) => {
                    self.spend(weight(input))?;
                    text.to_ascii_lowercase().into()
                }
                other => return Err(format!("{} is not a text", kind(other))),
            },
        }))
    }
}

/// How many parts a value has; sixteen bytes of text are one, and an object is sixteen, for the memory that it takes.
fn weight(value: &Value) -> u64 {
    1 + match value {
        Value::String(text) => text.len() as u64 / 16,
        Value::Array(items) => items.iter().map(weight).sum(),
        Value::Object(fields) => {
            15 + fields.iter().map(|(key, value)| key.len() as u64 / 16 + weight(value)).sum::<u64>()
        }
        _ => 0,
    }
}

fn is_true(value: &Value) -> bool {
    !matches!(value, Value::Null | Value::Bool(false))
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// A number as JSON: whole ones without a point.
pub(super) fn number(number: f64) -> Value {
    match number.fract() == 0.0 && number.abs() < 9e15 {
        true => (number as i64).into(),
        false => Number::from_f64(number).map_or(Value::Null, Value::Number),
    }
}

/// The order of jq: null, false, true, numbers, texts, lists, objects.
fn order(one: &Value, other: &Value) -> Ordering {
    let rank = |value: &Value| match value {
        Value::Null => 0,
        Value::Bool(false) => 1,
        Value::Bool(true) => 2,
        Value::Number(_) => 3,
        Value::String(_) => 4,
        Value::Array(_) => 5,
        Value::Object(_) => 6,
    };
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            one.as_f64().partial_cmp(&other.as_f64()).unwrap_or(Ordering::Equal)
        }
        (Value::String(one), Value::String(other)) => one.cmp(other),
        (Value::Array(ones), Value::Array(others)) => {
            let pairs = ones.iter().zip(others).map(|(one, other)| order(one, other));
            pairs.into_iter().find(|order| order.is_ne()).unwrap_or(ones.len().cmp(&others.len()))
        }
        (Value::Object(ones), Value::Object(others)) if ones == others => Ordering::Equal,
        (Value::Object(ones), Value::Object(others)) => ones.keys().cmp(others.keys()).then(Ordering::Less),
        _ => rank(one).cmp(&rank(other)),
    }
}

fn compute(operator: Operator, one: Value, other: Value) -> Result<Value, String> {
    let wrong = |word: &str, one: &Value, other: &Value| {
        Err(format!("{} and {} cannot be {word}", kind(one), kind(other)))
    };
    match (operator, one, other) {
        (Operator::Add, Value::Null, value) | (Operator::Add, value, Value::Null) => Ok(value),
        (Operator::Add, Value::String(one), Value::String(other)) => Ok((one + &other).into()),
        (Operator::Add, Value::Array(mut one), Value::Array(other)) => {
            one.extend(other);
            Ok(one.into())
        }
        (Operator::Add, Value::Object(mut one), Value::Object(other)) => {
            one.extend(other);
            Ok(one.into())
        }
        (Operator::Subtract, Value::Array(mut one), Value::Array(other))
            if one.len() <= 1_000 && other.len() <= 1_000 =>
        {
            one.retain(|item| !other.contains(item));
            Ok(one.into())
        }
        (operator, Value::Number(one), Value::Number(other)) => {
            let (one, other) = (one.as_f64().unwrap_or(0.0), other.as_f64().unwrap_or(0.0));
            Ok(number(match operator {
                Operator::Add => one + other,
                Operator::Subtract => one - other,
                Operator::Multiply => one * other,
                _ if other == 0.0 => return Err("a number is divided by zero".to_owned()),
                _ => one / other,
            }))
        }
        (operator, one, other) => match operator {
            Operator::Add => wrong("added", &one, &other),
            Operator::Subtract => wrong("subtracted", &one, &other),
            Operator::Multiply => wrong("multiplied", &one, &other),
            _ => wrong("divided", &one, &other),
        },
    }
}

/// What a path leads to; null where nothing is.
fn walk<'a>(value: &'a Value, steps: &[Step]) -> Result<&'a Value, String> {
    const NULL: &Value = &Value::Null;
    let mut value = value;
    for step in steps {
        value = match (step, value) {
            (_, Value::Null) => NULL,
            (Step::Key(key), Value::Object(fields)) => fields.get(key).unwrap_or(NULL),
            (Step::Index(index), Value::Array(items)) => {
                place(*index, items.len()).and_then(|index| items.get(index)).unwrap_or(NULL)
            }
            (Step::Each, _) => {
                return Err("[] has many results: it is for the left of assignments; use map".to_owned());
            }
            (Step::Key(key), other) => return Err(format!("{} has no field {key}", kind(other))),
            (Step::Index(_), other) => return Err(format!("{} has no index", kind(other))),
        };
    }
    Ok(value)
}

/// An index, which may count from the end.
fn place(index: i64, length: usize) -> Option<usize> {
    match index < 0 {
        true => length.checked_sub(usize::try_from(index.unsigned_abs()).ok()?),
        false => usize::try_from(index).ok(),
    }
}

/// Changes what a path leads to. What is not there is made.
fn update(
    value: &mut Value,
    steps: &[Step],
    change: &mut dyn FnMut(&mut Value) -> Result<(), String>,
) -> Result<(), String> {
    let Some((step, rest)) = steps.split_first() else { return change(value) };
    match (step, value) {
        (Step::Key(key), value @ Value::Null) => {
            let mut made = Value::Null;
            update(&mut made, rest, change)?;
            *value = Value::Object(Map::from_iter([(key.clone(), made)]));
            Ok(())
        }
        (Step::Key(key), Value::Object(fields)) => {
            update(fields.entry(key.clone()).or_insert(Value::Null), rest, change)
        }
        (Step::Index(index), Value::Array(items)) => {
            let found = place(*index, items.len()).and_then(|index| items.get_mut(index));
            update(found.ok_or_else(|| format!("there is no index {index}"))?, rest, change)
        }
        (Step::Each, Value::Array(items)) => items.iter_mut().try_for_each(|item| update(item, rest, change)),
        (Step::Each, Value::Object(fields)) => {
            fields.values_mut().try_for_each(|field| update(field, rest, change))
        }
        (_, other) => Err(format!("{} has no parts of this kind", kind(other))),
    }
}

fn delete(value: &mut Value, steps: &[Step]) -> Result<(), String> {
    let Some((step, rest)) = steps.split_first() else {
        *value = Value::Null;
        return Ok(());
    };
    match (step, value) {
        (_, Value::Null) => Ok(()),
        (Step::Key(key), Value::Object(fields)) if rest.is_empty() => {
            fields.remove(key);
            Ok(())
        }
        (Step::Key(key), Value::Object(fields)) => {
            fields.get_mut(key).map_or(Ok(()), |field| delete(field, rest))
        }
        (Step::Index(index), Value::Array(items)) => {
            match place(*index, items.len()).filter(|index| *index < items.len()) {
                Some(index) if rest.is_empty() => {
                    items.remove(index);
                    Ok(())
                }
                Some(index) => delete(&mut items[index], rest),
                None => Ok(()),
            }
        }
        (Step::Each, Value::Array(items)) if rest.is_empty() => {
            items.clear();
            Ok(())
        }
        (Step::Each, Value::Array(items)) => items.iter_mut().try_for_each(|item| delete(item, rest)),
        (_, other) => Err(format!("{} has no parts of this kind", kind(other))),
    }
}
