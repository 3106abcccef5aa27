//! The rules of the level `restricted`, beyond those of `baseline`.

use std::collections::BTreeSet;

use serde_json::Value;

use super::baseline::bad_seccomp;
use super::checks::{Pod, Violation, containers, plural, quoted, setters};

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

pub(super) fn allow_privilege_escalation(pod: Pod<'_>) -> Option<Violation> {
    let names = pod.which(|container| container["securityContext"]["allowPrivilegeEscalation"] != false);
    if names.is_empty() {
        return None;
    }
    let detail = format!("{} must set securityContext.allowPrivilegeEscalation=false", containers(&names));
    Violation::new("allowPrivilegeEscalation != false", detail)
}

pub(super) fn capabilities(pod: Pod<'_>) -> Option<Violation> {
    let capabilities =
        |container: &Value, list: &str| container["securityContext"]["capabilities"][list].clone();
    let keeps = pod.which(|container| !list(&capabilities(container, "drop")).any(|name| name == "ALL"));
    fn added(container: &Value) -> impl Iterator<Item = &str> {
        let all = list(&container["securityContext"]["capabilities"]["add"]).map(text);
        all.filter(|name| *name != "NET_BIND_SERVICE")
    }
    let adds = pod.which(|container| added(container).next().is_some());
    let mut wrong = Vec::new();
    if !keeps.is_empty() {
        wrong.push(format!("{} must set securityContext.capabilities.drop=[\"ALL\"]", containers(&keeps)));
    }
    if !adds.is_empty() {
        let values: BTreeSet<&str> = pod.containers().flat_map(added).collect();
        wrong.push(format!(
            "{} must not include {} in securityContext.capabilities.add",
            containers(&adds),
            quoted(values)
        ));
    }
    if wrong.is_empty() { None } else { Violation::new("unrestricted capabilities", wrong.join("; ")) }
}

/// The kinds of volumes that are allowed.
const VOLUMES: [&str; 9] = [
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
];

/// The kinds of volumes that are known and not allowed.
const OTHER_VOLUMES: [&str; 21] = [
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "gitRepo",
    "nfs",
    "iscsi",
    "glusterfs",
    "rbd",
    "flexVolume",
    "cinder",
    "cephfs",
    "flocker",
    "fc",
    "azureFile",
    "vsphereVolume",
    "quobyte",
    "azureDisk",
    "photonPersistentDisk",
    "portworxVolume",
    "scaleIO",
    "storageos",
];

pub(super) fn volumes(pod: Pod<'_>) -> Option<Violation> {
    let is = |volume: &Value, kind: &str| volume.get(kind).is_some_and(Value::is_object);
    let bad: Vec<&Value> =
        list(&pod.spec["volumes"]).filter(|volume| !VOLUMES.iter().any(|kind| is(volume, kind))).collect();
    if bad.is_empty() {
        return None;
    }
    let kind = |volume: &&Value| OTHER_VOLUMES.into_iter().find(|kind| is(volume, kind)).unwrap_or("unknown");
    let kinds: BTreeSet<&str> = bad.iter().map(kind).collect();
    let detail = format!(
        "{} {} {} {} {}",
        plural("volume", "volumes", bad.len()),
        quoted(bad.iter().map(|volume| text(&volume["name"]))),
        plural("uses", "use", bad.len()),
        plural("restricted volume type", "restricted volume types", kinds.len()),
        quoted(kinds)
    );
    Violation::new("restricted volume types", detail)
}

pub(super) fn run_as_non_root(pod: Pod<'_>) -> Option<Violation> {
    let said = |holder: &Value| holder["securityContext"]["runAsNonRoot"].as_bool();
    let by_pod = said(pod.spec);
    let reason = "runAsNonRoot != true";
    let explicit = pod.which(|container| said(container) == Some(false));
    if let Some(who) = setters(by_pod == Some(false), &explicit) {
        return Violation::new(reason, format!("{who} must not set securityContext.runAsNonRoot=false"));
    }
    let silent = pod.which(|container| said(container).is_none() && by_pod != Some(true));
    if silent.is_empty() {
        return None;
    }
    let detail = format!("pod or {} must set securityContext.runAsNonRoot=true", containers(&silent));
    Violation::new(reason, detail)
}

pub(super) fn run_as_user(pod: Pod<'_>) -> Option<Violation> {
    let is_root = |holder: &Value| holder["securityContext"]["runAsUser"] == 0;
    let who = setters(is_root(pod.spec), &pod.which(is_root))?;
    Violation::new("runAsUser=0", format!("{who} must not set runAsUser=0"))
}

pub(super) fn seccomp_profile(pod: Pod<'_>) -> Option<Violation> {
    if let Some(violation) = super::baseline::seccomp_profile(pod) {
        return Some(violation);
    }
    let sets = |holder: &Value| {
        let context = &holder["securityContext"];
        context["seccompProfile"].is_object() && bad_seccomp(context).is_none()
    };
    let silent = pod.which(|container| !sets(container) && !sets(pod.spec));
    if silent.is_empty() {
        return None;
    }
    let detail = format!(
        "pod or {} must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\"",
        containers(&silent)
    );
    Violation::new("seccompProfile", detail)
}
