//! A real kube-apiserver in the place of ours.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use http::HeaderValue;
use http_body_util::BodyExt;
use tokio::task::spawn_blocking;
use watchkeeper_apiserver::authentication::Identity;
use watchkeeper_apiserver::front::{Body, Request, Response};
use watchkeeper_connection::Connection;

use crate::entrance::Broken;
use crate::etcd;
use crate::pace::{self, Traffic};

/// Names a directory with one directory for each server, as `bench/peers/start DIRECTORY/kubeconfig DIRECTORY` makes it.
const VARIABLE: &str = "WATCHKEEPER_REAL";
/// The context in a kubeconfig of `bench/peers/start`. No other server is ever emptied.
const CONTEXT: &str = "peers";
/// How long to wait for a server that nobody else uses.
const TIMEOUT: Duration = Duration::from_secs(1800);

/// A real server that this environment has for itself, emptied.
pub(crate) struct Real {
    connection: Connection,
    /// Whether requests come from whoever sends them, or all from the administrator.
    roles: bool,
    traffic: Arc<Traffic>,
    /// Nobody else uses the server as long as this is locked.
    _lock: File,
}

/// Where the real servers are, if there are any.
pub(crate) fn servers() -> Option<PathBuf> {
    std::env::var_os(VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from)
}

impl Real {
    /// Takes a server that nobody uses and empties it.
    pub(crate) async fn claim(servers: PathBuf, roles: bool) -> Result<Self, String> {
        let traffic = pace::keep();
        let trip = traffic.begin();
        let claimed = spawn_blocking(move || claim(&servers)).await.map_err(|error| error.to_string())?;
        let (directory, lock) = claimed?;
        let kubeconfig = directory.join("kubeconfig");
        let connection = Connection::from_kubeconfig(&kubeconfig, Some(CONTEXT)).await;
        let connection = connection.map_err(|error| error.to_string())?;
        etcd::empty(&directory).await?;
        drop(trip);
        Ok(Self { connection, roles, traffic, _lock: lock })
    }

    pub(crate) async fn call(&self, request: Request, identity: Identity) -> Result<Response, Broken> {
        let trip = self.traffic.begin();
        let watches = request.uri().query().is_some_and(|query| query.contains("watch="));
        let (mut parts, body) = request.into_parts();
        // It came another way than it goes on.
        for header in ["host", "content-length", "transfer-encoding"] {
            parts.headers.remove(header);
        }
        if self.roles {
            impersonate(&mut parts.headers, &identity);
        }
        let body = body.collect().await.map_err(|_| Broken::Reset)?.to_bytes();
        let request = http::Request::from_parts(parts, body);
        let answer = self.connection.send(request).await.map_err(|_| Broken::Reset)?;
        // What is read to its end is under way until then; a watch only when it says something.
        let trip = (!watches).then_some(trip);
        let traffic = Arc::clone(&self.traffic);
        Ok(answer.map(|body| {
            Body::wrap(body.map_frame(move |frame| {
                let _under_way = &trip;
                traffic.note();
                frame
            }))
        }))
    }
}

/// Has the administrator act for somebody else.
fn impersonate(headers: &mut http::HeaderMap, identity: &Identity) {
    let value = |text: &str| HeaderValue::from_str(text).ok();
    if let Some(user) = value(&identity.user) {
        headers.insert("impersonate-user", user);
    }
    for group in identity.groups.iter().filter_map(|group| value(group)) {
        headers.append("impersonate-group", group);
    }
}

/// Waits for a server that nobody uses.
fn claim(servers: &Path) -> Result<(PathBuf, File), String> {
    let told = |error: std::io::Error| format!("{VARIABLE}={}: {error}", servers.display());
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let mut found = 0;
        for entry in std::fs::read_dir(servers).map_err(told)? {
            let directory = entry.map_err(told)?.path();
            if !directory.join("kubeconfig").exists() {
                continue;
            }
            found += 1;
            let lock = File::create(directory.join("lock")).map_err(told)?;
            if lock.try_lock().is_ok() {
                return Ok((directory, lock));
            }
        }
        if found == 0 {
            return Err(format!("{VARIABLE}={}: no server is there", servers.display()));
        }
        if Instant::now() > deadline {
            return Err(format!("{VARIABLE}={}: none of {found} servers is free", servers.display()));
        }
        thread::sleep(Duration::from_millis(20));
    }
}
