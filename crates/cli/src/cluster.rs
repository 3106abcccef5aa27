//! Which cluster a command talks to, and the way there.

use std::env;
use std::error::Error as StdError;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use watchkeeper_connection::{Config, Connection, Kubeconfig, KubeconfigError};
use watchkeeper_core::text::causes;

use crate::failure::Failure;

/// A server that does not answer within this time does not answer.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Args)]
#[command(next_help_heading = "Which cluster")]
pub(crate) struct ClusterArguments {
    /// The kubeconfig to use [default: $KUBECONFIG, ~/.kube/config, or the service account of the pod]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig [default: its current one]
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

/// A cluster that was found. Nothing was sent to it yet.
pub(crate) struct Cluster {
    pub(crate) connection: Connection,
    pub(crate) url: String,
    /// The namespace of those who name none.
    pub(crate) namespace: String,
}

impl ClusterArguments {
    /// The way to the cluster, for those who talk to it by way of a [`Connection`] only.
    pub(crate) async fn connection(&self) -> Result<Connection, Failure> {
        let found = match (&self.kubeconfig, &self.context) {
            (Some(file), context) => Connection::from_kubeconfig(file, context.as_deref()).await,
            (None, Some(context)) => Connection::from_context(context).await,
            (None, None) => Connection::infer().await,
        };
        found.map_err(Failure::input)
    }

    /// Finds the cluster as kubectl does. Must be called within a tokio runtime.
    pub(crate) async fn find(&self) -> Result<Cluster, Failure> {
        let config = self.config()?.connect_timeout(CONNECT_TIMEOUT);
        let (url, namespace) = (config.url(), config.default_namespace().to_owned());
        let connection = Connection::new(config).map_err(Failure::input)?;
        Ok(Cluster { connection, url, namespace })
    }

    fn config(&self) -> Result<Config, Failure> {
        let kubeconfig = match &self.kubeconfig {
            Some(file) => Some(Kubeconfig::read(file)),
            None => Kubeconfig::from_environment().transpose(),
        };
        let Some(kubeconfig) = kubeconfig else {
            return match env::var_os("KUBECONFIG").filter(|named| !named.is_empty()) {
                Some(_) => Err(missing()),
                None => Config::in_cluster().map_err(|_| nowhere()),
            };
        };
        let config = Config::from_kubeconfig(&kubeconfig.map_err(Failure::input)?, self.context.as_deref());
        config.map_err(|error| match error {
            KubeconfigError::NoCurrentContext { contexts } => Failure::input(format!(
                "the kubeconfig has no current context, choose one with --context: {}",
                listed(&contexts)
            )),
            error => Failure::input(error),
        })
    }
}

fn missing() -> Failure {
    let files = Kubeconfig::usual_files();
    let names = files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(", ");
    Failure::input(format!(
        "$KUBECONFIG names {names}, which does not exist; `watchkeeper up` makes a cluster and its kubeconfig"
    ))
}

fn nowhere() -> Failure {
    Failure::input(
        "no cluster: --kubeconfig is not given, $KUBECONFIG is not set, ~/.kube/config does not exist, and this is not a pod of a \
         cluster; `watchkeeper up` starts a cluster to try things on",
    )
}

fn listed(contexts: &[String]) -> String {
    if contexts.is_empty() { "it has none".to_owned() } else { format!("it has {}", contexts.join(", ")) }
}

/// An error and what caused it, on one line, each said once.
pub(crate) fn reasons(error: &dyn StdError) -> String {
    plainly(&causes(error).split_whitespace().collect::<Vec<_>>().join(" ")).to_owned()
}

/// What the layers of a connection tell each other, as far as it helps a person.
pub(crate) fn plainly(text: &str) -> &str {
    if text.contains("without sending TLS close_notify") || text.contains("onnection reset") {
        return "the server closed it";
    }
    let reason = text.strip_prefix("cannot connect to ").and_then(|rest| Some(rest.split_once(": ")?.1));
    reason.unwrap_or(text)
}
