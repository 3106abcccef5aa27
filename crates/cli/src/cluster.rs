//! Which cluster a command talks to, and the way there.

use std::env;
use std::error::Error as StdError;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use kube_client::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube_client::{Client, Config};
use watchkeeper_core::text::causes;
use watchkeeper_sources::kubernetes::Connection;

use crate::failure::Failure;

/// A server that does not answer within this time does not answer.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

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
    pub(crate) client: Client,
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
        let mut config = self.config().await?;
        config.connect_timeout = Some(CONNECT_WITHIN);
        let url = config.cluster_url.to_string().trim_end_matches('/').to_owned();
        let namespace = config.default_namespace.clone();
        let client = watchkeeper_sources::kubernetes::client(config)
            .map_err(|error| Failure::input(format!("the kubeconfig cannot be used: {}", reasons(&error))))?;
        Ok(Cluster { client, url, namespace })
    }

    async fn config(&self) -> Result<Config, Failure> {
        let Some(kubeconfig) = self.kubeconfig()? else {
            return Config::incluster().map_err(|_| nowhere());
        };
        let options = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        let contexts: Vec<String> = kubeconfig.contexts.iter().map(|context| context.name.clone()).collect();
        let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
        config.map_err(|error| match error {
            KubeconfigError::LoadContext(name) => Failure::input(format!(
                "there is no context {name:?} in the kubeconfig: {}",
                listed(&contexts)
            )),
            KubeconfigError::CurrentContextNotSet => Failure::input(format!(
                "the kubeconfig has no current context, choose one with --context: {}",
                listed(&contexts)
            )),
            error => Failure::input(format!("the kubeconfig cannot be used: {}", reasons(&error))),
        })
    }

    /// What the files say, or `None` if there is no file and none was named.
    fn kubeconfig(&self) -> Result<Option<Kubeconfig>, Failure> {
        if let Some(file) = &self.kubeconfig {
            return read(file).map(Some);
        }
        let named = env::var_os("KUBECONFIG").unwrap_or_default();
        let named: Vec<PathBuf> =
            env::split_paths(&named).filter(|file| !file.as_os_str().is_empty()).collect();
        if named.is_empty() {
            let usual = env::home_dir().map(|home| home.join(".kube").join("config"));
            return usual.filter(|file| file.exists()).map(|file| read(&file)).transpose();
        }
        // As kubectl does: a file that is not there (yet) is passed over, the first to say something wins.
        let mut merged = Kubeconfig::default();
        let there: Vec<&PathBuf> = named.iter().filter(|file| file.exists()).collect();
        if there.is_empty() {
            let names = named.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(", ");
            return Err(Failure::input(format!(
                "$KUBECONFIG names {names}, which does not exist; `watchkeeper up` makes a cluster and its kubeconfig"
            )));
        }
        for file in there {
            merged = merged
                .merge(read(file)?)
                .map_err(|error| Failure::input(format!("{}: {}", file.display(), reasons(&error))))?;
        }
        Ok(Some(merged))
    }
}

fn read(file: &Path) -> Result<Kubeconfig, Failure> {
    Kubeconfig::read_from(file).map_err(|error| {
        let reason = match &error {
            KubeconfigError::ReadConfig(error, _) => error.to_string(),
            other => reasons(other),
        };
        Failure::input(format!("kubeconfig {}: {reason}", file.display()))
    })
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
    match text.rsplit_once(" error: ") {
        Some((_, last)) => last,
        None => text.strip_prefix("ServiceError: ").unwrap_or(text),
    }
}
