//! A server that is a process: it can be killed, and comes back at the same address with what it has stored.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::{Api, Client, Error};
use kube_core::params::{Patch, PatchParams, PostParams, WatchParams};
use serde_json::json;
use tempfile::TempDir;
use watchkeeper::Connection;
use watchkeeper_connection::{Config, Kubeconfig};
use watchkeeper_testkit::kube;

use crate::kinds::map;

/// How much of the past our server remembers: enough for a watch that is never behind.
const HISTORY: &str = "1s";
/// How long anything may take that a server has to do.
const TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) struct Place {
    directory: TempDir,
    server: Server,
}

enum Server {
    Ours { port: u16, process: Option<Child> },
    Real { flags: String },
}

impl Place {
    /// Our binary, as a process.
    pub(crate) async fn ours() -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let server = Server::Ours { port, process: None };
        let mut place = Self { directory: tempfile::tempdir().unwrap(), server };
        place.come_back();
        place
    }

    /// kube-apiserver with these flags besides its usual ones, and an etcd.
    pub(crate) async fn real(flags: &str) -> Self {
        let server = Server::Real { flags: flags.into() };
        let mut place = Self { directory: tempfile::tempdir().unwrap(), server };
        place.come_back();
        place
    }

    /// Starts the server again that was killed, and waits until it is ready.
    pub(crate) fn come_back(&mut self) {
        let kubeconfig = self.kubeconfig();
        match &mut self.server {
            Server::Ours { port, process } => {
                *process = Some(serve(&self.directory.path().join("data"), &kubeconfig, *port));
            }
            Server::Real { flags } => {
                let mut command = Command::new(peers("start"));
                command.arg(&kubeconfig).arg(self.directory.path()).env("PEERS_FLAGS", flags);
                assert!(command.stdout(Stdio::null()).status().unwrap().success(), "the peers do not start");
            }
        }
    }

    /// Kills the server with SIGKILL. etcd, if there is one, lives on.
    pub(crate) fn kill(&mut self) {
        match &mut self.server {
            Server::Ours { process, .. } => end(process),
            Server::Real { .. } => {
                let id = std::fs::read_to_string(self.directory.path().join("apiserver.pid")).unwrap();
                let id = id.trim();
                assert!(Command::new("kill").args(["-KILL", id]).status().unwrap().success());
                let deadline = Instant::now() + TIMEOUT;
                while is_alive(id) {
                    assert!(Instant::now() < deadline, "it does not end");
                    std::thread::sleep(Duration::from_millis(5));
                }
            }
        }
    }

    /// Has the server lose its history up to now, so that no watch can begin at `version`, and waits until that is so.
    pub(crate) async fn forget(&mut self, version: &str) {
        if matches!(self.server, Server::Real { .. }) {
            let etcd = std::fs::read_to_string(self.directory.path().join("etcd.url")).unwrap();
            let etcd = Connection::new(Config::new(etcd.trim()).unwrap()).unwrap();
            let revision = ask(&etcd, "range", json!({"key": "AA=="})).await["header"]["revision"].clone();
            ask(&etcd, "compaction", json!({"revision": revision, "physical": true})).await;
            // What is left is in the memory of the API server.
            self.kill();
            self.come_back();
        }
        let maps: Api<ConfigMap> = Api::namespaced(self.client(), "default");
        maps.create(&PostParams::default(), &map("clock", "0")).await.unwrap();
        let deadline = Instant::now() + TIMEOUT;
        for tick in 1.. {
            // Ours forgets when it writes.
            let patch = Patch::Merge(json!({"data": {"says": tick.to_string()}}));
            maps.patch("clock", &PatchParams::default(), &patch).await.unwrap();
            match maps.watch(&WatchParams::default().timeout(1), version).await.map(Box::pin) {
                Err(Error::Api(status)) if status.code == 410 => return,
                Ok(mut events) => {
                    let first = futures_util::StreamExt::next(&mut events).await;
                    if matches!(&first, Some(Ok(kube_core::WatchEvent::Error(status))) if status.code == 410)
                    {
                        return;
                    }
                }
                Err(error) => panic!("{error}"),
            }
            assert!(Instant::now() < deadline, "{version} is not forgotten");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    fn kubeconfig(&self) -> PathBuf {
        self.directory.path().join("kubeconfig")
    }

    pub(crate) fn config(&self) -> Config {
        Config::from_kubeconfig(&Kubeconfig::read(self.kubeconfig()).unwrap(), None).unwrap()
    }

    /// A connection of the administrator.
    pub(crate) fn connection(&self) -> Connection {
        Connection::new(self.config()).unwrap()
    }

    /// A client of the `kube` crate, of the administrator.
    pub(crate) fn client(&self) -> Client {
        kube::client(&self.connection())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        match &mut self.server {
            Server::Ours { process, .. } => end(process),
            Server::Real { .. } => drop(Command::new(peers("stop")).arg(self.directory.path()).status()),
        }
    }
}

fn serve(data: &Path, kubeconfig: &Path, port: u16) -> Child {
    let mut process = Command::new(watchkeeper_conformance::binary().unwrap())
        .args(["serve", "--history", HISTORY, "--listen", &format!("127.0.0.1:{port}"), "--data-dir"])
        .arg(data)
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("ready in"), "{line}");
    process
}

fn end(process: &mut Option<Child>) {
    if let Some(mut process) = process.take() {
        let _ = process.kill();
        let _ = process.wait();
    }
}

fn peers(command: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../bench/peers").join(command)
}

/// Whether a process runs; what has ended and was not waited for does not.
fn is_alive(id: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    status
        .lines()
        .any(|line| line.starts_with("State:") && !line.contains("zombie") && !line.contains("dead"))
}

async fn ask(etcd: &Connection, what: &str, body: serde_json::Value) -> serde_json::Value {
    let request = http::Request::post(format!("/v3/kv/{what}")).body(body.to_string().into_bytes()).unwrap();
    serde_json::from_slice(&etcd.request(request).await.unwrap()).unwrap()
}
