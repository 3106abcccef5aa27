//! Values that fit a schema.

use serde_json::Value;

use crate::values;
use crate::{Dice, Tree};

/// Adds a field to an object that its schema knows and it does not have, somewhere.
pub(crate) fn graft(tree: &mut Tree, schema: &Value, dice: &mut Dice) {
    match tree {
        Tree::Map(fields) => {
            if let Some(known) = schema["properties"].as_object() {
                let nested: Vec<usize> = (0..fields.len())
                    .filter(|at| matches!(fields[*at].1, Tree::Map(_) | Tree::List(_)))
                    .filter(|at| known.contains_key(&fields[*at].0))
                    .collect();
                if !nested.is_empty() && dice.chance(75) {
                    let (name, value) = &mut fields[*dice.item(&nested)];
                    return graft(value, &known[name.as_str()], dice);
                }
                let missing: Vec<&String> =
                    known.keys().filter(|name| !fields.iter().any(|(key, _)| key == *name)).collect();
                if !missing.is_empty() {
                    let name = *dice.item(&missing);
                    fields.push((name.clone(), fitting(name, &known[name], dice, 4)));
                }
            } else if schema["additionalProperties"].is_object() {
                let name = values::text("name", dice);
                let value = fitting(&name, &schema["additionalProperties"], dice, 3);
                fields.push((name, value));
            }
        }
        Tree::List(items) => match dice.chance(60) && !items.is_empty() {
            true => {
                let at = dice.below(items.len());
                graft(&mut items[at], &schema["items"], dice);
            }
            false => items.push(fitting("", &schema["items"], dice, 4)),
        },
        _ => {}
    }
}

/// A value that fits, or nearly: texts are likely ones, not always right.
pub(crate) fn fitting(name: &str, schema: &Value, dice: &mut Dice, depth: usize) -> Tree {
    if let Some(choices) = schema["enum"].as_array()
        && !choices.is_empty()
        && dice.chance(90)
    {
        return Tree::from(dice.item(choices));
    }
    let format = schema["format"].as_str().unwrap_or_default();
    match schema["type"].as_str().unwrap_or_default() {
        "boolean" => Tree::Bool(dice.chance(50)),
        "integer" | "number" => values::number(dice),
        "string" if format == "date-time" => Tree::text(values::text("time", dice)),
        "string" if format == "byte" => Tree::text(dice.pick(&["", "YQ==", "YWJj", "YQ", "é"])),
        "string" if format == "int-or-string" || dice.chance(3) => values::number(dice),
        "string" => Tree::text(values::text(name, dice)),
        "array" if depth == 0 => Tree::List(Vec::new()),
        "array" => {
            let count = dice.below(3);
            Tree::List((0..count).map(|_| fitting(name, &schema["items"], dice, depth - 1)).collect())
        }
        "object" if depth == 0 => Tree::Map(Vec::new()),
        "object" => object(name, schema, dice, depth),
        _ if schema["x-kubernetes-int-or-string"] == true && dice.chance(50) => values::number(dice),
        _ if dice.chance(70) => Tree::text(values::text(name, dice)),
        _ => values::any(name, dice),
    }
}

fn object(name: &str, schema: &Value, dice: &mut Dice, depth: usize) -> Tree {
    let mut fields = Vec::new();
    if let Some(known) = schema["properties"].as_object() {
        let required = schema["required"].as_array();
        for (field, schema) in known {
            let is_required = required.is_some_and(|names| names.iter().any(|name| name == field));
            // Of a type with many fields, a few.
            if is_required && dice.chance(97) || dice.below(known.len() + 2) < 2 {
                fields.push((field.clone(), fitting(field, schema, dice, depth - 1)));
            }
        }
    } else if schema["additionalProperties"].is_object() {
        for _ in 0..dice.below(3) {
            let key = values::text(if dice.chance(50) { "name" } else { "" }, dice);
            let value = fitting(name, &schema["additionalProperties"], dice, depth - 1);
            fields.push((key, value));
        }
    }
    Tree::Map(fields)
}
