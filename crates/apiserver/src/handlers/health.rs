//! Whether the server is well, and which version it is.

use serde_json::{Value, json};

use crate::handlers::call::Call;
use crate::handlers::reply::Reply;
use crate::object::order::VERSION;
use crate::registry::Registry;
use crate::request::query::Query;
use crate::resource::api_version;
use crate::server::Server;

/// The version of Kubernetes whose API this is.
const MINOR: &str = "36";

/// What is looked at, by the names that kube-apiserver has for it: clients and probes ask for some of these. What a name stands
/// for has been done here before the first request is answered, except `etcd`, which is the storage.
const CHECKS: &[&str] = &[
    "ping",
    "log",
    "loopback-serving-certificate",
    "etcd",
    "poststarthook/start-apiserver-admission-initializer",
    "poststarthook/generic-apiserver-start-informers",
    "poststarthook/priority-and-fairness-config-consumer",
    "poststarthook/priority-and-fairness-filter",
    "poststarthook/storage-object-count-tracker-hook",
    "poststarthook/start-apiextensions-informers",
    "poststarthook/start-apiextensions-controllers",
    "poststarthook/crd-informer-synced",
    "poststarthook/start-system-namespaces-controller",
    "poststarthook/peer-endpoint-reconciler-controller",
    "poststarthook/start-cluster-authentication-info-controller",
    "poststarthook/start-kube-apiserver-identity-lease-controller",
    "poststarthook/start-kube-apiserver-identity-lease-garbage-collector",
    "poststarthook/storage-readiness",
    "poststarthook/start-legacy-token-tracking-controller",
    "poststarthook/start-service-ip-repair-controllers",
    "poststarthook/rbac/bootstrap-roles",
    "poststarthook/scheduling/bootstrap-system-priority-classes",
    "poststarthook/priority-and-fairness-config-producer",
    "poststarthook/bootstrap-controller",
    "poststarthook/start-kubernetes-service-cidr-controller",
    "poststarthook/start-kube-aggregator-informers",
    "poststarthook/apiservice-status-local-available-controller",
    "poststarthook/apiservice-status-remote-available-controller",
    "poststarthook/apiservice-registration-controller",
    "poststarthook/apiservice-discovery-controller",
    "poststarthook/kube-apiserver-autoregistration",
    "autoregister-completion",
    "poststarthook/apiservice-openapi-controller",
    "poststarthook/apiservice-openapiv3-controller",
];

/// What `/readyz` does not look at.
const LIVE_ONLY: &str = "loopback-serving-certificate";

/// What only `/readyz` looks at, after the check of the storage, and at the end.
const READY: ([&str; 2], &str) = (["etcd-readiness", "informer-sync"], "shutdown");

/// What is said of a storage that takes nothing more, by `/healthz`, which fails, and by `/readyz`, which does not: clients still read, and
/// have to delete something. Mentioned only if it fails.
const SPACE: &str = "etcd-space";

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
        "/version" | "/version/" => Reply::ordered(200, &version(), &VERSION),
        "/metrics" => Reply::text(200, server.metrics.text(&server.storage.stats()))
            .typed("application/openmetrics-text; version=1.0.0; charset=utf-8"),
        path => {
            let Some((health, check)) = split(path) else { return Reply::no_such_page() };
            checks(server, health, check, &call.query)
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

/// The names of the checks, in the order of kube-apiserver. Those of background tasks of this server are known, and are mentioned
/// only if they fail.
fn names(health: &str) -> Vec<&'static str> {
    let (after_storage, last) = READY;
    let mut names = CHECKS.to_vec();
    if health == "readyz" {
        names.retain(|name| *name != LIVE_ONLY);
        let at = names.iter().position(|name| *name == "etcd").map_or(names.len(), |at| at + 1);
        names.splice(at..at, after_storage);
        names.push(last);
    }
    names
}

/// `/livez` does not ask for tasks that do not recover: what they stumble over is stored, and a restart would not remove it.
fn checks(server: &Server, health: &str, check: Option<&str>, query: &Query) -> Reply {
    let stats = server.storage.stats();
    let halted = stats.halted.is_some();
    let full = stats.cluster.and_then(|cluster| cluster.full);
    let stopping = server.is_stopping();
    let tasks = if health == "livez" { Vec::new() } else { tasks(server) };
    let failed = |name: &str| match name {
        "etcd" | "etcd-readiness" => halted,
        "shutdown" => stopping,
        SPACE => full.is_some(),
        name => tasks.iter().any(|(task, failed)| task == name && *failed),
    };
    let names = names(health);
    if let Some(name) = check {
        let is_known = names.contains(&name) || name == SPACE || tasks.iter().any(|(task, _)| task == name);
        return match is_known {
            true if name == SPACE && failed(name) => {
                Reply::text(500, format!("{}\n", space(full.as_deref())))
            }
            true if failed(name) => Reply::text(500, "internal server error: not healthy\n"),
            true => Reply::plain(200, "ok"),
            false => Reply::no_such_page(),
        };
    }
    let mut excluded: Vec<&str> = query.all("exclude").collect();
    let mut lines = String::new();
    let mut is_well = true;
    let failing = tasks.iter().filter(|(_, failed)| *failed).map(|(task, _)| task.as_str());
    for name in names.into_iter().chain(failing) {
        let before = excluded.len();
        excluded.retain(|excluded| *excluded != name);
        lines.push_str(&if excluded.len() < before {
            format!("[+]{name} excluded: ok\n")
        } else if failed(name) {
            is_well = false;
            format!("[-]{name} failed: reason withheld\n")
        } else {
            format!("[+]{name} ok\n")
        });
    }
    if let Some(reason) = &full
        && health != "livez"
    {
        let before = excluded.len();
        excluded.retain(|excluded| *excluded != SPACE);
        let is_excluded = excluded.len() < before;
        is_well = is_well && (is_excluded || health != "healthz");
        lines.push_str(&match is_excluded {
            true => format!("[+]{SPACE} excluded: ok\n"),
            false => format!("[-]{SPACE} failed: {}\n", space(Some(reason))),
        });
    }
    if !excluded.is_empty() {
        excluded.sort_unstable();
        excluded.dedup();
        let quoted: Vec<String> = excluded.into_iter().map(watchkeeper_go::quote).collect();
        let quoted = quoted.join(",");
        lines.push_str(&format!("warn: some health checks cannot be excluded: no matches for {quoted}\n"));
    }
    match (is_well, query.get("verbose").is_some()) {
        (true, false) => Reply::text(200, "ok"),
        (true, true) => Reply::text(200, format!("{lines}{health} check passed\n")),
        (false, _) => Reply::text(500, format!("{lines}{health} check failed\n")),
    }
}

/// What to do about a storage that takes nothing more.
fn space(reason: Option<&str>) -> String {
    let reason = reason.unwrap_or_default();
    format!("{reason}: reads and deletions go on; compact, defragment and take back the alarm")
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
