//! Servers over one etcd, as processes.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use watchkeeper_etcd::testing::Server as Etcd;

pub(crate) const TOKEN: &str = "a-token-for-tests";
/// The token of a user without any rights.
pub(crate) const PLAIN: &str = "a-token-of-somebody";
/// Whose token that is.
pub(crate) const SOMEBODY: &str = "somebody";
/// How long anything may take on a busy machine.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// One of the servers. Killed if the test does not end it.
pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) http: SocketAddr,
    /// Its URL with TLS, without which kubectl sends no token.
    pub(crate) url: String,
}

impl Server {
    pub(crate) fn start(directory: &Path, etcd: &str, http: SocketAddr) -> Self {
        Self::with(directory, http, &["--storage", "etcd", "--etcd-endpoints", etcd])
    }

    /// One that keeps everything in memory, or wherever these arguments say.
    pub(crate) fn in_memory(directory: &Path, arguments: &[&str]) -> Self {
        Self::launch(directory, free_address(), arguments, None)
    }

    /// One with these arguments, with the data directory that all share.
    pub(crate) fn with(directory: &Path, http: SocketAddr, arguments: &[&str]) -> Self {
        Self::launch(directory, http, arguments, Some(&directory.join("data")))
    }

    fn launch(directory: &Path, http: SocketAddr, arguments: &[&str], data: Option<&Path>) -> Self {
        let tokens = directory.join("tokens.csv");
        let data = data.iter().flat_map(|data| ["--data-dir".as_ref(), data.as_os_str()]);
        let mut child = Command::new(env!("CARGO_BIN_EXE_watchkeeper"))
            .args(["serve", "--listen", "127.0.0.1:0"])
            .args(arguments)
            .args(["--http", &http.to_string()])
            .arg("--token-file")
            .arg(tokens)
            .args(data)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let mut ready = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut ready).unwrap();
        assert!(ready.starts_with("ready"), "{ready}");
        let url = ready.split_whitespace().last().unwrap_or_default().to_owned();
        Self { child, http, url }
    }

    /// Asks it to end.
    pub(crate) fn signal(&self) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", "TERM", &id]).status().unwrap().success());
    }

    pub(crate) fn terminate(&mut self) {
        self.signal();
        assert!(self.child.wait().unwrap().success());
    }

    pub(crate) fn try_ask(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<(u16, Value), String> {
        ask(self.http, method, path, body)
    }

    pub(crate) fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
        self.try_ask(method, path, body).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One request on a connection of its own; what is said if there is no answer.
pub(crate) fn ask(
    server: SocketAddr,
    method: &str,
    path: &str,
    body: Option<&Value>,
) -> Result<(u16, Value), String> {
    let (code, _, body) = ask_as(TOKEN, server, method, path, body)?;
    Ok((code, serde_json::from_str(&body).unwrap_or(Value::Null)))
}

/// The same with another token: the code, the head in lower case, and the body.
pub(crate) fn ask_as(
    token: &str,
    server: SocketAddr,
    method: &str,
    path: &str,
    body: Option<&Value>,
) -> Result<(u16, String, String), String> {
    let failed = |error: std::io::Error| error.to_string();
    let mut stream = TcpStream::connect(server).map_err(failed)?;
    stream.set_read_timeout(Some(LONG)).map_err(failed)?;
    let body = body.map(Value::to_string).unwrap_or_default();
    let length = body.len();
    write!(stream, "{method} {path} HTTP/1.0\r\nhost: localhost\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}").map_err(failed)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).map_err(failed)?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or("the answer is cut off")?;
    let code = head.split(' ').nth(1).and_then(|code| code.parse().ok()).ok_or("no status")?;
    Ok((code, head.to_lowercase(), body.to_owned()))
}

pub(crate) fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// A directory with a token file.
pub(crate) fn directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let tokens = directory.path().join("tokens.csv");
    let lines = format!("{TOKEN},tester,1,\"system:masters\"\n{PLAIN},{SOMEBODY},2\n");
    std::fs::write(&tokens, lines).unwrap();
    std::fs::set_permissions(&tokens, std::fs::Permissions::from_mode(0o600)).unwrap();
    directory
}

/// An etcd; `None` where there is none.
pub(crate) fn etcd() -> Option<Etcd> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(Etcd::start()).unwrap()
}

/// Three servers over one etcd; `None` where there is no etcd.
pub(crate) fn three() -> Option<(tempfile::TempDir, Etcd, Vec<Server>)> {
    let (etcd, directory) = (etcd()?, directory());
    let servers: Vec<_> =
        (0..3).map(|_| Server::start(directory.path(), &etcd.endpoint(), free_address())).collect();
    Some((directory, etcd, servers))
}

pub(crate) fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
}

pub(crate) const MAPS: &str = "/api/v1/namespaces/default/configmaps";
