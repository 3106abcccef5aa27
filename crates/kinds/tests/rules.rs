//! What is refused, and what is not, in the words of the real server. Many more cases are in `conformance/differential`.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use serde_json::{Value, json};

/// What is wrong with an object that is created.
fn problems(mut object: Value) -> Vec<String> {
    let api_version = object["apiVersion"].as_str().unwrap();
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let kind = watchkeeper_kinds::find_kind(group, version, object["kind"].as_str().unwrap()).unwrap();
    kind.coerce(&mut object).unwrap();
    kind.default(&mut object);
    kind.prepare_for_create(&mut object);
    kind.validate(&object, None).iter().map(ToString::to_string).collect()
}

fn stateful_set(pod: Value) -> Value {
    let claim = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
    json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "s", "namespace": "n"},
        "spec": {
            "serviceName": "s", "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": pod},
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim}],
        },
    })
}

fn endpoints(subset: Value) -> Vec<String> {
    let metadata = json!({"name": "e", "namespace": "n"});
    problems(json!({"apiVersion": "v1", "kind": "Endpoints", "metadata": metadata, "subsets": [subset]}))
}

#[test]
fn containers_of_a_stateful_set_mount_its_claims() {
    let mount = json!([{"name": "data", "mountPath": "/data"}]);
    let container = |name: &str| json!({"name": name, "image": "x", "volumeMounts": mount});
    let pod = json!({"initContainers": [container("i")], "containers": [container("c")]});
    assert_eq!(problems(stateful_set(pod)), [""; 0]);
    let device =
        json!({"name": "c", "image": "x", "volumeDevices": [{"name": "data", "devicePath": "/dev/x"}]});
    assert_eq!(problems(stateful_set(json!({"containers": [device]}))), [""; 0]);
    let other = json!({"name": "c", "image": "x", "volumeMounts": [{"name": "other", "mountPath": "/data"}]});
    let said = r#"spec.template.spec.containers[0].volumeMounts[0].name: Not found: "other""#;
    assert_eq!(problems(stateful_set(json!({"containers": [other]}))), [said]);
}

#[test]
fn a_claim_hides_a_volume_of_the_same_name() {
    let device =
        json!({"name": "c", "image": "x", "volumeDevices": [{"name": "data", "devicePath": "/dev/x"}]});
    let pod = json!({"containers": [device], "volumes": [{"name": "data", "emptyDir": {}}]});
    assert_eq!(problems(stateful_set(pod)), [""; 0]);
}

#[test]
fn endpoints_have_addresses_that_others_can_reach() {
    let good = json!({"addresses": [{"ip": "192.0.2.1"}], "ports": [{"port": 80}]});
    assert_eq!(endpoints(good), [""; 0]);
    let none = "subsets[0]: Required value: must specify `addresses` or `notReadyAddresses`";
    assert_eq!(endpoints(json!({"ports": [{"port": 80}]})), [none]);
    for (ip, said) in [
        ("999.1.1.1", "must be a valid IP address"),
        ("010.0.0.1", "must not have leading 0s"),
        ("127.0.0.1", "may not be in the loopback range (127.0.0.0/8, ::1/128)"),
        ("fe80::1", "may not be in the link-local range (169.254.0.0/16, fe80::/10)"),
        ("224.0.0.1", "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"),
        ("0.0.0.0", "may not be unspecified (0.0.0.0)"),
    ] {
        for list in ["addresses", "notReadyAddresses"] {
            let found = endpoints(json!({list: [{"ip": ip}]}));
            let expected = format!(r#"subsets[0].{list}[0].ip: Invalid value: "{ip}": {said}"#);
            assert!(found.contains(&expected), "{ip}: {found:?}");
        }
    }
}

#[test]
fn ports_of_endpoints_have_numbers_protocols_and_names() {
    let of = |ports: Value| endpoints(json!({"addresses": [{"ip": "192.0.2.1"}], "ports": ports}));
    let number = "subsets[0].ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive";
    assert_eq!(of(json!([{"port": 0}])), [number]);
    let protocol =
        r#"subsets[0].ports[0].protocol: Unsupported value: "X": supported values: "SCTP", "TCP", "UDP""#;
    assert_eq!(of(json!([{"port": 1, "protocol": "X"}])), [protocol]);
    let name = "subsets[0].ports[1].name: Required value";
    assert_eq!(of(json!([{"name": "a", "port": 1}, {"port": 2}])), [name]);
}

#[test]
fn an_apiservice_is_called_what_it_serves() {
    let of = |spec: Value| {
        let metadata = json!({"name": "v1.example.com"});
        problems(
            json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": metadata, "spec": spec}),
        )
    };
    let spec = |group: &str| json!({"group": group, "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1});
    assert_eq!(of(spec("example.com")), [""; 0]);
    let said = r#"metadata.name: Invalid value: "v1.example.com": must be `spec.version+"."+spec.group`: "v1.other""#;
    assert_eq!(of(spec("other")), [said]);
    let mut heavy = spec("example.com");
    heavy["groupPriorityMinimum"] = json!(20_001);
    let said = "spec.groupPriorityMinimum: Invalid value: 20001: must be positive and less than 20000";
    assert_eq!(of(heavy), [said]);
}
