//! Empties a real server by way of its etcd: nothing that a test left behind, finalizers and all, stands in the way.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use watchkeeper_connection::{Config, Connection};
use watchkeeper_go::base64;

/// What the server itself writes whenever it likes.
const ITS_OWN: &[&str] = &[
    "/registry/apiregistration.k8s.io/",
    "/registry/configmaps/kube-system/",
    "/registry/ipaddresses/",
    "/registry/leases/kube-system/",
    "/registry/masterleases/",
    "/registry/ranges/",
];
/// The definitions of kinds go after the objects of these kinds.
const DEFINITIONS: &str = "/registry/apiextensions.k8s.io/customresourcedefinitions/";
/// How many keys etcd deletes in one transaction.
const AT_ONCE: usize = 128;

/// Deletes everything that was not there when this was called for the first time.
pub(crate) async fn empty(directory: &Path) -> Result<(), String> {
    let url = fs::read_to_string(directory.join("etcd.url"));
    let url = url.map_err(|error| format!("{}: {error}", directory.display()))?;
    let etcd = Config::new(url.trim()).and_then(Connection::new).map_err(|error| error.to_string())?;
    let mut keys = keys(&etcd).await?;
    let file = directory.join("first-keys");
    let Ok(first) = fs::read_to_string(&file) else {
        return fs::write(&file, keys.join("\n")).map_err(|error| error.to_string());
    };
    let first: HashSet<&str> = first.lines().collect();
    keys.retain(|key| !first.contains(key.as_str()) && !ITS_OWN.iter().any(|own| key.starts_with(own)));
    keys.sort_by_key(|key| key.starts_with(DEFINITIONS));
    for keys in keys.chunks(AT_ONCE) {
        let delete = |key: &String| json!({"request_delete_range": {"key": base64::encode(key)}});
        ask(&etcd, "txn", &json!({"success": keys.iter().map(delete).collect::<Vec<_>>()})).await?;
    }
    Ok(())
}

async fn keys(etcd: &Connection) -> Result<Vec<String>, String> {
    let range = json!({
        "key": base64::encode("/registry/"), "range_end": base64::encode("/registry0"), "keys_only": true,
    });
    let found = ask(etcd, "range", &range).await?;
    let key = |pair: &Value| String::from_utf8(base64::decode(pair["key"].as_str()?).ok()?).ok();
    Ok(found["kvs"].as_array().into_iter().flatten().filter_map(key).collect())
}

async fn ask(etcd: &Connection, what: &str, body: &Value) -> Result<Value, String> {
    let request = http::Request::post(format!("/v3/kv/{what}")).header("content-type", "application/json");
    let request = request.body(body.to_string().into_bytes()).map_err(|error| error.to_string())?;
    let answer = etcd.request(request).await.map_err(|error| format!("etcd: {error}"))?;
    serde_json::from_slice(&answer).map_err(|error| format!("etcd: {error}"))
}
