//! This program under the name `etcd`: as much of it as envtest and its like want to see.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, lookup_host};
use tokio::runtime;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::failure::Failure;
use crate::logging;
use crate::stopping::Signals;

/// Under this path the `kube-apiserver` beside it learns where objects are to be kept.
pub(crate) const DATA_DIRECTORY: &str = "/watchkeeper/data-directory";

/// Who asks has its request ready.
const TIMEOUT: Duration = Duration::from_secs(10);
const LONGEST_REQUEST: usize = 16 << 10;

const USAGE: &str = "\
Watchkeeper under the name of etcd, for envtest and its like.

Stores nothing and speaks no gRPC: it answers GET /health, and tells the kube-apiserver beside it, which is Watchkeeper's
too, to keep its objects in --data-dir. They are there for the next kube-apiserver as with a real etcd, but they are not
etcd's: no other program can read them. Without --data-dir they live in the memory of kube-apiserver.

Usage:
  etcd [flags]

Flags:
";

/// Flags that do something.
const USED: &[(&str, &str)] = &[
    ("data-dir", "the directory for the objects of kube-apiserver"),
    ("listen-client-urls", "where to listen for clients, http://localhost:2379 by default"),
];

/// Flags that envtest and its like pass, and that nothing here depends on.
const IGNORED: &[&str] = &[
    "advertise-client-urls",
    "auto-compaction-mode",
    "auto-compaction-retention",
    "initial-advertise-peer-urls",
    "initial-cluster",
    "initial-cluster-state",
    "initial-cluster-token",
    "listen-peer-urls",
    "log-level",
    "logger",
    "max-request-bytes",
    "max-txn-ops",
    "name",
    "quota-backend-bytes",
    "snapshot-count",
    "unsafe-no-fsync",
    "wal-dir",
];

/// Does what the command line says.
pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    let asked = |names: [&str; 2]| arguments.iter().any(|argument| names.contains(&argument.as_str()));
    let mut stdout = io::stdout();
    // If nobody listens, nobody misses it.
    if asked(["--help", "-h"]) {
        let _ = write!(stdout, "{USAGE}");
        for (name, what) in USED {
            let _ = writeln!(stdout, "  --{name:<28} {what}");
        }
        for name in IGNORED {
            let _ = writeln!(stdout, "  --{name:<28} accepted, has no effect");
        }
        let _ = writeln!(stdout, "\nAny other flag is accepted with a warning and has no effect.");
        return Ok(());
    }
    if asked(["--version", "-version"]) {
        let _ = writeln!(stdout, "etcd Version: watchkeeper {}", env!("CARGO_PKG_VERSION"));
        return Ok(());
    }
    logging::begin("warn")?;
    let settings = Settings::of(arguments).map_err(Failure::Running)?;
    if let Some(directory) = &settings.data_directory {
        std::fs::create_dir_all(directory)
            .map_err(|error| Failure::running(format!("--data-dir {}: {error}", directory.display())))?;
    }
    let runtime = runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::running)?;
    runtime.block_on(settings.serve())
}

#[derive(Debug, PartialEq)]
struct Settings {
    listen: Vec<String>,
    data_directory: Option<PathBuf>,
}

impl Settings {
    /// Reads flags as Go does: one dash or two, the value behind an equals sign or as the next word.
    fn of(arguments: &[String]) -> Result<Self, String> {
        let mut settings = Self { listen: vec!["http://localhost:2379".to_owned()], data_directory: None };
        let mut rest = arguments.iter().peekable();
        while let Some(argument) = rest.next() {
            let Some(word) = argument.strip_prefix("--").or(argument.strip_prefix('-')) else {
                return Err(format!("{argument:?} is not a flag"));
            };
            let (name, mut value) = match word.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (word, None),
            };
            if value.is_none() {
                value = rest.next_if(|next| !next.starts_with('-')).cloned();
            }
            match (name, value) {
                ("listen-client-urls", Some(urls)) => {
                    settings.listen = urls.split(',').map(str::to_owned).collect();
                }
                ("data-dir", Some(directory)) => settings.data_directory = Some(directory.into()),
                ("listen-client-urls" | "data-dir", None) => {
                    return Err(format!("flag needs an argument: --{name}"));
                }
                (name, _) if IGNORED.contains(&name) => {}
                (name, _) => tracing::warn!("--{name} has no effect"),
            }
        }
        Ok(settings)
    }

    async fn serve(self) -> Result<(), Failure> {
        let mut signals = Signals::listen()?;
        // A path of its own: what is in there is not in the form of etcd.
        let directory = self.data_directory.map(|directory| directory.join("watchkeeper"));
        let directory: Arc<str> = match directory.map(std::path::absolute).transpose() {
            Ok(path) => path.map(|path| path.display().to_string()).unwrap_or_default().into(),
            Err(error) => return Err(Failure::running(error)),
        };
        let mut listeners = JoinSet::new();
        for url in &self.listen {
            let wrong = |reason: &str| Failure::Running(format!("--listen-client-urls={url}: {reason}"));
            let host = url.strip_prefix("http://").ok_or_else(|| wrong("only http:// is served"))?;
            let host = host.trim_end_matches('/');
            let addresses: Vec<SocketAddr> =
                lookup_host(host).await.map_err(|error| wrong(&error.to_string()))?.collect();
            // `localhost` may have two addresses and the machine only one of them.
            let listener = TcpListener::bind(&*addresses).await.map_err(|error| wrong(&error.to_string()))?;
            listeners.spawn(accept(listener, Arc::clone(&directory)));
        }
        signals.next().await;
        Ok(())
    }
}

async fn accept(listener: TcpListener, directory: Arc<str>) {
    let mut connections = JoinSet::new();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let directory = Arc::clone(&directory);
                connections.spawn(async move {
                    // Whoever went away does not want an answer.
                    let _ = timeout(TIMEOUT, answer(stream, &directory)).await;
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
        while connections.try_join_next().is_some() {}
    }
}

/// Answers one request and closes.
async fn answer(mut stream: TcpStream, directory: &str) -> io::Result<()> {
    let mut request = Vec::new();
    while !request.windows(4).any(|end| end == b"\r\n\r\n") && request.len() < LONGEST_REQUEST {
        if stream.read_buf(&mut request).await? == 0 {
            return Ok(());
        }
    }
    let request = String::from_utf8_lossy(&request);
    let path = request.split(' ').nth(1).unwrap_or_default();
    let (code, kind, body) = match path.split('?').next().unwrap_or_default() {
        "/health" => ("200 OK", "application/json", r#"{"health":"true","reason":""}"#),
        "/readyz" | "/livez" => ("200 OK", "text/plain", "ok\n"),
        "/version" => (
            "200 OK",
            "application/json",
            r#"{"etcdserver":"3.6.0","etcdcluster":"3.6.0","storage":"3.6.0"}"#,
        ),
        DATA_DIRECTORY => ("200 OK", "text/plain", directory),
        _ => ("404 Not Found", "text/plain", "404 page not found\n"),
    };
    let head = format!(
        "HTTP/1.1 {code}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(arguments: &[&str]) -> Result<Settings, String> {
        Settings::of(&arguments.iter().map(|&argument| argument.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn flags_are_read_in_every_form_that_go_knows() {
        let wanted = Settings {
            listen: vec!["http://127.0.0.1:1".to_owned(), "http://127.0.0.1:2".to_owned()],
            data_directory: Some("/data".into()),
        };
        let urls = "http://127.0.0.1:1,http://127.0.0.1:2";
        let joined = format!("--listen-client-urls={urls}");
        for form in [
            &["--data-dir=/data", &joined, "--unsafe-no-fsync=true"][..],
            &["-data-dir", "/data", "--unsafe-no-fsync", "-listen-client-urls", urls],
            &["--unheard-of", "value", "--data-dir", "/data", &joined],
        ] {
            assert_eq!(settings(form).as_ref(), Ok(&wanted), "{form:?}");
        }
        assert!(settings(&["--data-dir"]).is_err());
        assert!(settings(&["/data"]).is_err());
    }
}
