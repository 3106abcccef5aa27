use std::path::PathBuf;

use watchkeeper_sources::kubernetes::{ConnectError, Connection};

/// How a manager gets to its cluster.
pub(crate) enum Target {
    Connected(Connection),
    /// From a kubeconfig, or from what the environment says.
    Infer {
        kubeconfig: Option<PathBuf>,
        context: Option<String>,
    },
}

impl Target {
    pub(crate) async fn connect(self) -> Result<Connection, ConnectError> {
        match self {
            Self::Connected(connection) => Ok(connection),
            Self::Infer { kubeconfig: Some(file), context } => {
                Connection::from_kubeconfig(file, context.as_deref()).await
            }
            Self::Infer { kubeconfig: None, context: Some(context) } => {
                Connection::from_context(&context).await
            }
            Self::Infer { kubeconfig: None, context: None } => Connection::infer().await,
        }
    }
}
