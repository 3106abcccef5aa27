//! Writes OpenAPI documents into a folder: `v2.json`, `v2.pb`, and one `v3-GROUP-VERSION.json` per group and version.
//!
//! For looking at, and for trying the documents with clients.

#![allow(clippy::print_stdout, reason = "a program for people")]

use serde_json::json;
use std::collections::BTreeSet;
use std::time::Instant;
use watchkeeper_kinds::openapi::{self, CustomKind};

fn main() -> std::io::Result<()> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".into());
    let schema = json!({
        "description": "Widget is made by hand.", "type": "object", "required": ["spec"],
        "properties": {
            "spec": {
                "type": "object", "description": "What it is to be.", "required": ["size"],
                "properties": {
                    "size": {"type": "integer", "format": "int32", "minimum": 1, "description": "How large it is."},
                    "parts": {
                        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                        "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}},
                    },
                    "maybe": {"type": "string", "nullable": true},
                    "port": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]},
                    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                },
            },
            "status": {"type": "object", "properties": {"ready": {"type": "boolean"}}},
        },
    });
    let widgets = CustomKind {
        group: "demo.dev",
        version: "v1",
        kind: "Widget",
        list_kind: "WidgetList",
        plural: "widgets",
        namespaced: true,
        schema: Some(&schema),
        status: true,
        scale: true,
    };
    let custom = [widgets];
    let mut versions: BTreeSet<(&str, &str)> =
        watchkeeper_kinds::all().iter().map(|kind| (kind.group, kind.version)).collect();
    versions.insert(("demo.dev", "v1"));
    let write = |name: &str, make: &dyn Fn() -> Vec<u8>| {
        let start = Instant::now();
        let document = make();
        println!("{name}: {} bytes in {:?}", document.len(), start.elapsed());
        std::fs::write(format!("{folder}/{name}"), document)
    };
    write("v2.json", &|| openapi::v2("v1.36.0", &custom))?;
    write("v2.pb", &|| openapi::v2_protobuf("v1.36.0", &custom))?;
    for (group, version) in versions {
        write(&format!("v3-{group}-{version}.json"), &|| openapi::v3(group, version, "v1.36.0", &custom))?;
    }
    Ok(())
}
