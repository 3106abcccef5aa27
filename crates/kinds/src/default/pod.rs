use super::{Fields, add_missing, object, objects, set, text};
use serde_json::{Value, json};

/// What only pods get, not templates of pods: requests as large as the limits, ports of the host.
pub(super) fn pod(fields: &mut Fields) {
    let Some(spec) = object(fields, "spec") else { return };
    set(spec, "enableServiceLinks", true);
    let is_on_host = spec.get("hostNetwork") == Some(&Value::Bool(true));
    for list in ["containers", "initContainers"] {
        for container in objects(spec, list) {
            if let Some(resources) = object(container, "resources") {
                let limits = resources.get("limits").cloned().unwrap_or_default();
                add_missing(resources, "requests", &limits);
            }
            for port in objects(container, "ports").filter(|_| is_on_host) {
                let own = port.get("containerPort").cloned().unwrap_or_default();
                set(port, "hostPort", own);
            }
        }
    }
    if let Some(Value::Object(resources)) = spec.get_mut("resources") {
        let limits = resources.get("limits").cloned().unwrap_or_default();
        add_missing(resources, "requests", &limits);
    }
}

pub(super) fn container(fields: &mut Fields) {
    let policy = pull_policy(text(fields, "image"));
    set(fields, "imagePullPolicy", policy);
}

pub(super) fn volume(fields: &mut Fields) {
    if fields.keys().all(|name| name == "name") {
        fields.insert("emptyDir".into(), json!({}));
    }
    if let Some(Value::Object(image)) = fields.get_mut("image") {
        let policy = pull_policy(text(image, "reference"));
        set(image, "pullPolicy", policy);
    }
}

/// An image that is the latest by its tag, or by having neither tag nor digest, is always pulled.
fn pull_policy(image: &str) -> &'static str {
    let name = image.rsplit('/').next().unwrap_or_default();
    let (name, digest) = name.split_once('@').map_or((name, None), |(name, digest)| (name, Some(digest)));
    let is_latest = match name.split_once(':') {
        Some((_, tag)) => tag == "latest",
        None => digest.is_none() && !image.is_empty() && !image.contains(char::is_whitespace),
    };
    if is_latest { "Always" } else { "IfNotPresent" }
}
