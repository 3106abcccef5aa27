//! From values to values, one node after the other.

use super::{Filter, Node, Operator, Slice};
use serde_json::Value;
use std::cmp::Ordering;

type Values<'a> = Vec<&'a Value>;

/// What a step found, or what it had in hand when it failed: a filter that only asks whether something exists goes by that.
type Step<'a> = Result<Values<'a>, Values<'a>>;

/// Follows all nodes.
pub(super) fn walk<'a>(nodes: &'a [Node], values: Values<'a>) -> Step<'a> {
    nodes.iter().try_fold(values, |values, node| match node {
        Node::Field(name) => {
            Ok(values.into_iter().filter_map(|value| value.as_object()?.get(&**name)).collect())
        }
        Node::Slice(range) => slice(*range, values),
        Node::Wildcard => Ok(values.into_iter().flat_map(children).collect()),
        Node::Recursive => {
            let mut found = Vec::new();
            for value in values {
                descend(value, &mut found);
            }
            Ok(found)
        }
        Node::Union(parts) => {
            let mut found = Vec::new();
            for part in parts {
                match walk(part, values.clone()) {
                    Ok(part) => found.extend(part),
                    Err(_) => return Err(values),
                }
            }
            Ok(found)
        }
        Node::Filter(filter) => select(filter, values),
        Node::Text(text) => Ok(vec![text]),
        Node::Literal(literal) => Ok(vec![literal; values.len()]),
        Node::Word => Err(values),
    })
}

fn children(value: &Value) -> Values<'_> {
    match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(fields) => fields.values().collect(),
        _ => Vec::new(),
    }
}

/// A value and all below it, those left out in which nothing can be found.
fn descend<'a>(value: &'a Value, found: &mut Values<'a>) {
    match value {
        Value::Array(items) if !items.is_empty() => {
            found.push(value);
            items.iter().for_each(|item| descend(item, found));
        }
        Value::Object(fields) if !fields.is_empty() => {
            found.push(value);
            fields.values().for_each(|field| descend(field, found));
        }
        Value::String(text) if !text.is_empty() => found.push(value),
        _ => {}
    }
}

fn slice<'a>(range: Slice, values: Values<'a>) -> Step<'a> {
    let mut found = Vec::new();
    for value in &values {
        let items = match value {
            Value::Array(items) => items,
            Value::Null => continue,
            _ => return Err(values),
        };
        let length = items.len() as i64;
        let mut start = range.start.unwrap_or(0);
        if start < 0 {
            start = start.saturating_add(length);
        }
        let mut end = range.end.unwrap_or(length);
        if end < 0 || (end == 0 && range.single) {
            end = end.saturating_add(length);
        }
        if start == end {
            // Nothing was asked for, of this array and of those after it.
            return Ok(found);
        }
        let within = 0 <= start && start < length && 0 <= end && end <= length && start <= end;
        let step = range.step.unwrap_or(1);
        if !within || step <= 0 {
            return Err(values);
        }
        let step = usize::try_from(step).unwrap_or(usize::MAX);
        found.extend(items[start as usize..end as usize].iter().step_by(step));
    }
    Ok(found)
}

fn select<'a>(filter: &'a Filter, values: Values<'a>) -> Step<'a> {
    let mut found = Vec::new();
    for value in &values {
        let Value::Array(items) = value else {
            return Err(values);
        };
        for item in items {
            let left = walk(&filter.left, vec![item]);
            let Some((operator, right)) = &filter.right else {
                let (Ok(left) | Err(left)) = left;
                if !left.is_empty() {
                    found.push(item);
                }
                continue;
            };
            let Ok(left) = left else {
                return Err(values);
            };
            if left.is_empty() {
                continue;
            }
            let &[left] = left.as_slice() else {
                return Err(values);
            };
            let Ok(right) = walk(right, vec![item]) else {
                return Err(values);
            };
            if right.is_empty() {
                continue;
            }
            let &[right] = right.as_slice() else {
                return Err(values);
            };
            match holds(*operator, left, right) {
                Some(true) => found.push(item),
                Some(false) => {}
                None => return Err(found),
            }
        }
    }
    Ok(found)
}

/// Whether a comparison holds; `None` if such values do not compare so.
fn holds(operator: Operator, left: &Value, right: &Value) -> Option<bool> {
    let order = match (left, right) {
        (Value::Bool(left), Value::Bool(right)) => {
            return match operator {
                Operator::Equal => Some(left == right),
                Operator::NotEqual => Some(left != right),
                _ => None,
            };
        }
        (Value::String(left), Value::String(right)) => left.cmp(right),
        (Value::Number(left), Value::Number(right)) => match (left.as_i64(), right.as_i64()) {
            (Some(left), Some(right)) => left.cmp(&right),
            // Whole numbers and others do not compare, not even for equality.
            (None, None) => left.as_f64()?.partial_cmp(&right.as_f64()?)?,
            _ => return None,
        },
        _ => return None,
    };
    Some(match operator {
        Operator::Less => order == Ordering::Less,
        Operator::Greater => order == Ordering::Greater,
        Operator::Equal => order == Ordering::Equal,
        Operator::NotEqual => order != Ordering::Equal,
        Operator::LessEqual => order != Ordering::Greater,
        Operator::GreaterEqual => order != Ordering::Less,
        Operator::Unknown => return None,
    })
}
