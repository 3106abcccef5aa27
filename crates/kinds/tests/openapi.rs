//! The OpenAPI documents, as far as they can be judged without the clients they are made for.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use serde_json::{Value, json};
use std::collections::BTreeSet;
use watchkeeper_kinds::openapi::{self, CustomKind};

fn widget(schema: Option<&Value>) -> CustomKind<'_> {
    CustomKind {
        group: "demo.dev",
        version: "v1",
        kind: "Widget",
        list_kind: "WidgetList",
        plural: "widgets",
        namespaced: true,
        schema,
        status: true,
        scale: true,
    }
}

fn v3(group: &str, version: &str, custom: &[CustomKind<'_>]) -> Value {
    serde_json::from_slice(&openapi::v3(group, version, "v1.36.0", custom)).unwrap()
}

/// Every definition that is referred to.
fn references(document: &Value, prefix: &str) -> BTreeSet<String> {
    let text = document.to_string();
    let prefix = format!("\"{prefix}");
    let parts = text.split(&prefix).skip(1);
    parts.map(|part| part.split('"').next().unwrap().to_owned()).collect()
}

#[test]
fn every_reference_leads_to_a_definition() {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object"}}});
    let custom = [widget(Some(&schema))];
    let versions: BTreeSet<(&str, &str)> = watchkeeper_kinds::all()
        .iter()
        .map(|kind| (kind.group, kind.version))
        .chain([("demo.dev", "v1")])
        .collect();
    for (group, version) in versions {
        let document = v3(group, version, &custom);
        for name in references(&document, "#/components/schemas/") {
            assert!(document["components"]["schemas"][&name].is_object(), "{group}/{version}: {name}");
        }
    }
    let document: Value = serde_json::from_slice(&openapi::v2("v1.36.0", &custom)).unwrap();
    for name in references(&document, "#/definitions/") {
        assert!(document["definitions"][&name].is_object(), "{name}");
    }
}

#[test]
fn kubectl_finds_that_the_server_checks_fields() {
    for kind in watchkeeper_kinds::all().iter().filter(|kind| kind.verbs.names().contains(&"patch")) {
        let document = v3(kind.group, kind.version, &[]);
        let wanted = json!({"group": kind.group, "version": kind.version, "kind": kind.kind});
        let patches = document["paths"].as_object().unwrap().values().map(|path| &path["patch"]);
        let mut of_kind = patches.filter(|patch| patch["x-kubernetes-group-version-kind"] == wanted);
        let parameters = of_kind.next().unwrap()["parameters"].as_array().unwrap();
        let names: Vec<&str> =
            parameters.iter().map(|parameter| parameter["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["pretty", "dryRun", "fieldManager", "fieldValidation", "force"]);
    }
}

#[test]
fn definitions_say_their_kind_and_how_their_lists_merge() {
    let document = v3("apps", "v1", &[]);
    let schemas = &document["components"]["schemas"];
    assert_eq!(
        schemas["io.k8s.api.apps.v1.Deployment"]["x-kubernetes-group-version-kind"],
        json!([{"group": "apps", "version": "v1", "kind": "Deployment"}])
    );
    assert_eq!(
        schemas["io.k8s.api.apps.v1.DeploymentList"]["x-kubernetes-group-version-kind"][0]["kind"],
        "DeploymentList"
    );
    assert_eq!(
        schemas["io.k8s.api.autoscaling.v1.Scale"]["x-kubernetes-group-version-kind"],
        json!([{"group": "autoscaling", "version": "v1", "kind": "Scale"}])
    );
    let ports = &schemas["io.k8s.api.core.v1.Container"]["properties"]["ports"];
    assert_eq!(ports["x-kubernetes-list-map-keys"], json!(["containerPort", "protocol"]));
    assert_eq!(ports["x-kubernetes-patch-merge-key"], "containerPort");
    assert!(schemas["io.k8s.api.core.v1.PodSpec"].get("x-kubernetes-group-version-kind").is_none());
    assert!(!schemas["io.k8s.api.core.v1.PodSpec"]["description"].as_str().unwrap().is_empty());
}

#[test]
fn custom_kinds_get_type_and_metadata() {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object"}}});
    let document = v3("demo.dev", "v1", &[widget(Some(&schema))]);
    let widget = &document["components"]["schemas"]["dev.demo.v1.Widget"];
    assert_eq!(widget["properties"]["apiVersion"]["type"], "string");
    assert_eq!(
        widget["properties"]["metadata"]["allOf"][0]["$ref"],
        "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
    );
    let paths: Vec<&String> = document["paths"].as_object().unwrap().keys().collect();
    assert_eq!(
        paths,
        [
            "/apis/demo.dev/v1/namespaces/{namespace}/widgets",
            "/apis/demo.dev/v1/namespaces/{namespace}/widgets/{name}",
            "/apis/demo.dev/v1/namespaces/{namespace}/widgets/{name}/scale",
            "/apis/demo.dev/v1/namespaces/{namespace}/widgets/{name}/status",
            "/apis/demo.dev/v1/widgets",
        ]
    );
}

#[test]
fn swagger_says_of_custom_kinds_only_what_it_can() {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "required": ["a", "b"], "properties": {
        "a": {"type": "object", "nullable": true, "properties": {"x": {"type": "string"}}},
        "b": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"y": {"type": "string"}}},
        "c": {"type": "string", "anyOf": [{"pattern": "x"}]},
        "d": {"type": "array", "x-kubernetes-preserve-unknown-fields": true, "items": {"type": "object"}},
    }}}});
    let document: Value = serde_json::from_slice(&openapi::v2("v1.36.0", &[widget(Some(&schema))])).unwrap();
    assert_eq!(
        document["definitions"]["dev.demo.v1.Widget"]["properties"]["spec"],
        json!({"type": "object", "required": ["b"], "properties": {
            "a": {}, "b": {"x-kubernetes-preserve-unknown-fields": true}, "c": {"type": "string"},
            "d": {"x-kubernetes-preserve-unknown-fields": true},
        }})
    );
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    for schema in [None, Some(&open)] {
        let document: Value = serde_json::from_slice(&openapi::v2("v1.36.0", &[widget(schema)])).unwrap();
        let widget = document["definitions"]["dev.demo.v1.Widget"].as_object().unwrap();
        let keywords: Vec<&String> = widget.keys().collect();
        assert_eq!(keywords, ["type", "x-kubernetes-group-version-kind"]);
    }
}

/// The fields of a protobuf message that are messages or texts.
fn fields(mut bytes: &[u8]) -> Vec<(u64, &[u8])> {
    let mut found = Vec::new();
    let varint = |bytes: &mut &[u8]| {
        let (mut number, mut shift) = (0_u64, 0);
        loop {
            let byte = bytes[0];
            *bytes = &bytes[1..];
            number |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return number;
            }
        }
    };
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        match key & 7 {
            0 => {
                varint(&mut bytes);
            }
            1 => bytes = &bytes[8..],
            2 => {
                let length = usize::try_from(varint(&mut bytes)).unwrap();
                let (value, rest) = bytes.split_at(length);
                found.push((key >> 3, value));
                bytes = rest;
            }
            other => panic!("wire type {other}"),
        }
    }
    found
}

#[test]
fn the_protobuf_document_holds_what_the_json_document_holds() {
    let json: Value = serde_json::from_slice(&openapi::v2("v1.36.0", &[])).unwrap();
    let bytes = openapi::v2_protobuf("v1.36.0", &[]);
    let document = fields(&bytes);
    let inside = |number: u64| fields(document.iter().find(|(field, _)| *field == number).unwrap().1);
    let names = |pairs: Vec<(u64, &[u8])>| -> Vec<String> {
        pairs.iter().map(|(_, pair)| String::from_utf8(fields(pair)[0].1.to_vec()).unwrap()).collect()
    };
    let definitions: Vec<String> = json["definitions"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(names(inside(9)), definitions);
    let paths: BTreeSet<String> = json["paths"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(names(inside(8)).into_iter().collect::<BTreeSet<_>>(), paths);
}

/// Every group and version of the built-in kinds, and one of a custom kind.
fn versions() -> BTreeSet<(&'static str, &'static str)> {
    let builtin = watchkeeper_kinds::all().iter().map(|kind| (kind.group, kind.version));
    builtin.chain([("demo.dev", "v1")]).collect()
}

#[test]
fn no_path_carries_parameters_that_are_none() {
    let mut carrying = 0;
    for (group, version) in versions() {
        let document = v3(group, version, &[widget(None)]);
        for (path, item) in document["paths"].as_object().unwrap() {
            let operations = item.as_object().unwrap().values();
            for parameters in operations.chain([item]).filter_map(|holder| holder.get("parameters")) {
                assert!(!parameters.as_array().unwrap().is_empty(), "{path}: {item}");
                carrying += 1;
            }
        }
    }
    assert!(carrying > 500, "{carrying}");
}

#[test]
fn swagger_describes_every_parameter_and_every_list() {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object"}}});
    let document: Value = serde_json::from_slice(&openapi::v2("v1.36.0", &[widget(Some(&schema))])).unwrap();
    let is_described =
        |value: &Value| value["description"].as_str().is_some_and(|description| !description.is_empty());
    let mut described = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        let operations = item.as_object().unwrap().values();
        let parameters =
            operations.chain([item]).filter_map(|holder| holder["parameters"].as_array()).flatten();
        for parameter in parameters.filter(|parameter| parameter["in"] != "body") {
            let parameter = match parameter["$ref"].as_str() {
                Some(reference) => document.pointer(reference.strip_prefix('#').unwrap()).unwrap(),
                None => parameter,
            };
            assert!(is_described(parameter), "{path}: {parameter}");
            described += 1;
        }
    }
    assert!(described > 1000, "{described}");
    let mut lists = 0;
    for (name, definition) in document["definitions"].as_object().unwrap() {
        let is_list = definition["properties"]["metadata"]["$ref"]
            .as_str()
            .is_some_and(|reference| reference.ends_with("meta.v1.ListMeta"));
        if is_list && definition["properties"]["items"].is_object() {
            assert!(is_described(definition), "{name}");
            assert!(is_described(&definition["properties"]["items"]), "the items of {name}");
            lists += 1;
        }
    }
    assert!(lists > 50, "{lists}");
}

#[test]
fn custom_kinds_describe_type_and_metadata_as_upstream_does() {
    const API_VERSION: &str = "APIVersion defines the versioned schema of this representation of an object. Servers should convert recognized schemas to the latest internal value, and may reject unrecognized values. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources";
    const KIND: &str = "Kind is a string value representing the REST resource this object represents. Servers may infer this from the endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds";
    // What the definition itself says about these fields does not count.
    let schema = json!({"type": "object", "properties": {"kind": {"type": "string", "description": "mine"}}});
    let second: Value = serde_json::from_slice(&openapi::v2("v1.36.0", &[widget(Some(&schema))])).unwrap();
    let third = v3("demo.dev", "v1", &[widget(Some(&schema))]);
    for definitions in [&second["definitions"], &third["components"]["schemas"]] {
        for name in ["dev.demo.v1.Widget", "dev.demo.v1.WidgetList"] {
            let properties = &definitions[name]["properties"];
            assert_eq!(properties["apiVersion"]["description"], API_VERSION, "{name}");
            assert_eq!(properties["kind"]["description"], KIND, "{name}");
        }
    }
}
