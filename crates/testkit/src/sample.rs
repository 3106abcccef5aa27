//! Random objects of a schema.

use fastrand::Rng;
use regex_syntax::hir::{Class, Hir, HirKind};
use serde_json::{Map, Value, json};

/// How often something is repeated that may be so without end.
const REPEATED: u32 = 4;
/// How deep objects of a schema without an end go.
const DEPTH: u32 = 8;

/// A value that a structural schema allows, as far as that can be told from types, bounds, enumerations, lengths and patterns. The
/// larger the `size`, the more of it.
pub(crate) fn sample(schema: &Value, size: u32, rng: &mut Rng) -> Value {
    value(schema, size, DEPTH, rng)
}

fn value(schema: &Value, size: u32, depth: u32, rng: &mut Rng) -> Value {
    if let Some(values) = schema["enum"].as_array().filter(|values| !values.is_empty()) {
        return values[rng.usize(..values.len())].clone();
    }
    if schema["x-kubernetes-int-or-string"] == true {
        return if rng.bool() { json!(rng.u16(..)) } else { json!(word(rng)) };
    }
    match schema["type"].as_str() {
        Some("object") => object(schema, size, depth, rng),
        Some("array") => {
            let least = number(schema, "minItems").unwrap_or(0.0) as usize;
            let most = number(schema, "maxItems").map_or(size as usize, |most| most as usize);
            let count = rng.usize(least..=most.min(size as usize).max(least));
            let item = |_| value(&schema["items"], size, depth.saturating_sub(1), rng);
            (0..count).map(item).collect()
        }
        Some("string") => string(schema, rng).into(),
        Some("integer") => {
            let (least, most) = bounds(schema);
            json!(rng.i64(least as i64..=most as i64))
        }
        Some("number") => {
            let (least, most) = bounds(schema);
            json!((least + (most - least) * rng.f64()).round())
        }
        Some("boolean") => rng.bool().into(),
        _ => json!({word(rng): rng.u8(..)}),
    }
}

fn object(schema: &Value, size: u32, depth: u32, rng: &mut Rng) -> Value {
    let mut fields = Map::new();
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        if required.contains(&name.as_str()) || (depth > 0 && rng.u32(..=size) > 0) {
            fields.insert(name.clone(), value(schema, size, depth.saturating_sub(1), rng));
        }
    }
    if let schema @ Value::Object(_) = &schema["additionalProperties"] {
        for _ in 0..rng.u32(..=size) {
            fields.insert(word(rng), value(schema, size, depth.saturating_sub(1), rng));
        }
    }
    fields.into()
}

fn number(schema: &Value, field: &str) -> Option<f64> {
    schema[field].as_f64()
}

/// The bounds of a number: its own, those of its format, or some.
fn bounds(schema: &Value) -> (f64, f64) {
    let (least, most) = match schema["format"].as_str() {
        Some("int32") => (f64::from(i32::MIN), f64::from(i32::MAX)),
        Some(format) if format.starts_with("uint") => (0.0, 255.0),
        _ => (-1e9, 1e9),
    };
    let least = number(schema, "minimum").unwrap_or(least);
    (least, number(schema, "maximum").unwrap_or(most).max(least))
}

fn string(schema: &Value, rng: &mut Rng) -> String {
    match schema["format"].as_str() {
        Some("date-time") => {
            return format!("20{:02}-0{}-1{}T12:00:00Z", rng.u8(10..99), rng.u8(1..9), rng.u8(0..9));
        }
        Some("byte") => return "YQ==".to_owned(),
        _ => {}
    }
    let pattern = schema["pattern"].as_str().and_then(|pattern| regex_syntax::parse(pattern).ok());
    let mut text = String::new();
    match pattern {
        Some(pattern) => expand(&pattern, rng, &mut text),
        None => text = word(rng),
    }
    let least = number(schema, "minLength").unwrap_or(0.0) as usize;
    while text.chars().count() < least {
        text.push('x');
    }
    match number(schema, "maxLength") {
        Some(most) => text.chars().take(most as usize).collect(),
        None => text,
    }
}

fn word(rng: &mut Rng) -> String {
    (0..rng.usize(1..6)).map(|_| rng.lowercase()).collect()
}

/// A text that a pattern matches.
fn expand(pattern: &Hir, rng: &mut Rng, to: &mut String) {
    match pattern.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => to.push_str(&String::from_utf8_lossy(&literal.0)),
        HirKind::Class(Class::Unicode(class)) => {
            let ranges = class.ranges();
            if !ranges.is_empty() {
                let range = ranges[rng.usize(..ranges.len())];
                to.push(rng.char(range.start()..=range.end()));
            }
        }
        HirKind::Class(Class::Bytes(_)) => to.push('x'),
        HirKind::Repetition(repetition) => {
            let most = repetition.max.unwrap_or(u32::MAX).min(repetition.min.saturating_add(REPEATED));
            for _ in 0..rng.u32(repetition.min..=most) {
                expand(&repetition.sub, rng, to);
            }
        }
        HirKind::Capture(capture) => expand(&capture.sub, rng, to),
        HirKind::Concat(parts) => parts.iter().for_each(|part| expand(part, rng, to)),
        HirKind::Alternation(parts) => expand(&parts[rng.usize(..parts.len())], rng, to),
    }
}

#[cfg(test)]
mod tests {
    use watchkeeper_schema::Schema;

    use super::*;

    #[test]
    fn what_is_sampled_is_what_the_schema_allows() {
        let schema = json!({"type": "object", "required": ["image", "size"], "properties": {
            "image": {"type": "string", "pattern": "^[a-z0-9]+(:[A-Z]{2,3})?$", "maxLength": 40},
            "size": {"type": "integer", "minimum": 1, "maximum": 10},
            "kind": {"type": "string", "enum": ["A", "B"]},
            "at": {"type": "string", "format": "date-time"},
            "ports": {"type": "array", "minItems": 1, "maxItems": 3, "items": {"type": "object", "properties": {
                "name": {"type": "string", "minLength": 3},
                "on": {"type": "boolean"},
            }}},
            "env": {"type": "object", "additionalProperties": {"type": "string"}},
            "port": {"x-kubernetes-int-or-string": true},
        }});
        let compiled = Schema::read(&schema).unwrap();
        let mut rng = Rng::with_seed(7);
        for case in 0..500 {
            let value = sample(&schema, case % 4, &mut rng);
            let errors = compiled.validate(&value);
            assert!(errors.is_empty(), "{value}: {errors:?}");
        }
    }
}
