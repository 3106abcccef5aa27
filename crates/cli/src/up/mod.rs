//! `watchkeeper up`: everything in one process, to see custom resources being watched and acted on.

mod claim;
mod companion;
mod crew;
mod folder;
mod gateway;
mod git_index;
mod screen;

use std::ffi::OsString;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use watchkeeper_apiserver::authentication::{Credentials, Kubeconfig, Tokens};
use watchkeeper_apiserver::front::{Drained, Limits, Listener, raise_open_files};
use watchkeeper_apiserver::{AccountTokens, Options};
use watchkeeper_storage::{self as storage, Embedded, Storage};

use crate::failure::Failure;
use crate::host::{self, Host, Plan, Socket};
use crate::monitor::Monitor;
use crate::stopping::Signals;
use crate::{caution, logging};
use companion::Companion;
use crew::Crew;
use folder::Folder;
use screen::Screen;

/// Where Kubernetes is served, if nobody else is there.
const PORT: u16 = 6443;
/// Where metrics are served, if nobody else is there.
const METRICS_PORT: u16 = 9464;
/// After the first signal, how long requests may take to end.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(5);

/// Start everything: an API server, the reference operators, workloads without nodes, and a gateway
///
/// Objects are kept in ./.watchkeeper, which only you can look into, and are there again next time. Ctrl-C stops everything in order, a second one at once.
#[derive(Args)]
#[command(after_help = "\
Examples:
  watchkeeper up                    all operators, on port 6443 if it is free
  watchkeeper up --only webapp      this operator and no other
  watchkeeper up --fresh --port 0   forget what was there, and take any free port
  watchkeeper up -- cargo run       run the operator of this folder beside it

  export KUBECONFIG=$PWD/.watchkeeper/kubeconfig
  kubectl apply -f examples/webapp.yaml
  kubectl get webapps -w

Exit codes: 0 stopped by a signal, or the command succeeded; 1 something failed, or the command; 2 wrong arguments.")]
pub(crate) struct Up {
    /// Run these operators only; may be repeated, or be a list with commas
    #[arg(long, value_enum, value_delimiter = ',', value_name = "NAME")]
    only: Vec<Operator>,
    /// The port for HTTPS on 127.0.0.1; 0 takes any that is free [default: 6443, or a free one if that is taken]
    #[arg(long)]
    port: Option<u16>,
    /// Forget what is there and begin anew
    #[arg(long)]
    fresh: bool,
    /// Where objects, certificates and the kubeconfig are kept
    #[arg(long, value_name = "DIR", default_value = ".watchkeeper")]
    data_dir: PathBuf,
    /// How long workloads take, compared to the usual: 0.1 is ten times as fast, 0 takes no time
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    pace: f64,
    /// Do not simulate workloads: Deployments stay without pods, or are left to a kube-controller-manager
    #[arg(long, conflicts_with = "pace")]
    no_workloads: bool,
    /// The port for metrics on 127.0.0.1; 0 takes any that is free [default: 9464, or a free one if that is taken]
    #[arg(long, value_name = "PORT")]
    metrics_port: Option<u16>,
    /// Do not run the gateway
    #[arg(long)]
    no_gateway: bool,
    /// What to log to stderr: a level, or levels by module, such as warn,watchkeeper_runtime=debug
    #[arg(long, value_name = "FILTER", default_value = "warn")]
    log: String,
    /// A command to run beside all this, with $KUBECONFIG; when it ends, all ends. Where an `up` runs already, the command alone is run
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// The reference operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Operator {
    /// A Deployment and a Service for every WebApp
    Webapp,
}

impl Up {
    /// Runs until a signal comes. `start` is when the process began.
    pub(crate) fn run(self, start: Instant) -> Result<(), Failure> {
        logging::begin(&self.log)?;
        if !(self.pace.is_finite() && self.pace >= 0.0) {
            return Err(Failure::input(format!("--pace {} is not a factor such as 0.1 or 2", self.pace)));
        }
        caution::disable_core_dumps();
        let mut screen = Screen::new();
        let folder = Folder::open(&self.data_dir, self.fresh)?;
        let storage: Arc<dyn Storage> = match Embedded::open(folder.data(), storage::Options::default()) {
            Ok(storage) => Arc::new(storage),
            Err(error @ storage::Error::Locked { .. }) if !self.command.is_empty() => {
                screen.line("api server", &format!("runs already: {error}"));
                return host::runtime()?
                    .block_on(async { self.stay(&folder.kubeconfig(), &mut Signals::listen()?).await });
            }
            Err(error) => return Err(Failure::running(error)),
        };
        // After the storage: who holds its lock has the directory to itself.
        let secrets = folder.credentials();
        let mut options = Options::default();
        // As in a cluster.
        options.disabled_admission_plugins.clear();
        let plan = Plan {
            storage: Arc::clone(&storage),
            credentials: Credentials::load_or_create(Some(&secrets)).map_err(Failure::running)?,
            tokens: Tokens::new(),
            accounts: AccountTokens::load_or_create(Some(&secrets)).map_err(Failure::running)?,
            options,
            https: Socket::Address((Ipv4Addr::LOCALHOST, self.port.unwrap_or_else(usual_port)).into()),
            http: None,
            limits: Limits::of_files(raise_open_files()),
            names: Vec::new(),
            advertised: None,
        };
        let runtime = host::runtime()?;
        let done = runtime.block_on(self.serve(plan, &folder, screen, start));
        // Tasks first: the storage closes when the last of them lets go of it.
        runtime.shutdown_timeout(Duration::from_secs(1));
        drop(storage);
        done
    }

    async fn serve(
        self,
        plan: Plan,
        folder: &Folder,
        mut screen: Screen,
        start: Instant,
    ) -> Result<(), Failure> {
        let mut signals = Signals::listen()?;
        let host = Host::start(plan).await?;
        let kubeconfig = Kubeconfig::new(&host.url, &host.credentials).map_err(Failure::running)?;
        kubeconfig.write(&folder.kubeconfig()).map_err(Failure::running)?;
        let served = format!(
            "{}   ready in {} ms   data in {}",
            host.url,
            start.elapsed().as_millis(),
            folder.shown()
        );
        screen.line("api server", &served);
        let monitor = Arc::new(Monitor::start(self.metrics_listener()?)?);
        monitor.add(host::part(&host.server));
        let mut crew = Crew::connect(&folder.kubeconfig(), Arc::clone(&monitor)).await?;
        let ready = tokio::select! {
            ready = self.man(&mut crew, &mut screen) => ready.map(|()| true),
            _ = signals.next() => Ok(false),
        };
        let ended = match ready {
            Ok(true) => {
                screen.line("metrics", &format!("http://{}/metrics   of all of these", monitor.address()));
                self.invite(folder, &mut screen);
                self.stay(&folder.kubeconfig(), &mut signals).await
            }
            // It was told to stop before all was ready.
            Ok(false) => Ok(()),
            Err(failure) => Err(failure),
        };
        let Host { server, front, .. } = host;
        let stop = async move {
            let mut crew = crew;
            crew.stop().await;
            drop(crew);
            // Nobody else has it now.
            if let Some(monitor) = Arc::into_inner(monitor) {
                monitor.stop().await;
            }
            let ((), drained) = tokio::join!(server.stop(), front.shutdown(SHUTDOWN_GRACE));
            drained
        };
        tokio::select! {
            drained = stop => {
                screen.line("stopped", &format!("what there was is in {}", folder.shown()));
                if drained == Drained::CutOff {
                    tracing::warn!("requests aborted: they did not end within {SHUTDOWN_GRACE:?}");
                }
            }
            number = signals.next() => process::exit(128 + number),
        }
        ended
    }

    /// Waits for a signal, or for the end of the command if there is one.
    async fn stay(&self, kubeconfig: &Path, signals: &mut Signals) -> Result<(), Failure> {
        if self.command.is_empty() {
            signals.next().await;
            return Ok(());
        }
        Companion::start(&self.command, kubeconfig)?.run(signals).await
    }

    /// Starts what works on the objects, and says so.
    async fn man(&self, crew: &mut Crew, screen: &mut Screen) -> Result<(), Failure> {
        let operators = match self.only.as_slice() {
            [] => Operator::value_variants(),
            only => only,
        };
        if !self.no_gateway {
            crew.begin_gateway();
        }
        for operator in operators {
            crew.start_operator(*operator, screen).await?;
        }
        if !self.no_workloads {
            crew.start_workloads(self.pace, screen).await?;
        }
        crew.wait_for_gateway(screen).await
    }

    /// The usual port for metrics, or any that is free if it is taken and nobody asked for it.
    fn metrics_listener(&self) -> Result<Listener, Failure> {
        let bind = |port| Listener::bind((Ipv4Addr::LOCALHOST, port).into());
        let bound = match self.metrics_port {
            Some(port) => bind(port),
            None => bind(METRICS_PORT).or_else(|_| bind(0)),
        };
        bound.map_err(|error| Failure::running(format!("metrics: {error}")))
    }

    fn invite(&self, folder: &Folder, screen: &mut Screen) {
        screen.line("try", &format!("export KUBECONFIG={}", folder.kubeconfig_for_shell()));
        screen.more(&format!("kubectl apply -f {}", folder.example()));
        screen.more("kubectl get webapps -w");
        screen.line("look", "watchkeeper watch webapps,deployments,pods");
        screen.line("end", "Ctrl-C; the next `up` goes on where this one ends");
    }
}

/// The usual port, or none in particular if it is taken.
fn usual_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, PORT)).map_or(0, |_| PORT)
}
