//! How long one object takes: `cargo run --release -p watchkeeper-schema --example owners_speed`.

#![allow(clippy::print_stdout, clippy::unwrap_used)]

use serde_json::{Map, Value, json};
use std::hint::black_box;
use std::time::{Duration, Instant};
use watchkeeper_schema::{Schema, json};

/// A schema of 30 fields of all kinds.
fn schema() -> Value {
    let mut fields = Map::new();
    for index in 0..6 {
        fields.insert(
            format!("name{index}"),
            json!({"type": "string", "maxLength": 63, "pattern": "^[a-z0-9-]+$"}),
        );
        fields.insert(
            format!("size{index}"),
            json!({"type": "integer", "minimum": 0, "maximum": 100, "default": 3}),
        );
        fields.insert(
            format!("mode{index}"),
            json!({"type": "string", "enum": ["Always", "Never", "Sometimes"]}),
        );
    }
    for index in 0..3 {
        fields.insert(
            format!("tags{index}"),
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
        );
        let port = json!({"type": "object", "required": ["name"], "properties": {
            "name": {"type": "string"}, "port": {"type": "integer", "format": "int32"},
        }});
        fields.insert(format!("ports{index}"), json!({
            "type": "array", "items": port, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
        }));
        fields.insert(format!("target{index}"), json!({"x-kubernetes-int-or-string": true}));
        fields.insert(format!("since{index}"), json!({"type": "string", "format": "date-time"}));
    }
    json!({"type": "object", "properties": {
        "spec": {"type": "object", "required": ["name0"], "properties": fields},
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    }})
}

/// An object of about 1 kB.
fn object() -> Value {
    let mut spec = Map::new();
    for index in 0..6 {
        spec.insert(format!("name{index}"), json!(format!("a-rather-usual-name-{index}")));
        spec.insert(format!("mode{index}"), json!("Sometimes"));
    }
    for index in 0..3 {
        spec.insert(format!("size{index}"), json!(index));
        spec.insert(format!("tags{index}"), json!({"app": "shop", "tier": "front"}));
        spec.insert(
            format!("ports{index}"),
            json!([{"name": "http", "port": 80}, {"name": "metrics", "port": 9090}]),
        );
        spec.insert(format!("target{index}"), json!("50%"));
        spec.insert(format!("since{index}"), json!("2026-01-01T00:00:00Z"));
    }
    json!({
        "apiVersion": "example.com/v1", "kind": "Widget",
        "metadata": {"name": "w", "namespace": "default", "labels": {"app": "shop"}}, "spec": spec,
    })
}

fn time(what: &str, mut work: impl FnMut()) {
    const ROUNDS: u32 = 20_000;
    let best = (0..5)
        .map(|_| {
            let start = Instant::now();
            (0..ROUNDS).for_each(|_| work());
            start.elapsed() / ROUNDS
        })
        .min();
    println!("{what:45} {:>8.2} us", best.unwrap_or(Duration::ZERO).as_nanos() as f64 / 1000.0);
}

fn main() {
    let schema = Schema::read(&schema()).unwrap();
    let bytes = serde_json::to_vec(&object()).unwrap();
    let mut whole = object();
    schema.coerce(&mut whole).unwrap();
    schema.default(&mut whole);
    assert!(schema.validate(&whole).is_empty());
    println!("object: {} bytes", bytes.len());
    time("decode", || drop(black_box(json::decode(&bytes))));
    time("decode (serde_json)", || drop(black_box(serde_json::from_slice::<Value>(&bytes))));
    time("clone", || drop(black_box(whole.clone())));
    time("clone, coerce, default and validate", || {
        let mut object = whole.clone();
        let _ = black_box(schema.coerce(&mut object));
        schema.default(&mut object);
        drop(black_box(schema.validate(&object)));
    });
    time("prune, default and validate", || {
        black_box(schema.prune(&mut whole));
        schema.default(&mut whole);
        drop(black_box(schema.validate(&whole)));
    });
    time("validate", || drop(black_box(schema.validate(&whole))));
    let other = whole.clone();
    time("validate an update", || drop(black_box(schema.validate_update(&other, &whole))));
}
