use std::path::PathBuf;

use kube_client::Config;
use kube_client::config::{KubeConfigOptions, Kubeconfig};

/// How a manager gets to its cluster.
pub(crate) enum Connection {
    Client(kube_client::Client),
    /// From a kubeconfig, or from what the environment says.
    Infer {
        kubeconfig: Option<PathBuf>,
        context: Option<String>,
    },
}

/// Why there is no connection, and what to do about it.
#[derive(Debug, thiserror::Error)]
#[error("cannot find out which cluster to talk to: {reason}; looked at {looked_at}")]
pub(crate) struct NoCluster {
    reason: String,
    looked_at: String,
}

impl Connection {
    pub(crate) async fn open(self) -> Result<kube_client::Client, NoCluster> {
        let (kubeconfig, context) = match self {
            Self::Client(client) => return Ok(client),
            Self::Infer { kubeconfig, context } => (kubeconfig, context),
        };
        let looked_at = match &kubeconfig {
            Some(path) => path.display().to_string(),
            None => "$KUBECONFIG, ~/.kube/config and the service account of a pod".to_owned(),
        };
        let no = |reason: String| NoCluster { reason, looked_at: looked_at.clone() };
        let config = match (kubeconfig, context) {
            (None, None) => Config::infer().await.map_err(|error| no(error.to_string()))?,
            (path, context) => {
                let read = match path {
                    Some(path) => Kubeconfig::read_from(path),
                    None => Kubeconfig::read(),
                };
                let options = KubeConfigOptions { context, ..KubeConfigOptions::default() };
                let kubeconfig = read.map_err(|error| no(error.to_string()))?;
                Config::from_custom_kubeconfig(kubeconfig, &options)
                    .await
                    .map_err(|error| no(error.to_string()))?
            }
        };
        watchkeeper_sources::kubernetes::client(config).map_err(|error| no(error.to_string()))
    }
}
