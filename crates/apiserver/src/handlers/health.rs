//! Whether the server is well, and which version it is.

use serde_json::{Value, json};

use crate::handlers::call::Call;
use crate::handlers::reply::Reply;
use crate::registry::Registry;
use crate::resource::api_version;
use crate::server::Server;

/// The version of Kubernetes whose API this is.
const MINOR: &str = "36";

/// What is looked at. Clients ask for some of these by name.
const CHECKS: [&str; 5] = [
    "ping",
    "log",
    "etcd",
    "poststarthook/start-apiextensions-controllers",
    "poststarthook/crd-informer-synced",
];

/// `GET /`.
pub(crate) fn paths(registry: &Registry) -> Value {
    let mut paths = vec!["/api".to_owned(), "/apis".to_owned()];
    for group in &registry.groups {
        let root = if group.name.is_empty() { "/api".to_owned() } else { format!("/apis/{}", group.name) };
        if !group.name.is_empty() {
            paths.push(root);
        }
        for version in &group.versions {
            let below = if group.name.is_empty() { "/api/" } else { "/apis/" };
            paths.push(format!("{below}{}", api_version(&group.name, &version.version)));
        }
    }
    paths.extend(
        ["/healthz", "/livez", "/metrics", "/openapi/v2", "/openapi/v3", "/readyz", "/version"]
            .map(str::to_owned),
    );
    paths.sort();
    json!({"paths": paths})
}

/// Answers `/version`, `/metrics` and the questions after its health.
pub(crate) fn answer(server: &Server, call: &Call, path: &str) -> Reply {
    match path {
        "/version" | "/version/" => Reply::json(200, &version()),
        "/metrics" => Reply::text(200, server.metrics.text(&server.storage.stats()))
            .typed("application/openmetrics-text; version=1.0.0; charset=utf-8"),
        path => {
            let Some((health, check)) = split(path) else { return Reply::no_such_page() };
            checks(server, health, check, call.query.get("verbose").is_some())
        }
    }
}

/// `/livez/etcd` as `livez` and `etcd`.
fn split(path: &str) -> Option<(&str, Option<&str>)> {
    let path = path.strip_prefix('/')?;
    let (health, check) = match path.split_once('/') {
        Some((health, check)) => (health, Some(check)),
        None => (path, None),
    };
    matches!(health, "healthz" | "livez" | "readyz").then_some((health, check))
}

/// What `/readyz` finds wrong, if something is.
pub(crate) fn readiness(server: &Server) -> Result<(), String> {
    let mut failed: Vec<String> = Vec::new();
    if let Some(reason) = server.storage.stats().halted {
        failed.push(format!("storage: {reason}"));
    }
    if server.is_stopping() {
        failed.push("stopping".to_owned());
    }
    failed.extend(tasks(server).into_iter().filter(|(_, failed)| *failed).map(|(task, _)| task));
    if failed.is_empty() { Ok(()) } else { Err(failed.join(", ")) }
}

/// `/livez` does not ask for tasks that do not recover: what they stumble over is stored, and a restart would not remove it.
fn checks(server: &Server, health: &str, check: Option<&str>, verbose: bool) -> Reply {
    let halted = server.storage.stats().halted;
    let ready = health == "readyz";
    let stopping = ready && server.is_stopping();
    let tasks = if health == "livez" { Vec::new() } else { tasks(server) };
    let failed = |name: &str| match name {
        "etcd" => halted.is_some(),
        "shutdown" => stopping,
        name => tasks.iter().any(|(task, failed)| task == name && *failed),
    };
    if let Some(name) = check {
        let is_task = tasks.iter().any(|(task, _)| task == name);
        return match CHECKS.contains(&name) || is_task || (ready && name == "shutdown") {
            true if failed(name) => Reply::text(500, "internal server error: not healthy\n"),
            true => Reply::plain(200, "ok"),
            false => Reply::no_such_page(),
        };
    }
    let names = CHECKS.iter().copied().chain(tasks.iter().map(|(task, _)| task.as_str()));
    let names = names.chain(ready.then_some("shutdown"));
    let mut lines = String::new();
    let mut is_well = true;
    for name in names {
        if failed(name) {
            is_well = false;
            lines.push_str(&format!("[-]{name} failed: reason withheld\n"));
        } else {
            lines.push_str(&format!("[+]{name} ok\n"));
        }
    }
    match (is_well, verbose) {
        (true, false) => Reply::text(200, "ok"),
        (true, true) => Reply::text(200, format!("{lines}{health} check passed\n")),
        (false, _) => Reply::text(500, format!("{lines}{health} check failed\n")),
    }
}

/// The checks of background tasks, and whether they have panicked again and again and not recovered.
fn tasks(server: &Server) -> Vec<(String, bool)> {
    let failing = server.supervisor.failing();
    let tasks = server.supervisor.tasks().into_iter();
    tasks.map(|task| (format!("task/{task}"), failing.contains(&task))).collect()
}

/// The version of Kubernetes that the server says it is, such as `v1.36.0+watchkeeper.0.1.0`.
pub fn release() -> String {
    format!("v1.{MINOR}.0+watchkeeper.{}", env!("CARGO_PKG_VERSION"))
}

fn version() -> Value {
    json!({
        "major": "1",
        "minor": MINOR,
        "emulationMajor": "1",
        "emulationMinor": MINOR,
        "minCompatibilityMajor": "1",
        "minCompatibilityMinor": "35",
        "gitVersion": release(),
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "",
        "goVersion": "",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        }),
    })
}
