//! `watchkeeper describe`: what the programs in this one are, for `watchkeeper generate`.

use std::io::{self, Write as _};

use clap::{Args, ValueEnum};
use watchkeeper_apiserver::METRICS;
use watchkeeper_description::{API_VERSION, Description, Metric, Port, Rights, Run, ServedPort, Volume};

use crate::failure::Failure;

/// Print what a part of this program is and what it asks of a cluster, as JSON
///
/// It is what operators print about themselves; `watchkeeper generate --description -` makes manifests, a chart, alerts and dashboards of it.
#[derive(Args)]
#[command(after_help = "\
Examples:
  watchkeeper describe gateway | watchkeeper generate --description - --output deploy/gateway
  watchkeeper describe serve | watchkeeper generate --description - --output deploy/apiserver

Exit codes: 0 printed, 1 something failed, 2 wrong arguments.")]
pub(crate) struct Describe {
    /// Which part
    #[arg(value_enum)]
    part: Part,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// The API server
    Serve,
    /// The gateway
    Gateway,
}

impl Describe {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let description = match self.part {
            Part::Serve => api_server(),
            Part::Gateway => watchkeeper_gateway::description(),
        };
        let text = serde_json::to_string_pretty(&description).map_err(Failure::running)?;
        writeln!(io::stdout(), "{text}").map_err(Failure::running)
    }
}

/// Where the API server listens, and where it has its probes and metrics.
const PORT: u16 = 6443;
const METRICS_PORT: u16 = 8080;

/// It asks nothing of the cluster that it runs in, and keeps its objects on a volume.
fn api_server() -> Description {
    let arguments = [
        "serve",
        "--data-dir=/data/apiserver",
        &format!("--listen=0.0.0.0:{PORT}"),
        "--tls-san={name}",
        "--tls-san={name}.{namespace}",
        "--tls-san={name}.{namespace}.svc",
    ];
    let metric = |(name, kind, help): &(&str, &str, &str)| Metric {
        name: (*name).to_owned(),
        kind: (*kind).to_owned(),
        help: (*help).to_owned(),
    };
    Description {
        api_version: API_VERSION.to_owned(),
        name: "watchkeeper-apiserver".to_owned(),
        version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        about: Some("The API of Kubernetes, with a storage of its own".to_owned()),
        definitions: Vec::new(),
        controllers: Vec::new(),
        caches: Vec::new(),
        rights: Rights::default(),
        election: None,
        metrics_port: Some(Port { port: METRICS_PORT, option: Some("--metrics-addr".to_owned()) }),
        install_option: None,
        namespaces_option: None,
        metrics: METRICS.iter().map(metric).collect(),
        webhooks: Vec::new(),
        webhook_port: None,
        webhook_arguments: Vec::new(),
        run: Run {
            component: "apiserver".to_owned(),
            program: Some("watchkeeper".to_owned()),
            arguments: arguments.map(str::to_owned).into(),
            log_option: Some("--log".to_owned()),
            ports: vec![ServedPort { name: "https".to_owned(), port: 443, target: PORT }],
            memory: "1Gi".to_owned(),
            volume: Some(Volume { path: "/data".to_owned(), size: "1Gi".to_owned() }),
            scratch: None,
        },
        grace_seconds: crate::serve::SHUTDOWN_GRACE.as_secs(),
    }
}
