//! What each rule finds, in the words of upstream.

use serde_json::{Value, json};

use super::checks::{Pod, details, violations};
use super::policy::{Level, Standard, Version};

fn found(level: Level, version: Version, metadata: &Value, spec: &Value) -> String {
    details(&violations(&Standard { level, version }, Pod { metadata, spec }))
}

fn baseline(spec: Value) -> String {
    found(Level::Baseline, Version::Latest, &Value::Null, &spec)
}

fn restricted(spec: Value) -> String {
    found(Level::Restricted, Version::Latest, &Value::Null, &spec)
}

/// A spec that everything allows.
fn tame() -> Value {
    json!({
        "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [{
            "name": "c",
            "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
        }],
    })
}

fn tame_but(pointer: &str, value: Value) -> Value {
    let mut spec = tame();
    let (parent, field) = pointer.rsplit_once('/').unwrap();
    spec.pointer_mut(parent).unwrap()[field] = value;
    spec
}

#[test]
fn a_careful_pod_is_allowed_everywhere_and_a_careless_one_is_told_everything() {
    assert_eq!(restricted(tame()), "");
    assert_eq!(baseline(json!({"containers": [{"name": "a"}, {"name": "b"}]})), "");
    assert_eq!(
        restricted(json!({"containers": [{"name": "a"}, {"name": "b"}]})),
        "allowPrivilegeEscalation != false (containers \"a\", \"b\" must set securityContext.allowPrivilegeEscalation=false), \
         unrestricted capabilities (containers \"a\", \"b\" must set securityContext.capabilities.drop=[\"ALL\"]), \
         runAsNonRoot != true (pod or containers \"a\", \"b\" must set securityContext.runAsNonRoot=true), \
         seccompProfile (pod or containers \"a\", \"b\" must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\")"
    );
    let wild = json!({"privileged": true});
    assert_eq!(
        found(
            Level::Privileged,
            Version::Latest,
            &Value::Null,
            &json!({"containers": [{"securityContext": wild}]})
        ),
        ""
    );
}

#[test]
fn the_rules_of_the_baseline() {
    let container = |fields: Value| {
        let mut container = json!({"name": "c"});
        container.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        json!({"containers": [container]})
    };
    for (spec, expected) in [
        (json!({"hostNetwork": true, "hostIPC": true}), "host namespaces (hostNetwork=true, hostIPC=true)"),
        (json!({"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}), "hostPath volumes (volume \"v\")"),
        (
            container(json!({"ports": [{"hostPort": 80}, {"hostPort": 443}, {"hostPort": 0}]})),
            "hostPort (container \"c\" uses hostPorts 443, 80)",
        ),
        (
            container(json!({"securityContext": {"privileged": true}})),
            "privileged (container \"c\" must not set securityContext.privileged=true)",
        ),
        (
            container(
                json!({"securityContext": {"capabilities": {"add": ["SYS_ADMIN", "CHOWN", "NET_RAW"]}}}),
            ),
            "non-default capabilities (container \"c\" must not include \"NET_RAW\", \"SYS_ADMIN\" in securityContext.capabilities.add)",
        ),
        (
            container(json!({"securityContext": {"procMount": "Unmasked"}})),
            "procMount (container \"c\" must not set securityContext.procMount to \"Unmasked\")",
        ),
        (
            container(
                json!({"livenessProbe": {"httpGet": {"host": "h"}}, "lifecycle": {"preStop": {"tcpSocket": {"host": "g"}}}}),
            ),
            "probe or lifecycle host (container \"c\" uses probe or lifecycle hosts \"g\", \"h\")",
        ),
        (
            json!({"securityContext": {"seLinuxOptions": {"type": "spc_t", "user": "u"}}}),
            "seLinuxOptions (pod set forbidden securityContext.seLinuxOptions: type \"spc_t\"; user may not be set)",
        ),
        (
            json!({"securityContext": {"seccompProfile": {"type": "Unconfined"}}}),
            "seccompProfile (pod must not set securityContext.seccompProfile.type to \"Unconfined\")",
        ),
        (
            json!({"securityContext": {"sysctls": [{"name": "kernel.msgmax"}]}}),
            "forbidden sysctls (kernel.msgmax)",
        ),
        (
            json!({"securityContext": {"windowsOptions": {"hostProcess": true}}}),
            "hostProcess (pod must not set securityContext.windowsOptions.hostProcess=true)",
        ),
        (
            json!({"securityContext": {"appArmorProfile": {"type": "Unconfined"}}}),
            "forbidden AppArmor profile (pod must not set AppArmor profile type to \"Unconfined\")",
        ),
    ] {
        assert_eq!(baseline(spec), expected);
    }
    let own_users = json!({"hostUsers": false, "containers": [{"name": "c", "securityContext": {"procMount": "Unmasked"}}]});
    assert_eq!(baseline(own_users.clone()), "");
    assert!(restricted(own_users).starts_with("allowPrivilegeEscalation"), "and the mount is told, too");
}

#[test]
fn the_rules_of_the_restricted_level() {
    for (pointer, value, expected) in [
        (
            "/volumes",
            json!([{"name": "a", "nfs": {}}, {"name": "b", "hostPath": {}}, {"name": "c", "emptyDir": {}}]),
            "restricted volume types (volumes \"a\", \"b\" use restricted volume types \"hostPath\", \"nfs\")",
        ),
        (
            "/securityContext/runAsNonRoot",
            json!(false),
            "runAsNonRoot != true (pod must not set securityContext.runAsNonRoot=false)",
        ),
        ("/securityContext/runAsUser", json!(0), "runAsUser=0 (pod must not set runAsUser=0)"),
        (
            "/containers/0/securityContext/capabilities/add",
            json!(["NET_BIND_SERVICE", "CHOWN"]),
            "unrestricted capabilities (container \"c\" must not include \"CHOWN\" in securityContext.capabilities.add)",
        ),
        (
            "/containers/0/securityContext/seccompProfile",
            json!({"type": "Unconfined"}),
            "seccompProfile (container \"c\" must not set securityContext.seccompProfile.type to \"Unconfined\")",
        ),
    ] {
        assert_eq!(restricted(tame_but(pointer, value)), expected);
    }
    assert_eq!(
        restricted(
            json!({"os": {"name": "windows"}, "securityContext": {"runAsNonRoot": true}, "containers": [{"name": "c"}]})
        ),
        ""
    );
}

#[test]
fn older_releases_have_older_rules() {
    let spec = json!({"securityContext": {"sysctls": [{"name": "net.ipv4.tcp_rmem"}]}});
    let at = |minor| found(Level::Baseline, Version::Minor(minor), &Value::Null, &spec);
    assert_eq!(
        (at(31).as_str(), at(32).as_str(), at(99).as_str()),
        ("forbidden sysctls (net.ipv4.tcp_rmem)", "", "")
    );
    let metadata = json!({"annotations": {"seccomp.security.alpha.kubernetes.io/pod": "unconfined"}});
    let at = |minor| found(Level::Baseline, Version::Minor(minor), &metadata, &json!({}));
    assert_eq!(
        at(18),
        "seccompProfile (forbidden annotation seccomp.security.alpha.kubernetes.io/pod=\"unconfined\")"
    );
    assert_eq!(at(19), "");
    let at = |minor| {
        found(Level::Restricted, Version::Minor(minor), &Value::Null, &json!({"containers": [{"name": "c"}]}))
    };
    assert_eq!(
        at(7),
        "runAsNonRoot != true (pod or container \"c\" must set securityContext.runAsNonRoot=true)"
    );
    assert!(!at(21).contains("capabilities") && at(22).contains("capabilities"));
}
