//! `watchkeeper run`: reactions without Rust.

use std::io::{self, Read as _, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::{fs, process};

use clap::Args;
use tokio::runtime;
use watchkeeper_reactor::{Engine, Error, Options, Reactor, Summary};

use crate::cluster::ClusterArguments;
use crate::failure::Failure;
use crate::logging;
use crate::stopping::Signals;

/// Run commands, send requests and apply objects when something changes
///
/// A file says what is watched (a directory, a list behind a URL, a table, a kind of a cluster) and what is done for each object that
/// comes, changes or goes: a command, an HTTP request, or objects in a cluster. In order for each object, tried again when it fails.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Run {
    /// The file that says what is watched and what is done; - is stdin
    #[arg(short, long, value_name = "FILE")]
    file: PathBuf,
    /// Write down here what was delivered, so that it is not delivered again after a restart
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Do what is to be done for what is there now, and end
    #[arg(long)]
    once: bool,
    /// Say what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Check the file, and do nothing else
    #[arg(long, conflicts_with_all = ["once", "dry_run", "state", "metrics"])]
    check: bool,
    /// Serve /metrics and /healthz on this address, such as 127.0.0.1:9090
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<SocketAddr>,
    /// What to log to stderr: a level, or levels by module
    #[arg(long, value_name = "FILTER", default_value = "info,watchkeeper_informer=error")]
    log: String,
    #[command(flatten)]
    cluster: ClusterArguments,
}

const EXAMPLES: &str = "\
Examples:
  watchkeeper run -f reactor.yaml                        until Ctrl-C; a second Ctrl-C aborts what still runs
  watchkeeper run -f reactor.yaml --state reactor.state  goes on after a restart where it stopped
  watchkeeper run -f reactor.yaml --check                is the file right?
  watchkeeper run -f reactor.yaml --once --dry-run       what would be done now?
  watchkeeper run -f reactor.yaml --once                 do it, for a cron job
  watchkeeper run -f reactor.yaml --metrics 127.0.0.1:9090

A file:
  apiVersion: run.watchkeeper.dev/v1alpha1
  kind: Reactor
  spec:
    sources:
    - name: routes
      url: file:./routes/
    reactions:
    - name: say
      on: routes
      do:
        command: [echo, \"${name} ${event}\"]

Exit codes:
  0  ended by a signal, or with --once: all was done
  1  something failed; with --once: a reaction failed, a source could not be read, or an object was not understood
  2  what was given cannot be: bad arguments, a mistake in the file, no kubeconfig";

impl Run {
    /// Runs until a signal, or until all is done.
    pub(crate) fn run(self) -> Result<(), Failure> {
        let (name, text) = self.read()?;
        let base = if self.is_stdin() { Path::new("") } else { self.file.parent().unwrap_or(Path::new("")) };
        // Commands are found and run from here, whatever the directory of this process.
        let base = std::path::absolute(if base.as_os_str().is_empty() { Path::new(".") } else { base });
        let base = base.map_err(Failure::running)?;
        let reactor = Reactor::read(&text, &name, &base).map_err(Failure::input)?;
        if self.check {
            let (sources, reactions) = reactor.size();
            let text = format!("{name}: no mistakes; sources: {sources}, reactions: {reactions}");
            return writeln!(io::stdout(), "{text}").map_err(Failure::running);
        }
        logging::begin_plain(&self.log)?;
        watchkeeper_memory::start_trimming().map_err(Failure::running)?;
        let runtime = runtime::Builder::new_multi_thread().enable_all().build().map_err(Failure::running)?;
        let done = runtime.block_on(self.react(reactor));
        // What is stuck in reading a file or a name of a host has nothing to say any more.
        runtime.shutdown_background();
        done
    }

    fn is_stdin(&self) -> bool {
        self.file.as_os_str() == "-"
    }

    fn read(&self) -> Result<(String, String), Failure> {
        if self.is_stdin() {
            let mut text = String::new();
            io::stdin()
                .read_to_string(&mut text)
                .map_err(|error| Failure::input(format!("stdin: {error}")))?;
            return Ok(("stdin".to_owned(), text));
        }
        let name = self.file.display().to_string();
        let text =
            fs::read_to_string(&self.file).map_err(|error| Failure::input(format!("{name}: {error}")))?;
        Ok((name, text))
    }

    async fn react(&self, reactor: Reactor) -> Result<(), Failure> {
        let mut signals = Signals::listen()?;
        let connection = match reactor.needs_cluster() {
            true => Some(self.cluster.connection().await?),
            false => None,
        };
        let name = reactor.name().to_owned();
        let options = Options {
            connection,
            state: self.state.clone(),
            metrics: self.metrics,
            dry_run: self.dry_run,
            once: self.once,
        };
        let engine = Engine::start(reactor, options).map_err(failure)?;
        if let Some(address) = engine.metrics_address() {
            tracing::info!("{name}: metrics on http://{address}/metrics");
        }
        let finished = async {
            match self.once {
                true => engine.finished().await,
                false => std::future::pending().await,
            }
        };
        tokio::select! {
            finished = finished => {
                let summary = engine.stop().await;
                finished.map_err(failure)?;
                sum_up(summary)
            }
            _ = signals.next() => stop(engine, &mut signals).await,
        }
    }
}

/// Lets what runs end; a second signal aborts it.
async fn stop(engine: Engine, signals: &mut Signals) -> Result<(), Failure> {
    match engine.running() {
        0 => tracing::info!("stopping"),
        running => {
            tracing::info!("stopping: waiting for {running} that still run; another signal aborts them");
        }
    }
    let abort = engine.aborter();
    let stopped = engine.stop();
    tokio::pin!(stopped);
    tokio::select! {
        _ = &mut stopped => Ok(()),
        number = signals.next() => {
            abort();
            stopped.await;
            process::exit(128 + number)
        }
    }
}

/// What a single run came to.
fn sum_up(summary: Summary) -> Result<(), Failure> {
    let Summary { done, filtered, given_up, rejected, .. } = summary;
    tracing::info!("done: {done}, filtered: {filtered}, failed: {given_up}, not understood: {rejected}");
    match (given_up, rejected) {
        (0, 0) => Ok(()),
        (0, rejected) => Err(Failure::running(format!("not understood: {rejected}"))),
        (failed, _) => Err(Failure::running(format!("failed: {failed} of {}", done + failed))),
    }
}

fn failure(error: Error) -> Failure {
    match error {
        Error::Input(_) => Failure::input(error),
        error => Failure::running(error),
    }
}
