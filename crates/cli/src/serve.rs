use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use watchkeeper_apiserver::authentication::{Credentials, Kubeconfig, Tokens};
use watchkeeper_apiserver::front::{Limits, Listener, raise_open_files};
use watchkeeper_apiserver::{AccountTokens, InFlightLimits, Options};

use crate::admission_plugins::AdmissionPlugins;
use crate::controllers::Controllers;
use crate::failure::Failure;
use crate::host::{self, Host, Plan, Socket};
use crate::monitor::Monitor;
use crate::stopping::{ShutdownArgs, Signals, Sockets, until_stopped};
use crate::storage::StorageArgs;
use crate::{caution, duration, logging};

/// After the first signal, how long requests may take to end.
pub(crate) const SHUTDOWN_GRACE: Duration = Duration::from_secs(20);

/// Serve the Kubernetes API
///
/// Prints one line once it serves: `ready in 23 ms: https://127.0.0.1:6443`. SIGTERM or SIGINT ends it when all requests
/// are answered; a second one ends it at once.
///
/// Sockets can be inherited, as with socket activation of systemd: the one called `http` (LISTEN_FDNAMES) takes the place of
/// --http, another one that of --listen. Clients then wait while the server is started again, and are not refused.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Serve {
    /// Address and port for HTTPS; port 0 takes any that is free
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:6443")]
    listen: SocketAddr,
    #[command(flatten)]
    storage: StorageArgs,
    /// Show what is stored, and change nothing: neither for clients nor by itself
    #[arg(long)]
    read_only: bool,
    /// Write a kubeconfig for the administrator to this file
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Also serve plain HTTP/1.1, on a loopback address
    #[arg(long, value_name = "ADDR:PORT")]
    http: Option<SocketAddr>,
    /// Also serve /metrics, /livez and /readyz here, in plain HTTP to everybody who can reach it
    #[arg(long, value_name = "ADDR:PORT")]
    metrics_addr: Option<SocketAddr>,
    /// Accept the bearer tokens of this file, which only you can read: lines of token,user,uid,"group1,group2"
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// One more name or address that clients use for this server; may be repeated
    #[arg(long, value_name = "NAME")]
    tls_san: Vec<String>,
    /// Who may do what: what roles and bindings allow, or everything for everybody with credentials
    #[arg(long, value_enum, default_value = "rbac")]
    authorization: Authorization,
    /// Which controllers run in the server, in the way of kube-controller-manager: '*' is all, -NAME all but that one
    ///
    /// They are namespace-controller (empties namespaces that are deleted), garbage-collector-controller (deletes what has
    /// lost its owner), serviceaccount-controller (gives namespaces the ServiceAccount default),
    /// root-ca-certificate-publisher-controller (gives namespaces the ConfigMap kube-root-ca.crt),
    /// clusterrole-aggregation-controller (keeps ClusterRoles that are the sum of others up to date), resourcequota-controller
    /// (adds up what ResourceQuotas limit, and gives back what is deleted), and persistentvolumeclaim-protection-controller,
    /// persistentvolume-protection-controller and volumeattributesclass-protection-controller (let claims, volumes and attribute
    /// classes that are deleted go once nobody uses them).
    #[arg(long, value_name = "NAMES", default_value = "*", allow_hyphen_values = true)]
    controllers: Controllers,
    /// Admission plugins to switch off, by the names that kube-apiserver has for them, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    disable_admission_plugins: Vec<String>,
    /// Admission plugins to switch on that are off by default, or to leave on even if they are switched off
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    enable_admission_plugins: Vec<String>,
    /// A file with an AdmissionConfiguration: what the admission plugin PodSecurity enforces by default, and for whom nothing is enforced
    #[arg(long, value_name = "FILE")]
    admission_control_config_file: Option<PathBuf>,
    /// Where a Service is that a webhook is behind, as NAMESPACE/NAME=ADDR:PORT; without it, at one of its ready endpoints
    #[arg(long, value_name = "SERVICE", value_parser = service_address)]
    webhook_service: Vec<(String, SocketAddr)>,
    /// The address in the endpoints of the Service default/kubernetes, if it is not that of --listen
    #[arg(long, value_name = "ADDR")]
    advertise_address: Option<IpAddr>,
    /// How long events are kept after they were last written
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, default_value = "1h")]
    event_ttl: Duration,
    /// How long a request may take that is not a watch; clients may ask for less
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, default_value = "1m")]
    request_timeout: Duration,
    /// How many connections there may be; half of them, but no more than 2000, for clients that are not authenticated
    /// [default: as many as files may be opened, less 256, but no more than 10000]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    max_connections: Option<u32>,
    /// How many requests may run at a time on one HTTP/2 connection
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..), default_value = "100")]
    http2_max_streams_per_connection: u32,
    /// How many requests that read may run at a time, half of them of one user; 0 is no limit
    ///
    /// More are answered with 429. Watches, Leases, questions after the server's health and the group system:masters do not
    /// count.
    #[arg(long, value_name = "NUMBER", default_value_t = InFlightLimits::default().read_only)]
    max_requests_inflight: usize,
    /// How many requests that write may run at a time, half of them of one user; 0 is no limit
    #[arg(long, value_name = "NUMBER", default_value_t = InFlightLimits::default().mutating)]
    max_mutating_requests_inflight: usize,
    /// How many watches may be open at a time; 0 is no limit
    #[arg(long, value_name = "NUMBER", default_value_t = InFlightLimits::default().watches)]
    max_watches: usize,
    /// How many watches a user may have open; 0 is no limit
    #[arg(long, value_name = "NUMBER", default_value_t = InFlightLimits::default().watches_per_user)]
    max_watches_per_user: usize,
    #[command(flatten)]
    shutdown: ShutdownArgs,
    /// What to log to stderr: a level, or levels by module, such as warn,watchkeeper_apiserver=debug
    #[arg(long, value_name = "FILTER", default_value = "warn")]
    log: String,
}

const EXAMPLES: &str = "\
Examples:
  watchkeeper serve --in-memory --kubeconfig kubeconfig
  watchkeeper serve --data-dir data --kubeconfig kubeconfig
  watchkeeper serve --data-dir data --listen 0.0.0.0:6443 --tls-san api.example.org
  watchkeeper serve --data-dir data --storage etcd --etcd-endpoints http://127.0.0.1:2379
  watchkeeper serve --read-only --storage kube-apiserver --etcd-snapshot snapshot.db --kubeconfig kubeconfig
  KUBECONFIG=kubeconfig kubectl get namespaces

Exit codes:
  0    stopped by a signal, all requests answered
  1    something failed: the address is in use, the data cannot be read
  2    what was given cannot be: bad arguments or files
  130  stopped by a second SIGINT, 143 by a second SIGTERM";

#[derive(Clone, Copy, ValueEnum)]
enum Authorization {
    Rbac,
    None,
}

impl Serve {
    /// Serves until a signal comes. `start` is when the process began.
    pub(crate) fn run(self, start: Instant) -> Result<(), Failure> {
        let (https, http) = self.sockets(Listener::inherited().map_err(Failure::input)?)?;
        logging::begin(&self.log)?;
        caution::disable_core_dumps();
        // What can be said before anything is touched.
        if let Some(file) = &self.kubeconfig {
            Kubeconfig::check(file).map_err(Failure::input)?;
        }
        let mut tokens = Tokens::new();
        if let Some(file) = &self.token_file {
            tokens.add_file(file).map_err(Failure::input)?;
        }
        if let Some(directory) = &self.storage.data_dir {
            caution::check_data_directory(directory)?;
        }
        let options = self.options()?;
        let runtime = host::runtime()?;
        let storage = self.storage.open(&runtime, self.read_only, &options.supervisor)?;
        // After the storage: who holds its lock has the directory to itself.
        let secrets = self.storage.data_dir.as_ref().map(|directory| directory.join("credentials"));
        let credentials = Credentials::load_or_create(secrets.as_deref()).map_err(Failure::running)?;
        let accounts = AccountTokens::load_or_create(secrets.as_deref()).map_err(Failure::running)?;
        caution::warn_of_openness(https.address(), options.authorization);
        let plan = Plan {
            storage: Arc::clone(&storage),
            credentials,
            tokens,
            accounts,
            options,
            https,
            http,
            limits: self.limits(),
            names: self.tls_san,
            advertised: self.advertise_address,
        };

        let shown = Shown { kubeconfig: self.kubeconfig.as_deref(), metrics: self.metrics_addr };
        runtime.block_on(serve(plan, shown, self.shutdown, start))?;
        // Tasks first: the storage closes when the last of them lets go of it.
        runtime.shutdown_timeout(Duration::from_secs(1));
        drop(storage);
        Ok(())
    }

    /// Where to listen: on what was inherited, otherwise where the options say.
    fn sockets(&self, mut inherited: Vec<Listener>) -> Result<(Socket, Option<Socket>), Failure> {
        let http = inherited.iter().position(|listener| listener.name() == Some("http"));
        let http = http.map(|http| Socket::Inherited(inherited.remove(http)));
        let https = inherited.pop().map_or(Socket::Address(self.listen), Socket::Inherited);
        if !inherited.is_empty() {
            return Err(Failure::input(
                "LISTEN_FDS: besides a socket called http, there can be one, on which HTTPS is served",
            ));
        }
        Ok((https, http.or(self.http.map(Socket::Address))))
    }

    fn limits(&self) -> Limits {
        let files = raise_open_files();
        let mut limits = match self.max_connections {
            Some(number) => Limits::of_connections(number as usize),
            None => Limits::of_files(files),
        };
        limits.streams = self.http2_max_streams_per_connection;
        limits
    }

    fn options(&self) -> Result<Options, Failure> {
        let mut options = Options::default();
        options.in_flight = InFlightLimits {
            read_only: self.max_requests_inflight,
            mutating: self.max_mutating_requests_inflight,
            watches: self.max_watches,
            watches_per_user: self.max_watches_per_user,
        };
        options.read_only = self.read_only;
        options.event_lifetime = self.event_ttl;
        options.request_timeout = self.request_timeout;
        self.controllers.choose(&mut options);
        options.authorization = match self.authorization {
            Authorization::Rbac => watchkeeper_apiserver::Authorization::Rbac,
            Authorization::None => watchkeeper_apiserver::Authorization::None,
        };
        let (enabled, disabled) = (&self.enable_admission_plugins, &self.disable_admission_plugins);
        let plugins = AdmissionPlugins::new(enabled.clone(), disabled.clone());
        let plugins =
            plugins.and_then(|plugins| plugins.configured(self.admission_control_config_file.as_deref()));
        plugins.map_err(Failure::input)?.choose(&mut options);
        options.service_addresses = self.webhook_service.iter().cloned().collect();
        Ok(options)
    }
}

/// Reads where a Service is: `default/hooks=127.0.0.1:9443`.
fn service_address(text: &str) -> Result<(String, SocketAddr), String> {
    let (service, address) = text.split_once('=').ok_or("expected NAMESPACE/NAME=ADDR:PORT")?;
    if service.split('/').filter(|part| !part.is_empty()).count() != 2 {
        return Err(format!("{service:?} is not NAMESPACE/NAME"));
    }
    let address = address.parse().map_err(|_| format!("{address:?} is not ADDR:PORT"))?;
    Ok((service.to_owned(), address))
}

/// Where others find the server.
struct Shown<'a> {
    kubeconfig: Option<&'a Path>,
    metrics: Option<SocketAddr>,
}

async fn serve(plan: Plan, shown: Shown<'_>, shutdown: ShutdownArgs, start: Instant) -> Result<(), Failure> {
    let mut signals = Signals::listen()?;
    let sockets = match plan.https {
        Socket::Address(_) => Sockets::Closed,
        Socket::Inherited(_) => Sockets::HandedOver,
    };
    let host = Host::start(plan).await?;
    let Host { server, front, credentials, url } = host;
    if let Some(file) = shown.kubeconfig {
        let kubeconfig = Kubeconfig::new(&url, &credentials).map_err(Failure::running)?;
        kubeconfig.write(file).map_err(Failure::running)?;
    }
    let monitor = match shown.metrics {
        Some(address) => Some(Monitor::of(address, host::part(&server))?),
        None => None,
    };
    // Whoever closed our stdout does not want to know.
    let mut stdout = io::stdout();
    let _ = writeln!(stdout, "ready in {} ms: {url}", start.elapsed().as_millis());
    let _ = stdout.flush();
    watchkeeper_memory::release_start();

    until_stopped(&mut signals, &server, front, sockets, shutdown, SHUTDOWN_GRACE).await;
    if let Some(monitor) = monitor {
        monitor.stop().await;
    }
    Ok(())
}
