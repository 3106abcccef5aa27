//! A real etcd for tests, and a proxy that cuts it off. Behind the feature `testing`.

mod proxy;

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

pub use proxy::Proxy;
use tempfile::TempDir;

use crate::client::Client;
use crate::keys::Keys;
use crate::kv::Range;
use crate::settings::ClientBuilder;

/// Names another etcd than the one that `scripts/setup` builds.
const VARIABLE: &str = "WATCHKEEPER_ETCD";
/// How long a server may take to answer, also where the machine is busy.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// A member of etcd, alone or in a cluster, on the loopback address. Ends, with its data, when it is dropped.
#[derive(Debug)]
pub struct Server {
    program: PathBuf,
    flags: Vec<String>,
    tls: bool,
    directory: TempDir,
    running: Mutex<Running>,
}

#[derive(Debug, Default)]
struct Running {
    process: Option<Child>,
    client: u16,
    peer: u16,
}

/// Where etcd is, or `None` and a line that says that the test was not run.
#[allow(clippy::print_stderr, reason = "whoever reads the output of the tests has to know")]
fn program() -> Option<PathBuf> {
    let named = std::env::var_os(VARIABLE).map(PathBuf::from);
    let built = || {
        let build = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/peers/build");
        let place = Command::new(build).arg("--where").output().ok()?;
        Some(PathBuf::from(String::from_utf8(place.stdout).ok()?.trim()).join("bin/etcd"))
    };
    let found = named.or_else(built).filter(|program| program.exists());
    if found.is_none() {
        eprintln!("NOT RUN: there is no etcd; scripts/setup builds it where there is Go");
    }
    found
}

impl Server {
    /// Starts an etcd; `None` where there is none.
    ///
    /// # Errors
    ///
    /// If it does not start or does not answer.
    pub async fn start() -> Result<Option<Self>, String> {
        Self::with(&[]).await
    }

    /// The same, with more flags.
    ///
    /// # Errors
    ///
    /// If it does not start or does not answer.
    pub async fn with(flags: &[&str]) -> Result<Option<Self>, String> {
        let Some(server) = Self::prepare(flags, false)? else { return Ok(None) };
        let client =
            server.launch().and_then(|()| server.builder().build().map_err(|error| error.to_string()));
        server.ready(&client?).await?;
        Ok(Some(server))
    }

    /// The same with TLS, as the flags say. Whoever starts it waits for it.
    ///
    /// # Errors
    ///
    /// If it does not start.
    pub fn with_tls(flags: &[&str]) -> Result<Option<Self>, String> {
        let Some(server) = Self::prepare(flags, true)? else { return Ok(None) };
        server.launch()?;
        Ok(Some(server))
    }

    /// A cluster of so many members; `None` where there is no etcd.
    ///
    /// # Errors
    ///
    /// If one of them does not start or does not answer.
    pub async fn cluster(members: usize, flags: &[&str]) -> Result<Option<Vec<Self>>, String> {
        let mut servers = Vec::new();
        for _ in 0..members {
            let Some(server) = Self::prepare(flags, false)? else { return Ok(None) };
            server.allot()?;
            servers.push(server);
        }
        let peers: Vec<String> = servers
            .iter()
            .enumerate()
            .map(|(at, server)| format!("member-{at}=http://127.0.0.1:{}", server.lock().peer))
            .collect();
        let peers = peers.join(",");
        for (at, server) in servers.iter_mut().enumerate() {
            let name = format!("member-{at}");
            // On a busy machine, members that are only late are not to be taken for dead. Of a flag that is given twice, the last one counts.
            let more = [
                "--name",
                &name,
                "--initial-cluster",
                &peers,
                "--heartbeat-interval",
                "100",
                "--election-timeout",
                "1000",
            ];
            server.flags.extend(more.map(str::to_owned));
            server.launch()?;
        }
        for server in &servers {
            server.ready(&server.builder().build().map_err(|error| error.to_string())?).await?;
        }
        Ok(Some(servers))
    }

    fn prepare(flags: &[&str], tls: bool) -> Result<Option<Self>, String> {
        let Some(program) = program() else { return Ok(None) };
        let directory = TempDir::new().map_err(|error| error.to_string())?;
        let flags = flags.iter().map(|&flag| flag.to_owned()).collect();
        Ok(Some(Self { program, flags, tls, directory, running: Mutex::default() }))
    }

    /// Where its data is.
    pub fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    fn lock(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Chooses its ports, once.
    fn allot(&self) -> Result<(), String> {
        let mut running = self.lock();
        if running.client == 0 {
            let [client, peer] = [(), ()].map(|()| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)));
            let port = |listener: &std::io::Result<TcpListener>| {
                let address = listener.as_ref().ok().and_then(|listener| listener.local_addr().ok());
                address.map(|address| address.port()).ok_or("no free port")
            };
            (running.client, running.peer) = (port(&client)?, port(&peer)?);
        }
        Ok(())
    }

    /// Starts the process, at the ports that it had before.
    fn launch(&self) -> Result<(), String> {
        self.allot()?;
        let mut running = self.lock();
        let scheme = if self.tls { "https" } else { "http" };
        let (client, peer) = (
            format!("{scheme}://127.0.0.1:{}", running.client),
            format!("http://127.0.0.1:{}", running.peer),
        );
        let mut command = Command::new(&self.program);
        command.args(["--log-level", "error", "--unsafe-no-fsync"]);
        // Nobody to wait for.
        command.args(["--heartbeat-interval", "20", "--election-timeout", "200"]);
        command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
        command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
        command.args(["--initial-cluster", &format!("default={peer}")]);
        command.arg("--data-dir").arg(self.data()).args(&self.flags);
        let process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        running.process = Some(process.map_err(|error| format!("{}: {error}", self.program.display()))?);
        Ok(())
    }

    /// Waits until it answers.
    ///
    /// # Errors
    ///
    /// If it does not, for a long time.
    pub async fn ready(&self, client: &Client) -> Result<(), String> {
        let deadline = Instant::now() + START_TIMEOUT;
        let look = Range::of(Keys::one("?")).count_only();
        loop {
            match client.range(&look).await {
                Ok(_) => return Ok(()),
                Err(error) if Instant::now() > deadline => return Err(error.to_string()),
                Err(_) => {}
            }
            let ended = match &mut self.lock().process {
                Some(process) => process.try_wait().ok().flatten(),
                None => return Err("nobody has started it".into()),
            };
            if let Some(status) = ended {
                return Err(format!("etcd has ended: {status}"));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Where it listens: `http://127.0.0.1:40123`.
    pub fn endpoint(&self) -> String {
        format!("{}://127.0.0.1:{}", if self.tls { "https" } else { "http" }, self.lock().client)
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.lock().client
    }

    /// The options of a client of this server.
    pub fn builder(&self) -> ClientBuilder {
        Client::builder([self.endpoint()])
    }

    /// Kills it (-9).
    pub fn kill(&self) {
        if let Some(mut process) = self.lock().process.take() {
            // It has ended if it cannot be killed.
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    /// Stops it where it is (SIGSTOP), or has it go on (SIGCONT): connections stay, and nobody answers.
    pub fn pause(&self, pause: bool) {
        if let Some(process) = &self.lock().process {
            let signal = if pause { "-STOP" } else { "-CONT" };
            // A process that has ended needs no signal.
            let _ = Command::new("kill").args([signal, &process.id().to_string()]).status();
        }
    }

    /// Starts it again after [`kill`](Self::kill), with its data, and does not wait: one without the others of its cluster does not answer.
    pub fn launch_again(&self) {
        // If it cannot be started, nobody will be answered, which is noticed.
        let _ = self.launch();
    }

    /// Starts it again after [`kill`](Self::kill), with its data, and waits until it answers.
    ///
    /// # Errors
    ///
    /// If it does not start or does not answer.
    pub async fn restart(&self) -> Result<(), String> {
        self.launch()?;
        self.ready(&self.builder().build().map_err(|error| error.to_string())?).await
    }

    /// Copies its data, after [`kill`](Self::kill), to be [restored](Self::restore) later.
    ///
    /// # Errors
    ///
    /// If it cannot be copied.
    pub fn back_up(&self) -> Result<TempDir, String> {
        let backup = TempDir::new().map_err(|error| error.to_string())?;
        copy(&self.data(), &backup.path().join("data"))?;
        Ok(backup)
    }

    /// Puts back what it had when it was [backed up](Self::back_up), after [`kill`](Self::kill). What was written since is lost.
    ///
    /// # Errors
    ///
    /// If it cannot be copied.
    pub fn restore(&self, backup: &TempDir) -> Result<(), String> {
        std::fs::remove_dir_all(self.data()).map_err(|error| error.to_string())?;
        copy(&backup.path().join("data"), &self.data())
    }

    /// Has it begin anew, without data, after [`kill`](Self::kill).
    ///
    /// # Errors
    ///
    /// If its data cannot be deleted, or as [`restart`](Self::restart).
    pub async fn begin_anew(&self) -> Result<(), String> {
        let data = self.directory.path().join("data");
        std::fs::remove_dir_all(data).map_err(|error| error.to_string())?;
        self.restart().await
    }
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let copied = Command::new("cp").arg("-a").args([from, to]).status().map_err(|error| error.to_string())?;
    if copied.success() { Ok(()) } else { Err(format!("{} cannot be copied", from.display())) }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}
