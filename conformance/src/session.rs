//! Running a script.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::server::Error;
use crate::{Script, Server, Step, compare};

/// How long one command may take.
const TIMEOUT: &str = "60";

/// What every command of a script may use besides `kubectl`:
/// `background NAME COMMAND...` starts something, `lines NAME COUNT` waits until it has printed that many lines and
/// shows them, `stop NAME` ends it; `sort_keys` writes JSON with the fields of objects in the order of their names.
const PRELUDE: &str = r#"
background() { local name=$1; shift; "$@" >"$name.out" 2>&1 & echo $! >"$name.pid"; }
lines() {
    for _ in $(seq 500); do [ "$(wc -l <"$1.out")" -ge "$2" ] && break; sleep 0.02; done
    head -n "$2" "$1.out"
}
sort_keys() {
    python3 -c 'import json, sys; print(json.dumps(json.load(sys.stdin), sort_keys=True, separators=(",", ":")))'
}
stop() { kill "$(cat "$1.pid")" 2>/dev/null; rm "$1.pid"; }
"#;

static SESSIONS: AtomicUsize = AtomicUsize::new(0);

/// The `kubectl` that is used.
#[derive(Debug, Clone)]
pub struct Kubectl {
    /// The folder it lies in.
    pub folder: PathBuf,
    /// Its minor version: 36 of 1.36.2.
    pub minor: u32,
}

impl Kubectl {
    /// The oldest minor version that every script is written for.
    pub const OLDEST: u32 = 30;

    /// The one that `KUBECTL` names, that the set-up step left in `installed`, or that is in the path, in this order.
    pub fn find(installed: &Path) -> Result<Self, Error> {
        let program = std::env::var("KUBECTL").map_or_else(|_| installed.join("kubectl"), PathBuf::from);
        let program = if program.exists() { program } else { PathBuf::from("kubectl") };
        let broken = |reason: String| Error::Program { program: program.display().to_string(), reason };
        let output = Command::new("bash")
            .args(["-c", r#"command -v "$0" && "$0" version --client --output json"#])
            .arg(&program)
            .output()
            .map_err(|error| broken(error.to_string()))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let missing = || broken("does not work; scripts/setup installs one".to_owned());
        let (path, version) = text.split_once('\n').ok_or_else(missing)?;
        let version: serde_json::Value = serde_json::from_str(version).map_err(|_| missing())?;
        let minor = version["clientVersion"]["minor"].as_str().unwrap_or_default();
        let minor = minor.trim_end_matches('+').parse().map_err(|_| missing())?;
        Ok(Self { folder: Path::new(path).parent().unwrap_or(Path::new("/")).to_owned(), minor })
    }
}

/// One run of a script: a folder and a namespace of its own.
#[derive(Debug)]
pub struct Session {
    folder: PathBuf,
    kubectl: Kubectl,
    namespace: String,
}

/// What came of one command.
#[derive(Debug)]
pub struct Outcome {
    /// Whether everything was as expected.
    pub passed: bool,
    /// The command and the differences, for a person.
    pub report: String,
    /// The expectation as it would have to be written for this outcome.
    pub accepted: Vec<String>,
}

impl Session {
    /// A session called `name`, with a new namespace on the server and a folder below `scratch`.
    pub fn start(name: &str, server: &Server, kubectl: &Kubectl, scratch: &Path) -> Result<Self, Error> {
        // Running servers live on between runs, so the names of namespaces must not come back.
        let run = std::process::id() as usize * 100 + SESSIONS.fetch_add(1, Ordering::Relaxed);
        let namespace = format!("{name}-{run:08x}");
        let folder = scratch.join(&namespace);
        let file = |source| Error::File { path: folder.clone(), source };
        std::fs::create_dir_all(&folder).map_err(file)?;
        std::fs::copy(server.kubeconfig(), folder.join("kubeconfig")).map_err(file)?;
        std::fs::write(folder.join("prelude"), PRELUDE).map_err(file)?;
        let session = Self { folder, kubectl: kubectl.clone(), namespace };
        let namespace = &session.namespace;
        let manifest =
            serde_json::json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        let prepare = format!(
            "kubectl create -f - <<<'{manifest}' && kubectl config set-context --current --namespace {namespace}"
        );
        let output = session.bash(&prepare)?;
        if output.status.success() {
            return Ok(session);
        }
        let reason = String::from_utf8_lossy(&output.stderr).into_owned();
        Err(Error::Program { program: "kubectl create namespace".to_owned(), reason })
    }

    /// Runs the commands of a script in order, and goes on after one that fails.
    pub fn run(&self, script: &Script) -> Result<Vec<Outcome>, Error> {
        let outcomes = script.steps.iter().map(|step| self.step(step)).collect();
        self.bash(
            "for pid in *.pid; do [ -e \"$pid\" ] && kill \"$(cat \"$pid\")\"; done 2>/dev/null; true",
        )?;
        outcomes
    }

    fn step(&self, step: &Step) -> Result<Outcome, Error> {
        let output = self.bash(&step.command)?;
        let code = output.status.code().unwrap_or(-1);
        let stdout = compare(&self.filled(&step.stdout), &lines(&output.stdout));
        let stderr = compare(&self.filled(&step.stderr), &lines(&output.stderr));
        let passed = stdout.equal && stderr.equal && code == step.code;
        let mut report = format!("line {}: $ {}\n", step.line, step.command);
        for line in &stdout.lines {
            report.push_str(&format!("    {line}\n"));
        }
        for line in &stderr.lines {
            report.push_str(&format!("  ! {line}\n"));
        }
        if code != step.code {
            report.push_str(&format!("    expected exit code {}, got {code}\n", step.code));
        }
        let mut accepted: Vec<String> = stdout.accepted.iter().map(|line| self.emptied(line)).collect();
        accepted.extend(stderr.accepted.iter().map(|line| format!("! {}", self.emptied(line))));
        if code != 0 {
            accepted.push(format!("[{code}]"));
        }
        Ok(Outcome { passed, report, accepted })
    }

    /// Expected lines with the name of the namespace filled in.
    fn filled(&self, lines: &[String]) -> Vec<String> {
        lines.iter().map(|line| line.replace("{namespace}", &self.namespace)).collect()
    }

    fn emptied(&self, line: &str) -> String {
        line.trim_end().replace(&self.namespace, "{namespace}")
    }

    fn bash(&self, command: &str) -> Result<Output, Error> {
        let path = std::env::var("PATH").unwrap_or_default();
        Command::new("timeout")
            .args(["--kill-after=5", TIMEOUT, "bash", "-c", command])
            .current_dir(&self.folder)
            .env("PATH", format!("{}:{path}", self.kubectl.folder.display()))
            .env("HOME", &self.folder)
            .env("TMPDIR", &self.folder)
            .env("BASH_ENV", self.folder.join("prelude"))
            .env("KUBECONFIG", self.folder.join("kubeconfig"))
            .env("NAMESPACE", &self.namespace)
            .env("KUBE_EDITOR", "false")
            .output()
            .map_err(|error| Error::Program { program: "timeout".to_owned(), reason: error.to_string() })
    }
}

fn lines(bytes: &[u8]) -> Vec<String> {
    let mut lines: Vec<String> =
        String::from_utf8_lossy(bytes).lines().map(|line| line.trim_end().to_owned()).collect();
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}
