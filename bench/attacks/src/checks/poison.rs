//! A pod that cannot be deleted by adding up its times: does garbage collection go on?

use std::time::Duration;

use http::StatusCode;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use watchkeeper_bench_target::{Ask, End, OpenFiles, Program, Result};

use crate::report::Finding;
use crate::site::Site;

/// How long a dependent may stay after its owner is gone. The collector of kube-controller-manager begins with waits of its own.
const TIMEOUT: Duration = Duration::from_secs(40);
const POISON: &str = "/api/v1/namespaces/x/pods/poison";
const CONFIG_MAPS: &str = "/api/v1/namespaces/yy/configmaps";

/// Poisons a server, and looks whether it still collects, before and after a restart.
pub(crate) async fn check(name: &str, program: &Program) -> Result<Vec<Finding>> {
    let program = match program.clone() {
        Program::Peer(peer) => Program::Peer(peer.controllers("garbage-collector-controller")),
        other => other,
    };
    let mut site = Site::bare(&program, OpenFiles::AsHere).await?;
    site.namespace("x").await?;
    site.namespace("yy").await?;
    let mut findings = Vec::new();
    let mut find = |what: &str, answer: String, good| {
        let (what, who, server) = (what.into(), "editor of a namespace".into(), name.into());
        findings.push(Finding { what, who, server, answer, good });
    };

    let body = poison().to_string();
    let (status, _) = site.target.connection.answer(Ask::post("/api/v1/namespaces/x/pods", &body)).await?;
    find(
        "a pod with an endless grace period and a missing owner",
        status.as_u16().to_string(),
        !status.is_server_error(),
    );
    // The collector has met it when it is marked; one that dies of it does not mark it.
    let marked = Instant::now() + Duration::from_secs(5);
    while Instant::now() < marked && !is_marked(&mut site).await? {
        sleep(Duration::from_millis(100)).await;
    }
    for (what, restart) in [("objects are collected afterwards", false), ("and after a restart", true)] {
        if restart {
            site.target.restart(End::Asked).await?;
        }
        let collected = collects(&mut site, if restart { "second" } else { "first" }).await?;
        find(what, if collected { "yes" } else { "no" }.into(), collected);
    }
    let (status, _) = site.target.connection.answer(Ask::get("/readyz")).await?;
    find("`GET /readyz` after that", status.as_u16().to_string(), status == StatusCode::OK);
    let path = format!("{POISON}?gracePeriodSeconds=9223372036854775807");
    let (status, _) = site.target.connection.answer(Ask::delete(&path)).await?;
    find(
        "`DELETE pod?gracePeriodSeconds=9223372036854775807`",
        status.as_u16().to_string(),
        !status.is_server_error(),
    );
    Ok(findings)
}

fn poison() -> Value {
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "poison", "ownerReferences": [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "nobody", "uid": "6f1d7a54-0000-4000-8000-000000000000"},
        ]},
        "spec": {"nodeName": "node", "terminationGracePeriodSeconds": i64::MAX,
            "containers": [{"name": "c", "image": "i"}]}})
}

async fn is_marked(site: &mut Site) -> Result<bool> {
    let (status, pieces) = site.target.connection.answer(Ask::get(POISON)).await?;
    let pod: Value = serde_json::from_slice(&pieces.concat())?;
    Ok(status == StatusCode::NOT_FOUND || pod["metadata"]["deletionTimestamp"].is_string())
}

/// Whether a dependent goes when its owner does.
async fn collects(site: &mut Site, name: &str) -> Result<bool> {
    let owner = site.post(CONFIG_MAPS, &json!({"metadata": {"name": name}})).await?;
    let reference =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": owner["metadata"]["uid"]});
    let dependent =
        json!({"metadata": {"name": format!("{name}-dependent"), "ownerReferences": [reference]}});
    site.post(CONFIG_MAPS, &dependent).await?;
    site.target.connection.call(Ask::delete(&format!("{CONFIG_MAPS}/{name}"))).await?;
    let (path, end) = (format!("{CONFIG_MAPS}/{name}-dependent"), Instant::now() + TIMEOUT);
    while Instant::now() < end {
        if site.target.connection.answer(Ask::get(&path)).await?.0 == StatusCode::NOT_FOUND {
            return Ok(true);
        }
        sleep(Duration::from_millis(200)).await;
    }
    Ok(false)
}
