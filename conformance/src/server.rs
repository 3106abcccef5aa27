//! The server that is asked: ours, started for the purpose, or a running one.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use kube_client::config::{KubeConfigOptions, Kubeconfig};
use kube_client::{Client, Config};

/// Why a conformance run could not begin.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A program that is needed is not there or does not work.
    #[error("{program}: {reason}")]
    Program {
        /// The program.
        program: String,
        /// What it said, or what to do.
        reason: String,
    },
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

/// What our server does not have yet; scripts that need it are left out when ours is asked.
const OURS_LACKS: &[&str] = &[];

/// What kube-apiserver has only together with a controller manager or when it is told to, and that nothing here runs what a node would.
const BARE_LACKS: &[&str] = &["controllers", "service-account-plugin", "owner-references-plugin", "no-node"];

/// How ours is started: as the real one is by `bench/peers/start`, and by envtest.
const AS_ENVTEST: [&str; 2] = ["--disable-admission-plugins", "ServiceAccount"];

/// A server with a kubeconfig. Ours ends when this is dropped.
#[derive(Debug)]
pub struct Server {
    kubeconfig: PathBuf,
    child: Option<Child>,
}

impl Server {
    /// The server to ask, with its files in `scratch`.
    ///
    /// `WATCHKEEPER_CONFORMANCE_KUBECONFIG` names the kubeconfig of a running server; `WATCHKEEPER_CONFORMANCE_SERVER`
    /// names a binary of ours; otherwise ours is built first.
    pub fn start(scratch: &Path) -> Result<Self, Error> {
        Self::start_with(scratch, &[])
    }

    /// As [`Server::start`], with more arguments for ours. A running server must have been started with its own.
    pub fn start_with(scratch: &Path, arguments: &[&OsStr]) -> Result<Self, Error> {
        let arguments: Vec<&OsStr> =
            AS_ENVTEST.iter().map(OsStr::new).chain(arguments.iter().copied()).collect();
        Self::start_bare(scratch, &arguments)
    }

    /// As [`Server::start_with`], with all admission plug-ins that are on by default.
    pub fn start_bare(scratch: &Path, arguments: &[&OsStr]) -> Result<Self, Error> {
        if let Some(kubeconfig) = choice("KUBECONFIG") {
            return Ok(Self { kubeconfig: kubeconfig.into(), child: None });
        }
        let binary = binary()?;
        std::fs::create_dir_all(scratch)
            .map_err(|source| Error::File { path: scratch.to_owned(), source })?;
        let kubeconfig = scratch.join("kubeconfig");
        let mut child = Command::new(&binary)
            .args(["serve", "--listen", "127.0.0.1:0", "--in-memory", "--kubeconfig"])
            .arg(&kubeconfig)
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| broken(&binary, error))?;
        let output = child.stdout.take();
        let server = Self { kubeconfig, child: Some(child) };
        let mut lines = BufReader::new(output.ok_or_else(|| broken(&binary, "no output"))?).lines();
        loop {
            match lines.next() {
                Some(Ok(line)) if line.starts_with("ready in") => break,
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(broken(&binary, error)),
                None => return Err(broken(&binary, "ended before it was ready")),
            }
        }
        // Nobody reads on, so the pipe must not fill up.
        std::thread::spawn(move || lines.for_each(drop));
        Ok(server)
    }

    /// Two clients: the administrator, and one without credentials. Neither asks again after a failure: what the server says
    /// is wanted, not what comes of asking again.
    pub async fn clients(&self) -> Result<(Client, Client), Error> {
        let kubeconfig =
            Kubeconfig::read_from(&self.kubeconfig).map_err(|error| broken(&self.kubeconfig, error))?;
        let mut stripped = kubeconfig.clone();
        stripped.auth_infos.iter_mut().for_each(|user| user.auth_info = Some(Default::default()));
        let (admin, anonymous) = (self.client(kubeconfig).await?, self.client(stripped).await?);
        Ok((admin, anonymous))
    }

    async fn client(&self, kubeconfig: Kubeconfig) -> Result<Client, Error> {
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
        let mut config = config.map_err(|error| broken(&self.kubeconfig, error))?;
        config.default_retry = false;
        Client::try_from(config).map_err(|error| broken(&self.kubeconfig, error))
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Whether a script that needs this can run on the server that [`Server::start`] starts. `WATCHKEEPER_CONFORMANCE_HAS` lists
    /// what a server has besides what is known of it, as does kube-apiserver next to a controller manager.
    pub fn has(need: &str) -> bool {
        if need == "no-controllers" {
            return !Self::has("controllers");
        }
        let lacks = if choice("KUBECONFIG").is_none() { OURS_LACKS } else { BARE_LACKS };
        let told = choice("HAS").unwrap_or_default();
        !lacks.contains(&need) || told.split(',').any(|word| word == need)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// What the environment says about a run: the variable `WATCHKEEPER_CONFORMANCE_<name>`, if it is set to something.
pub fn choice(name: &str) -> Option<String> {
    std::env::var(format!("WATCHKEEPER_CONFORMANCE_{name}")).ok().filter(|value| !value.is_empty())
}

/// The binary of this workspace: that of `WATCHKEEPER_CONFORMANCE_SERVER`, or one that is built now.
pub fn binary() -> Result<PathBuf, Error> {
    choice("SERVER").map_or_else(build, |path| Ok(path.into()))
}

/// Builds the command line of this workspace and asks cargo where it put it.
fn build() -> Result<PathBuf, Error> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(&cargo)
        .args(["build", "--package", "watchkeeper-cli", "--message-format", "json-render-diagnostics"])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| broken(Path::new(&cargo), error))?;
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|message| message["target"]["name"] == "watchkeeper")
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
        .ok_or_else(|| broken(Path::new(&cargo), "no binary called watchkeeper came out of the build"))
}

fn broken(program: &Path, reason: impl ToString) -> Error {
    Error::Program { program: program.display().to_string(), reason: reason.to_string() }
}
