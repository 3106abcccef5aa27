//! How long a list of 10,000 objects takes to become a table: `cargo run --release --example table_speed`.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a program for people")]

use serde_json::{Value, json};
use std::time::{Instant, SystemTime};
use watchkeeper_table::{Include, Printer, Table};

fn main() {
    let column = |name: &str, kind: &str, path: &str| json!({"name": name, "type": kind, "jsonPath": path});
    let custom = Printer::custom(&[
        column("Replicas", "integer", ".spec.replicas"),
        column("Image", "string", ".spec.image"),
        column("Ready", "string", r#".status.conditions[?(@.type=="Ready")].status"#),
        column("Age", "date", ".metadata.creationTimestamp"),
    ])
    .unwrap();
    let objects: Vec<Value> = (0..10_000).map(object).collect();
    for (name, printer) in [("custom", &custom), ("pods", &watchkeeper_kinds::printer("", "Pod").unwrap())] {
        for include in [Include::None, Include::Metadata, Include::Object] {
            let table = Table {
                printer,
                objects: &objects,
                metadata: &json!({"resourceVersion": "1"}),
                include,
                headers: true,
                now: SystemTime::now(),
            };
            let mut best = f64::MAX;
            let mut size = 0;
            for _ in 0..10 {
                let start = Instant::now();
                size = serde_json::to_vec(&table).unwrap().len();
                best = best.min(start.elapsed().as_secs_f64());
            }
            println!("{name:8} include {include:?}: {:6.1} ms, {size} bytes", best * 1e3);
        }
    }
}

fn object(index: usize) -> Value {
    json!({
        "apiVersion": "demo.dev/v1",
        "kind": "Web",
        "metadata": {
            "name": format!("web-{index}"),
            "namespace": "default",
            "uid": format!("00000000-0000-0000-0000-{index:012}"),
            "resourceVersion": index.to_string(),
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"app": "web", "index": index.to_string()},
            "managedFields": [{"manager": "m", "operation": "Apply", "fieldsV1": {"f:spec": {"f:image": {}, "f:replicas": {}}}}],
        },
        "spec": {"replicas": 3, "image": "web:1"},
        "status": {"conditions": [{"type": "Synced", "status": "True"}, {"type": "Ready", "status": "True"}]},
    })
}
