//! The binary of this workspace as a process of its own.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use parking_lot::Mutex;
use watchkeeper_conformance::{Error, binary};

/// A running server. It ends when this is dropped.
#[derive(Debug)]
pub struct Process {
    child: Child,
    kubeconfig: PathBuf,
    log: Arc<Mutex<Vec<String>>>,
}

impl Process {
    /// Starts the server with its files in `scratch`. The binary is that of `WATCHKEEPER_CONFORMANCE_SERVER`, or is built first.
    pub fn start(scratch: &Path) -> Result<Self, Error> {
        let binary = binary()?;
        let broken = |reason: String| Error::Program { program: binary.display().to_string(), reason };
        std::fs::create_dir_all(scratch)
            .map_err(|source| Error::File { path: scratch.to_owned(), source })?;
        let kubeconfig = scratch.join("kubeconfig");
        let mut child = Command::new(&binary)
            .args([
                "serve", "--listen", "127.0.0.1:0", "--in-memory", "--disable-admission-plugins",
                "ServiceAccount",
            ])
            .arg("--kubeconfig")
            .arg(&kubeconfig)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| broken(error.to_string()))?;
        let (output, errors) = (child.stdout.take(), child.stderr.take());
        let log = Arc::new(Mutex::new(Vec::new()));
        let process = Self { child, kubeconfig, log: Arc::clone(&log) };
        if let Some(errors) = errors {
            std::thread::spawn(move || lines(errors).for_each(|line| log.lock().push(line)));
        }
        let mut output = lines(output.ok_or_else(|| broken("no output".to_owned()))?);
        if !output.any(|line| line.starts_with("ready in")) {
            return Err(broken("ended before it was ready".to_owned()));
        }
        // Nobody reads on, so the pipe must not fill up.
        std::thread::spawn(move || output.for_each(drop));
        Ok(process)
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Whether it still runs.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// The lines of its log that speak of a panic.
    pub fn panics(&self) -> Vec<String> {
        self.log.lock().iter().filter(|line| line.contains("panic")).cloned().collect()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The lines of a pipe; bytes that are no text are replaced.
fn lines(pipe: impl Read) -> impl Iterator<Item = String> {
    BufReader::new(pipe)
        .split(b'\n')
        .map_while(Result::ok)
        .map(|line| String::from_utf8_lossy(&line).into_owned())
}
