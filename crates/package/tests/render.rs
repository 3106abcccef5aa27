//! What is rendered for an operator, from a description as a program prints it.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::collections::BTreeMap;

use serde_json::{Value, json};
use watchkeeper_description::{Description, Namespaces};
use watchkeeper_package::{
    Definition, Error, File, Keep, Operator, RENDERERS, Settings, breaking, lint, types,
};
use watchkeeper_schema::{Schema, yaml};

fn description() -> Description {
    Description::from_json(include_bytes!("data/shop.json")).unwrap()
}

/// All files, by their paths.
fn render(description: &Description) -> BTreeMap<String, String> {
    let settings = Settings::default();
    let operator = Operator::new(description, &settings).unwrap();
    rendered(&operator).map(|file| (file.path, file.text)).collect()
}

/// All files of an operator; those of a bundle if it can have one.
fn rendered(operator: &Operator<'_>) -> impl Iterator<Item = File> {
    RENDERERS.iter().flat_map(|renderer| match (renderer.render)(operator) {
        Err(Error::Bundle { .. }) => Vec::new(),
        files => files.unwrap(),
    })
}

/// The same program, whose rights are limited to no namespace but its own.
fn unlimited(mut description: Description) -> Description {
    let rights = description.rights.iter().cloned().map(|mut right| {
        if matches!(right.namespaces, Namespaces::These(_)) {
            right.namespaces = Namespaces::All;
        }
        right
    });
    description.rights = rights.collect();
    description
}

fn objects(text: &str) -> Vec<Value> {
    yaml::documents(text).map(|part| yaml::decode(part.text.as_bytes()).unwrap().value).collect()
}

#[test]
fn the_same_description_gives_the_same_files_and_nothing_is_left_to_fill_in() {
    let files = render(&description());
    assert_eq!(files, render(&description()));
    for (path, text) in &files {
        for left in [
            "OPERATOR",
            "COMPONENT",
            "IMAGE",
            "GRACE",
            "- METRICS",
            "- ELECTION",
            "- DEFINITIONS",
            "- NAMESPACES",
            "- LOG=",
            ": PORT",
            ": SIZE",
            ": VOLUME",
            ": MEMORY",
            ": REPLICAS",
            "# <",
            "JOB",
        ] {
            assert!(!text.contains(left), "{left} is in {path}:\n{text}");
        }
        if path.ends_with(".json") {
            serde_json::from_str::<Value>(text).unwrap();
        } else if path.ends_with(".yaml") && !path.starts_with("chart/templates/") {
            assert!(!objects(text).is_empty() || path == "chart/values.yaml", "{path}");
        }
    }
}

#[test]
fn a_renderer_owns_what_it_generates_and_leaves_to_the_user_what_it_writes_once() {
    let description = unlimited(description());
    let settings = Settings::default();
    let operator = Operator::new(&description, &settings).unwrap();
    for renderer in RENDERERS {
        for file in (renderer.render)(&operator).unwrap() {
            let is_owned = renderer.owns.iter().any(|owned| match owned.ends_with('/') {
                true => file.path.starts_with(owned),
                false => file.path == *owned,
            });
            assert_eq!(is_owned, file.keep == Keep::Generated, "{} of {}", file.path, renderer.name);
        }
    }
}

#[test]
fn the_roles_are_what_is_declared_and_the_definitions_are_left_to_whoever_installs_it() {
    let files = render(&description());
    let roles = &files["rbac.yaml"];
    assert!(!roles.contains("customresourcedefinitions"), "{roles}");
    let install = objects(&files["install.yaml"]);
    let rules = |kind: &str, name: &str, namespace: Option<&str>| {
        let is_it = |object: &&Value| {
            object["kind"] == kind
                && object["metadata"]["name"] == name
                && object["metadata"]["namespace"].as_str() == namespace
        };
        install.iter().find(is_it).unwrap_or_else(|| panic!("no {kind} {name}"))["rules"].clone()
    };
    assert_eq!(
        rules("ClusterRole", "shop", None),
        json!([
            {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch", "create", "patch", "delete"]},
            {"apiGroups": ["example.com"], "resources": ["shops"], "verbs": ["get", "list", "watch"]},
            {"apiGroups": ["example.com"], "resources": ["shops/status"], "verbs": ["patch"]},
        ])
    );
    assert_eq!(rules("Role", "shop", Some("vault"))[0]["resources"], json!(["secrets"]));
    assert_eq!(rules("Role", "shop", Some("shop-system"))[1]["resourceNames"], json!(["shop"]));
    let deployment = install.iter().find(|object| object["kind"] == "Deployment").unwrap();
    let pod = &deployment["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    assert_eq!(
        container["args"],
        json!(["--install-definitions=false", "--leader-elect", "--metrics-addr=0.0.0.0:8080"])
    );
    assert_eq!(container["image"], "shop:1.2.3");
    assert_eq!(pod["terminationGracePeriodSeconds"], 40);
}

#[test]
fn alerts_and_dashboards_ask_only_for_metrics_that_there_are() {
    let mut description = description();
    let rules = |description: &Description| -> Vec<String> {
        let files = render(description);
        let Some(text) = files.get("monitoring/rules.yaml") else { return Vec::new() };
        let rules = objects(text)[0]["groups"][0]["rules"].clone();
        rules.as_array().unwrap().iter().map(|rule| rule["alert"].as_str().unwrap().to_owned()).collect()
    };
    // Depth is there; the time of the longest run, panics, hot loops are not.
    let expected = ["OperatorDown", "OperatorWithoutLeader", "OperatorReconcileErrors", "OperatorQueueGrows"];
    assert_eq!(rules(&description), expected);
    let files = render(&description);
    let dashboards: Vec<&str> =
        files.keys().filter_map(|path| path.strip_prefix("monitoring/dashboards/")).collect();
    assert_eq!(dashboards, ["controllers.json", "queues.json"]);
    let controllers: Value = serde_json::from_str(&files["monitoring/dashboards/controllers.json"]).unwrap();
    assert_eq!(controllers["panels"].as_array().unwrap().len(), 5);
    description.metrics.retain(|metric| metric.name != "leader_election_master_status");
    assert_eq!(rules(&description).len(), 3);
    // An alert about a ratio needs both of its metrics.
    description.metrics.retain(|metric| metric.name != "controller_runtime_reconcile_total");
    assert_eq!(rules(&description), ["OperatorDown", "OperatorQueueGrows"]);
    description.metrics_port = None;
    assert!(rules(&description).is_empty());
}

#[test]
fn an_operator_without_metrics_and_election_has_a_chart_without_them() {
    let mut description = description();
    description.metrics_port = None;
    description.election = None;
    description.install_option = None;
    let files = render(&description);
    let deployment = &files["chart/templates/deployment.yaml"];
    assert!(!deployment.contains("metrics") && !deployment.contains("leaderElection"), "{deployment}");
    assert!(!files.contains_key("chart/templates/service.yaml"));
    let schema: Value = serde_json::from_str(&files["chart/values.schema.json"]).unwrap();
    assert!(schema["properties"].get("metrics").is_none() && schema["properties"].get("replicas").is_some());
}

#[test]
fn what_looks_like_a_template_in_a_definition_stays_what_it_is() {
    let files = render(&description());
    let crd = &files["chart/templates/crds/shops.example.com.yaml"];
    assert!(crd.contains("of which {{ \"{{\" }} templates }} are no part"), "{crd}");
}

#[test]
fn values_that_are_no_settings_are_refused_by_the_schema_of_the_chart() {
    let files = render(&description());
    let schema: Value = serde_json::from_str(&files["chart/values.schema.json"]).unwrap();
    let closed = |at: &str| schema.pointer(at).unwrap()["additionalProperties"] == json!(false);
    assert!(schema["additionalProperties"] == json!(false));
    assert!(closed("/properties/image") && closed("/properties/metrics") && closed("/properties/crds"));
    assert_eq!(schema["properties"]["resources"], json!({"type": "object"}));
    assert_eq!(schema["properties"]["metrics"]["properties"]["port"]["maximum"], 65535);
    // Nothing is set in the file that users begin with.
    assert!(objects(&files["chart/values.yaml"]).is_empty());
    assert!(files["chart/values.yaml"].contains("\n# replicas: 2\n"));
}

#[test]
fn the_reference_names_every_field_with_its_rules() {
    let files = render(&description());
    let text = &files["docs/api.md"];
    for line in [
        "## Shop (example.com/v1)",
        "| `spec.name` | string | **Required.** What it is called \\| and known as. (characters: at most `63`, matches `^[a-z]+$`) |",
        "| `spec.maxSize` | integer | How many fit in. Default: `3`. (at least `1`, at most `10`, format `int32`) |",
        "| `spec.mode` | string | Who may enter. One of `Open`, `Closed`. |",
        "| `spec.ports[].number` | integer | **Required.** Which. (format `int32`) |",
        "| `spec.env` | map of string | Settings. |",
        "| coordination.k8s.io | `leases` named shop | get, create, update | the election |",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
}

#[test]
fn schemas_for_editors_are_closed_and_take_null_where_the_server_does() {
    let files = render(&description());
    let schema: Value = serde_json::from_str(&files["schemas/example.com/shop_v1.json"]).unwrap();
    let spec = &schema["properties"]["spec"];
    assert_eq!(spec["additionalProperties"], json!(false));
    assert_eq!(spec["properties"]["mode"]["type"], json!(["string", "null"]));
    assert_eq!(schema["properties"]["kind"]["enum"], json!(["Shop"]));
}

/// What is found in the definition after a change to it.
fn findings(change: impl Fn(&mut Value)) -> Vec<String> {
    let mut value = description().definitions[0].clone();
    change(&mut value);
    lint(&Definition::read(0, &value).unwrap()).iter().map(ToString::to_string).collect()
}

/// A change to a definition.
type Change<'a> = &'a dyn Fn(&mut Value);

const SCHEMA: &str = "/spec/versions/0/schema/openAPIV3Schema";

fn at<'a>(value: &'a mut Value, pointer: &str) -> &'a mut Value {
    value.pointer_mut(&format!("{SCHEMA}{pointer}")).unwrap()
}

#[test]
fn a_definition_without_mistakes_has_no_findings() {
    assert_eq!(findings(|_| {}), [""; 0]);
    let schema = description().definitions[0].pointer(SCHEMA).unwrap().clone();
    assert!(Schema::read(&schema).is_ok());
}

#[test]
fn mistakes_in_definitions_are_found_with_their_field() {
    let cases: [(&str, Change<'_>); 10] = [
        ("error: shops.example.com v1: status.conditions: conditions are no map", &|value| {
            at(value, "/properties/status/properties/conditions")
                .as_object_mut()
                .unwrap()
                .remove("x-kubernetes-list-type");
            at(value, "/properties/status/properties/conditions")
                .as_object_mut()
                .unwrap()
                .remove("x-kubernetes-list-map-keys");
        }),
        (
            "warning: shops.example.com v1: spec.maxSize (in Rust spec.max_size): it has no description",
            &|value| {
                at(value, "/properties/spec/properties/maxSize")
                    .as_object_mut()
                    .unwrap()
                    .remove("description");
            },
        ),
        ("warning: shops.example.com v1: it has no printer columns", &|value| {
            value["spec"]["versions"][0]["additionalPrinterColumns"] = json!([]);
        }),
        ("warning: shops.example.com v1: status: there is no observedGeneration", &|value| {
            at(value, "/properties/status/properties").as_object_mut().unwrap().remove("observedGeneration");
        }),
        ("error: shops.example.com v1: status: status is no subresource", &|value| {
            value["spec"]["versions"][0]["subresources"] = json!({});
        }),
        (
            "warning: shops.example.com v1: spec.maxSize (in Rust spec.max_size): Kubernetes has no format uint16",
            &|value| {
                at(value, "/properties/spec/properties/maxSize")["format"] = json!("uint16");
            },
        ),
        (
            "warning: shops.example.com v1: spec.env{}: a rule of spec reads it and it has no maxLength",
            &|value| {
                at(value, "/properties/spec")["x-kubernetes-validations"] =
                    json!([{"rule": "self.name != ''"}]);
            },
        ),
        ("error: shops.example.com v1: spec.mode: it is required and may be null", &|value| {
            at(value, "/properties/spec")["required"] = json!(["name", "mode"]);
        }),
        ("error: shops.example.com v1: a server refuses it", &|value| {
            at(value, "/properties/spec/properties/name").as_object_mut().unwrap().remove("type");
        }),
        ("warning: shops.example.com: it has 3", &|value| {
            at(value, "/properties/spec")["description"] = json!("x".repeat(300 * 1024));
        }),
    ];
    for (expected, change) in cases {
        let found = findings(change);
        assert!(found.iter().any(|finding| finding.starts_with(expected)), "{expected} is not in {found:#?}");
    }
    assert!(
        findings(|value| value["spec"]["versions"][0]["storage"] = json!(false))[0]
            .contains("no version is stored")
    );
    assert!(
        findings(|value| at(value, "/properties/spec")["description"] = json!("x".repeat(1 << 20)))[0]
            .starts_with("error")
    );
}

/// What a change to the definition breaks.
fn breaks(change: impl Fn(&mut Value)) -> Vec<String> {
    let mut before = description().definitions[0].clone();
    for (name, schema) in [
        (
            "open",
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "allOf": [{"required": ["a"]}]}),
        ),
        (
            "free",
            json!({"type": "object", "additionalProperties": true, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}),
        ),
        ("even", json!({"type": "integer", "format": "int64", "multipleOf": 2})),
        (
            "keyed",
            json!({
                "type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            }),
        ),
    ] {
        at(&mut before, "/properties/spec/properties")[name] = schema;
    }
    let mut after = before.clone();
    change(&mut after);
    let found = breaking(&Definition::read(0, &before).unwrap(), &Definition::read(0, &after).unwrap());
    found.iter().map(|finding| format!("{}: {}", finding.field, finding.message)).collect()
}

#[test]
fn changes_that_break_are_told_from_those_that_do_not() {
    let spec = "/properties/spec/properties";
    let breaking: [(&str, Change<'_>); 25] = [
        ("spec.env: the field is gone", &|value| {
            at(value, spec).as_object_mut().unwrap().remove("env");
        }),
        ("spec.name: its type was string and is integer", &|value| {
            at(value, spec)["name"]["type"] = json!("integer");
        }),
        ("spec.maxSize: its maximum was 10 and is 5", &|value| {
            at(value, spec)["maxSize"]["maximum"] = json!(5);
        }),
        ("spec.maxSize: its minimum was 1 and is 2", &|value| {
            at(value, spec)["maxSize"]["minimum"] = json!(2);
        }),
        ("spec.env: its maxProperties was not limited and is 3", &|value| {
            at(value, spec)["env"]["maxProperties"] = json!(3);
        }),
        ("spec.mode: the value \"Closed\" is gone", &|value| {
            at(value, spec)["mode"]["enum"] = json!(["Open"]);
        }),
        ("spec.mode: it may no longer be null", &|value| {
            at(value, spec)["mode"].as_object_mut().unwrap().remove("nullable");
        }),
        ("spec.env: it is newly required", &|value| {
            at(value, "/properties/spec")["required"] = json!(["name", "env"]);
        }),
        ("spec.name: it has to match another pattern", &|value| {
            at(value, spec)["name"]["pattern"] = json!("^a$");
        }),
        ("spec.ports[].number: its type was integer and is string", &|value| {
            at(value, spec)["ports"]["items"]["properties"]["number"]["type"] = json!("string");
        }),
        ("spec.versions: version v1 is no longer served", &|value| {
            value["spec"]["versions"][0]["served"] = json!(false);
        }),
        ("spec.scope: it cannot be changed", &|value| value["spec"]["scope"] = json!("Cluster")),
        (": the subresource status is gone", &|value| {
            value["spec"]["versions"][0]["subresources"] = json!({});
        }),
        ("spec.env: it no longer takes fields of any name", &|value| {
            at(value, spec)["env"].as_object_mut().unwrap().remove("additionalProperties");
        }),
        ("spec.open: it no longer takes fields of any name", &|value| {
            at(value, spec)["open"] = json!({"type": "object"});
        }),
        ("spec.free{}: its type was any and is string", &|value| {
            at(value, spec)["free"]["additionalProperties"] = json!({"type": "string"});
        }),
        ("spec.maxSize: its maximum is newly excluded", &|value| {
            at(value, spec)["maxSize"]["exclusiveMaximum"] = json!(true);
        }),
        ("spec.maxSize: its minimum is newly excluded", &|value| {
            at(value, spec)["maxSize"]["exclusiveMinimum"] = json!(true);
        }),
        ("spec.even: it has to be a multiple of 4", &|value| {
            at(value, spec)["even"]["multipleOf"] = json!(4);
        }),
        ("spec.name: its format was any and is date-time", &|value| {
            at(value, spec)["name"]["format"] = json!("date-time");
        }),
        ("spec.even: its format was int64 and is int32", &|value| {
            at(value, spec)["even"]["format"] = json!("int32");
        }),
        ("spec.open: oneOf is new or another", &|value| {
            at(value, spec)["open"]["oneOf"] = json!([{"required": ["a"]}]);
        }),
        ("spec.free: anyOf is new or another", &|value| {
            at(value, spec)["free"]["anyOf"] = json!([{"required": ["a"]}]);
        }),
        ("spec.free: not is new or another", &|value| {
            at(value, spec)["free"]["not"] = json!({"required": ["a"]});
        }),
        ("spec.keyed: its x-kubernetes-list-type was map and is atomic", &|value| {
            at(value, spec)["keyed"].as_object_mut().unwrap().remove("x-kubernetes-list-type");
        }),
    ];
    for (expected, change) in breaking {
        let found = breaks(change);
        assert!(found.len() == 1 && found[0].starts_with(expected), "{expected} is not {found:#?}");
    }
    let keys: Change<'_> =
        &|value| at(value, spec)["keyed"]["x-kubernetes-list-map-keys"] = json!(["name", "port"]);
    let found = breaks(keys);
    assert!(
        found.len() == 1 && found[0].starts_with("spec.keyed: the keys of its items were [\"name\"]"),
        "{found:?}"
    );
    let compatible: [Change<'_>; 11] = [
        &|value| at(value, spec)["even"]["multipleOf"] = json!(1),
        &|value| {
            at(value, spec)["even"].as_object_mut().unwrap().remove("format");
        },
        &|value| {
            at(value, spec)["free"]["anyOf"] =
                json!([{"required": ["a"]}, {"required": ["b"]}, {"required": ["c"]}]);
        },
        &|value| {
            at(value, spec)["env"] = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        },
        &|value| {
            at(value, spec)["open"].as_object_mut().unwrap().remove("allOf");
        },
        &|value| at(value, spec)["colour"] = json!({"type": "string"}),
        &|value| at(value, spec)["maxSize"]["maximum"] = json!(20),
        &|value| at(value, spec)["mode"]["enum"] = json!(["Open", "Closed", "Ajar"]),
        &|value| at(value, spec)["maxSize"]["type"] = json!("number"),
        &|value| at(value, "/properties/spec")["required"] = json!(["name", "maxSize"]),
        &|value| at(value, spec)["name"]["description"] = json!("Another text."),
    ];
    for (number, change) in compatible.iter().enumerate() {
        assert_eq!(breaks(change), [""; 0], "change {number}");
    }
}

#[test]
fn types_of_a_definition_keep_what_an_object_has() {
    let description = description();
    let definition = Definition::read(0, &description.definitions[0]).unwrap();
    let text = types(&definition, None).unwrap();
    for part in [
        "#[watchkeeper::kind(\n    group = \"example.com\",\n    version = \"v1\",\n    kind = \"Shop\",\n    plural = \"shops\",\n    namespaced,\n    status = \"ShopStatus\",\n    shortname = \"sh\",\n    derive = \"PartialEq\"\n)]\n#[derive(Default, PartialEq)]\npub struct ShopSpec {\n",
        "    /// Settings.\n    #[serde(default, skip_serializing_if = \"Option::is_none\")]\n    pub env: Option<BTreeMap<String, String>>,\n",
        "    pub max_size: Option<i32>,\n",
        "    pub mode: Option<ShopSpecMode>,\n",
        "    pub name: String,\n",
        "    pub ports: Option<Vec<ShopSpecPorts>>,\n",
        "pub enum ShopSpecMode {\n    Open,\n    Closed,\n}\n",
        "pub struct ShopSpecPorts {\n    /// Which.\n    pub number: i32,\n}\n",
        "    pub r#type: String,\n",
        "use std::collections::BTreeMap;\n",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    assert_eq!(
        types(&definition, Some("v2")).unwrap_err(),
        "shops.example.com has no version \"v2\": it has v1"
    );
}

/// The types of the definition after a change.
fn types_after(change: Change<'_>) -> Result<String, String> {
    let mut value = description().definitions[0].clone();
    change(&mut value);
    types(&Definition::read(0, &value).unwrap(), None)
}

#[test]
fn a_kind_that_is_not_made_of_a_spec_alone_is_made_of_all_its_fields() {
    let without: Change<'_> = &|value| {
        let schema = at(value, "");
        schema["properties"].as_object_mut().unwrap().remove("spec");
        schema["properties"]["weights"] =
            json!({"type": "object", "additionalProperties": {"type": "integer"}});
        // Another name than those that all objects have, and the same in Rust.
        schema["properties"]["Kind"] = json!({"type": "string"});
        schema["properties"]["Status"] = json!({"type": "string"});
        schema["required"] = json!(["metadata", "weights"]);
    };
    let text = types_after(without).unwrap();
    for part in [
        "    namespaced,\n    no_spec,\n    status = \"ShopStatus\",\n",
        "#[derive(Default, PartialEq)]\npub struct ShopFields {\n",
        "    pub weights: BTreeMap<String, i64>,\n",
        "    #[serde(rename = \"Kind\", default, skip_serializing_if = \"Option::is_none\")]\n    pub kind_: Option<String>,\n",
        "    pub status_: Option<String>,\n",
        "pub struct ShopStatus {\n",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    assert!(!text.contains("pub struct ShopSpec") && !text.contains("pub metadata"), "{text}");

    let beside: Change<'_> = &|value| at(value, "/properties")["data"] = json!({"type": "string"});
    let text = types_after(beside).unwrap();
    assert!(text.contains("    no_spec,\n") && text.contains("    pub spec: ShopFieldsSpec,\n"), "{text}");
    assert!(text.contains("    pub data: Option<String>,\n"), "{text}");

    let of_strings: Change<'_> = &|value| {
        at(value, "/properties")["spec"] =
            json!({"type": "object", "additionalProperties": {"type": "string"}});
    };
    let text = types_after(of_strings).unwrap();
    assert!(text.contains("    pub spec: BTreeMap<String, String>,\n"), "{text}");

    // Nothing but what all objects have, and a status.
    let nothing: Change<'_> = &|value| {
        at(value, "/properties").as_object_mut().unwrap().remove("spec");
    };
    let text = types_after(nothing).unwrap();
    assert!(
        text.contains("pub struct ShopFields {\n}\n") && text.contains("pub struct ShopStatus {\n"),
        "{text}"
    );
}

#[test]
fn types_that_would_lose_something_of_an_object_are_refused_with_its_name() {
    let cases: [(&str, Change<'_>); 3] = [
        ("fields that the schema does not name", &|value| {
            at(value, "")["x-kubernetes-preserve-unknown-fields"] = json!(true);
        }),
        ("a status that is no object of named fields", &|value| {
            at(value, "/properties")["status"] = json!({"type": "string"});
        }),
        ("a status that is no object of named fields", &|value| {
            at(value, "/properties")["status"] = json!({"x-kubernetes-preserve-unknown-fields": true});
        }),
    ];
    for (expected, change) in cases {
        let expected = format!("objects of shops.example.com v1 have {expected}, which the types would lose");
        assert_eq!(types_after(change).unwrap_err(), expected);
    }
    // What has no named fields and keeps all is kept; what has none and keeps none is nothing.
    let open: Change<'_> = &|value| {
        at(value, "/properties")["status"] =
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    };
    let text = types_after(open).unwrap();
    assert!(text.contains("status = \"ShopStatus\"") && text.contains("pub other: BTreeMap"), "{text}");
    let nothing: Change<'_> = &|value| at(value, "/properties")["status"] = json!({"type": "object"});
    assert!(!types_after(nothing).unwrap().contains("ShopStatus"));
}

/// The same as a program that keeps something, serves clients, and asks nothing of the cluster.
fn server() -> Description {
    let mut description = description();
    description.definitions.clear();
    description.rights = watchkeeper_description::Rights::default();
    description.election = None;
    description.install_option = None;
    description.run = watchkeeper_description::Run {
        component: "apiserver".to_owned(),
        program: Some("shopd".to_owned()),
        arguments: vec!["serve".to_owned(), "--name={name}.{namespace}".to_owned()],
        log_option: Some("--log".to_owned()),
        ports: vec![watchkeeper_description::ServedPort {
            name: "https".to_owned(),
            port: 443,
            target: 6443,
        }],
        memory: "1Gi".to_owned(),
        volume: Some(watchkeeper_description::Volume { path: "/data".to_owned(), size: "2Gi".to_owned() }),
        ..Default::default()
    };
    description
}

#[test]
fn what_a_program_keeps_for_its_next_run_is_in_memory_and_it_stays_a_deployment() {
    let mut description = description();
    let scratch = watchkeeper_description::Volume { path: "/state".to_owned(), size: "32Mi".to_owned() };
    description.run.scratch = Some(scratch);
    let files = render(&description);
    let install = objects(&files["install.yaml"]);
    let deployment = install.iter().find(|object| object["kind"] == "Deployment").unwrap();
    let pod = &deployment["spec"]["template"]["spec"];
    let memory = json!({"medium": "Memory", "sizeLimit": "32Mi"});
    assert_eq!(pod["volumes"], json!([{"name": "scratch", "emptyDir": memory}]));
    let mounts = json!([{"name": "scratch", "mountPath": "/state"}]);
    assert_eq!(pod["containers"][0]["volumeMounts"], mounts);
    let template = &files["chart/templates/deployment.yaml"];
    for part in ["          mountPath: /state\n", "          medium: Memory\n          sizeLimit: 32Mi\n"] {
        assert!(template.contains(part), "{part:?} is not in {template}");
    }
    assert!(!template.contains("SCRATCH") && !template.contains("# <"), "{template}");
}

#[test]
fn a_program_that_keeps_something_is_a_stateful_set_of_one_with_a_service_for_clients() {
    let files = render(&server());
    for (path, text) in &files {
        for left in ["OPERATOR", "COMPONENT", ": SIZE", ": VOLUME", ": REPLICAS", "# <", "\n@", " @"] {
            assert!(!text.contains(left), "{left} is in {path}:\n{text}");
        }
    }
    assert!(
        !files.keys().any(|path| path.starts_with("bundle/") || path.contains("crds")),
        "{:?}",
        files.keys()
    );
    let install = objects(&files["install.yaml"]);
    let of = |kind: &str, name: &str| {
        let is_it = |object: &&Value| object["kind"] == kind && object["metadata"]["name"] == name;
        install.iter().find(is_it).unwrap_or_else(|| panic!("no {kind} {name}"))
    };
    let set = &of("StatefulSet", "shop")["spec"];
    assert_eq!((&set["replicas"], &set["serviceName"]), (&json!(1), &json!("shop-metrics")));
    let pod = &set["template"]["spec"];
    let container = &pod["containers"][0];
    assert_eq!(container["args"], json!(["serve", "--name=shop.shop-system", "--metrics-addr=0.0.0.0:8080"]));
    assert_eq!((&container["image"], &container["name"]), (&json!("shopd:1.2.3"), &json!("apiserver")));
    assert_eq!(pod["automountServiceAccountToken"], false);
    assert_eq!(of("Service", "shop")["spec"]["ports"][0]["targetPort"], "https");
    assert_eq!(of("Service", "shop-metrics")["spec"]["clusterIP"], "None");
    assert!(!install.iter().any(|object| object["kind"] == "Role" || object["kind"] == "ClusterRole"));
    let schema: Value = serde_json::from_str(&files["chart/values.schema.json"]).unwrap();
    assert_eq!(schema["properties"]["replicas"]["maximum"], 1);
}

#[test]
fn an_operator_that_watches_some_namespaces_has_roles_in_these_and_no_cluster_role() {
    let mut description = description();
    assert!(!render(&description).keys().any(|path| path.contains("namespaced")), "it has no such option");
    description.namespaces_option = Some("--namespaces".to_owned());
    let mut settings = Settings::default();
    settings.watch_namespaces = vec!["east".to_owned(), "west".to_owned()];
    let operator = Operator::new(&description, &settings).unwrap();
    let files = rendered(&operator);
    let files: BTreeMap<String, String> = files.map(|file| (file.path, file.text)).collect();
    let roles = objects(&files["kustomize/overlays/namespaced/roles.yaml"]);
    let places: Vec<&str> = roles
        .iter()
        .filter(|object| object["kind"] == "Role")
        .map(|object| object["metadata"]["namespace"].as_str().unwrap())
        .collect();
    // The lease is in its own namespace, Secrets are where their cache is.
    assert_eq!(places, ["east", "shop-system", "vault", "west"]);
    let bound = roles.iter().find(|object| object["kind"] == "ClusterRoleBinding");
    assert_eq!(bound, None);
    // What has no namespace is asked of the cluster, and nothing else is.
    let mut hooked = description.clone();
    hooked.rights.add(cluster_scoped());
    let operator = Operator::new(&hooked, &settings).unwrap();
    let roles =
        rendered(&operator).find(|file| file.path == "kustomize/overlays/namespaced/roles.yaml").unwrap();
    let roles = objects(&roles.text);
    let rules: Vec<&Value> = roles
        .iter()
        .filter(|object| object["kind"] == "ClusterRole" && object["metadata"]["name"] == "shop")
        .map(|object| &object["rules"])
        .collect();
    let configurations = "mutatingwebhookconfigurations";
    assert_eq!(
        json!(rules),
        json!([[{
            "apiGroups": ["admissionregistration.k8s.io"], "resources": [configurations],
            "verbs": ["get", "patch"], "resourceNames": ["shop"],
        }]])
    );
    let text = &files["kustomize/overlays/namespaced/kustomization.yaml"];
    assert!(text.contains("value: --namespaces=east,west"), "{text}");
    let chart = &files["chart/templates/rbac.yaml"];
    assert!(chart.contains("{{- range $v.watchNamespaces }}"), "{chart}");
}

/// A right to what has no namespace.
fn cluster_scoped() -> watchkeeper_description::Right {
    use watchkeeper_description::{Resource, Right, Verbs, When};
    let resource = Resource {
        group: "admissionregistration.k8s.io".to_owned(),
        version: "v1".to_owned(),
        kind: "MutatingWebhookConfiguration".to_owned(),
        plural: "mutatingwebhookconfigurations".to_owned(),
        namespaced: false,
    };
    let mut right = Right::of(resource, Verbs::GET | Verbs::PATCH, "serves webhooks");
    (right.names, right.when) = (vec!["shop".to_owned()], When::ConfiguringWebhooks);
    right
}

/// The same with webhooks of all sorts, and the rights that these need.
fn hooked() -> Description {
    use watchkeeper_description::{Right, Verbs, Webhook, When};
    let mut description = description();
    let resource = description.controllers[0].of.clone().unwrap();
    description.webhook_port = Some(9443);
    description.webhook_arguments = vec!["--configured=false".to_owned(), "--certs={folder}".to_owned()];
    let entry = |name: &str| {
        json!({
            "name": name, "rules": [{"resources": ["shops"], "operations": ["CREATE"]}], "sideEffects": "None",
            "admissionReviewVersions": ["v1"], "failurePolicy": "Fail", "matchPolicy": "Equivalent", "timeoutSeconds": 10,
        })
    };
    for (kind, path, entry) in [
        ("mutating", "/mutate", entry("mutate.shops.example.com")),
        ("validating", "/validate", entry("validate.shops.example.com")),
        ("conversion", "/convert", Value::Null),
    ] {
        let (kind, path, resource) = (kind.to_owned(), path.to_owned(), resource.clone());
        description.webhooks.push(Webhook { kind, resource, path, entry });
    }
    let installed =
        Right { verbs: Verbs::CREATE | Verbs::DELETE, when: When::InstallingDefinitions, ..cluster_scoped() };
    description.rights.add(cluster_scoped());
    description.rights.add(installed);
    description
}

#[test]
fn webhook_configurations_come_empty_and_go_with_what_they_came_with() {
    let files = render(&hooked());
    let empty = |text: &str| {
        let configurations = objects(text).into_iter().filter(|object| {
            object["kind"].as_str().is_some_and(|kind| kind.ends_with("WebhookConfiguration"))
        });
        let configurations: Vec<Value> = configurations.collect();
        assert!(configurations.iter().all(|one| one.get("webhooks").is_none()), "{configurations:?}");
        let named = configurations.iter().map(|one| {
            format!("{} {}", one["kind"].as_str().unwrap(), one["metadata"]["name"].as_str().unwrap())
        });
        named.collect::<Vec<_>>()
    };
    let both = ["MutatingWebhookConfiguration shop", "ValidatingWebhookConfiguration shop"];
    assert_eq!(empty(&files["install.yaml"]), both);
    assert_eq!(empty(&files["kustomize/manager/manager.yaml"]), both);
    let chart = &files["chart/templates/webhookconfigurations.yaml"];
    for line in
        ["kind: MutatingWebhookConfiguration", "kind: ValidatingWebhookConfiguration", "  name: shop\n"]
    {
        assert!(chart.contains(line), "{line:?} is not in {chart}");
    }
    assert!(!chart.contains("webhooks:"), "{chart}");
    // So the program neither creates nor deletes them: what was uninstalled does not come back.
    let rules = |path: &str| {
        files[path].split("---").find(|text| text.contains("admissionregistration")).unwrap().to_owned()
    };
    for path in ["rbac.yaml", "chart/templates/rbac.yaml"] {
        let rules = rules(path);
        assert!(rules.contains("- patch") && !rules.contains("- create\n  resourceNames"), "{rules}");
        let (_, after) = rules.split_once("admissionregistration.k8s.io").unwrap();
        let rule = after.split("- apiGroups").next().unwrap();
        assert!(!rule.contains("- delete") && !rule.contains("- create"), "{rule}");
    }
    assert!(!render(&description()).contains_key("chart/templates/webhookconfigurations.yaml"));
}

/// A template with what Helm makes of it where the certificate is in a Secret, or without: the conditions on that and the lists of the
/// user, which are empty, are all that is looked at.
fn with_certificate(template: &str, secret: Option<&str>) -> String {
    let (mut kept, mut open) = (String::new(), Vec::new());
    for line in template.lines() {
        let action = line.trim().strip_prefix("{{- ").and_then(|rest| rest.strip_suffix(" }}"));
        match action.map(|action| (action.split(' ').next().unwrap_or_default(), action)) {
            Some(("if" | "with" | "range", action)) => open.push(match action {
                action if action.contains("webhook.certificateSecret") => secret.is_some(),
                action => !action.contains("$v.extra"),
            }),
            Some(("end", _)) => drop(open.pop()),
            _ if open.iter().all(|holds| *holds) => {
                kept.push_str(&line.replace("{{ . }}", secret.unwrap_or("{{ . }}")));
                kept.push('\n');
            }
            _ => {}
        }
    }
    kept
}

#[test]
fn a_certificate_that_somebody_else_makes_is_mounted_and_its_folder_is_told() {
    let files = render(&hooked());
    let template = &files["chart/templates/deployment.yaml"];
    let (without, with) = (with_certificate(template, None), with_certificate(template, Some("made")));
    for text in ["--certs=", "webhook-certificate", "volumeMounts:", "volumes:"] {
        assert!(!without.contains(text), "{text:?} is in {without}");
    }
    for text in [
        "        - --certs=/etc/webhook-certificate\n",
        "        volumeMounts:\n        - name: webhook-certificate\n          mountPath: /etc/webhook-certificate\n          readOnly: true\n",
        "      volumes:\n      - name: webhook-certificate\n        secret:\n          secretName: made\n",
    ] {
        assert!(with.contains(text), "{text:?} is not in {with}");
    }
    // It keeps its configurations itself all the same.
    assert!(!with.contains("--configured"), "{with}");
    let schema: Value = serde_json::from_str(&files["chart/values.schema.json"]).unwrap();
    assert_eq!(schema["properties"]["webhook"]["properties"]["certificateSecret"], json!({"type": "string"}));
    assert!(files["chart/values.yaml"].contains("# webhook:\n#   certificateSecret: \"\"\n"));

    let mut fixed = hooked();
    fixed.webhook_arguments.clear();
    for description in [description(), fixed] {
        let files = render(&description);
        for path in ["chart/templates/deployment.yaml", "chart/values.yaml", "chart/values.schema.json"] {
            assert!(!files[path].contains("ertificateSecret"), "{path}");
        }
    }
}

#[test]
fn a_bundle_leaves_webhooks_to_the_operator_lifecycle_manager() {
    let files = render(&unlimited(hooked()));
    let version = objects(&files["bundle/manifests/shop.clusterserviceversion.yaml"]).remove(0);
    let spec = &version["spec"];
    let webhooks = spec["webhookdefinitions"].as_array().unwrap();
    assert_eq!(
        webhooks[0],
        json!({
            "type": "MutatingAdmissionWebhook", "generateName": "mutate.shops.example.com", "deploymentName": "shop",
            "containerPort": 443, "targetPort": 9443, "webhookPath": "/mutate",
            "rules": [{"resources": ["shops"], "operations": ["CREATE"]}], "sideEffects": "None",
            "admissionReviewVersions": ["v1"], "failurePolicy": "Fail", "matchPolicy": "Equivalent", "timeoutSeconds": 10,
        })
    );
    assert_eq!(webhooks[1]["type"], "ValidatingAdmissionWebhook");
    assert_eq!(
        (&webhooks[2]["type"], &webhooks[2]["conversionCRDs"], &webhooks[2]["webhookPath"]),
        (&json!("ConversionWebhook"), &json!(["shops.example.com"]), &json!("/convert"))
    );
    // The program is told, and has no rights for what it leaves alone.
    let deployment = &spec["install"]["spec"]["deployments"][0]["spec"];
    let arguments = deployment.pointer("/template/spec/containers/0/args").unwrap().to_string();
    assert!(
        arguments.contains("\"--configured=false\",\"--certs=/tmp/k8s-webhook-server/serving-certs\""),
        "{arguments}"
    );
    assert!(!spec["install"].to_string().contains("webhookconfigurations"), "{}", spec["install"]);
    assert!(!files.contains_key("bundle/manifests/shop-webhook.service.yaml"));
    assert!(
        objects(&files["install.yaml"]).iter().any(|object| object["metadata"]["name"] == "shop-webhook")
    );
}

#[test]
fn a_bundle_has_every_version_that_is_served_and_can_be_built() {
    let mut description = unlimited(description());
    let mut other = description.definitions[0]["spec"]["versions"][0].clone();
    (other["name"], other["storage"]) = (json!("v1beta1"), json!(false));
    let mut old = other.clone();
    (old["name"], old["served"]) = (json!("v1alpha1"), json!(false));
    description.definitions[0]["spec"]["versions"].as_array_mut().unwrap().extend([other, old]);
    let files = render(&description);
    let version = objects(&files["bundle/manifests/shop.clusterserviceversion.yaml"]).remove(0);
    let owned = version["spec"]["customresourcedefinitions"]["owned"].as_array().unwrap();
    let owned: Vec<&str> = owned.iter().map(|one| one["version"].as_str().unwrap()).collect();
    assert_eq!(owned, ["v1", "v1beta1"]);
    let bundle = objects(&files["catalog/catalog.yaml"]).remove(2);
    let properties = bundle["properties"].as_array().unwrap().iter();
    let kinds: Vec<&str> = properties
        .filter(|one| one["type"] == "olm.gvk")
        .map(|one| one["value"]["version"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["v1", "v1beta1"]);
    // The catalog names an image, and this is how it is made.
    let file = &files["bundle.Dockerfile"];
    let image = bundle["image"].as_str().unwrap();
    for line in [
        &format!("# docker build -f bundle.Dockerfile -t {image} .\n"),
        "FROM scratch\n",
        "LABEL operators.operatorframework.io.bundle.package.v1=shop\n",
        "COPY bundle/manifests /manifests/\n",
        "COPY bundle/metadata /metadata/\n",
    ] {
        assert!(file.contains(line), "{line:?} is not in {file}");
    }
}

#[test]
fn a_program_that_a_bundle_would_give_more_rights_or_no_volume_has_none_and_the_reason_is_told() {
    let told = |description: &Description| {
        let settings = Settings::default();
        let operator = Operator::new(description, &settings).unwrap();
        let olm = RENDERERS.iter().find(|renderer| renderer.name == "olm").unwrap();
        (olm.render)(&operator).map_err(|error| error.to_string()).map(|files| files.len())
    };
    let begins = "shop has no bundle for the Operator Lifecycle Manager: ";
    let limited = told(&description()).unwrap_err();
    assert_eq!(
        limited,
        format!(
            "{begins}its rights to secrets are limited to namespace \"vault\"; its chart and manifests install it"
        )
    );
    assert!(told(&server()).unwrap_err().starts_with(&format!("{begins}it keeps something on a volume")));
    assert!(told(&unlimited(description())).is_ok());
}

#[test]
fn a_program_of_a_crate_with_several_says_itself_what_it_is_for() {
    let mut description = unlimited(description());
    description.about = Some("Sells things".to_owned());
    let mut settings = Settings::default();
    settings.about = Some("All programs of the crate".to_owned());
    let about = |description: &Description| {
        let operator = Operator::new(description, &settings).unwrap();
        let files = rendered(&operator).filter(|file| {
            let ends = ["clusterserviceversion.yaml", "catalog.yaml", "Chart.yaml", "docs/api.md"];
            ends.iter().any(|end| file.path.ends_with(end))
        });
        files.map(|file| file.text.contains("Sells things")).collect::<Vec<_>>()
    };
    assert_eq!(about(&description), [false; 4]);
    description.run.program = Some("shops".to_owned());
    assert_eq!(about(&description), [true; 4]);
}

#[test]
fn webhooks_have_a_port_a_service_and_a_way_through_the_network_policy() {
    let mut description = description();
    description.webhook_port = Some(9443);
    description.definitions[0]["spec"]["conversion"] = json!({
        "strategy": "Webhook",
        "webhook": {
            "clientConfig": {"service": {"name": "shop-webhook", "namespace": "default", "path": "/convert"}},
            "conversionReviewVersions": ["v1"],
        },
    });
    let files = render(&description);
    let install = objects(&files["install.yaml"]);
    let find = |kind: &str, name: &str| {
        let is_it = |object: &&Value| object["kind"] == kind && object["metadata"]["name"] == name;
        install.iter().find(is_it).unwrap_or_else(|| panic!("no {kind} {name}")).clone()
    };
    let service = find("Service", "shop-webhook");
    assert_eq!(
        service["spec"]["ports"],
        json!([{"name": "webhook", "port": 443, "targetPort": "webhook", "protocol": "TCP"}])
    );
    let deployment = find("Deployment", "shop");
    let ports = &deployment["spec"]["template"]["spec"]["containers"][0]["ports"];
    assert_eq!(ports[0], json!({"name": "webhook", "containerPort": 9443, "protocol": "TCP"}));
    let policy = find("NetworkPolicy", "shop");
    assert_eq!(policy["spec"]["ingress"][0]["ports"][0]["port"], 9443);
    // Conversion is asked for where the operator is going to run.
    let namespace = "/spec/conversion/webhook/clientConfig/service/namespace";
    let definition = install.iter().find(|object| object["kind"] == "CustomResourceDefinition").unwrap();
    assert_eq!(definition.pointer(namespace), Some(&json!("shop-system")));
    let template = files.iter().find(|(path, _)| path.starts_with("chart/templates/crds/")).unwrap().1;
    assert!(template.contains("namespace: {{ .Release.Namespace }}"), "{template}");
    for path in ["chart/templates/service-webhook.yaml", "chart/templates/deployment.yaml"] {
        assert!(files[path].contains("webhook"), "{}", files[path]);
    }
    assert!(files["chart/templates/networkpolicy.yaml"].contains("- port: 9443"));
    assert!(!render(&self::description()).contains_key("chart/templates/service-webhook.yaml"));
}
