//! A server to watch, and somebody who changes things on it.

use std::fs::Permissions;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

pub(crate) const TOKEN: &str = "a-token-for-tests";

pub(crate) fn watchkeeper() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_watchkeeper"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.env_remove("KUBECONFIG").env_remove("NO_COLOR").env("TZ", "UTC");
    command
}

pub(crate) fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").args(["-s", name, &child.id().to_string()]).status().unwrap().success());
}

/// A server with its data in a directory of its own. Its addresses and credentials stay the same when it is started anew.
pub(crate) struct Server {
    pub(crate) directory: tempfile::TempDir,
    https: SocketAddr,
    http: SocketAddr,
    child: Option<Child>,
}

impl Server {
    pub(crate) fn start() -> Self {
        let [https, http] = free();
        let mut server = Self { directory: tempfile::tempdir().unwrap(), https, http, child: None };
        let tokens = format!("{TOKEN},tester,1,system:masters\nweak,reader,2,readers\n");
        std::fs::write(server.path("tokens.csv"), tokens).unwrap();
        std::fs::set_permissions(server.path("tokens.csv"), Permissions::from_mode(0o600)).unwrap();
        // Whoever asks for any port may get one of these before the server has it.
        for _ in 0..5 {
            match server.try_again() {
                Err(said) if said.contains("Address already in use") => [server.https, server.http] = free(),
                started => {
                    started.unwrap();
                    break;
                }
            }
        }
        server
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Starts it, again.
    pub(crate) fn again(&mut self) {
        self.try_again().unwrap();
    }

    /// The same; if it does not start, what it said.
    fn try_again(&mut self) -> Result<(), String> {
        let mut command = watchkeeper();
        command.arg("serve").args(["--listen", &self.https.to_string(), "--http", &self.http.to_string()]);
        command.arg("--data-dir").arg(self.path("data")).arg("--kubeconfig").arg(self.path("kubeconfig"));
        command.arg("--token-file").arg(self.path("tokens.csv")).arg("--durability").arg("relaxed");
        let mut child = command.spawn().unwrap();
        let mut ready = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut ready).unwrap();
        if !ready.starts_with("ready") {
            return Err(format!("{:?}", child.wait_with_output()));
        }
        self.child = Some(child);
        Ok(())
    }

    /// Ends it with this signal, and waits until it has ended.
    pub(crate) fn end(&mut self, name: &str) {
        let mut child = self.child.take().unwrap();
        signal(&child, name);
        child.wait().unwrap();
    }

    pub(crate) fn writer(&self) -> Writer {
        Writer { http: self.http }
    }

    /// `watchkeeper watch` on this server.
    pub(crate) fn watch(&self, arguments: &[&str]) -> Command {
        let mut command = watchkeeper();
        command.arg("watch").args(arguments).env("KUBECONFIG", self.path("kubeconfig"));
        command
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Two ports that nobody listens on. Both are taken at once, so that they differ, and free again afterwards.
fn free() -> [SocketAddr; 2] {
    [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap()).map(|taken| taken.local_addr().unwrap())
}

/// Somebody who changes things.
#[derive(Clone, Copy)]
pub(crate) struct Writer {
    http: SocketAddr,
}

impl Writer {
    /// Sends a request; the answer if it is a good one.
    pub(crate) fn try_send(&self, method: &str, path: &str, body: &str) -> std::io::Result<Value> {
        let mut stream = TcpStream::connect(self.http)?;
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {TOKEN}\r\ncontent-type: {kind}\r\nconnection: close\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let bad = || std::io::Error::other(answer.clone());
        let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(bad)?;
        if !head.starts_with("HTTP/1.1 2") {
            return Err(bad());
        }
        // The body may come in chunks; an object is one line of it.
        let line = body.lines().find(|line| line.starts_with('{')).ok_or_else(bad)?;
        serde_json::from_str(line).map_err(|_| bad())
    }

    pub(crate) fn send(&self, method: &str, path: &str, body: &str) -> Value {
        self.try_send(method, path, body).unwrap()
    }

    pub(crate) fn create(&self, plural: &str, manager: &str, body: &str) -> Value {
        self.send("POST", &format!("/api/v1/namespaces/default/{plural}?fieldManager={manager}"), body)
    }

    pub(crate) fn patch(&self, object: &str, manager: &str, body: &str) -> Value {
        self.send("PATCH", &format!("/api/v1/namespaces/default/{object}?fieldManager={manager}"), body)
    }

    pub(crate) fn delete(&self, object: &str) {
        self.send("DELETE", &format!("/api/v1/namespaces/default/{object}"), "");
    }
}
